/* feature: what a model says of each source's features, for the prompts that ask edits to keep them. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/names.h"
#include "eval/design/study.h"
#include "eval/judge/features.h"
#include "eval/scores/fields.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

struct extractor {
    const struct cli_arguments *arguments;
    struct cli_pairs sources; /* item_id: the source's id; edited: its picture */
    char *question;
    struct lk_device *device;
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
    struct lk_names done; /* ids of sources */
    struct lk_append_lock lock;
    size_t n_failed;
    const struct cli_share *part; /* NULL: all sources */
    struct cli_progress alone, *progress;
};

enum lk_code cli_feature_prompt(const struct cli_arguments *arguments) {
    (void)arguments;
    char *question;
    LK_TRY(lk_feature_question(&question));
    fputs(question, stdout); /* its bytes and no more: they have a known digest */
    lk_free(question);
    return LK_OK;
}

enum { CELL_BYTES = 64 };

/* A cell of the portrait study has one name, however it is written; any other source has its own. */
static const char *name_of(const char *id, char cell[CELL_BYTES]) {
    const int source = lk_source_parse(id, strlen(id));
    if (source < 0) return id;
    lk_source_id(source, cell);
    return cell;
}

/* Sources that an earlier run of the same command has recorded; a line that was cut off is taken away. */
static enum lk_code read_done(struct extractor *x, const char *path, bool mend) {
    struct lk_records records;
    bool more = true;
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (rc == LK_E_NOT_FOUND) return LK_OK;
    LK_TRY(rc);
    size_t whole = lk_whole_lines(text, n);
    if (whole) rc = lk_records_open(&records, text, whole, path);
    while (whole && !rc && !(rc = lk_records_next_strict(&records, &more)) && more) {
        const struct lk_field *id = lk_fields_find(&records.fields, "source_id");
        char name[CELL_BYTES];
        int32_t number;
        if (id) rc = lk_names_number(&x->done, name_of(id->text, name), strlen(name_of(id->text, name)), &number);
        if (rc) break;
    }
    if (whole) lk_records_close(&records);
    if (!rc && mend) rc = lk_cut_half_line(path, whole, n);
    lk_free(text);
    return rc;
}

/* What is left, of a worker its share of that. */
static void keep_open(struct extractor *x) {
    size_t n = 0, left = 0;
    for (size_t i = 0; i < x->sources.n; i++) {
        char cell[CELL_BYTES];
        const char *name = name_of(x->sources.list[i].item_id, cell);
        if (lk_names_find(&x->done, name, strlen(name)) >= 0) continue;
        if (x->part && left++ % (size_t)x->part->n != (size_t)x->part->part) continue;
        x->sources.list[n++] = x->sources.list[i];
    }
    x->sources.n = n;
    x->progress->total += (int64_t)n;
}

static bool add_attempts(cJSON *line, const struct lk_extracted *e) {
    cJSON *list = cJSON_AddArrayToObject(line, "attempts");
    for (int i = 0; list && i < e->n_attempts; i++) {
        cJSON *one = cJSON_CreateObject();
        if (!one || !cJSON_AddItemToArray(list, one) || !cJSON_AddNumberToObject(one, "seed", i + 2) ||
            !cJSON_AddStringToObject(one, "raw", e->raw[i]) ||
            (*e->error[i] && !cJSON_AddStringToObject(one, "error", e->error[i])))
            return false;
    }
    return list != NULL;
}

