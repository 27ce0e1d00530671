
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/human/combine.h"
#include "eval/judge/answers.h"
#include "eval/judge/doubts.h"
#include "eval/judge/legacy.h"
#include "eval/scores/json_lines.h"
#include "eval/scores/long_table.h"
#include "tools/cli/audit/audit.h"

typedef enum lk_code (*answers_fn)(struct lk_dataset *, const char *, size_t, const char *,
                                   const struct lk_judge_import *, struct lk_judge_report *);

static enum lk_code read_scores(struct lk_dataset *data, const char *path) {
    struct lk_long_report report;
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_long_table_read(data, text, n, path, &report);
    lk_free(text);
    if (!rc)
        lk_log(LK_LOG_INFO, "%s: %zu scores of judges, %zu of raters, %zu skipped", path, report.n_judge,
               report.n_rater, report.n_skipped);
    return rc;
}

/* named: by an option; a run's own file may be empty yet. */
static enum lk_code read_answers(struct cli_report_input *in, const char *path, bool named, int slot, const char *check,
                                 answers_fn read) {
    struct lk_judge_report report = {0};
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    const struct lk_judge_import import = {
        .slot = slot, .check = slot ? check : NULL, .is_shown = cli_made_has, .pictures = &in->made};
    enum lk_code rc = !n || lk_is_json(text, n) ? read(&in->data, text, n, path, &import, &report)
                                                : lk_fail(LK_E_INPUT,
                                                          "%s: expected JSON lines of a judge; a table of scores goes "
                                                          "to --scores",
                                                          path);
    lk_free(text);
    if (!rc && named && !report.n_records)
        rc = lk_fail(LK_E_INPUT, "%s: expected answers of a judge, a line each, got none", path);
    if (!rc && *report.judge && !*in->options.judges[slot]) {
        in->options.judges[slot] = lk_dataset_text(&in->data, report.judge, strlen(report.judge));
        if (!in->options.judges[slot]) rc = lk_fail(LK_E_NOMEM, "report: out of memory for a judge's name");
    }
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu answers matched, %zu repeated, %zu unknown, %zu invalid", path, report.n_matched,
               report.n_repeated, report.n_unknown, report.n_invalid);
        if (report.n_stale)
            lk_log(LK_LOG_WARNING,
                   "%s: answers left out, about earlier pictures of their items: %zu; judge those that are there now",
                   path, report.n_stale);
        cli_print_rejects(path, &report.rejects);
        in->n_refused += report.n_invalid + report.n_unknown;
    }
    lk_judge_report_free(&report);
    return rc;
}

/* Of one judge: the files may be of edits and of comparisons. */
static enum lk_code read_legacy(struct cli_report_input *in, const struct cli_report_arguments *a) {
    struct lk_legacy legacy = {.mixed = true};
    enum lk_code rc = LK_OK;
    for (int i = 0; i < a->legacy.n && !rc; i++) {
        const char *path = a->legacy.values[i];
        size_t n, n_records = legacy.n_records, n_invalid = legacy.n_invalid, n_rejects = legacy.rejects.n;
        char *text;
        rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
        if (rc) break;
        rc = lk_legacy_read(&legacy, text, n, path);
        lk_free(text);
        if (rc) break;
        n_invalid = legacy.n_invalid - n_invalid;
        lk_log(LK_LOG_INFO, "%s: %zu answers matched, %zu invalid", path, legacy.n_records - n_records - n_invalid,
               n_invalid);
        cli_print_fresh_rejects(path, &legacy.rejects, n_rejects);
    }
    if (!rc) rc = lk_legacy_store(&legacy, 0, &in->data);
    in->n_refused += legacy.n_invalid;
    lk_legacy_free(&legacy);
    return rc;
}

/* Without scores that are named, those of one run's own judges. */
static enum lk_code read_found(struct cli_report_input *in, const char *run) {
    for (int slot = 0; slot < LK_N_JUDGES; slot++) {
        char *path = cli_judge_answers_found(run, slot);
        enum lk_code rc = path ? read_answers(in, path, false, slot, NULL, lk_judge_answers_read) : LK_OK;
        lk_free(path);
        LK_TRY(rc);
    }
    return LK_OK;
}

