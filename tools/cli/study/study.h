/* Actions of `study`: each has the study open. */
#pragma once

#include "eval/design/study.h"
#include "tools/cli/core/options.h"
