/* judge run: a vision-language model judges pictures, in this process or on a server; a line of JSON an item, appended
 * as they come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "eval/judge/seeing.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

/* Items that are asked about between two writes, in multiples of those that are asked at a time. */
#define VISITS       4
#define LOADED_BYTES ((size_t)256 << 20) /* of pictures at a time, or one question's */

struct runner {
    const struct cli_arguments *arguments;
    struct lk_judge_prompts *prompts;
    struct cli_pairs pairs;
    struct judge_record record; /* what all lines say */
    struct lk_device *device;
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
    struct lk_judge_ask ask;
    struct judge_done done;
    struct cli_made made;  /* pictures of the runs */
    const char **pictures; /* [pairs.ids.n] of a list the files; NULL where no answer is wanted */
    size_t n_asked, n_failed, n_refused, n_mended, n_skipped, n_in_vain, n_low_mass;
    struct lk_append_lock lock;
    const struct cli_share *part; /* NULL: all items */
    struct cli_progress alone, *progress;
};

/* Something to ask: an item, of a comparison in one order. */
struct question {
    const struct cli_pair *pair;
    struct lk_judge_message message;
    bool preserved_first;
};

static int by_source(const void *a, const void *b) {
    const struct cli_pair *x = a, *y = b;
    int order = strcmp(x->source ? x->source : "", y->source ? y->source : "");
    return order ? order : strcmp(x->item_id, y->item_id);
}

/* A worker's share of what is not judged yet: every n-th item. */
static void keep_part(struct runner *r) {
    size_t n = 0, left = 0;
    for (size_t i = 0; i < r->pairs.n; i++) {
        const struct cli_pair *pair = &r->pairs.list[i];
        const bool done = judge_is_done(&r->done, pair->item_id, r->ask.pairwise ? "preserved_first" : NULL, false);
        if (done || left++ % (size_t)r->part->n != (size_t)r->part->part) continue;
        r->pairs.list[n++] = *pair;
    }
    r->pairs.n = n;
}

static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* The pictures that the message shows. */
static enum lk_code load(const struct runner *r, const struct question *q, struct lk_judge_item *item) {
    *item = (struct lk_judge_item){.item_id = q->pair->item_id, .message = &q->message};
    item->legacy = r->ask.prompt == LK_JUDGE_PROMPT_LEGACY;
    for (int i = 0; i < q->message.n_parts; i++) {
        enum lk_judge_image image = q->message.parts[i].image;
        if (!image) continue;
        const char *path = cli_pair_path(&r->pairs, q->pair, image);
        if (!path)
            return lk_fail(LK_E_INPUT, "%s: %s does not say where the picture \"%s\" is", item->item_id,
                           cli_pairs_name(&r->arguments->report), lk_judge_image_name(image));
        if (!item->source_key) item->source_key = hash_of(path);
        if (image == LK_JUDGE_EDITED) LK_TRY(lk_digest_file(LK_DIGEST_SHA256, path, item->edited_sha256));
        LK_TRY(lk_image_read(&item->images[image], path, 1, 0));
    }
    return LK_OK;
}

static void unload(struct lk_judge_item *item) {
    for (int i = 0; i < LK_N_JUDGE_IMAGES; i++) lk_image_free(&item->images[i]);
}

static size_t n_bytes_of(const struct lk_judge_item *item) {
    size_t n = 0;
    for (int i = 0; i < LK_N_JUDGE_IMAGES; i++)
        n += (size_t)item->images[i].width * (size_t)item->images[i].height * (size_t)item->images[i].channels;
    return n;
}

static const char *order_of(const struct runner *r, const struct question *q) {
    return !r->ask.pairwise ? NULL : q->preserved_first ? "preserved_first" : "edited_first";
}

