/* Labels of a face classifier, one line an image: the text-to-image study's labels.csv, and FairFace's own tables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/names.h"
#include "engine/base/status.h"
#include "engine/base/store.h"

enum { LK_N_AGE_BRACKETS = 9, LK_N_SKIN_CLASSES = 6 };

struct lk_label {
    const char *file_path, *prompt_id, *model_tag; /* "" when the table has no such column */
    int64_t seed;                                  /* -1 not known */
    double cfg;                                    /* NaN not known */
    bool face_found;
    int8_t race, gender;                    /* levels of factors.h, -1 without a face or column */
    int8_t age;                             /* 0..8: 0-2, 3-9, 10-19, .., 60-69, more than 70; -1 */
    float race_conf, gender_conf, age_conf; /* 0..1, NaN not given */
    int8_t skin_tone;                       /* 0 very light .. 5 dark, -1 */
    double skin_value;                      /* ITA in degrees, NaN */
};

struct lk_labels {
    struct lk_label *list;
    size_t n, capacity;
    struct lk_store texts;
    struct lk_names unread; /* columns */
};

/* CSV with file_path (or file, face_name_align, img_name) and at least one of race, gender, age. A word that is no
 * level, a confidence outside 0..1 and a label without a face are faults: LK_E_INPUT with line and column; out is then
 * empty. */
enum lk_code lk_labels_read(struct lk_labels *out, const char *text, size_t n, const char *name);
void lk_labels_free(struct lk_labels *labels);
/* "20-29"; "more than 70" for the last. */
const char *lk_age_bracket_name(int age);
int lk_age_bracket_parse(const char *text, size_t n); /* also "70+", "20s"; -1 when it is none */
const char *lk_skin_class_name(int skin_class);       /* "very light" .. "dark" */