static enum lk_code read_judges(struct cli_report_input *in, const struct cli_report_arguments *a) {
    const bool named = a->primary || a->secondary || a->pixel || a->scores || a->legacy.n;
    if (!named && a->runs.n == 1) LK_TRY(read_found(in, a->runs.values[0]));
    if (a->primary) LK_TRY(read_answers(in, a->primary, true, 0, NULL, lk_judge_answers_read));
    if (a->secondary) LK_TRY(read_answers(in, a->secondary, true, 1, a->check, lk_judge_answers_read));
    if (!a->pixel) return LK_OK;
    if (a->primary && a->secondary)
        return lk_fail(LK_E_USAGE, "--pixel: both judges are given; it can stand for one of them only");
    int slot = a->primary ? 1 : 0;
    if (!*in->options.judges[slot]) in->options.judges[slot] = "pixels";
    return read_answers(in, a->pixel, true, slot, NULL, lk_pixel_scores_read);
}

enum rating_file { RATINGS, GOLD, PARTICIPANTS };

static enum lk_code read_rating_file(struct lk_ratings_import *import, const char *path, enum rating_file kind,
                                     const char *code) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = kind == RATINGS ? lk_ratings_read(import, text, n, path)
                      : kind == GOLD  ? lk_ratings_gold(import, text, n, path)
                                      : lk_ratings_participants(import, text, n, path, code);
    lk_free(text);
    return rc;
}

/* Rejects carry lines only, so they are shown file by file. */
static enum lk_code read_ratings(struct cli_report_input *in, const struct cli_report_arguments *a) {
    struct lk_ratings_import *import = &in->ratings;
    import->is_shown = cli_made_has;
    import->pictures = &in->made;
    if (a->gold) LK_TRY(read_rating_file(import, a->gold, GOLD, NULL));
    for (int i = 0; i < a->ratings.n; i++) {
        size_t n = import->n_records, n_invalid = import->n_invalid, n_unknown = import->n_unknown;
        size_t n_rejects = import->rejects.n;
        LK_TRY(read_rating_file(import, a->ratings.values[i], RATINGS, NULL));
        lk_log(LK_LOG_INFO, "%s: %zu ratings read, %zu unknown, %zu invalid", a->ratings.values[i],
               import->n_records - n, import->n_unknown - n_unknown, import->n_invalid - n_invalid);
        cli_print_fresh_rejects(a->ratings.values[i], &import->rejects, n_rejects);
        cli_print_unread(a->ratings.values[i], &import->unread);
    }
    cli_print_left_out(import);
    if (import->n_stale)
        lk_log(LK_LOG_WARNING,
               "ratings left out, about earlier pictures of their items: %zu; a new survey shows those of now",
               import->n_stale);
    in->n_refused += import->n_invalid;
    if (a->participants) {
        size_t n_rejects = import->rejects.n;
        LK_TRY(read_rating_file(import, a->participants, PARTICIPANTS, a->completion_code));
        cli_print_fresh_rejects(a->participants, &import->rejects, n_rejects);
        in->n_refused += import->n_listed_invalid;
        if (import->n_listed_invalid && import->n_listed_invalid == import->n_listed)
            return lk_fail(LK_E_INPUT, "%s: expected a list of participants, got no record that is understood",
                           a->participants);
        lk_log(LK_LOG_INFO, "%s: %zu participants", a->participants, import->n_participants);
        cli_print_unread(a->participants, &import->unread);
        if (import->n_unlisted)
            lk_log(LK_LOG_WARNING, "%s: %zu raters of the ratings are not listed: counted as not submitted",
                   a->participants, import->n_unlisted);
    }
    if (in->data.n_ratings) lk_ratings_count(&in->data);
    return LK_OK;
}

static enum lk_code text_of(struct lk_dataset *data, const char *text, const char **out) {
    *out = text ? lk_dataset_text(data, text, strlen(text)) : NULL;
    return !text || *out ? LK_OK : lk_fail(LK_E_NOMEM, "report: out of memory for the paths of images");
}

/* Whether the file, links followed, lies in the folder. */
static bool lies_in(const char *file, const char *folder) {
    char real[PATH_MAX];
    size_t n = realpath(folder, real) ? strlen(real) : 0;
    return n && !strncmp(file, real, n) && (n == 1 || file[n] == '/');
}

/* A list of pictures, or a run's study, must not bring any readable picture of the machine into a page that is passed
 * on: only folders that the user named are looked into. */