/* Verdicts as lines at the end of the file. */
static enum lk_code write_lines(struct runner *r, const struct question *questions, const struct lk_judge_item *items,
                                const struct lk_seen *verdicts, int n) {
    struct lk_text lines = {0};
    enum lk_code rc = LK_OK;
    for (int i = 0; !rc && i < n; i++) {
        const struct lk_seen *v = &verdicts[i];
        if (v->code && r->judge.server && lk_judge_server_state(r->judge.server)) continue; /* told once, at the end */
        if (v->code) {
            lk_log(LK_LOG_WARNING, "%s: %s", items[i].item_id, v->error);
            r->n_failed++;
            continue;
        }
        r->n_mended += v->valid && v->answer.n_mended;
        if (v->refused) {
            lk_log(LK_LOG_WARNING, "%s: the judge refused: %.200s", items[i].item_id,
                   v->attempts[v->n_attempts - 1].raw);
            r->n_refused++;
        } else if (!v->valid) {
            lk_log(LK_LOG_WARNING, "%s: no valid answer in %d attempts: %s", items[i].item_id, v->n_attempts,
                   v->attempts[v->n_attempts - 1].error);
            r->n_failed++;
        }
        r->n_low_mass += judge_record_low_mass(v);
        r->record.order = order_of(r, &questions[i]);
        rc = judge_record_add(&r->record, &items[i], v, &lines);
    }
    if (!rc && lines.n) rc = lk_append_lines(r->arguments->output, lines.bytes, lines.n);
    lk_text_free(&lines);
    return rc;
}

/* Names a question whose pictures cannot be shown. */
static enum lk_code leave_out(struct runner *r, const struct question *question, struct lk_judge_item *item,
                              enum lk_code rc) {
    unload(item);
    if (rc == LK_E_INTERNAL) return rc;
    cli_pair_warn(cli_pairs_name(&r->arguments->report), question->pair);
    r->n_failed++;
    return LK_OK;
}

/* Asks about the pictures that are loaded, and lets go of them. */
static enum lk_code judge_loaded(struct runner *r, const struct question *questions, struct lk_judge_item *items,
                                 struct lk_seen *verdicts, int n) {
    enum lk_code rc = lk_judge_see(&r->judge, items, n, verdicts);
    if (rc == LK_E_NOMEM && n > 1) { /* each alone may fit, when the others' pictures are gone */
        for (int i = 0; i < n; i++) {
            lk_seen_free(&verdicts[i]);
            unload(&items[i]);
        }
        rc = LK_OK;
        for (int i = 0; !rc && i < n; i++) {
            rc = load(r, &questions[i], items);
            rc = rc ? leave_out(r, &questions[i], items, rc) : judge_loaded(r, &questions[i], items, verdicts, 1);
        }
        return rc;
    }
    if (rc == LK_E_NOMEM) {
        lk_log(LK_LOG_WARNING, "%s: %s", items->item_id, lk_error_text());
        r->n_failed++;
        rc = LK_OK;
    } else if (!rc) {
        rc = write_lines(r, questions, items, verdicts, n);
    }
    for (int i = 0; i < n; i++) {
        lk_seen_free(&verdicts[i]);
        unload(&items[i]);
    }
    return rc;
}

/* n questions, as many at once as fit: those whose pictures are loaded stand together at `portion`. What cannot be
 * shown is named and left out; no verdict depends on the others. */
