/* The library's one header: open a model, plan, edit with progress and a way to stop, write and read recipes, ask a
 * vision-language model. tools/examples/edit.c is a whole program. Functions return LK_OK or a code whose text is in
 * lk_error_text(); names begin with lk_, constants with LK_. */
#pragma once

#include "engine/base/alloc.h"
#include "engine/base/status.h"
#include "engine/device.h"
#include "engine/image/image.h"
#include "models/parameters.h"
#include "models/pipeline.h"
#include "models/recipe.h"
#include "models/session.h"
#include "models/text/chat.h"
