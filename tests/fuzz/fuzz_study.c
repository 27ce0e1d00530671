/* Study files: whatever their text says, they are read or refused. */
#include "eval/design/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_study *study;
    struct lk_study_job job;
    if (lk_study_parse(&study, (const char *)data, size, "/")) return 0;
    size_t n = lk_study_n_jobs(study);
    for (size_t i = 0; i < n; i += n / 7 + 1) lk_study_job(study, i, &job);
    lk_study_close(study);
    return 0;
}
