/* Reads drawn portraits back from their pixels, before and after an edit, and says what the edit did: whether it is
 * what was asked, and what else changed in the person.
 *
 *     make_measure --from RUN                                # of every picture of a run, as likeness judge reads them
 *     make_measure --pairs IMAGES.jsonl                      # item_id, source, edited
 *     make_measure --raw FILE [--size N] [--edited RAW]      # pairs of make_pairs with FILE.jsonl; RAW: other afters
 *     make_measure SOURCE.png EDITED.png PROMPT
 *
 * A line of JSON for each pair on stdout, with "scores" as a judge gives them, so that `likeness report --primary`
 * reads the lines; how many edits are right on stderr. A source picture that several pairs share is read once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "tools/cli/audit/audit.h"
#include "tools/portrait/portrait.h"

struct measuring {
    struct lk_prompts prompts;
    struct portrait before; /* of the last source */
    char *source;
    size_t n, n_right, n_none, n_bad; /* none: pictures that are no drawings */
};

static void print_names(const char *key, const struct portrait *asked, const struct portrait *after) {
    bool any = false;
    printf(",\"%s\":[", key);
    for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
        if (portrait_shows(asked, f) && portrait_shows(after, f) && asked->level[f] != after->level[f]) {
            printf("%s\"%s\"", any ? "," : "", portrait_field_name(f));
            any = true;
        }
    printf("]");
}

static void print_scores(const struct edit *edit, const struct portrait_change *change) {
    uint8_t score[LK_N_AXES];
    portrait_scores(change, score);
    printf(",\"scores\":{");
    for (int a = 0; a < LK_N_AXES; a++) {
        bool accuracy = a == LK_AXIS_AGE_DRIFT && edit->instruction == LK_PROMPT_V03;
        printf("%s\"%s\":%d", a ? "," : "", accuracy ? "age_accuracy" : lk_factor_key(LK_FACTOR_AXIS, a), score[a]);
    }
    printf("}");
}

/* id is printed as a JSON string. */
static enum lk_code report(struct measuring *m, const char *id, const struct edit *edit, const uint8_t *after_rgb,
                           int size) {
    struct portrait after, asked;
    struct portrait_change change;
    struct lk_text name = {0};
    lk_text_json(&name, id);
    if (name.rc) return name.rc;
    double misfit = portrait_read(after_rgb, size, &m->before, &after);
    edit_apply(edit, &m->before, &asked);
    portrait_compare(edit, &m->before, &after, misfit, &change);
    printf("{\"item_id\":%s,\"prompt_id\":\"%s\",\"right\":%s,\"asked\":%d,\"done\":%d,\"others\":%d,\"tone\":%d,"
           "\"lightness\":%.2f,"
           "\"older\":%d,\"gender\":%s,\"looks\":%d,\"misfit\":%.2f",
           name.bytes, edit_instruction(edit->instruction)->id, change.right ? "true" : "false", change.n_asked,
           change.n_done, change.n_others, change.lighter, change.lightness, change.older,
           change.gender ? "true" : "false", change.n_looks, misfit);
    lk_text_free(&name);
    print_names("not_as_asked", &asked, &after);
    if (misfit <= PORTRAIT_MISFIT)
        print_scores(edit, &change);
    else
        m->n_none++;
    printf("}\n");
    m->n++;
    m->n_right += change.right;
    return LK_OK;
}

static enum lk_code load(struct lk_image *image, const char *path) {
    struct lk_image read;
    LK_TRY(lk_image_read(&read, path, 1, 0));
    enum lk_code rc = lk_image_to_rgb(image, &read);
    lk_image_free(&read);
    if (!rc && (image->width != image->height || image->width < 16)) {
        rc = lk_fail(LK_E_IMAGE_SIZE, "%s: expected a square picture of 16 pixels or more, got %dx%d", path,
                     image->width, image->height);
        lk_image_free(image);
    }
    return rc;
}

static enum lk_code read_source(struct measuring *m, const char *path) {
    struct lk_image image;
    if (m->source && !strcmp(m->source, path)) return LK_OK;
    LK_TRY(load(&image, path));
    portrait_read(image.pixels, image.width, NULL, &m->before);
    lk_image_free(&image);
    lk_free(m->source);
    m->source = lk_strdup(path);
    return m->source ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
}

static enum lk_code measure_files(struct measuring *m, const char *id, const struct edit *edit, const char *source,
                                  const char *edited) {
    struct lk_image image;
    LK_TRY(read_source(m, source));
    LK_TRY(load(&image, edited));
    enum lk_code rc = report(m, id, edit, image.pixels, image.width);
    lk_image_free(&image);
    return rc;
}

static enum lk_code measure_item(struct measuring *m, const struct cli_pair *pair) {
    struct lk_item item;
    LK_TRY(lk_dataset_id_parts(pair->asked_as, strlen(pair->asked_as), &item));
    if (item.prompt >= EDITS_N_STUDY)
        return lk_fail(LK_E_INPUT, "%s: expected a prompt of O-01 to V-10", pair->item_id);
    const struct edit edit = {.instruction = item.prompt, .preserve = item.arm == LK_ARM_PRESERVED};
    return measure_files(m, pair->item_id, &edit, pair->source, pair->edited);
}

static int by_source(const void *a, const void *b) {
    return strcmp(((const struct cli_pair *)a)->source, ((const struct cli_pair *)b)->source);
}

