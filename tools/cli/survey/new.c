/* survey new: the survey about a run's pictures, as a file to begin with. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "eval/design/study.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "eval/study/factors.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"
#include "tools/cli/survey/http.h"

/* How `survey new` cuts items into tasks for raters. */

struct survey_design {
    enum lk_protocol protocol;
    int experiment;
    bool has_gold, pilot;
    int64_t pilot_raters, raters, shared_percent, asked_tasks; /* 0: not asked for */
    double pay, minutes;
    int gold_per_task, n_tasks, places, tasks_per_worker;
};

enum { RATERS = 3, SHARED_PERCENT = 20, PILOT_TASKS = 2 };

/* The protocol: --protocol, or `human`, the study's own, but where the items are no pairs 001 for 003. LK_E_USAGE where
 * it has no such items; run: what messages name. */
static enum lk_code survey_design_begin(struct survey_design *d, const struct cli_arguments *a, int experiment,
                                        const char *human, const char *run) {
    const char *otherwise = !strcmp(human, "003") && experiment != 2 ? "001" : human;
    const char *protocol = a->survey.protocol ? a->survey.protocol : otherwise;
    *d = (struct survey_design){.protocol = (enum lk_protocol)lk_protocol_parse(protocol),
                                .experiment = experiment,
                                .pilot = a->survey.pilot > 0,
                                .pilot_raters = a->survey.pilot,
                                .raters = a->survey.raters,
                                .shared_percent = a->survey.shared,
                                .asked_tasks = a->study.tasks,
                                .pay = a->survey.pay,
                                .minutes = a->survey.minutes};
    if (d->protocol == LK_PROTOCOL_003 && experiment != 2)
        return lk_fail(LK_E_USAGE, "survey new: --protocol: 003 asks about pairs, and %s has none; use 001, 000 or 004",
                       run);
    if (d->pilot && d->shared_percent)
        return lk_fail(LK_E_USAGE, "survey new: --pilot has everybody do both tasks: leave out --shared");
    return LK_OK;
}

/* Items of the study that a task holds, as the protocols print it: 50 pairs; 50, 30, 40 stimuli; 40 or 25 with gold. */
static size_t a_task(const struct survey_design *d) {
    static const size_t stimuli[] = {50, 30, 40};
    if (d->protocol == LK_PROTOCOL_003) return 50;
    if (d->protocol == LK_PROTOCOL_001) return stimuli[d->experiment - 1];
    return (size_t)((d->protocol == LK_PROTOCOL_000 && d->experiment == 3 ? 25 : 40) - d->gold_per_task);
}

/* As `serve survey` demands. n: the items that raters see, a shared one as often as it has raters. */
static enum lk_code survey_design_check(const struct survey_design *d, size_t n_items, size_t n, size_t n_shared) {
    if (n < (size_t)d->n_tasks)
        return lk_fail(LK_E_USAGE,
                       "survey new: --tasks: expected at most %zu, so that each has an item of the %zu to rate (a "
                       "shared one stands in several), got %d",
                       n, n_items, d->n_tasks);
    if (n / (size_t)d->n_tasks > LK_SURVEY_MAX_A_TASK)
        return lk_fail(LK_E_USAGE,
                       "survey new: --tasks: expected at least %zu, for a task has at most %d items, got %d",
                       n / (LK_SURVEY_MAX_A_TASK + 1) + 1, LK_SURVEY_MAX_A_TASK, d->n_tasks);
    if (n_shared && d->n_tasks < d->places)
        return lk_fail(
            LK_E_USAGE,
            "survey new: --tasks: expected at least %d, for a shared item has so many raters and nobody sees "
            "it twice, got %d",
            d->places, d->n_tasks);
    return LK_OK;
}

/* Tasks and places; how many of the items it takes: a pilot not all. */
static enum lk_code survey_design_count(struct survey_design *d, size_t *items) {
    size_t n_items = *items;
    const bool turk = d->protocol == LK_PROTOCOL_000 || d->protocol == LK_PROTOCOL_004;
    d->gold_per_task = !d->has_gold ? 0 : !turk || d->experiment == 3 ? 2 : 4;
    d->places = d->raters ? (int)d->raters : RATERS;
    d->tasks_per_worker = 1;
    const size_t each = a_task(d);
    if (d->pilot) {
        if (n_items > PILOT_TASKS * each) *items = n_items = PILOT_TASKS * each;
        d->places = (int)d->pilot_raters;
        d->n_tasks = n_items < PILOT_TASKS ? 1 : PILOT_TASKS;
        d->tasks_per_worker = d->n_tasks;
        return LK_OK;
    }
    if (d->protocol == LK_PROTOCOL_001 && !d->raters && !d->shared_percent) d->shared_percent = SHARED_PERCENT;
    const size_t n_shared = (n_items * (size_t)d->shared_percent + 50) / 100;
    const size_t n = n_items + n_shared * (size_t)(d->places - 1);
    size_t n_tasks = d->asked_tasks ? (size_t)d->asked_tasks : (n + each - 1) / each;
    if (n_shared && n_tasks < (size_t)d->places && !d->asked_tasks) n_tasks = (size_t)d->places;
    d->n_tasks = (int)n_tasks;
    return survey_design_check(d, n_items, n, n_shared);
}