static bool fill(cJSON *line, const struct extractor *x, const char *id, const struct lk_extracted *e) {
    bool ok = cJSON_AddStringToObject(line, "source_id", id) != NULL;
    for (int i = 0; ok && e->found && i < LK_N_FEATURES; i++)
        ok = cJSON_AddStringToObject(line, lk_feature_keys[i], e->features.texts[i]) != NULL;
    if (ok && !e->found) ok = cJSON_AddTrueToObject(line, "no_feature_prompt") != NULL;
    if (ok && e->features.leak) ok = cJSON_AddTrueToObject(line, "label_leak") != NULL;
    if (ok && e->composed) ok = cJSON_AddTrueToObject(line, "composed") != NULL;
    const struct cli_arguments *a = x->arguments;
    if (ok && x->judge.server)
        ok = cJSON_AddStringToObject(line, "model", a->model) &&
             cJSON_AddStringToObject(line, "server", lk_judge_server_shown(x->judge.server));
    return ok && cJSON_AddBoolToObject(line, "constrained", x->judge.mode == LK_JUDGE_FORCED) &&
           cJSON_AddStringToObject(line, "extractor", x->judge.server ? "openai" : lk_chat_family(x->chat)) &&
           add_attempts(line, e);
}

static enum lk_code write_line(struct extractor *x, const char *id, const struct lk_extracted *e) {
    cJSON *line = cJSON_CreateObject();
    char *text = line && fill(line, x, id, e) ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "feature: out of memory");
    char *whole = lk_format("%s\n", text);
    cJSON_free(text);
    if (!whole) return lk_fail(LK_E_NOMEM, "feature: out of memory");
    enum lk_code rc = lk_append_lines(x->arguments->output, whole, strlen(whole));
    lk_free(whole);
    return rc;
}

/* A source that cannot be asked about, be it that it does not fit into memory, is named, and the others are asked
 * about. */
static enum lk_code extract_one(struct extractor *x, const struct cli_pair *source) {
    struct lk_image picture = {0};
    struct lk_extracted e = {0};
    char cell[CELL_BYTES];
    const char *name = name_of(source->item_id, cell);
    enum lk_code rc = lk_study_is_word(name, strlen(name), 60)
                          ? lk_image_read(&picture, source->edited, 1, 0)
                          : lk_fail(LK_E_INPUT, "expected a source's id of 1 to 60 letters, digits, - or _");
    bool is_read = !rc;
    if (!rc) rc = lk_features_extract(&x->judge, x->question, &picture, 1, &e);
    if (!rc && e.code) rc = lk_fail(e.code, "%s", e.reason);
    if (!rc) {
        rc = write_line(x, source->item_id, &e);
        if (!rc && !e.found) {
            lk_log(LK_LOG_WARNING, "%s: no feature prompt in %d attempts: %s", source->item_id, e.n_attempts,
                   e.error[e.n_attempts - 1]);
            x->n_failed++;
        }
        if (!rc && e.found && e.features.leak)
            lk_log(LK_LOG_WARNING, "%s: the feature prompt names a demographic group: \"%s\"", source->item_id,
                   e.features.texts[LK_N_FEATURES - 1]);
    } else if (rc == LK_E_NOMEM || e.code || (!is_read && rc != LK_E_INTERNAL)) {
        cli_pair_warn(x->arguments->more[0], source);
        x->n_failed++;
        rc = LK_OK;
    }
    lk_extracted_free(&e);
    lk_image_free(&picture);
    return rc;
}

static enum lk_code open_extractor(struct extractor *x) {
    const struct cli_arguments *a = x->arguments;
    x->judge = (struct lk_seeing_judge){.n_slots = 1, .max_new_tokens = a->max_new_tokens, .tick = cli_signals_check};
    x->judge.mode = !strcmp(a->review.mode, "forced") ? LK_JUDGE_FORCED : LK_JUDGE_FREE;
    if (a->review.server) {
        LK_TRY(cli_judge_server(a, &x->judge.server));
        lk_log(LK_LOG_INFO, "%s on %s: pictures are sent there", a->model, lk_judge_server_shown(x->judge.server));
    } else {
        LK_TRY(cli_device_open(&a->job.run, &x->device));
        LK_TRY(lk_chat_open(&x->chat, a->model, cli_dtype(&a->job.run)));
        lk_log(LK_LOG_INFO, "%s in %s on %s", lk_chat_family(x->chat), a->job.run.dtype, x->device->name);
    }
    x->judge.chat = x->chat;
    x->judge.dev = x->device;
    return lk_seeing_judge_open(&x->judge);
}

