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
#include "engine/base/names.h"
#include "engine/base/store.h"
#include "eval/data/data.h"
#include "eval/design/study.h"
#include "eval/survey/study.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

/* survey gold: items whose answers are known, out of a study's sources or of a folder of the portrait study's. */

enum { N_FACTORS = 3 }; /* of the portrait study's sources: race, gender, age */

struct making {
    const struct cli_arguments *arguments;
    struct lk_study *study; /* NULL: a folder of portraits */
    struct lk_survey_gold gold;
    struct lk_survey_gold_source *sources;
    int8_t *levels; /* [n_sources, n_attributes] */
    const char **prompts;
    struct lk_survey_picked *picked;
    struct cli_pairs pairs;
    struct lk_store texts;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for gold items"); }

static enum lk_code make_room(struct making *m, size_t n_sources, int n_attributes) {
    m->gold.n_attributes = n_attributes;
    m->gold.sources = m->sources = lk_calloc(n_sources + 1, sizeof *m->sources);
    m->levels = lk_calloc((n_sources + 1) * (size_t)(n_attributes + 1), sizeof *m->levels);
    return m->sources && m->levels ? LK_OK : out_of_memory();
}

static enum lk_code add_source(struct making *m, const char *id, const char *path) {
    struct lk_survey_gold_source *to = &m->sources[m->gold.n_sources];
    *to = (struct lk_survey_gold_source){lk_store_text(&m->texts, id), lk_store_text(&m->texts, path),
                                         m->levels + m->gold.n_sources * (size_t)m->gold.n_attributes};
    m->gold.n_sources++;
    return to->id && to->path ? LK_OK : out_of_memory();
}

/* FOLDER/ID.png or .jpg, of each of the 84 cells that is there. */
static enum lk_code list_portraits(struct making *m, const char *folder) {
    static const char *const ends[] = {"png", "jpg", "jpeg"};
    LK_TRY(make_room(m, LK_N_SOURCES, N_FACTORS));
    m->gold.race = 0, m->gold.gender = 1;
    for (int source = 0; source < LK_N_SOURCES; source++) {
        char id[48], path[4200];
        int level[N_FACTORS], end = 0;
        struct stat st;
        lk_source_id(source, id);
        lk_source_factors(source, &level[0], &level[1], &level[2]);
        for (; end < 3; end++) {
            snprintf(path, sizeof path, "%s/%s.%s", folder, id, ends[end]);
            if (!stat(path, &st)) break;
        }
        if (end == 3) continue;
        for (int k = 0; k < N_FACTORS; k++) m->levels[m->gold.n_sources * N_FACTORS + (size_t)k] = (int8_t)level[k];
        LK_TRY(add_source(m, id, path));
    }
    if (m->gold.n_sources) return LK_OK;
    return lk_fail(LK_E_NOT_FOUND,
                   "%s: expected portraits named by their source, as White_Male_20s.png, got none; of a study of your "
                   "own its run or its file says who is shown: survey gold --from RUN",
                   folder);
}

static enum lk_code list_sources(struct making *m) {
    int n_attributes, column[LK_MAX_ATTRIBUTES], n = 0;
    const struct lk_attribute *attributes = lk_study_attributes(m->study, &n_attributes);
    const int n_sources = lk_study_n_sources(m->study);
    m->gold.race = m->gold.gender = -1;
    for (int a = 0; a < n_attributes; a++) { /* a group follows from the levels that it pools */
        if (attributes[a].of) continue;
        if (!strcmp(attributes[a].name, "race")) m->gold.race = n;
        if (!strcmp(attributes[a].name, "gender")) m->gold.gender = n;
        column[n++] = a;
    }
    LK_TRY(make_room(m, (size_t)n_sources, n));
    for (int i = 0; i < n_sources; i++) {
        const struct lk_study_source *source = lk_study_source(m->study, i);
        if (!source->id) continue;
        for (int k = 0; k < n; k++) m->levels[m->gold.n_sources * (size_t)n + (size_t)k] = source->level[column[k]];
        LK_TRY(add_source(m, source->id, source->file));
    }
    return m->gold.n_sources ? LK_OK
                             : lk_fail(LK_E_INPUT, "%s: sources: expected at least one, got none",
                                       m->arguments->report.runs.values[0]);
}

static enum lk_code list_prompts(struct making *m) {
    size_t n;
    const struct lk_study_prompt *own = lk_study_own_prompts(m->study, &n);
    if (!(m->prompts = lk_malloc((n + 1) * sizeof *m->prompts))) return out_of_memory();
    for (size_t i = 0; i < n; i++) m->prompts[i] = own[i].text;
    m->gold.prompts = m->prompts, m->gold.n_prompts = n;
    return LK_OK;
}

/* Of outputs of the study, what was asked for. */
static enum lk_code find_prompts(struct making *m) {
    struct lk_names names = {0};
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : out_of_memory();
    for (size_t i = 0; i < lk_study_n_jobs(m->study) && !rc; i++) {
        int32_t number;
        rc = lk_study_job(m->study, i, job);
        if (!rc) rc = lk_names_number(&names, job->name, strlen(job->name), &number);
    }
    for (size_t i = 0; i < m->pairs.n && !rc; i++) {
        const char *id = m->picked[i].id;
        const int32_t number = lk_names_find(&names, id, strlen(id));
        rc = number < 0 ? lk_fail(LK_E_INPUT,
                                  "%s: line %zu: item_id: expected an output of the study, as 'likeness study jobs' "
                                  "names them, got \"%.80s\"",
                                  m->arguments->report.pairs, m->pairs.list[i].line, id)
                        : lk_study_job(m->study, (size_t)number, job);
        if (!rc) m->picked[i].prompt = job->prompt->text;
    }
    lk_names_free(&names);
    lk_free(job);
    return rc;
}

static enum lk_code read_picked(struct making *m) {
    const char *path = m->arguments->report.pairs;
    if (!path) return LK_OK;
    LK_TRY(cli_pairs_read(&m->pairs, path, true));
    cli_print_rejects(path, &m->pairs.rejects);
    if (!(m->picked = lk_calloc(m->pairs.n + 1, sizeof *m->picked))) return out_of_memory();
    for (size_t i = 0; i < m->pairs.n; i++) {
        const struct cli_pair *pair = &m->pairs.list[i];
        m->picked[i] = (struct lk_survey_picked){pair->item_id, pair->source, pair->edited, NULL};
    }
    m->gold.picked = m->picked, m->gold.n_picked = m->pairs.n;
    return m->study ? find_prompts(m) : LK_OK;
}

/* A run's folder, or a study file. */
static enum lk_code open_study(struct making *m) {
    const char *from = m->arguments->report.runs.values[0];
    struct stat st;
    return !stat(from, &st) && !S_ISDIR(st.st_mode) ? lk_study_open(&m->study, from)
                                                    : cli_known_study(&m->study, &m->arguments->report);
}

/* 50 gold items for experiment 1, 30 for experiment 2, 5 for experiment 3, which only the portrait study has. */
static enum lk_code write_items(struct making *m) {
    static const int n_items[] = {50, 30, 5};
    struct lk_survey_gold *gold = &m->gold;
    const bool races = lk_survey_gold_varied(gold, gold->race), genders = lk_survey_gold_varied(gold, gold->gender);
    if (!races || !genders)
        lk_log(LK_LOG_INFO,
               "no items that show another %s: the sources have no two levels of an attribute of that name",
               races     ? "gender"
               : genders ? "race"
                         : "race or gender");
    const int last = genders && (!m->study || lk_study_is_portrait(m->study)) ? 3 : 2;
    for (gold->experiment = 1; gold->experiment <= last; gold->experiment++) {
        gold->n = n_items[gold->experiment - 1];
        LK_TRY(lk_survey_gold(gold));
        lk_log(LK_LOG_INFO, "%s/gold_exp%d.json: %d items", gold->folder, gold->experiment, gold->n);
    }
    return LK_OK;
}

enum lk_code survey_gold(const struct cli_arguments *a) {
    struct making m = {.arguments = a, .gold = {.folder = a->output, .seed = (uint64_t)a->report.study_seed}};
    if (a->report.runs.n + (a->more[0] != NULL) != 1 || !a->output)
        return lk_fail(LK_E_USAGE, "survey gold: expected --from RUN, or a folder of portraits, and -o with the "
                                   "survey's folder");
    enum lk_code rc = a->report.runs.n ? open_study(&m) : LK_OK;
    if (!rc) rc = m.study ? list_sources(&m) : list_portraits(&m, a->more[0]);
    if (!rc && m.study) rc = list_prompts(&m);
    if (!rc) rc = read_picked(&m);
    if (!rc) rc = write_items(&m);
    lk_study_close(m.study);
    cli_pairs_free(&m.pairs);
    lk_store_free(&m.texts);
    lk_free(m.sources);
    lk_free(m.levels);
    lk_free(m.prompts);
    lk_free(m.picked);
    return rc;
}

/* serve survey and survey: the server's life, exports, codes, settings for a platform. */

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

char *survey_store(const char *survey, const char *store) {
    size_t n = strlen(survey), stem = n > 5 && !strcmp(survey + n - 5, ".json") ? n - 5 : n;
    return store ? lk_strdup(store) : lk_format("%.*s.survey", (int)stem, survey);
}

/* The study, and its store. */
static enum lk_code open_all(struct opened *o, const struct cli_arguments *a, const char *path, bool create) {
    *o = (struct opened){0};
    if (!path) return lk_fail(LK_E_USAGE, "survey: expected STUDY.json");
    LK_TRY(lk_survey_study_read(&o->study, path));
    char *folder = survey_store(path, a->survey.store);
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
    int64_t n, n_simulated;
    LK_TRY(lk_survey_simulated(o->survey, &n, &n_simulated));
    if (n_simulated)
        lk_log(LK_LOG_WARNING,
               "%s: %lld of %lld participants are simulated (\"simulated\": true): what they say is no "
               "person's answer",
               a->output, (long long)n_simulated, (long long)n);
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