static void survey_design_write(const struct survey_design *d, struct lk_text *out) {
    lk_text_add(out, "  \"gold_per_task\": %d,\n  \"tasks\": %d,\n", d->gold_per_task, d->n_tasks);
    if (d->shared_percent)
        lk_text_add(out, "  \"places\": 1,\n  \"shared_percent\": %d,\n  \"shared_raters\": %d,\n",
                    (int)d->shared_percent, d->places);
    else
        lk_text_add(out, "  \"places\": %d,\n", d->places);
    if (d->tasks_per_worker > 1) lk_text_add(out, "  \"tasks_per_worker\": %d,\n", d->tasks_per_worker);
    if (d->minutes > 0) lk_text_add(out, "  \"minutes\": %g,\n", d->minutes);
    if (d->pay > 0) lk_text_add(out, "  \"pay\": %g,\n", d->pay);
}

static void survey_design_print(const struct survey_design *d, const char *path, size_t n_items, const char *what) {
    printf("%s: %zu %s in %d %s, ", path, n_items, what, d->n_tasks, d->n_tasks == 1 ? "task" : "tasks");
    if (d->pilot)
        printf("all for each of %d people", d->places);
    else if (d->shared_percent)
        printf("%d %% of them for %d people, the others for one", (int)d->shared_percent, d->places);
    else
        printf("each for %d people", d->places);
    puts("; fill in approval, investigator and contact");
}

enum { MAX_PICTURE_BYTES = 1 << 30 };

/* What raters are to see: an output, or with `pairs` both of a pair. */
struct item {
    size_t job, baseline;
};

struct survey_new {
    const struct cli_arguments *arguments;
    const char *run;
    char *folder; /* that the survey's file lies in */
    struct lk_study *study;
    struct lk_study_job *job, *other;
    struct lk_names names; /* of the jobs, in their order */
    struct item *items;
    size_t n_items, capacity;
    bool pairs, scenes; /* scenes: of two sources */
    struct survey_design design;
    struct lk_text out;
};

/* Their names; and whether any is made that keeps the person. */
static enum lk_code name_jobs(struct survey_new *s) {
    for (size_t i = 0; i < lk_study_n_jobs(s->study); i++) {
        int32_t number;
        LK_TRY(lk_study_job(s->study, i, s->job));
        LK_TRY(lk_names_number(&s->names, s->job->name, strlen(s->job->name), &number));
        if (!s->pairs && s->job->arm == LK_ARM_PRESERVED && cli_known_is_made(s->run, s->job)) s->pairs = true;
    }
    return LK_OK;
}

/* Pairs, or edits, that are made. */
static enum lk_code collect(struct survey_new *s) {
    s->n_items = 0;
    for (size_t i = 0; i < s->names.n; i++) {
        struct item item = {i, i};
        LK_TRY(lk_study_job(s->study, i, s->job));
        const bool wanted = s->job->arm == (s->pairs ? LK_ARM_PRESERVED : LK_ARM_EDITED);
        if (!wanted || s->job->n_sources != 1 + s->scenes || !cli_known_is_made(s->run, s->job)) continue;
        if (s->pairs) {
            const char *baseline = s->job->baseline;
            const int32_t other = lk_names_find(&s->names, baseline, strlen(baseline));
            if (other < 0) continue;
            item.baseline = (size_t)other;
            LK_TRY(lk_study_job(s->study, item.baseline, s->other));
            if (!cli_known_is_made(s->run, s->other)) continue;
        }
        LK_TRY(lk_grow(&s->items, &s->capacity, s->n_items + 1, sizeof *s->items));
        s->items[s->n_items++] = item;
    }
    if (s->n_items) return LK_OK;
    if (!s->pairs && !s->scenes) { /* of a run that made no other */
        s->scenes = true;
        return collect(s);
    }
    return lk_fail(LK_E_INPUT, "%s: expected edits that are made, got none", s->run);
}

