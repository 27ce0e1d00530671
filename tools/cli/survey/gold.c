/* survey gold: items whose answers are known, out of a study's sources or of a folder of the portrait study's. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "engine/base/store.h"
#include "eval/design/study.h"
#include "eval/survey/study.h"
#include "tools/cli/audit/known.h"
#include "tools/cli/audit/pairs.h"
#include "tools/cli/survey/http.h"

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