static bool may_show(const struct cli_report_arguments *a, const char *file) {
    const char *const files[] = {a->images, a->study_file};
    const struct cli_list *const folders[] = {&a->runs, &a->pictures};
    char real[PATH_MAX];
    bool result = false;
    if (!file || !realpath(file, real)) return true; /* shown as missing */
    for (int k = 0; k < 2 && !result; k++) {
        char *name = files[k] ? lk_strdup(files[k]) : NULL;
        result = name && lies_in(real, dirname(name));
        lk_free(name);
        for (int i = 0; i < folders[k]->n && !result; i++) result = lies_in(real, folders[k]->values[i]);
    }
    return result;
}

enum lk_code cli_report_images(struct cli_report_input *in, const struct cli_report_arguments *a) {
    struct lk_dataset *data = &in->data;
    if (!a->images && !a->runs.n) return LK_OK;
    const char *path = a->images ? a->images : cli_pairs_name(a);
    struct cli_pairs pairs;
    size_t n_matched = 0, n_outside = 0;
    enum lk_code rc = a->images ? cli_pairs_read(&pairs, path, false) : cli_pairs_of(&pairs, a, false);
    for (size_t i = 0; i < pairs.n && !rc; i++) {
        int32_t at = -1;
        rc = lk_dataset_find(data, pairs.list[i].item_id, strlen(pairs.list[i].item_id), &at);
        if (rc == LK_E_INPUT) rc = LK_OK; /* no item's id, so none of this run */
        if (rc || at < 0) continue;
        n_matched++;
        bool edited = may_show(a, pairs.list[i].edited), source = may_show(a, pairs.list[i].source);
        n_outside += !edited + !source;
        if (edited) rc = text_of(data, pairs.list[i].edited, &data->items[at].image);
        if (!rc && source) rc = text_of(data, pairs.list[i].source, &data->items[at].source_image);
    }
    if (!rc && n_outside)
        lk_log(LK_LOG_WARNING,
               "%s: %zu pictures lie outside its folder and are left out; --pictures names another folder", path,
               n_outside);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu images matched, %zu unknown", path, n_matched, pairs.n - n_matched);
        cli_print_rejects(path, &pairs.rejects);
    }
    cli_pairs_free(&pairs);
    return rc;
}

static enum lk_code control_quality(struct cli_report_input *in, const struct cli_report_arguments *a) {
    struct lk_quality_options quality;
    lk_quality_defaults(in->options.protocol, &quality);
    if (a->qc_policy) quality.policy = (enum lk_quality_policy)lk_quality_policy_parse(a->qc_policy);
    in->options.policy = quality.policy;
    LK_TRY(lk_quality_check(&in->data, &quality, &in->quality));
    lk_quality_exclude(&in->data, &in->quality, true);
    lk_log(LK_LOG_INFO, "raters: %zu, %zu excluded", in->data.n_raters, in->quality.n_excluded);
    in->options.quality = &in->quality;
    in->options.participants = in->ratings.participants;
    in->options.n_participants = in->ratings.n_participants;
    return lk_combine(&in->data);
}

static void set_options(struct lk_report_options *o, const struct cli_report_arguments *a) {
    lk_report_options_init(o);
    o->title = a->title ? a->title : "Portrait edits: audit";
    o->run = a->run;
    o->date = a->date;
    o->label = a->label;
    o->judges[0] = a->primary_name;
    o->judges[1] = a->secondary_name;
    o->prompts_are_all = !strcmp(a->prompts_as, "fixed");
    o->rounding = (enum lk_rounding)lk_rounding_parse(a->rounding);
    o->subcategories = !strcmp(a->subcategory, "printed")   ? LK_SUBCATEGORIES_PRINTED
                       : !strcmp(a->subcategory, "content") ? LK_SUBCATEGORIES_CONTENT
                                                            : LK_SUBCATEGORIES_BOTH;
    o->score_source = !strcmp(a->score_source, "human") ? LK_SCORES_HUMAN : LK_SCORES_JUDGE;
    o->n_bootstrap = a->bootstrap;
    o->study_seed = (uint64_t)a->study_seed;
    o->alpha = a->alpha;
    o->thresholds = (struct lk_thresholds){(int)a->success, (int)a->soft_erasure, (int)a->drift, (int)a->identity};
    o->drifted_only = a->drifted_only;
    o->unclear = !strcmp(a->unclear, "half")          ? LK_UNCLEAR_HALF
                 : !strcmp(a->unclear, "nonadherent") ? LK_UNCLEAR_NONADHERENT
                                                      : LK_UNCLEAR_EXCLUDE;
    o->secondary_only = a->secondary_only;
    o->embed_images = a->embed_images;
    o->png = a->png;
    o->data_folder = a->data_folder;
    o->audit_safe = a->audit_safe;
}