static enum lk_code draw_some(struct survey_new *s, const char *sample, bool *chosen) {
    int32_t *list;
    size_t n;
    LK_TRY(cli_draw(sample, s->n_items, "survey", &list, &n));
    for (size_t i = 0; i < n; i++) chosen[list[i]] = true;
    lk_free(list);
    return LK_OK;
}

/* The baseline's job that an id names, with or without its arm; -1: none. */
static int32_t baseline_of(const struct survey_new *s, const char *id) {
    char name[LK_STUDY_NAME_BYTES];
    const size_t n = strcspn(id, ".");
    const int32_t job = lk_names_find(&s->names, id, n);
    const int length = snprintf(name, sizeof name, "%.*s.edited", (int)(n < sizeof name ? n : 0), id);
    return job >= 0 ? job : lk_names_find(&s->names, name, (size_t)length);
}

/* What `likeness sample` drew. of_job [n_jobs]: the item of a baseline's job, -1. */
static enum lk_code choose(struct survey_new *s, struct lk_records *records, const char *path, const int32_t *of_job,
                           bool *chosen) {
    for (size_t n = 0;; n++) {
        bool more;
        LK_TRY(lk_records_next_strict(records, &more));
        if (!more && !n)
            return lk_fail(LK_E_INPUT, "%s: expected items under item_id, as `likeness sample` writes them, got none",
                           path);
        if (!more) return LK_OK;
        const struct lk_field *id = lk_fields_find(&records->fields, "item_id");
        const int32_t job = id ? baseline_of(s, id->text) : -1;
        if (job < 0 || of_job[job] < 0)
            return lk_field_wrong(path, records->line, "item_id",
                                  s->pairs ? "an output whose pair is made" : "an edit that is made", id);
        chosen[of_job[job]] = true;
    }
}

static enum lk_code choose_listed(struct survey_new *s, const char *path, bool *chosen) {
    const size_t n_jobs = lk_study_n_jobs(s->study);
    struct lk_records records;
    int32_t *of_job = lk_malloc((n_jobs + 1) * sizeof *of_job);
    char *text = NULL;
    size_t n;
    enum lk_code rc =
        of_job ? lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n) : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    for (size_t i = 0; i < n_jobs && !rc; i++) of_job[i] = -1;
    for (size_t i = 0; i < s->n_items && !rc; i++) of_job[s->items[i].baseline] = (int32_t)i;
    if (!rc && !(rc = lk_records_open(&records, text, n, path))) {
        rc = choose(s, &records, path, of_job, chosen);
        lk_records_close(&records);
    }
    lk_free(text);
    lk_free(of_job);
    return rc;
}

/* Items that --sample leaves: a share, a number, or what a file of `likeness sample` lists. */
static enum lk_code draw(struct survey_new *s, const char *sample, bool is_file) {
    bool *chosen = lk_calloc(s->n_items + 1, sizeof *chosen);
    enum lk_code rc = !chosen   ? lk_fail(LK_E_NOMEM, "survey new: out of memory")
                      : is_file ? choose_listed(s, sample, chosen)
                                : draw_some(s, sample, chosen);
    size_t n = 0;
    for (size_t i = 0; i < s->n_items && !rc; i++)
        if (chosen[i]) s->items[n++] = s->items[i];
    if (!rc) s->n_items = n;
    lk_free(chosen);
    return rc;
}

/* Pairs where the study has any that are made, and all that a file lists are of one; else edits. */
static enum lk_code choose_items(struct survey_new *s) {
    const char *sample = s->arguments->study.sample;
    const bool is_file = sample && sample[strspn(sample, "0123456789.%")];
    LK_TRY(name_jobs(s));
    LK_TRY(collect(s));
    if (!sample) return LK_OK;
    const enum lk_code rc = draw(s, sample, is_file);
    if (rc != LK_E_INPUT || !is_file || !s->pairs) return rc;
    s->pairs = false;
    LK_TRY(collect(s));
    return draw(s, sample, true);
}

/* What answers tell of stays: a survey that is there, and one that people have answered also with --overwrite. */
static enum lk_code check_output(const struct cli_arguments *a) {
    int64_t n = 0;
    LK_TRY(cli_output_free(a));
    char *store = survey_store(a->output, NULL);
    enum lk_code rc = store ? lk_survey_answered(store, &n) : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    if (!rc && n)
        rc = lk_fail(LK_E_USAGE,
                     "--output: %s: people have answered it (%lld answers in %s); name another file, in a folder of "
                     "its own",
                     a->output, (long long)n, store);
    lk_free(store);
    return rc;
}

