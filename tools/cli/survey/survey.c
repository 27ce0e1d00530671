/* serve survey and survey: the server's life, exports, codes, settings for a platform. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/data/data.h"
#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

struct opened {
    struct lk_survey_study *study;
    struct lk_survey *survey, *reader; /* reader: of a server alone */
};

static int64_t milliseconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What is added to a clock that nobody sets, so that it tells the time of day, and none before what the store knows: a
 * clock that is set back would give every place back, or none. */
struct clock {
    int64_t ahead;
};

static enum lk_code clock_begin(struct clock *clock, struct lk_survey *survey) {
    int64_t latest, now = milliseconds_of(CLOCK_REALTIME);
    LK_TRY(lk_survey_latest(survey, &latest));
    if (latest > now)
        lk_log(LK_LOG_WARNING, "this machine's clock is %lld s behind the last answer; times go on from there",
               (long long)(latest - now) / 1000);
    clock->ahead = (latest > now ? latest : now) - milliseconds_of(CLOCK_BOOTTIME);
    return LK_OK;
}

static int64_t steady_clock(void *context) {
    const struct clock *clock = context;
    return milliseconds_of(CLOCK_BOOTTIME) + clock->ahead;
}

static void close_all(struct opened *o) {
    lk_survey_close(o->reader);
    lk_survey_close(o->survey);
    lk_survey_study_free(o->study);
}

/* The study, and its store: --store, or STUDY.survey beside STUDY.json. */
static enum lk_code open_all(struct opened *o, const struct cli_arguments *a, const char *path, bool create) {
    *o = (struct opened){0};
    if (!path) return lk_fail(LK_E_USAGE, "survey: expected STUDY.json");
    LK_TRY(lk_survey_study_read(&o->study, path));
    size_t n = strlen(path), stem = n > 5 && !strcmp(path + n - 5, ".json") ? n - 5 : n;
    char *folder = a->survey.store ? lk_strdup(a->survey.store) : lk_format("%.*s.survey", (int)stem, path);
    enum lk_code rc = folder ? lk_survey_open(&o->survey, o->study, folder, create)
                             : lk_fail(LK_E_NOMEM, "out of memory for a survey");
    if (!rc && !strcmp(cli_commands[a->command].name, "serve"))
        rc = lk_survey_open(&o->reader, o->study, folder, false);
    lk_free(folder);
    if (rc) close_all(o);
    return rc;
}

static enum lk_code check_ethics(const struct lk_survey_study *study, const char *path) {
    const char *const values[] = {study->approval, study->investigator, study->contact};
    const char *const names[] = {"approval", "investigator", "contact"};
    for (int i = 0; i < 3; i++)
        if (!*values[i])
            return lk_fail(LK_E_INPUT,
                           "%s: the study has no \"%s\": participants must be told it; --preview serves the "
                           "pages without letting anybody in",
                           path, names[i]);
    return LK_OK;
}

/* The protocol has 3 to 5 practice items before anything counts. */
static enum lk_code check_practice(const struct lk_survey_study *study, const char *path) {
    if (study->protocol != LK_PROTOCOL_001 || (study->n_tutorial >= 3 && study->n_tutorial <= 5)) return LK_OK;
    return lk_fail(
        LK_E_INPUT,
        "%s: field \"tutorial\": expected 3 to 5 practice items, as protocol 001 demands, got %zu; `likeness "
        "survey new` makes them; --preview serves the pages without letting anybody in",
        path, study->n_tutorial);
}

static enum lk_code block(struct lk_survey *survey, const char *path) {
    char *text;
    size_t n, n_listed;
    LK_TRY(lk_read_file(path, 1 << 26, &text, &n));
    enum lk_code rc = lk_survey_block(survey, text, n, path, &n_listed);
    lk_free(text);
    if (!rc) lk_log(LK_LOG_INFO, "%s: %zu people who may not take part", path, n_listed);
    return rc;
}

