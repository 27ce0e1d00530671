/* A judge's answer alone and as a file. A valid one has five scores from 1 to 5 (or a role), an invalid one none and a
 * reason; records are all counted. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/judge/answers.h"
#include "eval/study/prompts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

/* All five, or none of them. */
static bool is_whole(const uint8_t score[LK_N_AXES], int8_t role) {
    int n = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        if (score[a] > 5) return false;
        n += score[a] > 0;
    }
    return n == LK_N_AXES || (n == 0 && role != LK_ROLE_NONE);
}

static void read_one(const uint8_t *bytes, size_t size, int prompt) {
    struct lk_store texts = {0};
    struct lk_judge_answer answer;
    enum lk_code rc = lk_judge_answer_read((const char *)bytes, size, prompt, &texts, &answer);
    if (rc) {
        static const uint8_t none[LK_N_AXES];
        check(rc == LK_E_INPUT && *lk_error_text() && !memcmp(answer.score, none, sizeof none));
    } else {
        check(is_whole(answer.score, answer.role) && answer.evidence);
    }
    lk_store_free(&texts);
}

static void read_file(const uint8_t *bytes, size_t size) {
    struct lk_dataset data;
    struct lk_judge_report report = {0};
    lk_dataset_init(&data);
    enum lk_code rc =
        lk_judge_answers_read(&data, (const char *)bytes, size, "input", &(struct lk_judge_import){0}, &report);
    check(!rc || rc == LK_E_JSON);
    check(report.n_matched + report.n_repeated + report.n_invalid + report.n_unknown == report.n_records);
    check(report.rejects.n == report.n_invalid + report.n_unknown && data.n_items == report.n_matched);
    for (size_t i = 0; i < data.n_items; i++) check(is_whole(data.items[i].judge[0], data.items[i].judge_role[0]));
    for (size_t i = 0; i < report.rejects.n; i++) check(report.rejects.list[i].line && *report.rejects.list[i].reason);
    lk_judge_report_free(&report);
    lk_dataset_free(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_one(data, size, 0);
    read_one(data, size, LK_PROMPT_V03);
    read_one(data, size, LK_N_EDIT_PROMPTS);
    read_file(data, size);
    check(lk_alloc_live() == 0);
    return 0;
}
