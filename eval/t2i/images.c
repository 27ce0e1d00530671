#include "eval/t2i/images.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/words.h"
#include "eval/scores/level.h"
#include "eval/study/factors.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "labels: out of memory"); }

void lk_t2i_images_init(struct lk_t2i_images *images) { *images = (struct lk_t2i_images){0}; }

void lk_t2i_images_free(struct lk_t2i_images *images) {
    for (size_t i = 0; i < images->files.n && images->rejects; i++) lk_rejects_free(&images->rejects[i]);
    lk_free(images->rejects);
    lk_free(images->list);
    lk_free(images->log);
    lk_free(images->unmade);
    lk_names_free(&images->models);
    lk_names_free(&images->ids);
    lk_names_free(&images->files);
    lk_names_free(&images->fair_levels);
    lk_names_free(&images->logged);
    lk_store_free(&images->texts);
    lk_text_free(&images->more);
    lk_t2i_images_init(images);
}

/* arm and mode, columns that the log and labels may have. */
static enum lk_code read_arm(const struct lk_csv *csv, int8_t *arm, bool *canvas) {
    int arm_column = lk_csv_column(csv, "arm"), mode_column = lk_csv_column(csv, "mode");
    const char *mode = lk_csv_cell(csv, mode_column);
    int parsed = lk_t2i_arm_parse(lk_csv_cell(csv, arm_column));
    if (parsed < 0)
        return lk_csv_fail(csv, arm_column,
                           "expected none, rewrite, diversity, safety, post_filter, embed_norm or fair, got \"%.40s\"",
                           lk_csv_cell(csv, arm_column));
    *arm = (int8_t)parsed;
    *canvas = lk_same_name(mode, "canvas");
    if (!lk_is_missing(mode, strlen(mode)) && !*canvas && !lk_same_name(mode, "text"))
        return lk_csv_fail(csv, mode_column, "expected text or canvas, got \"%.40s\"", mode);
    return LK_OK;
}

/* Piece k of names joined by "+"; its length, 0 where there is none. */
static size_t piece(const char *names, int k, const char **out) {
    for (*out = names; k && **out; k--) *out += strcspn(*out, "+") + (strchr(*out, '+') ? 1 : 0);
    return strcspn(*out, "+");
}

/* What a fair instruction asked for, columns that the log and labels may have: names joined by "+". A level without a
 * label is its own. */
static enum lk_code read_fair(struct lk_t2i_images *images, const struct lk_csv *csv, struct lk_t2i_fair *out) {
    static const char *const names[] = {"fair_attribute", "fair_level", "fair_label"};
    int columns[3];
    for (int i = 0; i < 3; i++) columns[i] = lk_csv_column(csv, names[i]);
    if (columns[2] < 0) columns[2] = columns[1];
    for (int k = 0; k <= LK_T2I_MAX_FAIR; k++) {
        const char *at[3];
        size_t n[3];
        int32_t number = -1;
        for (int i = 0; i < 3; i++) n[i] = piece(lk_csv_cell(csv, columns[i]), k, &at[i]);
        for (int i = 0; i < 3; i++)
            if (!n[i] != !n[0] || (!n[i] && *at[i]) || (n[i] && k == LK_T2I_MAX_FAIR))
                return lk_csv_fail(csv, columns[i],
                                   "expected %s of at most %d names joined by +, as in %s, got \"%.80s\"", names[i],
                                   LK_T2I_MAX_FAIR, names[!i], lk_csv_cell(csv, columns[i]));
        struct lk_text text = {0};
        for (int i = 0; i < 3; i++) {
            lk_text_bytes(&text, at[i], n[i]);
            if (i < 2) lk_text_add(&text, "\t");
        }
        enum lk_code rc =
            text.rc || !n[0] ? text.rc : lk_names_number(&images->fair_levels, text.bytes, text.n, &number);
        lk_text_free(&text);
        if (rc) return rc;
        if (number > INT16_MAX) return lk_csv_fail(csv, columns[1], "expected at most %d levels", INT16_MAX);
        if (k < LK_T2I_MAX_FAIR) out->of[k] = (int16_t)number;
    }
    return LK_OK;
}

static enum lk_code log_number(const struct lk_csv *csv, int column, double max, double *out) {
    const char *text = lk_csv_cell(csv, column);
    *out = NAN;
    if (lk_is_missing(text, strlen(text))) return LK_OK;
    if (!lk_decimal_of_text(text, strlen(text), out) || !(*out >= 0 && *out <= max))
        return lk_csv_fail(csv, column, "expected a number from 0 to %g, got \"%.40s\"", max, text);
    return LK_OK;
}