static enum lk_code judge_some(struct runner *r, struct question *questions, int n, struct lk_judge_item *items,
                               struct lk_seen *verdicts) {
    struct question *portion = questions;
    size_t n_bytes = 0;
    int n_loaded = 0;
    enum lk_code rc = LK_OK;
    for (int i = 0; !rc && i < n; i++) {
        rc = load(r, &questions[i], &items[n_loaded]);
        bool again = rc == LK_E_NOMEM && n_loaded; /* alone it may fit */
        if (!rc) {
            struct question q = portion[n_loaded];
            portion[n_loaded] = questions[i];
            questions[i] = q;
            items[n_loaded].message = &portion[n_loaded].message;
            n_bytes += n_bytes_of(&items[n_loaded++]);
        } else if (again) {
            unload(&items[n_loaded]);
        } else {
            rc = leave_out(r, &questions[i], &items[n_loaded], rc);
        }
        if (!again && (rc || (n_bytes < LOADED_BYTES && i + 1 < n))) continue;
        rc = judge_loaded(r, portion, items, verdicts, n_loaded);
        n_bytes = 0;
        n_loaded = 0;
        i -= again;
        portion = &questions[i + 1];
    }
    for (int i = 0; i < n_loaded; i++) unload(&items[i]);
    r->n_asked += (size_t)n;
    r->progress->asked += n;
    if (!rc && r->judge.server) rc = lk_judge_server_state(r->judge.server);
    if (!rc && !r->part) cli_progress_show(r->progress);
    return rc;
}

/* Adds the questions about an item that are not answered yet. */
static enum lk_code collect(struct runner *r, const struct cli_pair *pair, struct question *questions, int *n) {
    if (r->ask.pairwise && cli_pair_is_preserved(pair)) return LK_OK; /* asked with the baseline's */
    for (int order = 0; order <= (int)r->ask.pairwise; order++) {
        struct question *q = &questions[*n];
        *q = (struct question){.pair = pair, .preserved_first = order};
        if (judge_is_done(&r->done, pair->item_id, order_of(r, q), false)) {
            r->n_skipped++;
            r->n_in_vain += judge_is_done(&r->done, pair->item_id, order_of(r, q), true);
            continue;
        }
        r->ask.preserved_first = order;
        enum lk_code rc = cli_pair_message(pair, r->prompts, &r->ask, &q->message);
        if (!rc) {
            ++*n;
            continue;
        }
        lk_judge_message_free(&q->message);
        if (rc != LK_E_INPUT) return rc;
        cli_pair_warn(cli_pairs_name(&r->arguments->report), pair);
        r->n_failed++;
        r->n_asked++;
    }
    return LK_OK;
}

/* What is still to be asked. */
static void count_questions(struct runner *r) {
    int64_t n = 0;
    for (size_t i = 0; i < r->pairs.n; i++)
        for (int order = 0; order <= (int)r->ask.pairwise; order++) {
            const struct question q = {.preserved_first = order};
            if (r->ask.pairwise && cli_pair_is_preserved(&r->pairs.list[i])) continue;
            n += !judge_is_done(&r->done, r->pairs.list[i].item_id, order_of(r, &q), false);
        }
    r->progress->total += n;
    if (!r->part) cli_progress_show(r->progress); /* its clock begins */
}

static enum lk_code judge_all(struct runner *r) {
    int capacity = VISITS * r->judge.n_slots, n = 0;
    struct question *questions = lk_calloc((size_t)capacity + 1, sizeof *questions);
    struct lk_judge_item *items = lk_calloc((size_t)capacity + 1, sizeof *items);
    struct lk_seen *verdicts = lk_calloc((size_t)capacity + 1, sizeof *verdicts);
    enum lk_code rc = questions && items && verdicts ? LK_OK : lk_fail(LK_E_NOMEM, "judge run: out of memory");
    for (size_t i = 0; !rc && i <= r->pairs.n; i++) {
        if (i < r->pairs.n) rc = collect(r, &r->pairs.list[i], questions, &n);
        if (!rc && n && (n >= capacity || i == r->pairs.n)) rc = judge_some(r, questions, n, items, verdicts);
        if (rc || n >= capacity || i == r->pairs.n) {
            for (int k = 0; questions && k < n; k++) lk_judge_message_free(&questions[k].message);
            n = 0;
        }
    }
    lk_free(questions);
    lk_free(items);
    lk_free(verdicts);
    return rc;
}