static enum lk_code serve(struct opened *o, const struct cli_arguments *a) {
    struct clock clock;
    struct survey_server server = {.respond = survey_respond,
                                   .survey = o->survey,
                                   .reader = o->reader,
                                   .study = o->study,
                                   .now = steady_clock,
                                   .clock = &clock,
                                   .preview = a->survey.preview};
    struct survey_listener *listener;
    const char *address = a->survey.bind ? a->survey.bind : "127.0.0.1";
    if (!a->survey.preview) LK_TRY(check_ethics(o->study, a->more[0]));
    if (!a->survey.preview) LK_TRY(check_practice(o->study, a->more[0]));
    if (a->survey.block) LK_TRY(block(o->survey, a->survey.block));
    LK_TRY(clock_begin(&clock, o->survey));
    if (a->survey.pilot) LK_TRY(lk_survey_pilot(o->survey, (int)a->survey.pilot, steady_clock(&clock)));
    cli_signals_install();
    LK_TRY(survey_listen(&listener, &server, address, (int)a->survey.port));
    printf("http://%s:%d/\n", address, survey_port(listener));
    fflush(stdout);
    lk_log(LK_LOG_INFO, "open the link with ?PROLIFIC_PID=... ; the admin token is in secrets.json of the store");
    while (!cli_signals_check()) usleep(100000);
    survey_stop(listener);
    return LK_OK;
}

enum lk_code cli_serve(const struct cli_arguments *a) {
    struct opened o;
    LK_TRY(open_all(&o, a, a->more[0], true));
    enum lk_code rc = serve(&o, a);
    close_all(&o);
    return rc;
}

enum lk_code survey_folder_begin(struct survey_folder *folder, const char *path) {
    *folder = (struct survey_folder){path, !mkdir(path, 0700)};
    if (!folder->made && errno != EEXIST) return lk_fail_errno(errno, "%s", path);
    lk_atomic_batch_begin();
    return LK_OK;
}

enum lk_code survey_folder_end(const struct survey_folder *folder, enum lk_code rc) {
    rc = lk_atomic_batch_end(rc);
    if (rc && folder->made) rmdir(folder->path);
    return rc;
}

enum lk_code survey_folder_write(const struct survey_folder *folder, const char *name, const struct lk_text *text) {
    char *path = lk_format("%s/%s", folder->path, name);
    if (!path) return lk_fail(LK_E_NOMEM, "out of memory for an export");
    enum lk_code rc = text->rc ? text->rc : lk_atomic_write_file(path, text->bytes ? text->bytes : "", text->n);
    lk_free(path);
    return rc;
}

static enum lk_code add_about(const struct lk_survey_study *study, struct lk_text *out) {
    lk_text_add(out,
                "{\"study\":\"%s\",\"protocol\":\"%s\",\"instrument\":\"%s\",\"experiment\":%d,\"seed\":%llu,"
                "\"tasks\":%d,\"places\":%d,\"retain_until\":",
                study->name, lk_protocol_name(study->protocol), study->instrument, study->experiment,
                (unsigned long long)study->seed, study->n_tasks, study->places);
    lk_text_json(out, study->retain_until);
    if (*study->attribution) {
        lk_text_add(out, ",\"attribution\":");
        lk_text_json(out, study->attribution);
    }
    lk_text_add(out, ",\"program_version\":\"" LIKENESS_VERSION "\"}\n");
    return out->rc;
}

static enum lk_code write_export(struct opened *o, const struct cli_arguments *a, const struct survey_folder *folder) {
    static const char *const names[] = {"evaluations", "abandoned", "participants", "survey"};
    for (int i = 0; i < 4; i++) {
        struct lk_text text = {0}, table = {0};
        char name[40];
        enum lk_code rc = i == 3   ? add_about(o->study, &text)
                          : i == 2 ? lk_survey_export_participants(o->survey, &text)
                                   : lk_survey_export_answers(o->survey, i == 1, a->survey.comments, &text);
        if (i == 0)
            snprintf(name, sizeof name, "evaluations_exp%d.jsonl", o->study->experiment);
        else
            snprintf(name, sizeof name, "%s.json%s", names[i], i == 3 ? "" : "l");
        if (!rc) rc = survey_folder_write(folder, name, &text);
        if (!rc && !i) rc = lk_survey_csv(&text, &table);
        snprintf(name, sizeof name, "evaluations_exp%d.csv", o->study->experiment);
        if (!rc && !i) rc = survey_folder_write(folder, name, &table);
        lk_text_free(&table);
        lk_text_free(&text);
        LK_TRY(rc);
    }
    return LK_OK;
}