/* What came of asking for the picture: columns that a log may have. */
static enum lk_code read_asked(struct lk_t2i_images *images, const struct lk_csv *csv, struct lk_t2i_logged *line) {
    const int column = lk_csv_column(csv, "outcome"), outcome = lk_outcome_parse(lk_csv_cell(csv, column));
    if (outcome < 0)
        return lk_csv_fail(csv, column, "expected made, refused, placeholder or fault, got \"%.40s\"",
                           lk_csv_cell(csv, column));
    line->asked.outcome = (enum lk_outcome_kind)outcome;
    line->asked_known = column >= 0;
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        const char *cell = lk_csv_cell(csv, lk_csv_column(csv, lk_asked_key(i)));
        line->asked.cells[i] = *cell ? lk_store_copy(&images->texts, cell, strlen(cell)) : "";
        if (!line->asked.cells[i]) return out_of_memory();
    }
    return LK_OK;
}

static enum lk_code add_unmade(struct lk_t2i_images *images, struct lk_t2i_logged line, const char *path) {
    if (!(line.path = lk_store_copy(&images->texts, path, strlen(path)))) return out_of_memory();
    LK_TRY(lk_grow(&images->unmade, &images->unmade_capacity, images->n_unmade + 1, sizeof *images->unmade));
    images->unmade[images->n_unmade++] = line;
    return LK_OK;
}

/* Whether a column of the log is one of ours, which `t2i import` writes anew. */
static bool is_ours(const struct lk_csv *csv, size_t column) {
    static const char *const names[] = {"prompt_id", "model_tag", "seed",   "cfg",    "file_path", "arm",
                                        "mode",      "width",     "height", "sha256", "outcome"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (lk_csv_column(csv, names[i]) == (int)column) return true;
    for (int i = 0; i < LK_N_ASKED_CELLS; i++)
        if (lk_csv_column(csv, lk_asked_key(i)) == (int)column) return true;
    return false;
}

/* The names or a line's cells of all other columns. */
static enum lk_code add_more(const struct lk_csv *csv, const bool *ours, bool names, struct lk_text *out) {
    for (size_t i = 0; i < csv->n_columns; i++) {
        if (ours[i]) continue;
        lk_text_add(out, ",");
        lk_print_csv_field(out, names ? csv->columns[i] : lk_csv_cell(csv, (int)i), "");
    }
    return out->rc;
}

static enum lk_code read_more(struct lk_t2i_images *images, const struct lk_csv *csv, const bool *ours,
                              struct lk_t2i_logged *line) {
    struct lk_text cells = {0};
    enum lk_code rc = images->more.n ? add_more(csv, ours, false, &cells) : LK_OK;
    line->more = rc || !cells.n ? "" : lk_store_copy(&images->texts, cells.bytes, cells.n);
    lk_text_free(&cells);
    return line->more ? rc : out_of_memory();
}

static enum lk_code log_row(struct lk_t2i_images *images, const struct lk_csv *csv, const bool *ours) {
    int columns[5];
    static const char *const names[5] = {"prompt_id", "model_tag", "seed", "cfg", "file_path"};
    for (int i = 0; i < 5; i++) LK_TRY(lk_csv_require(csv, names[i], &columns[i]));
    const char *path = lk_csv_cell(csv, columns[4]), *id = lk_csv_cell(csv, columns[0]);
    const char *tag = lk_csv_cell(csv, columns[1]);
    struct lk_t2i_logged line = {0};
    double seed;
    int32_t number;
    LK_TRY(log_number(csv, columns[2], 9007199254740991.0, &seed));
    LK_TRY(log_number(csv, columns[3], 1000, &line.cfg));
    LK_TRY(read_arm(csv, &line.arm, &line.canvas));
    LK_TRY(read_fair(images, csv, &line.fair));
    if (seed != floor(seed) && !isnan(seed)) return lk_csv_fail(csv, columns[2], "a seed is an integer");
    line.seed = isnan(seed) ? -1 : (int64_t)seed;
    line.prompt_id = lk_store_copy(&images->texts, id, strlen(id));
    line.model_tag = lk_store_copy(&images->texts, tag, strlen(tag));
    const char *sha256 = lk_csv_cell(csv, lk_csv_column(csv, "sha256"));
    line.sha256 = lk_store_copy(&images->texts, sha256, strlen(sha256));
    if (!line.prompt_id || !line.model_tag || !line.sha256) return out_of_memory();
    LK_TRY(read_asked(images, csv, &line));
    LK_TRY(read_more(images, csv, ours, &line));
    if (line.asked.outcome != LK_OUTCOME_MADE) return add_unmade(images, line, path);
    if (!*path) return lk_csv_fail(csv, columns[4], "expected a file path");
    LK_TRY(lk_names_number(&images->logged, path, strlen(path), &number));
    if (images->logged.n == images->n_unlabelled)
        return lk_csv_fail(csv, columns[4], "the file \"%.200s\" occurs twice", path);
    LK_TRY(lk_grow(&images->log, &images->log_capacity, (size_t)number + 1, sizeof *images->log));
    images->log[number] = line;
    images->n_unlabelled = images->logged.n;
    return LK_OK;
}

enum lk_code lk_t2i_images_log(struct lk_t2i_images *images, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    int ignored;
    bool ours[LK_CSV_MAX_COLUMNS];
    LK_TRY(lk_csv_open(&csv, text, n, name));
    enum lk_code rc = lk_csv_require(&csv, "file_path", &ignored);
    for (size_t i = 0; i < csv.n_columns; i++) ours[i] = is_ours(&csv, i);
    if (!rc) rc = add_more(&csv, ours, true, &images->more);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = log_row(images, &csv, ours);
    }
    lk_csv_close(&csv);
    return rc;
}