static enum lk_code conclude(const struct runner *r) {
    const char *path = cli_pairs_name(&r->arguments->report);
    const char *output = r->part ? r->part->whole : r->arguments->output; /* a part's lines go there */
    size_t n_bad = r->n_failed + r->n_refused + r->n_in_vain + r->pairs.rejects.n,
           n_all = r->n_asked + r->pairs.rejects.n;
    if (r->n_low_mass)
        lk_log(LK_LOG_WARNING,
               "%zu of %zu items: the judge gave the digits 1 to 5 less than 0.9 of its probability; see "
               "\"low_mass\" in %s",
               r->n_low_mass, n_all, output);
    if (r->n_mended)
        lk_log(LK_LOG_WARNING, "%zu answers had raw line ends in strings or trailing commas, which were read",
               r->n_mended);
    if (r->n_refused)
        lk_log(LK_LOG_WARNING, "%zu items were refused by the judge; see \"refusal\" in %s", r->n_refused, output);
    if (r->n_skipped)
        lk_log(LK_LOG_INFO, "%zu were judged before, %zu failed or were refused then", r->n_skipped - r->n_in_vain,
               r->n_in_vain);
    if (!n_all && !r->n_skipped) return lk_fail(LK_E_INPUT, "%s: expected pictures with their sources, got none", path);
    if (!n_bad) return LK_OK;
    return lk_fail(n_bad < n_all + r->n_skipped ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu items could not be judged",
                   path, n_bad, n_all + r->n_in_vain);
}

static enum lk_code check_arguments(const struct cli_arguments *a) {
    if (!cli_pairs_name(&a->report)) return lk_fail(LK_E_USAGE, "judge run: expected --pairs FILE.jsonl or --from RUN");
    if (!a->model) return lk_fail(LK_E_USAGE, "judge run: expected --model");
    if (!a->output) return lk_fail(LK_E_USAGE, "judge run: expected --output FILE.jsonl");
    if (!a->review.slot) return lk_fail(LK_E_USAGE, "judge run: expected --slot primary or secondary");
    if (a->review.pairwise && strcmp(a->review.judge_prompt, "legacy"))
        return lk_fail(LK_E_USAGE, "--pairwise: needs --judge-prompt legacy");
    if (a->report.check && (!strcmp(a->review.judge_prompt, "legacy")))
        return lk_fail(LK_E_USAGE, "--check: goes without --judge-prompt legacy, which asks for no scores");
    if (a->report.check && !strncmp(a->report.check, "repeat", 6) && !strcmp(a->review.mode, "direct"))
        return lk_fail(LK_E_USAGE, "--check %s: goes without --mode direct, which reads the same scores each time",
                       a->report.check);
    if (a->review.server && (strcmp(a->review.mode, "free") || !strcmp(a->review.judge_prompt, "legacy")))
        return lk_fail(LK_E_USAGE, "--openai-url: goes with --mode free and without --judge-prompt legacy: a server's "
                                   "model can be asked, but not be made to fill in a form");
    return LK_OK;
}

static void say_waiting(const char *why) { lk_log(LK_LOG_INFO, "%s", why); }

enum lk_code cli_judge_server(const struct cli_arguments *a, struct lk_judge_server **out) {
    const struct lk_judge_server_settings settings = {.url = a->review.server,
                                                      .model = a->model,
                                                      .key = getenv("OPENAI_API_KEY"),
                                                      .requests_per_minute = a->review.requests_per_minute,
                                                      .waiting = say_waiting};
    if (settings.key) cli_leave_no_core();
    return lk_judge_server_open(out, &settings);
}

static enum lk_code open_server(struct runner *r) {
    const struct cli_arguments *a = r->arguments;
    snprintf(r->record.model, sizeof r->record.model, "%s", a->model);
    snprintf(r->record.weights_identity, sizeof r->record.weights_identity, "unknown");
    r->record.family = "openai";
    r->record.dtype = "unknown";
    LK_TRY(cli_judge_server(a, &r->judge.server));
    r->record.server = lk_judge_server_shown(r->judge.server);
    return LK_OK;
}