enum lk_code cli_report_manifest(struct cli_report_input *in, const char *path) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_source_manifest_read(&in->manifest, text, n, path);
    lk_free(text);
    in->options.manifest = &in->manifest;
    if (!rc) lk_log(LK_LOG_INFO, "%s: %d sources", path, in->manifest.n);
    return rc;
}

static enum lk_code read_features(struct cli_report_input *in, const char *path) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_feature_prompts_read(&in->features, text, n, path, &lk_portrait_ids);
    lk_free(text);
    in->options.features = &in->features;
    if (!rc)
        lk_log(LK_LOG_INFO, "%s: %d feature prompts, %d sources without, %d prompts name a demographic group", path,
               in->features.n, in->features.n_none, in->features.n_leaks);
    return rc;
}

/* Source ids with commas between, each once. */
static enum lk_code parse_sources(struct lk_report_options *o, const char *list) {
    bool seen[LK_N_SOURCES] = {false};
    o->n_examples = 0;
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        int source = lk_source_parse(at, n);
        if (source < 0 || seen[source])
            return lk_fail(LK_E_USAGE, "--sources: expected %s, got \"%.*s\"",
                           source < 0 ? "source ids such as Black_Female_30s with commas between" : "each source once",
                           n > 64 ? 64 : (int)n, at);
        seen[source] = true;
        o->examples[o->n_examples++] = (int8_t)source;
        at += n;
        if (!*at) return LK_OK;
    }
}

static enum lk_code set_figure(struct lk_report_options *o, const struct cli_report_arguments *a) {
    const char *prompt = a->figure_prompt;
    if (prompt) o->figure_prompt = lk_prompt_parse(prompt, strlen(prompt));
    if (prompt && (o->figure_prompt < 0 || o->figure_prompt >= LK_N_EDIT_PROMPTS))
        return lk_fail(LK_E_USAGE, "--figure-prompt: expected O-01 to O-10 or V-01 to V-10, got \"%.64s\"", prompt);
    if (a->figure_gender)
        o->figure_gender = lk_factor_parse(LK_FACTOR_GENDER, a->figure_gender, strlen(a->figure_gender));
    if (a->figure_age) o->figure_age = lk_factor_parse(LK_FACTOR_AGE, a->figure_age, strlen(a->figure_age));
    return LK_OK;
}

/* --protocol, or what all ratings say, or the study, or 003. */
static void settle_protocol(struct cli_report_input *in, const struct cli_report_arguments *a,
                            const struct lk_study *study) {
    const unsigned said = in->ratings.protocols;
    const bool one = said && !(said & (said - 1));
    const char *name = a->protocol ? a->protocol : study ? lk_study_setting(study, "human") : "003";
    in->options.protocol =
        one && !a->protocol ? (enum lk_protocol)__builtin_ctz(said) : (enum lk_protocol)lk_protocol_parse(name);
    name = lk_protocol_name(in->options.protocol);
    for (int p = 0; p < LK_N_PROTOCOLS; p++)
        if (said >> p & 1 && p != (int)in->options.protocol)
            lk_log(LK_LOG_WARNING, "--protocol: ratings say %s, raters are held to %s%s",
                   lk_protocol_name((enum lk_protocol)p), name, a->protocol ? "" : "; make a report of each");
}