/* A survey shows pictures of its own folder alone: each is copied there, once. */
static enum lk_code copy_picture(struct survey_new *s, const char *from, const char *kind, const char *name,
                                 const char *key) {
    const char *dot = strrchr(from, '.');
    char *to = lk_format("%s/pictures/%s/%s%s", s->folder, kind, name, dot ? dot : ""), *bytes = NULL;
    char *folder = lk_format("%s/pictures/%s", s->folder, kind), sha256[65];
    size_t n = 0;
    enum lk_code rc = to && folder ? study_folders_make(folder) : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    if (!rc) rc = lk_read_file(from, MAX_PICTURE_BYTES, &bytes, &n);
    if (!rc) rc = lk_atomic_write_file(to, bytes, n);
    if (!rc) {
        lk_sha256(bytes, n, sha256);
        lk_text_add(&s->out, ", \"%s\": ", key);
        lk_text_json(&s->out, to + strlen(s->folder) + 1);
        if (!strstr(key, "source")) lk_text_add(&s->out, ", \"%s_sha256\": \"%s\"", key, sha256);
    }
    lk_free(bytes);
    lk_free(folder);
    lk_free(to);
    return rc;
}

static enum lk_code copy_output(struct survey_new *s, const struct lk_study_job *job, const char *name,
                                const char *key) {
    char *from = lk_format("%s/results/%s", s->run, job->output);
    enum lk_code rc = from ? copy_picture(s, from, key, name, key) : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    lk_free(from);
    return rc;
}

/* The pages name the two by their gender, whichever the model was given first. */
static enum lk_code copy_sources(struct survey_new *s) {
    char id[64];
    for (int i = 0; i < s->job->n_sources; i++) {
        int race, gender = 0, age;
        if (s->scenes) lk_source_factors(s->job->sources[i], &race, &gender, &age);
        study_source_name(s->study, s->job->sources[i], id);
        LK_TRY(copy_picture(s, s->job->source_files[i], "sources", id, gender ? "second_source" : "source"));
    }
    return LK_OK;
}

/* The name of an item is that of its baseline. */
static enum lk_code add_item(struct survey_new *s, const struct item *item) {
    LK_TRY(lk_study_job(s->study, item->baseline, s->other));
    LK_TRY(lk_study_job(s->study, item->job, s->job));
    char id[LK_STUDY_NAME_BYTES];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(s->other->name, "."), s->other->name);
    lk_text_add(&s->out, "%s\n    {\"id\": \"%s\", \"prompt\": ", item == s->items ? "" : ",", id);
    lk_text_json(&s->out, s->job->prompt->text);
    LK_TRY(copy_sources(s));
    LK_TRY(copy_output(s, s->other, id, "edited"));
    if (s->pairs) LK_TRY(copy_output(s, s->job, id, "preserved"));
    lk_text_add(&s->out, "}");
    return s->out.rc;
}

/* What `survey gold` wrote beside the survey. */
static enum lk_code add_gold(struct survey_new *s) {
    char *path = lk_format("%s/gold_exp%d.json", s->folder, s->design.experiment);
    if (!path) return lk_fail(LK_E_NOMEM, "survey new: out of memory");
    s->design.has_gold = !access(path, R_OK);
    if (s->design.has_gold)
        lk_text_add(&s->out, "  \"gold\": \"%s\",\n", strrchr(path, '/') + 1);
    else
        lk_log(LK_LOG_INFO, "%s: no attention checks: `survey gold` writes items whose answers are known", path);
    lk_free(path);
    return LK_OK;
}