/* Pay follows time: who wrote what is promised is told when a task takes another. */
static enum lk_code tell_time(struct opened *o) {
    struct lk_survey_counts counts;
    LK_TRY(lk_survey_count(o->survey, milliseconds_of(CLOCK_REALTIME), &counts));
    if (counts.time_off)
        lk_log(LK_LOG_WARNING,
               "a task took %.1f minutes, the median of %d, where participants are told %s: over 20 %% off; set "
               "\"minutes\" and \"pay\"",
               counts.median_minutes, counts.n_timed, counts.told);
    return LK_OK;
}

/* Answers and participants of one moment: all of its files are new, or none. */
static enum lk_code export_all(struct opened *o, const struct cli_arguments *a) {
    struct survey_folder folder;
    LK_TRY(survey_folder_begin(&folder, a->output));
    LK_TRY(survey_folder_end(&folder, write_export(o, a, &folder)));
    return tell_time(o);
}

/* The link of each id in a file of one a line, for a platform that sends everybody a link of their own. */
static enum lk_code print_links(struct opened *o, const char *path) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, 1 << 24, &text, &n));
    enum lk_code rc = LK_OK;
    int line = 0;
    for (char *id = text, *end; !rc && *id; id = end) {
        char signature[33];
        end = id + strcspn(id, "\n");
        if (*end) *end++ = 0;
        id[strcspn(id, "\r")] = 0;
        line++;
        if (!*id) continue;
        if (!lk_survey_id_is_valid(id)) {
            rc = lk_fail(LK_E_INPUT, "%s: line %d: expected an id of 1 to 64 letters, digits, - and _", path, line);
            break;
        }
        lk_survey_link(o->survey, id, signature);
        printf("%s,/?PROLIFIC_PID=%s&sig=%s\n", id, id, signature);
    }
    lk_free(text);
    return rc;
}

enum lk_code survey_hit(const struct cli_arguments *a) {
    (void)a;
    struct lk_data_file file;
    static const char *const path[] = {"instruments", "protocol_000", "hit_settings_exp1"};
    if (!lk_data_find("questionnaires", &file)) return lk_fail(LK_E_INTERNAL, "no questionnaires");
    cJSON *root = cJSON_ParseWithLength(file.text, file.n_bytes);
    const cJSON *settings = root, *one;
    for (int i = 0; i < 3; i++) settings = cJSON_GetObjectItemCaseSensitive(settings, path[i]);
    cJSON_ArrayForEach(one, settings) printf("%s: %s\n", one->string, one->valuestring);
    cJSON_Delete(root);
    puts("Qualification: Location is United States\nQualification: HIT approval rate at least 95%\n"
         "Qualification: Number of HITs approved at least 100\nQualification: Age 18 or older\n"
         "Qualification: English\nQualification: Adult content");
    return LK_OK;
}

/* Simulated participants that nobody counted: 30, if there are so many places. */
static int pilots(const struct lk_survey_study *study) {
    const int n = study->n_tasks * study->places;
    return n < 30 ? n : 30;
}

enum lk_code cli_survey(const struct cli_arguments *a) {
    struct opened o;
    const char *what = a->verb->name;
    const bool forget = !strcmp(what, "forget"), links = !strcmp(what, "links"), pilot = !strcmp(what, "pilot"),
               export = !strcmp(what, "export"), pay = !strcmp(what, "pay");
    LK_TRY(open_all(&o, a, a->more[0], pilot || links));
    enum lk_code rc = export   ? export_all(&o, a)
                      : pay    ? survey_pay(a, o.study, o.survey)
                      : links  ? print_links(&o, a->more[1])
                      : forget ? lk_survey_forget(o.survey, a->more[1])
                      : pilot  ? lk_survey_pilot(o.survey, a->survey.pilot ? (int)a->survey.pilot : pilots(o.study),
                                                 milliseconds_of(CLOCK_REALTIME))
                               : survey_codes(a, o.study, o.survey);
    close_all(&o);
    return rc;
}
