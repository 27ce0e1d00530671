/* Files of the text-to-image study, told by the first byte: a prompt table, a distribution, a fair instruction
 * and, behind a NUL, a prompt, or a log and, behind a NUL, labels. What is accepted can be used, and a prompt table is
 * read back as it was written. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/t2i/fair.h"
#include "eval/t2i/report.h"
#include "models/sd/sega.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void prompts(const char *text, size_t n) {
    struct lk_t2i_prompts first, second;
    struct lk_text written = {0}, again = {0};
    if (lk_t2i_prompts_read(&first, text, n, "input")) return;
    check(!lk_t2i_prompts_mitigate(&first, 1) && !lk_t2i_prompts_csv(&first, LK_T2I_ALL_COLUMNS, &written));
    check(!lk_t2i_prompts_read(&second, written.bytes, written.n, "written"));
    check(!lk_t2i_prompts_mitigate(&second, 1) && !lk_t2i_prompts_csv(&second, LK_T2I_ALL_COLUMNS, &again));
    check(!strcmp(written.bytes, again.bytes));
    lk_text_free(&written);
    lk_text_free(&again);
    lk_t2i_prompts_free(&first);
    lk_t2i_prompts_free(&second);
}

static void labels(const char *text, size_t n) {
    struct lk_t2i_images images;
    struct lk_t2i_metrics metrics;
    struct lk_t2i_options options = {.how = {42, 2, 0.95, NULL, 1}};
    size_t n_log = 0;
    while (n_log < n && text[n_log]) n_log++;
    lk_t2i_images_init(&images);
    enum lk_code rc = n_log < n ? lk_t2i_images_log(&images, text, n_log, "log") : LK_OK;
    if (n_log < n) {
        text += n_log + 1;
        n -= n_log + 1;
    }
    if (!rc) rc = lk_t2i_images_labels(&images, text, n, "labels");
    if (!rc) rc = lk_t2i_images_finish(&images);
    check(!lk_t2i_distribution_uniform(&options.target));
    options.reference = options.target;
    if (!rc && images.n < 200 && !lk_t2i_metrics_compute(&metrics, &images, &options)) {
        struct lk_table *table;
        check(!lk_t2i_table(&metrics, LK_T2I_TABLE_FAIR, &table));
        lk_table_free(table);
        lk_t2i_metrics_free(&metrics);
    }
    lk_t2i_images_free(&images);
}

static void fair(const char *text, size_t n) {
    struct lk_fair f;
    const char *end = memchr(text, 0, n), *concepts[LK_FAIR_MAX_CONCEPTS];
    const size_t n_file = end ? (size_t)(end - text) : n;
    char *prompt = lk_strndup(end ? end + 1 : "a thief", end ? n - n_file - 1 : 7);
    int rule;
    const int8_t none[LK_FAIR_MAX_ATTRIBUTES] = {0};
    if (!lk_fair_read(&f, text, n_file, "input") && !lk_fair_rule(&f, prompt, &rule) && rule >= 0) {
        int32_t levels[5];
        for (int i = 0; i < f.rules[rule].n_attributes; i++)
            lk_fair_deal(&f, f.rules[rule].attributes[i], "quota", 1, "p", levels, 5);
        const int n_concepts = lk_fair_concepts(&f, rule, none, concepts);
        check(n_concepts > 0 && n_concepts <= LK_FAIR_MAX_CONCEPTS);
        for (int i = 0; i < n_concepts; i++) check(!lk_sega_concept_check("", concepts[i], NULL));
    }
    lk_fair_free(&f);
    lk_free(prompt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_t2i_distribution distribution;
    if (!size) return 0;
    const char *text = (const char *)data + 1;
    if (data[0] == 'p')
        prompts(text, size - 1);
    else if (data[0] == 'd')
        lk_t2i_distribution_read(&distribution, text, size - 1, "input");
    else if (data[0] == 'f')
        fair(text, size - 1);
    else
        labels(text, size - 1);
    check(lk_alloc_live() == 0);
    return 0;
}