static enum lk_code measure_pairs(struct measuring *m, const struct cli_report_arguments *of) {
    struct cli_pairs pairs;
    const char *path = cli_pairs_name(of);
    enum lk_code rc = cli_pairs_of(&pairs, of, true);
    if (!rc) cli_print_rejects(path, &pairs.rejects);
    for (size_t i = 0; i < pairs.n && !rc; i++)
        if (!pairs.list[i].source) rc = lk_fail(LK_E_INPUT, "%s: %s has two sources", path, pairs.list[i].item_id);
    if (!rc && pairs.n) qsort(pairs.list, pairs.n, sizeof *pairs.list, by_source);
    for (size_t i = 0; i < pairs.n && !rc; i++) rc = measure_item(m, &pairs.list[i]);
    m->n_bad = pairs.rejects.n;
    cli_pairs_free(&pairs);
    return rc;
}

/* The next picture of a raw file. */
static enum lk_code next(FILE *file, const char *path, uint8_t *rgb, size_t bytes) {
    return fread(rgb, bytes, 1, file) == 1 ? LK_OK : lk_fail(LK_E_INPUT, "%s: ends before its last pair", path);
}

static enum lk_code measure_record(struct measuring *m, const struct lk_records *records, FILE *raw, FILE *edited,
                                   const char *path, int size, uint8_t *rgb) {
    size_t bytes = (size_t)size * (size_t)size * 3;
    const struct lk_field *prompt = lk_fields_find(&records->fields, "prompt");
    const struct lk_field *index = lk_fields_find(&records->fields, "index");
    struct edit edit;
    if (!prompt || !index) return lk_fail(LK_E_INPUT, "line %zu: expected \"prompt\" and \"index\"", records->line);
    LK_TRY(edit_parse(prompt->text, &m->prompts, &edit));
    LK_TRY(next(raw, path, rgb, bytes));
    portrait_read(rgb, size, NULL, &m->before);
    LK_TRY(next(raw, path, rgb, bytes));
    if (edited) LK_TRY(next(edited, "--edited", rgb, bytes));
    return report(m, index->text, &edit, rgb, size);
}

static enum lk_code measure_raw(struct measuring *m, const char *path, const char *edited_path, int size) {
    char *name = lk_format("%s.jsonl", path), *text = NULL;
    uint8_t *rgb = lk_malloc((size_t)size * (size_t)size * 3);
    FILE *raw = fopen(path, "rb"), *edited = edited_path ? fopen(edited_path, "rb") : NULL;
    struct lk_records records = {0};
    size_t n = 0;
    bool more = true;
    enum lk_code rc = LK_OK;
    if (!name || !rgb) rc = lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc && (!raw || (edited_path && !edited)))
        rc = lk_fail(LK_E_NOT_FOUND, "%s: cannot be read", raw ? edited_path : path);
    if (!rc) rc = lk_read_file(name, LK_SCORES_MAX_BYTES, &text, &n);
    if (!rc) rc = lk_records_open(&records, text, n, name);
    while (!rc && !(rc = lk_records_next_strict(&records, &more)) && more)
        rc = measure_record(m, &records, raw, edited, path, size, rgb);
    lk_records_close(&records);
    if (raw) fclose(raw);
    if (edited) fclose(edited);
    lk_free(text);
    lk_free(rgb);
    lk_free(name);
    return rc;
}

static enum lk_code run(struct measuring *m, int argc, char **argv) {
    const char *pairs = NULL, *from = NULL, *raw = NULL, *edited = NULL, *plain[3];
    int size = 64, n_plain = 0;
    char rest;
    for (int i = 1; i < argc; i++) {
        const char **value = !strcmp(argv[i], "--pairs")    ? &pairs
                             : !strcmp(argv[i], "--from")   ? &from
                             : !strcmp(argv[i], "--raw")    ? &raw
                             : !strcmp(argv[i], "--edited") ? &edited
                                                            : NULL;
        if (value && i + 1 < argc)
            *value = argv[++i];
        else if (!strcmp(argv[i], "--size") && i + 1 < argc) {
            if (sscanf(argv[++i], "%5d%c", &size, &rest) != 1 || size < 16 || size > 4096)
                return lk_fail(LK_E_USAGE, "--size: expected 16 to 4096, got \"%s\"", argv[i]);
        } else if (argv[i][0] != '-' && n_plain < 3)
            plain[n_plain++] = argv[i];
        else
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
    }
    if (!!pairs + !!from + !!raw + (n_plain == 3) != 1 || n_plain % 3)
        return lk_fail(LK_E_USAGE,
                       "usage: make_measure --from RUN | --pairs FILE.jsonl | --raw FILE | SOURCE EDITED PROMPT");
    LK_TRY(lk_prompts_load(&m->prompts));
    if (pairs) return measure_pairs(m, &(struct cli_report_arguments){.pairs = pairs});
    if (from) return measure_pairs(m, &(struct cli_report_arguments){.runs = {{from}, 1}});
    if (raw) return measure_raw(m, raw, edited, size);
    struct edit edit;
    LK_TRY(edit_parse(plain[2], &m->prompts, &edit));
    return measure_files(m, plain[1], &edit, plain[0], plain[1]);
}

int main(int argc, char **argv) {
    struct measuring m = {0};
    enum lk_code rc = run(&m, argc, argv);
    if (rc)
        fprintf(stderr, "make_measure: %s\n", lk_error_text());
    else
        fprintf(stderr, "%zu of %zu edits are right\n", m.n_right, m.n);
    if (!rc && m.n_none) fprintf(stderr, "%zu pictures are no drawings and have no scores\n", m.n_none);
    lk_prompts_free(&m.prompts);
    lk_free(m.source);
    if (!rc && m.n_bad) rc = LK_E_PARTIAL;
    return lk_exit_code(rc);
}