static enum lk_code reject(struct lk_t2i_images *images, int32_t file, size_t line, const char *item,
                           const char *reason) {
    return lk_rejects_add(&images->rejects[file], line, item, reason);
}

/* Room for the rejects of one more file. */
static enum lk_code add_file(struct lk_t2i_images *images, const char *name, int32_t *number) {
    size_t n = images->files.n;
    LK_TRY(lk_grow(&images->rejects, &images->rejects_capacity, n + 1, sizeof *images->rejects));
    images->rejects[n] = (struct lk_rejects){0};
    LK_TRY(lk_names_number(&images->files, name, strlen(name), number));
    if (images->files.n == n) return lk_fail(LK_E_INPUT, "%s: the labels are given twice", name);
    return LK_OK;
}

/* What the record and its line in the log say together. why: not NULL when they do not agree. */
static void combine(struct lk_label *label, const struct lk_t2i_logged *logged, const char **why) {
    if (*label->prompt_id && *logged->prompt_id && strcmp(label->prompt_id, logged->prompt_id))
        *why = "the log has another prompt_id";
    if (*label->model_tag && *logged->model_tag && strcmp(label->model_tag, logged->model_tag))
        *why = "the log has another model_tag";
    if (label->seed >= 0 && logged->seed >= 0 && label->seed != logged->seed) *why = "the log has another seed";
    if (!isnan(label->cfg) && !isnan(logged->cfg) && label->cfg != logged->cfg) *why = "the log has another cfg";
    if (!*label->prompt_id) label->prompt_id = logged->prompt_id;
    if (!*label->model_tag) label->model_tag = logged->model_tag;
    if (label->seed < 0) label->seed = logged->seed;
    if (isnan(label->cfg)) label->cfg = logged->cfg;
}

static enum lk_code add_image(struct lk_t2i_images *images, const struct lk_label *label, int8_t arm, bool canvas,
                              struct lk_t2i_fair fair, int32_t file, size_t line) {
    LK_TRY(lk_grow(&images->list, &images->capacity, images->n + 1, sizeof *images->list));
    struct lk_t2i_image image = {.arm = arm,
                                 .face = label->face_found,
                                 .cfg = isnan(label->cfg) ? -1 : label->cfg,
                                 .seed = label->seed,
                                 .file = file,
                                 .fair = fair,
                                 .line = (int32_t)(line < INT32_MAX ? line : INT32_MAX)};
    struct lk_text model = {0};
    lk_text_add(&model, "%s%s", label->model_tag, canvas ? " (canvas)" : "");
    enum lk_code rc = model.rc ? out_of_memory() : lk_names_number(&images->models, model.bytes, model.n, &image.model);
    lk_text_free(&model);
    if (!rc) rc = lk_names_number(&images->ids, label->prompt_id, strlen(label->prompt_id), &image.prompt);
    if (rc) return rc;
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) {
        image.level[a] = (int8_t)lk_t2i_level_of(label, a);
        image.confidence[a] = (float)lk_t2i_confidence_of(label, a);
    }
    images->list[images->n++] = image;
    return LK_OK;
}