static enum lk_code check_arguments(const struct cli_arguments *a) {
    if (!a->more[0] || !a->model || !a->output)
        return lk_fail(LK_E_USAGE, "feature extract: expected SOURCES.jsonl, --model and --output FILE.jsonl");
    if (!strcmp(a->review.mode, "direct")) return lk_fail(LK_E_USAGE, "--mode direct: features are no scores");
    if (a->review.server && strcmp(a->review.mode, "free") != 0)
        return lk_fail(LK_E_USAGE,
                       "--openai-url: goes with --mode free: a server's model can be asked, but not be made "
                       "to fill in a form");
    if (a->review.server && a->study.devices)
        return lk_fail(LK_E_USAGE, "--devices: goes without --openai-url; the server has its own devices");
    return LK_OK;
}

static enum lk_code extract(struct extractor *x) {
    const struct cli_arguments *a = x->arguments;
    LK_TRY(cli_sources_read(&x->sources, a->more[0]));
    if (!x->part) cli_print_rejects(a->more[0], &x->sources.rejects);
    const size_t n_rejected = x->part ? 0 : x->sources.rejects.n, n_all = x->sources.n + n_rejected;
    LK_TRY(lk_feature_question(&x->question));
    LK_TRY(open_extractor(x));
    LK_TRY(lk_append_lock(&x->lock, a->output));
    if (x->part) LK_TRY(read_done(x, x->part->whole, false));
    LK_TRY(read_done(x, a->output, true));
    keep_open(x);
    cli_signals_install();
    if (!x->part) cli_progress_show(x->progress); /* its clock begins */
    for (size_t i = 0; i < x->sources.n; i++) {
        LK_TRY(extract_one(x, &x->sources.list[i]));
        if (x->judge.server) LK_TRY(lk_judge_server_state(x->judge.server));
        x->progress->asked++;
        if (!x->part) cli_progress_show(x->progress);
    }
    const size_t n_bad = x->n_failed + n_rejected;
    if (!n_bad) return LK_OK;
    return lk_fail(n_bad < n_all ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu sources have no feature prompt",
                   a->more[0], n_bad, n_all);
}

static enum lk_code extract_part(const struct cli_arguments *arguments, const struct cli_share *part) {
    struct extractor x = {.arguments = arguments, .part = part};
    x.progress = part ? part->progress : &x.alone;
    enum lk_code rc = extract(&x);
    lk_append_unlock(&x.lock);
    lk_seeing_judge_close(&x.judge);
    lk_judge_server_close(x.judge.server);
    lk_chat_close(x.chat);
    if (x.device) lk_device_free(x.device);
    lk_free(x.question);
    cli_pairs_free(&x.sources);
    lk_names_free(&x.done);
    return rc;
}

enum lk_code cli_feature_extract(const struct cli_arguments *a) {
    LK_TRY(check_arguments(a));
    if (!a->study.devices) return extract_part(a, NULL);
    struct cli_shared shared = {
        .what = "feature extract", .does = "ask about", .ending = "", .key = "source_id", .work = extract_part};
    struct cli_pairs sources = {0};
    int32_t number;
    enum lk_code rc = cli_sources_read(&sources, a->more[0]);
    const size_t n_rejected = sources.rejects.n;
    if (!rc) cli_print_rejects(a->more[0], &sources.rejects);
    for (size_t i = 0; i < sources.n && !rc; i++)
        rc = lk_names_number(&shared.items, sources.list[i].item_id, strlen(sources.list[i].item_id), &number);
    cli_pairs_free(&sources);
    if (!rc) rc = cli_shares(a, &shared);
    lk_names_free(&shared.items);
    if (rc || !n_rejected) return rc;
    return lk_fail(LK_E_PARTIAL, "%s: %zu lines are no sources", a->more[0], n_rejected);
}
