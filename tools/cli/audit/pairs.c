#include "tools/cli/audit/audit.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "eval/design/study.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "tools/cli/study/runner.h"

enum lk_code cli_run_study(struct lk_study **study, const char *run, const char *file) {
    *study = NULL;
    if (file) return lk_study_open(study, file);
    char *path = lk_format("%s/study.json", run);
    if (!path) return lk_fail(LK_E_NOMEM, "--from: out of memory");
    enum lk_code rc = access(path, F_OK) ? lk_fail(LK_E_NOT_FOUND,
                                                   "--from %s: expected a folder that 'likeness study run' filled, got "
                                                   "%s",
                                                   run, access(run, F_OK) ? "none" : "one without study.json")
                                         : lk_study_open(study, path);
    lk_free(path);
    return rc;
}

enum lk_code cli_known_study(struct lk_study **study, const struct cli_report_arguments *a) {
    *study = NULL;
    return a->runs.n ? cli_run_study(study, a->runs.values[0], NULL) : LK_OK;
}

enum lk_code cli_known_items(struct lk_dataset *data, const struct lk_study *study) {
    if (!study || lk_study_is_documented(study)) return LK_OK;
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the outputs of a study");
    for (size_t i = 0; i < lk_study_n_jobs(study) && !rc; i++) {
        int32_t at;
        rc = lk_study_job(study, i, job);
        if (!rc) rc = lk_dataset_add(data, job->name, (int32_t)i, job->arm, &at);
        if (!rc) data->items[at].prompt = (int16_t)job->prompt->number;
    }
    lk_free(job);
    return rc;
}

bool cli_known_is_made(const char *run, const struct lk_study_job *job) {
    char *path = lk_format("%s/results/%s", run, job->output);
    const bool made = path && !access(path, R_OK);
    lk_free(path);
    return made;
}

enum lk_code cli_known_read(struct lk_dataset *data, const struct cli_report_arguments *a) {
    struct lk_study *study;
    enum lk_code rc = cli_known_study(&study, a);
    if (!rc) rc = cli_known_items(data, study);
    lk_study_close(study);
    return rc;
}

static uint64_t first_bits(const char *sha256) {
    char bits[17];
    snprintf(bits, sizeof bits, "%.16s", sha256);
    return strtoull(bits, NULL, 16);
}

static enum lk_code note_picture(void *context, const struct lk_journal_row *row) {
    struct cli_made *made = context;
    const uint64_t bits = row->made.sha256 ? first_bits(row->made.sha256) : 0;
    const size_t before = made->items.n;
    int32_t i;
    LK_TRY(lk_names_number(&made->items, row->entry.name, strlen(row->entry.name), &i));
    LK_TRY(lk_grow(&made->digests, &made->capacity, made->items.n, sizeof *made->digests));
    made->digests[i] = made->items.n > before || made->digests[i] == bits ? bits : 0;
    return LK_OK;
}

static enum lk_code note_pictures(void *made, struct lk_journal *journal, const char *path) {
    (void)path;
    return lk_journal_each(journal, LK_JOB_DONE, false, note_picture, made);
}