static enum lk_code take(struct lk_t2i_images *images, const struct lk_csv *csv, struct lk_label label, int32_t file) {
    int8_t arm;
    bool canvas;
    struct lk_t2i_fair fair;
    const char *why = NULL;
    images->n_records++;
    LK_TRY(read_arm(csv, &arm, &canvas));
    LK_TRY(read_fair(images, csv, &fair));
    int32_t at = lk_names_find(&images->logged, label.file_path, strlen(label.file_path));
    if (at >= 0) {
        struct lk_t2i_logged *logged = &images->log[at];
        combine(&label, logged, &why);
        const char *sha256 = lk_csv_cell(csv, lk_csv_column(csv, "sha256"));
        if (*sha256 && *logged->sha256 && !lk_same_name(sha256, logged->sha256))
            return reject(images, file, csv->line, label.file_path,
                          "it was labelled when another picture had this name (sha256): label it again");
        if (!*lk_csv_cell(csv, lk_csv_column(csv, "arm"))) arm = logged->arm;
        if (!*lk_csv_cell(csv, lk_csv_column(csv, "mode"))) canvas = logged->canvas;
        if (fair.of[0] < 0) fair = logged->fair;
        images->n_unlabelled -= !logged->labelled;
        logged->labelled = true;
    } else if (images->logged.n && arm != LK_T2I_POST_FILTER) {
        why = "the log does not have the file";
    }
    if (!why && !*label.prompt_id) why = "no prompt_id";
    if (!why && !*label.model_tag) why = "no model_tag";
    if (!why && label.seed < 0) why = "no seed";
    if (!why && images->prompts && lk_names_find(&images->prompts->ids, label.prompt_id, strlen(label.prompt_id)) < 0)
        why = "the prompt table does not have its prompt_id";
    if (why) return reject(images, file, csv->line, label.file_path, why);
    return add_image(images, &label, arm, canvas, fair, file, csv->line);
}

/* The ids of the table come first, in its order. */
static enum lk_code number_prompts(struct lk_t2i_images *images) {
    int32_t number;
    for (size_t i = 0; images->prompts && !images->ids.n && i < images->prompts->n; i++) {
        const char *id = images->prompts->list[i].cells[LK_T2I_PROMPT_ID];
        LK_TRY(lk_names_number(&images->ids, id, strlen(id), &number));
    }
    return LK_OK;
}

enum lk_code lk_t2i_images_labels(struct lk_t2i_images *images, const char *text, size_t n, const char *name) {
    struct lk_labels labels;
    struct lk_csv csv;
    int32_t file;
    LK_TRY(number_prompts(images));
    LK_TRY(add_file(images, name, &file));
    LK_TRY(lk_labels_read(&labels, text, n, name));
    enum lk_code rc = lk_csv_open(&csv, text, n, name); /* a second time, for the columns that labels do not have */
    if (rc) {
        lk_labels_free(&labels);
        return rc;
    }
    static const char *const needed[] = {"prompt_id", "model_tag", "seed"};
    for (int i = 0; i < 3 && !rc && !images->logged.n; i++) rc = lk_csv_require(&csv, needed[i], &(int){0});
    bool more = true;
    for (size_t i = 0; !rc && i < labels.n; i++) {
        rc = lk_csv_next(&csv, &more);
        if (!rc) rc = take(images, &csv, labels.list[i], file);
    }
    lk_csv_close(&csv);
    lk_labels_free(&labels);
    return rc;
}

static int by_key(const struct lk_t2i_image *x, const struct lk_t2i_image *y) {
    if (x->model != y->model) return x->model < y->model ? -1 : 1;
    if (x->prompt != y->prompt) return x->prompt < y->prompt ? -1 : 1;
    if (x->arm != y->arm) return x->arm < y->arm ? -1 : 1;
    if (x->cfg != y->cfg) return x->cfg < y->cfg ? -1 : 1;
    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

static int by_key_then_line(const void *a, const void *b) {
    const struct lk_t2i_image *x = a, *y = b;
    int order = by_key(x, y);
    if (order) return order;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

enum lk_code lk_t2i_images_finish(struct lk_t2i_images *images) {
    size_t kept = 0;
    if (images->n) qsort(images->list, images->n, sizeof *images->list, by_key_then_line);
    for (size_t i = 0; i < images->n; i++) {
        const struct lk_t2i_image *image = &images->list[i];
        if (kept && !by_key(&images->list[kept - 1], image)) {
            char reason[128];
            snprintf(reason, sizeof reason, "the same model, prompt, arm, cfg and seed as line %d",
                     (int)images->list[kept - 1].line);
            LK_TRY(reject(images, image->file, (size_t)image->line, images->ids.list[image->prompt], reason));
            continue;
        }
        images->n_no_face += !image->face;
        images->list[kept++] = *image;
    }
    images->n = kept;
    return kept ? LK_OK
                : lk_fail(LK_E_INPUT, "%s: expected pictures with prompt, model and seed, got none",
                          images->files.n ? images->files.list[images->files.n - 1] : "labels");
}

const char *lk_t2i_cfg_meaning(const char *model) {
    static const char *const native[LK_N_MODELS] = {"guidance value (embedded in the model)", "true guidance scale",
                                                    "true guidance scale"};
    char tag[64];
    snprintf(tag, sizeof tag, "%.*s", (int)strcspn(model, " "), model);
    int family = lk_factor_parse(LK_FACTOR_MODEL, tag, strlen(tag));
    return family < 0 ? "classifier-free guidance scale, as logged" : native[family];
}