static enum lk_code open_model(struct runner *r) {
    const struct cli_arguments *a = r->arguments;
    LK_TRY(cli_device_open(&a->job.run, &r->device));
    LK_TRY(lk_chat_open(&r->chat, a->model, cli_dtype(&a->job.run)));
    LK_TRY(lk_chat_weights_identity(r->chat, r->record.weights_identity, &r->record.quantized));
    r->record.configs = lk_chat_configs(r->chat);
    lk_recipe_model_name(a->model, r->record.model);
    r->record.family = lk_chat_family(r->chat);
    r->record.dtype = a->job.run.dtype;
    return LK_OK;
}

static enum lk_code open_judge(struct runner *r) {
    const struct cli_arguments *a = r->arguments;
    LK_TRY(a->review.server ? open_server(r) : open_model(r));
    r->record.slot = a->review.slot;
    r->record.mode = a->review.mode;
    r->record.prompt_version = a->review.judge_prompt;
    r->record.check = a->report.check;
    r->ask = (struct lk_judge_ask){.prompt = (enum lk_judge_prompt)lk_judge_prompt_parse(a->review.judge_prompt),
                                   .pairwise = a->review.pairwise,
                                   .check = (enum lk_judge_check)lk_judge_check_parse(a->report.check)};
    r->judge = (struct lk_seeing_judge){.chat = r->chat,
                                        .dev = r->device,
                                        .server = r->judge.server,
                                        .n_slots = (int)a->review.batch,
                                        .max_new_tokens = a->max_new_tokens,
                                        .tick = cli_signals_check};
    if (r->ask.check >= LK_CHECK_REPEAT) r->judge.seed = 100 * (uint64_t)(1 + r->ask.check - LK_CHECK_REPEAT);
    r->judge.mode = !strcmp(a->review.mode, "free")     ? LK_JUDGE_FREE
                    : !strcmp(a->review.mode, "forced") ? LK_JUDGE_FORCED
                                                        : LK_JUDGE_DIRECT;
    return lk_seeing_judge_open(&r->judge);
}

static enum lk_code draw(struct cli_pairs *pairs, const char *sample) {
    int32_t *chosen;
    size_t n;
    LK_TRY(cli_draw(sample, pairs->n, "judge", &chosen, &n));
    for (size_t i = 0; i < n; i++) pairs->list[i] = pairs->list[chosen[i]];
    pairs->n = n;
    lk_free(chosen);
    return LK_OK;
}

/* What is judged, in its order. Free in any case. */
static enum lk_code list_items(struct cli_pairs *pairs, const struct cli_arguments *a) {
    LK_TRY(cli_pairs_of(pairs, &a->report, true));
    /* A source's outputs follow each other. */
    if (pairs->n) qsort(pairs->list, pairs->n, sizeof *pairs->list, by_source);
    return a->study.sample ? draw(pairs, a->study.sample) : LK_OK;
}

/* Whether the item's picture is still the one that an answer is about. */
static bool is_shown(const void *runner, const char *item_id, const char *sha256) {
    const struct runner *r = runner;
    char now[65];
    const int32_t i = lk_names_find(&r->pairs.ids, item_id, strlen(item_id));
    if (i < 0 || !r->pictures[i]) return true;
    if (lk_names_find(&r->made.items, item_id, strlen(item_id)) >= 0) return cli_made_has(&r->made, item_id, sha256);
    return lk_digest_file(LK_DIGEST_SHA256, r->pictures[i], now) || !strcmp(now, sha256);
}

static enum lk_code know_pictures(struct runner *r) {
    r->pictures = lk_calloc(r->pairs.ids.n + 1, sizeof *r->pictures);
    if (!r->pictures) return lk_fail(LK_E_NOMEM, "judge run: out of memory");
    for (size_t i = 0; i < r->pairs.n; i++) {
        const char *id = r->pairs.list[i].item_id;
        r->pictures[lk_names_find(&r->pairs.ids, id, strlen(id))] = r->pairs.list[i].edited;
    }
    r->done.is_shown = is_shown;
    r->done.pictures = r;
    return cli_made_read(&r->made, &r->arguments->report.runs);
}

