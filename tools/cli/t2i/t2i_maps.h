/* t2i attention --maps DIR: where in a picture its words are looked for. */
#pragma once

#include "engine/base/text.h"
#include "models/attended.h"
#include "tools/cli/core/options.h"

struct cli_maps {
    const char *folder;   /* NULL: none are asked for */
    struct lk_text table; /* words.csv */
};

/* Refuses a folder that has another run's table. */
enum lk_code cli_maps_begin(struct cli_maps *maps, const struct cli_arguments *arguments);
/* A picture's files: NAME.safetensors with the map of each of its words [height, width], and NAME_WORD.png, the picture
 * darker where the word's map is lower. words [attended->n_words]. */
enum lk_code cli_maps_add(struct cli_maps *maps, const char *file_path, const char *const *words,
                          const struct lk_attended *attended, const struct lk_image *picture);
/* Writes words.csv unless rc is a failure, and frees. Gives rc or its own. */
enum lk_code cli_maps_end(struct cli_maps *maps, enum lk_code rc);