/* On the first screen: how many outputs one rater alone has seen, and how many raters are those of `survey pilot`. */
static enum lk_code doubt_raters(struct cli_report_input *in) {
    size_t n = 0, n_simulated = 0, n_rated = 0, n_once = 0;
    for (size_t r = 0; r < in->data.n_raters; r++) {
        n += !in->data.raters[r].excluded;
        n_simulated += in->data.raters[r].is_simulated && !in->data.raters[r].excluded;
    }
    for (size_t i = 0; i < in->data.n_items; i++) {
        n_rated += in->data.items[i].n_ratings > 0;
        n_once += in->data.items[i].n_ratings > 0 && in->data.items[i].n_ratings < LK_MIN_RATINGS;
    }
    if (n_once)
        lk_text_add(&in->doubts,
                    "Of %zu outputs with answers of raters, %zu have one rater alone: they are in no table "
                    "of the raters' majority.\n",
                    n_rated, n_once);
    if (!n_simulated) return in->doubts.rc;
    lk_log(LK_LOG_WARNING, "%zu of %zu raters are simulated", n_simulated, n);
    lk_text_add(&in->doubts,
                "%zu of %zu raters whose answers count are simulated participants of a dry run: what this report "
                "says of raters is no person's answer.\n",
                n_simulated, n);
    return in->doubts.rc;
}

enum lk_code cli_report_input(struct cli_report_input *in, const struct cli_report_arguments *a,
                              const struct lk_study *study) {
    *in = (struct cli_report_input){.ratings = {.gold_tolerance = (int)a->gold_tolerance}};
    lk_dataset_init(&in->data);
    in->ratings.data = &in->data;
    set_options(&in->options, a);
    LK_TRY(set_figure(&in->options, a));
    if (study && !a->title && !lk_study_is_documented(study)) in->options.title = lk_study_name(study);
    LK_TRY(cli_known_items(&in->data, study));
    if (a->soft_erasure >= a->success)
        return lk_fail(LK_E_USAGE, "--threshold-soft-erasure: expected less than --threshold-success %d, got %d",
                       (int)a->success, (int)a->soft_erasure);
    if (a->sources) LK_TRY(parse_sources(&in->options, a->sources));
    if (a->feature_prompts) LK_TRY(read_features(in, a->feature_prompts));
    if (a->scores) LK_TRY(read_scores(&in->data, a->scores));
    LK_TRY(cli_made_read(&in->made, &a->runs));
    LK_TRY(read_judges(in, a));
    LK_TRY(read_legacy(in, a));
    LK_TRY(read_ratings(in, a));
    if (!in->data.n_items && !a->query)
        return lk_fail(LK_E_INPUT, "report: no scores: expected --primary, --secondary, --pixel, --legacy, --scores "
                                   "or --ratings with at least one answer that is understood");
    settle_protocol(in, a, study);
    if (in->data.n_raters) LK_TRY(control_quality(in, a));
    lk_dataset_pair(&in->data);
    const struct lk_ensemble ensemble = {.rounding = in->options.rounding, .secondary_only = a->secondary_only};
    lk_ensemble_apply(&in->data, &ensemble, NULL);
    LK_TRY(lk_judge_doubts(&in->data, in->options.judges, &in->doubts));
    LK_TRY(doubt_raters(in));
    in->options.doubts = in->doubts.bytes;
    in->data.nominal = a->nominal ? (size_t)a->nominal : in->data.n_items;
    return LK_OK;
}

/* A run's manifest; one that has none yet says nothing. */
static enum lk_code add_manifest(struct lk_audit *audit, const char *folder) {
    char *path = lk_format("%s/manifest.jsonl", folder), *text = NULL;
    size_t n = 0;
    enum lk_code rc =
        path ? lk_read_file(path, CLI_MANIFEST_MAX_BYTES, &text, &n) : lk_fail(LK_E_NOMEM, "report: out of memory");
    if (!rc) rc = lk_audit_add_manifest(audit, text, n, path);
    lk_free(text);
    lk_free(path);
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

enum lk_code cli_report_store(struct lk_audit *audit, const struct cli_report_arguments *a,
                              const struct lk_study *study, const struct cli_report_input *in) {
    const struct lk_audit_settings settings = {.thresholds = in->options.thresholds, .alpha = in->options.alpha};
    LK_TRY(lk_audit_add_study(audit, study));
    for (int i = 0; i < a->runs.n; i++) LK_TRY(add_manifest(audit, a->runs.values[i]));
    LK_TRY(lk_audit_add_scores(audit, &in->data));
    return lk_audit_complete(audit, &settings);
}

void cli_report_input_free(struct cli_report_input *in) {
    lk_quality_report_free(&in->quality);
    lk_ratings_import_free(&in->ratings);
    lk_feature_prompts_free(&in->features);
    lk_text_free(&in->doubts);
    cli_made_free(&in->made);
    lk_dataset_free(&in->data);
}