static enum lk_code run(struct runner *r) {
    const struct cli_arguments *a = r->arguments;
    LK_TRY(check_arguments(a));
    LK_TRY(list_items(&r->pairs, a));
    if (!r->part || !r->part->part) cli_print_rejects(cli_pairs_name(&a->report), &r->pairs.rejects);
    LK_TRY(lk_judge_prompts_load(&r->prompts));
    LK_TRY(open_judge(r));
    LK_TRY(know_pictures(r));
    if (!r->part) LK_TRY(judge_done_set_aside(&r->done, a->output));
    LK_TRY(lk_append_lock(&r->lock, a->output));
    if (r->lock.lockless)
        lk_log(LK_LOG_WARNING, "%s: this file system has no locks; see that no other run writes the file", a->output);
    if (r->part) LK_TRY(judge_done_read(&r->done, &r->record, r->part->whole, false));
    LK_TRY(judge_done_read(&r->done, &r->record, a->output, true));
    if (r->part) keep_part(r);
    if (r->part && !r->pairs.n) return LK_OK;
    cli_signals_install();
    if (r->judge.server)
        lk_log(LK_LOG_INFO, "%s on %s: pictures are sent there", r->record.model, r->record.server);
    else
        lk_log(LK_LOG_INFO, "%s in %s on %s, %s answers", r->record.family, r->record.dtype, r->device->name,
               r->record.mode);
    count_questions(r);
    const enum lk_code rc = judge_all(r);
    if (!rc)
        lk_log(LK_LOG_INFO, "%zu judged, %zu failed, %zu refused", r->n_asked - r->n_failed - r->n_refused, r->n_failed,
               r->n_refused);
    return rc ? rc : conclude(r);
}

static void runner_free(struct runner *r) {
    lk_append_unlock(&r->lock);
    lk_seeing_judge_close(&r->judge);
    lk_judge_server_close(r->judge.server);
    lk_chat_close(r->chat);
    if (r->device) lk_device_free(r->device);
    lk_judge_prompts_free(r->prompts);
    cli_pairs_free(&r->pairs);
    judge_done_free(&r->done);
    cli_made_free(&r->made);
    lk_free(r->pictures);
}

static enum lk_code judge_part(const struct cli_arguments *arguments, const struct cli_share *part) {
    struct runner r = {.arguments = arguments, .part = part};
    r.progress = part ? part->progress : &r.alone;
    enum lk_code rc = run(&r);
    runner_free(&r);
    return rc;
}

static enum lk_code judge_shares(const struct cli_arguments *a) {
    struct cli_shared shared = {
        .what = "judge run", .does = "judge", .ending = "", .key = "item_id", .work = judge_part};
    struct runner r = {.arguments = a};
    int32_t number;
    enum lk_code rc = list_items(&r.pairs, a);
    for (size_t i = 0; i < r.pairs.n && !rc; i++)
        rc = lk_names_number(&shared.items, r.pairs.list[i].item_id, strlen(r.pairs.list[i].item_id), &number);
    if (!rc) rc = know_pictures(&r);
    if (!rc) rc = judge_done_set_aside(&r.done, a->output);
    runner_free(&r);
    if (!rc) rc = cli_shares(a, &shared);
    lk_names_free(&shared.items);
    return rc;
}

enum lk_code cli_judge_run(const struct cli_arguments *a) {
    if (!a->model && a->report.runs.n == 1) return cli_judge_study(a);
    if (!a->study.devices) return judge_part(a, NULL);
    LK_TRY(check_arguments(a));
    if (a->review.server)
        return lk_fail(LK_E_USAGE, "--devices: goes without --openai-url; the server has its own devices");
    return judge_shares(a);
}