/* Practice items out of the sources of what raters see. */
static enum lk_code add_practice(struct survey_new *s) {
    int n_attributes;
    const struct lk_attribute *attributes = lk_study_attributes(s->study, &n_attributes);
    const int n_sources = lk_study_n_sources(s->study);
    struct lk_survey_portrait *portraits = lk_malloc(((size_t)n_sources + 1) * sizeof *portraits);
    bool *seen = lk_calloc((size_t)n_sources + 1, sizeof *seen);
    struct lk_survey_practice practice = {
        .folder = s->folder, .experiment = s->design.experiment, .sources = portraits};
    enum lk_code rc = portraits && seen ? LK_OK : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    for (size_t i = 0; i < s->n_items && !rc; i++) {
        rc = lk_study_job(s->study, s->items[i].job, s->job);
        for (int k = 0; k < s->job->n_sources && !rc; k++) {
            const int source = s->job->sources[k];
            if (seen[source]) continue;
            seen[source] = true;
            struct lk_survey_portrait *one = &portraits[practice.n_sources++];
            *one = (struct lk_survey_portrait){lk_study_source(s->study, source)->file, -1, -1};
            for (int a = 0; a < n_attributes; a++) {
                if (!strcmp(attributes[a].name, "race")) one->race = lk_study_source(s->study, source)->level[a];
                if (!strcmp(attributes[a].name, "gender")) one->gender = lk_study_source(s->study, source)->level[a];
            }
        }
    }
    if (!rc) rc = lk_survey_practice(&practice);
    if (!rc) lk_text_add(&s->out, "  \"tutorial\": \"practice_exp%d.json\",\n", s->design.experiment);
    lk_free(portraits);
    lk_free(seen);
    return rc;
}

static enum lk_code write_survey(struct survey_new *s) {
    struct survey_design *d = &s->design;
    LK_TRY(survey_design_begin(d, s->arguments,
                               s->pairs    ? 2
                               : s->scenes ? 3
                                           : 1,
                               lk_study_setting(s->study, "human"), s->run));
    lk_text_add(&s->out, "{\n  \"study\": ");
    char *name = lk_format("%s%s", lk_study_name(s->study), d->pilot ? "-pilot" : "");
    lk_text_json(&s->out, name ? name : "");
    lk_free(name);
    lk_text_add(&s->out, ",\n  \"protocol\": \"%s\",\n  \"experiment\": %d,\n", lk_protocol_name(d->protocol),
                d->experiment);
    if (!lk_study_is_documented(s->study)) lk_text_add(&s->out, "  \"item_ids\": \"plain\",\n");
    LK_TRY(add_gold(s));
    LK_TRY(add_practice(s));
    size_t n_items = s->n_items;
    char wanted[24];
    LK_TRY(survey_design_count(d, &n_items));
    snprintf(wanted, sizeof wanted, "%zu", n_items);
    LK_TRY(draw(s, wanted, false)); /* all, or what a pilot has time for */
    survey_design_write(d, &s->out);
    if (*lk_study_attribution(s->study)) {
        lk_text_add(&s->out, "  \"attribution\": ");
        lk_text_json(&s->out, lk_study_attribution(s->study));
        lk_text_add(&s->out, ",\n");
    }
    lk_text_add(&s->out, "  \"approval\": \"\",\n  \"investigator\": \"\",\n  \"contact\": \"\",\n  \"items\": [");
    for (size_t i = 0; i < s->n_items; i++) LK_TRY(add_item(s, &s->items[i]));
    lk_text_add(&s->out, "\n  ]\n}\n");
    if (s->out.rc) return s->out.rc;
    LK_TRY(lk_atomic_write_file(s->arguments->output, s->out.bytes, s->out.n));
    survey_design_print(d, s->arguments->output, s->n_items, s->pairs ? "pairs" : "edits");
    return LK_OK;
}

static enum lk_code make(struct survey_new *s) {
    const char *slash = strrchr(s->arguments->output, '/');
    s->folder = slash ? lk_format("%.*s", (int)(slash - s->arguments->output), s->arguments->output) : lk_strdup(".");
    s->job = lk_malloc(sizeof *s->job);
    s->other = lk_malloc(sizeof *s->other);
    enum lk_code rc = s->folder && s->job && s->other ? cli_run_study(&s->study, s->run, NULL)
                                                      : lk_fail(LK_E_NOMEM, "survey new: out of memory");
    if (!rc) rc = choose_items(s);
    return rc ? rc : write_survey(s);
}

enum lk_code survey_new(const struct cli_arguments *a) {
    struct survey_new s = {.arguments = a, .run = a->report.runs.n ? a->report.runs.values[0] : NULL};
    if (a->report.runs.n != 1) return lk_fail(LK_E_USAGE, "survey new: expected one --from RUN");
    if (!a->output) return lk_fail(LK_E_USAGE, "survey new: expected -o SURVEY.json");
    LK_TRY(check_output(a));
    enum lk_code rc = make(&s);
    lk_study_close(s.study);
    lk_names_free(&s.names);
    lk_text_free(&s.out);
    lk_free(s.items);
    lk_free(s.folder);
    lk_free(s.job);
    lk_free(s.other);
    return rc;
}
