/* Label tables. What is accepted is in range. */
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/scores/labels.h"
#include "eval/study/factors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_labels labels;
    if (lk_labels_read(&labels, (const char *)data, size, "input")) {
        check(*lk_error_text() && !labels.list && !labels.n);
        check(lk_alloc_live() == 0);
        return 0;
    }
    for (size_t i = 0; i < labels.n; i++) {
        const struct lk_label *l = &labels.list[i];
        check(*l->file_path && l->seed >= -1 && l->race < LK_N_RACES && l->gender < LK_N_GENDERS);
        check(l->age < LK_N_AGE_BRACKETS && l->skin_tone < LK_N_SKIN_CLASSES);
        check(l->face_found || (l->race < 0 && l->gender < 0 && l->age < 0));
        check(!(l->race_conf < 0) && !(l->race_conf > 1) && !(l->skin_value > 90));
    }
    lk_labels_free(&labels);
    check(lk_alloc_live() == 0);
    return 0;
}