enum lk_code cli_made_read(struct cli_made *made, const struct cli_list *runs) {
    enum lk_code rc = LK_OK;
    for (int i = 0; i < runs->n && (!rc || rc == LK_E_NOT_FOUND); i++)
        rc = study_each_journal(runs->values[i], note_pictures, made);
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

bool cli_made_has(const void *made, const char *item_id, const char *sha256) {
    const struct cli_made *m = made;
    char edited[300]; /* as raters' answers leave out that it is the baseline */
    int32_t i = lk_names_find(&m->items, item_id, strlen(item_id));
    snprintf(edited, sizeof edited, "%.250s.edited", item_id);
    if (i < 0) i = lk_names_find(&m->items, edited, strlen(edited));
    return i < 0 || !m->digests[i] || m->digests[i] == first_bits(sha256);
}

void cli_made_free(struct cli_made *made) {
    lk_names_free(&made->items);
    lk_free(made->digests);
    *made = (struct cli_made){0};
}

enum { SHOWN_REJECTS = 10, PATH_BYTES = 4096 };

/* The field's path, beside `file` when it is relative; NULL without the field. */
static enum lk_code path_of(struct cli_pairs *pairs, const char *file, const struct lk_field *field, const char **out) {
    *out = NULL;
    if (!field) return LK_OK;
    if (field->kind != '"' && field->kind != 'c')
        return lk_fail(LK_E_INPUT, "%s: expected a path as a string", field->name);
    if (field->n >= PATH_BYTES || memchr(field->text, 0, field->n))
        return lk_fail(LK_E_INPUT, "%s: expected a path below %d bytes", field->name, PATH_BYTES);
    char *path = lk_path_beside(file, field->text);
    *out = path ? lk_store_text(&pairs->texts, path) : NULL;
    lk_free(path);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", file);
}

/* Each id once: of two records nobody could say which is meant. */
static enum lk_code append(struct cli_pairs *pairs, const struct lk_field *id, struct cli_pair pair) {
    int32_t number;
    LK_TRY(lk_names_number(&pairs->ids, id->text, id->n, &number));
    if ((size_t)number < pairs->n) return lk_fail(LK_E_INPUT, "%s: expected each once", id->name);
    LK_TRY(lk_grow(&pairs->list, &pairs->capacity, pairs->n + 1, sizeof *pairs->list));
    pair.item_id = pairs->ids.list[number];
    if (!pair.asked_as) pair.asked_as = pair.item_id;
    pairs->list[pairs->n++] = pair;
    return LK_OK;
}

static enum lk_code add_source(struct cli_pairs *pairs, const char *file, const struct lk_records *records) {
    const struct lk_fields *fields = &records->fields;
    const struct lk_field *id = lk_fields_find(fields, "source_id");
    struct cli_pair pair = {.line = records->line};
    if (!id || (id->kind != '"' && id->kind != 'c')) return lk_fail(LK_E_INPUT, "expected a string \"source_id\"");
    LK_TRY(path_of(pairs, file, lk_fields_find(fields, "path"), &pair.edited));
    if (!pair.edited) return lk_fail(LK_E_INPUT, "expected a path in \"path\"");
    return append(pairs, id, pair);
}

enum kind { PAIRS, PAIRS_WITH_SOURCE, SOURCES };

static enum lk_code add(struct cli_pairs *pairs, const char *file, const struct lk_records *records, enum kind kind) {
    const struct lk_fields *fields = &records->fields;
    bool needs_source = kind == PAIRS_WITH_SOURCE;
    if (kind == SOURCES) return add_source(pairs, file, records);
    const struct lk_field *id = lk_fields_find(fields, "item_id");
    struct cli_pair pair = {.line = records->line};
    if (!id || (id->kind != '"' && id->kind != 'c')) return lk_fail(LK_E_INPUT, "expected a string \"item_id\"");
    LK_TRY(path_of(pairs, file, lk_fields_find(fields, "source"), &pair.source));
    LK_TRY(path_of(pairs, file, lk_fields_find(fields, "edited"), &pair.edited));
    LK_TRY(path_of(pairs, file, lk_fields_find(fields, "source_male"), &pair.source_male));
    LK_TRY(path_of(pairs, file, lk_fields_find(fields, "source_female"), &pair.source_female));
    if (!pair.edited || (needs_source && !pair.source && !pair.source_male))
        return lk_fail(LK_E_INPUT, "expected a path in \"%s\"", pair.edited ? "source" : "edited");
    return append(pairs, id, pair);
}

static enum lk_code read_records(struct cli_pairs *pairs, struct lk_records *records, const char *path,
                                 enum kind kind) {
    for (;;) {
        bool more, bad;
        LK_TRY(lk_records_next(records, &more, &bad));
        if (!more) return LK_OK;
        enum lk_code rc = bad ? LK_E_INPUT : add(pairs, path, records, kind);
        if (rc == LK_E_INPUT) {
            char reason[1024];
            const struct lk_field *id =
                bad ? NULL : lk_fields_find(&records->fields, kind == SOURCES ? "source_id" : "item_id");
            snprintf(reason, sizeof reason, "%s", lk_error_text());
            rc = lk_rejects_add(&pairs->rejects, records->line, id ? id->text : "", reason);
            lk_records_leave(records);
        }
        LK_TRY(rc);
    }
}

/* A file of which nothing is understood is refused before anything is done with it. */
static enum lk_code check_any(const struct cli_pairs *pairs, const char *path, enum kind kind) {
    if (pairs->n) return LK_OK;
    cli_print_rejects(path, &pairs->rejects);
    return lk_fail(LK_E_INPUT, "%s: expected records with %s, got none%s", path,
                   kind == SOURCES             ? "source_id and path"
                   : kind == PAIRS_WITH_SOURCE ? "item_id, source and edited"
                                               : "item_id and edited",
                   pairs->rejects.n ? " that is understood" : "");
}

static enum lk_code read_file(struct cli_pairs *pairs, const char *path, enum kind kind) {
    struct lk_records records;
    char *text;
    size_t n;
    *pairs = (struct cli_pairs){0};
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_records_open(&records, text, n, path);
    if (!rc) {
        struct lk_names unread = {0};
        rc = read_records(pairs, &records, path, kind);
        if (!rc) rc = lk_records_unread(&records, &unread);
        if (!rc) cli_print_unread(path, &unread);
        lk_names_free(&unread);
        lk_records_close(&records);
    }
    lk_free(text);
    return rc ? rc : check_any(pairs, path, kind);
}

enum lk_code cli_pairs_read(struct cli_pairs *pairs, const char *path, bool needs_source) {
    return read_file(pairs, path, needs_source ? PAIRS_WITH_SOURCE : PAIRS);
}

static enum lk_code copy_path(struct cli_pairs *pairs, const char *path, const char **out) {
    *out = lk_store_copy(&pairs->texts, path, strlen(path));
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the pictures of a run");
}

/* What a judge is told of an item whose id says nothing: "Skin type=IV, Head covering=hijab". */
static enum lk_code set_facts(struct cli_pairs *pairs, const struct lk_study *study, const struct lk_study_job *job,
                              struct lk_judge_facts *out) {
    struct lk_text text = {0};
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    const struct lk_study_source *source = lk_study_source(study, job->sources[0]);
    for (int a = 0; a < n; a++)
        if (!attributes[a].of) /* a judge is told the level itself */
            lk_text_add(&text, "%s%s=%s", a ? ", " : "", attributes[a].display,
                        attributes[a].displays[source->level[a]]);
    if (!n) lk_text_add(&text, "not known");
    if (!text.rc) out->source = lk_store_copy(&pairs->texts, text.bytes, text.n);
    out->instruction = lk_store_text(&pairs->texts, job->prompt->text);
    lk_text_free(&text);
    return out->source && out->instruction ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the facts of a run");
}

/* A picture that is not there yet is no pair. One item of two runs is shown once and not judged. */
static enum lk_code add_job(struct cli_pairs *pairs, const char *folder, const struct lk_study *study,
                            const struct lk_study_job *job, bool needs_source) {
    struct cli_pair pair = {0};
    const struct lk_field id = {.name = "item_id", .text = job->name, .n = strlen(job->name)};
    char *path = lk_format("%s/results/%s", folder, job->output);
    bool made = path && !access(path, F_OK);
    enum lk_code rc = path ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the pictures of a run");
    if (made) rc = copy_path(pairs, path, &pair.edited);
    lk_free(path);
    for (int i = 0; i < job->n_sources && made && !rc; i++) {
        int race, gender, age;
        if (!job->source_files[i] && needs_source)
            return lk_fail(LK_E_INPUT,
                           "%s: the source of %s is not known here: --study names the file that the run is of", folder,
                           job->name);
        if (!job->source_files[i]) continue;
        lk_source_factors(job->sources[i], &race, &gender, &age);
        rc = copy_path(pairs, job->source_files[i],
                       job->n_sources == 1 ? &pair.source
                       : gender            ? &pair.source_female
                                           : &pair.source_male);
    }
    if (!rc && made && *job->documented) rc = copy_path(pairs, job->documented, &pair.asked_as);
    if (!rc && made && !*job->documented) rc = set_facts(pairs, study, job, &pair.facts);
    if (rc || !made || (!needs_source && lk_names_find(&pairs->ids, id.text, id.n) >= 0)) return rc;
    rc = append(pairs, &id, pair);
    return rc ? lk_fail_prefix(rc, "%s: %s", folder, job->name) : LK_OK;
}

/* file: the study that the run is of; NULL: the run's own copy, which knows sources by absolute paths alone. */
static enum lk_code add_run(struct cli_pairs *pairs, const char *folder, const char *file, bool needs_source) {
    struct lk_study *study;
    enum lk_code rc = cli_run_study(&study, folder, file);
    if (rc) return rc;
    for (size_t i = 0; i < lk_study_n_jobs(study) && !rc; i++) {
        struct lk_study_job job;
        rc = lk_study_job(study, i, &job);
        if (!rc && job.n_sources) rc = add_job(pairs, folder, study, &job, needs_source);
    }
    lk_study_close(study);
    return rc;
}

const char *cli_pairs_name(const struct cli_report_arguments *a) {
    return a->pairs ? a->pairs : a->runs.n ? a->runs.values[0] : NULL;
}

enum lk_code cli_pairs_of(struct cli_pairs *pairs, const struct cli_report_arguments *a, bool needs_source) {
    *pairs = (struct cli_pairs){0};
    if (a->pairs && a->runs.n) return lk_fail(LK_E_USAGE, "expected --pairs or --from, got both");
    if (a->pairs) return cli_pairs_read(pairs, a->pairs, needs_source);
    for (int i = 0; i < a->runs.n; i++) LK_TRY(add_run(pairs, a->runs.values[i], a->study_file, needs_source));
    return LK_OK;
}

enum lk_code cli_sources_read(struct cli_pairs *pairs, const char *path) { return read_file(pairs, path, SOURCES); }

enum lk_code cli_pair_message(const struct cli_pair *pair, const struct lk_judge_prompts *prompts,
                              const struct lk_judge_ask *ask, struct lk_judge_message *out) {
    struct lk_judge_ask of = *ask;
    of.facts = pair->facts.instruction ? &pair->facts : NULL;
    return lk_judge_message(prompts, pair->asked_as, &of, out);
}

void cli_pair_warn(const char *path, const struct cli_pair *pair) {
    if (pair->line)
        lk_log(LK_LOG_WARNING, "%s: line %zu: %s: %s", path, pair->line, pair->item_id, lk_error_text());
    else
        lk_log(LK_LOG_WARNING, "%s: %s", pair->item_id, lk_error_text());
}

/* The length of an item's id without its arm. */
static size_t base_of(const char *item_id) { return strcspn(item_id, "."); }

bool cli_pair_is_preserved(const struct cli_pair *pair) {
    return !strcmp(pair->item_id + base_of(pair->item_id), ".preserved");
}

/* The other arm's picture of the same pair, NULL when the file does not name it. */
static const char *preserved_of(const struct cli_pairs *pairs, const char *item_id) {
    size_t n = base_of(item_id);
    for (size_t i = 0; pairs && i < pairs->n; i++) {
        const char *other = pairs->list[i].item_id;
        if (base_of(other) == n && !memcmp(other, item_id, n) && cli_pair_is_preserved(&pairs->list[i]))
            return pairs->list[i].edited;
    }
    return NULL;
}

const char *cli_pair_path(const struct cli_pairs *pairs, const struct cli_pair *pair, enum lk_judge_image image) {
    switch (image) {
    case LK_JUDGE_SOURCE:
        return pair->source;
    case LK_JUDGE_EDITED:
        return pair->edited;
    case LK_JUDGE_PRESERVED:
        return preserved_of(pairs, pair->item_id);
    case LK_JUDGE_SOURCE_MALE:
        return pair->source_male;
    case LK_JUDGE_SOURCE_FEMALE:
        return pair->source_female;
    default:
        return NULL;
    }
}

void cli_pairs_free(struct cli_pairs *pairs) {
    lk_free(pairs->list);
    lk_store_free(&pairs->texts);
    lk_names_free(&pairs->ids);
    lk_rejects_free(&pairs->rejects);
}

static struct {
    FILE *file;
    const char *path;
    bool failed;
} all_rejects; /* of this process: files are read in many places */

static const char list_begins[] = "{\"refused_in\":";

/* No file, an empty one, or an earlier list, which a command that goes on after a stop writes anew. */
static bool may_be_written(const char *path) {
    char head[sizeof list_begins] = "";
    struct stat st;
    if (stat(path, &st)) return errno == ENOENT;
    FILE *file = S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
    if (!file) return false;
    const size_t n = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    return !n || !strcmp(head, list_begins);
}

enum lk_code cli_rejects_open(const char *path) {
    if (!path) return LK_OK;
    if (!may_be_written(path))
        return lk_fail(LK_E_USAGE, "--rejects: %s is no list of refused records; name another file", path);
    all_rejects.path = path;
    if ((all_rejects.file = fopen(path, "w"))) return LK_OK;
    return lk_fail(LK_E_IO, "--rejects: %s: %s", path, strerror(errno));
}

enum lk_code cli_rejects_close(void) {
    if (!all_rejects.file) return LK_OK;
    errno = 0;
    const bool none = ftell(all_rejects.file) == 0, failed = fclose(all_rejects.file) || all_rejects.failed;
    all_rejects.file = NULL;
    if (none && !failed) remove(all_rejects.path);
    return failed ? lk_fail_errno(errno ? errno : EIO, "%s", all_rejects.path) : LK_OK;
}

static bool write_reject(const char *path, const struct lk_reject *reject) {
    cJSON *line = cJSON_CreateObject();
    const bool made = line && cJSON_AddStringToObject(line, "refused_in", path) &&
                      cJSON_AddNumberToObject(line, "line", (double)reject->line) &&
                      (!*reject->item || cJSON_AddStringToObject(line, "item", reject->item)) &&
                      cJSON_AddStringToObject(line, "reason", reject->reason);
    char *text = made ? cJSON_PrintUnformatted(line) : NULL;
    const bool written = text && fprintf(all_rejects.file, "%s\n", text) > 0;
    cJSON_free(text);
    cJSON_Delete(line);
    return written;
}

void cli_print_rejects(const char *path, const struct lk_rejects *rejects) {
    if (!rejects->n) return;
    lk_log(LK_LOG_WARNING, "%s: %zu records refused", path, rejects->n);
    for (size_t i = 0; i < rejects->n && i < SHOWN_REJECTS; i++)
        lk_log(LK_LOG_WARNING, "  line %zu%s%s: %s", rejects->list[i].line, *rejects->list[i].item ? ", " : "",
               rejects->list[i].item, rejects->list[i].reason);
    for (size_t i = 0; i < rejects->n && all_rejects.file; i++)
        all_rejects.failed |= !write_reject(path, &rejects->list[i]);
    if (rejects->n > SHOWN_REJECTS)
        lk_log(LK_LOG_WARNING, "  and %zu more%s%s", rejects->n - SHOWN_REJECTS, all_rejects.file ? ", in " : "",
               all_rejects.file ? all_rejects.path : "");
}

void cli_print_fresh_rejects(const char *path, const struct lk_rejects *rejects, size_t n_before) {
    const struct lk_rejects fresh = {.list = rejects->list + n_before, .n = rejects->n - n_before};
    cli_print_rejects(path, &fresh);
}

void cli_print_left_out(const struct lk_ratings_import *import) {
    if (!import->n_rejected && !import->n_unfinished && !import->n_previews) return;
    lk_log(LK_LOG_INFO, "left out as their platform says: %zu rejected, %zu unfinished, %zu previews",
           import->n_rejected, import->n_unfinished, import->n_previews);
}

void cli_print_unread(const char *path, const struct lk_names *names) {
    char text[512] = "";
    for (size_t i = 0, used = 0; i < names->n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\"", i ? ", " : "", names->list[i]);
    if (names->n) lk_log(LK_LOG_INFO, "%s: columns not read: %s", path, text);
}
