/* serve selection: the pages on this machine alone, for who has the token. */
#include "tools/cli/study/live.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "tools/cli/study/runner.h"

/* The page of one cell. It works without a script; the script adds keys. */

static const char *display(int source, char out[128]) {
    int race, gender, age;
    lk_source_factors(source, &race, &gender, &age);
    snprintf(out, 128, "%s %s %s", lk_factor_display(LK_FACTOR_RACE, race), lk_factor_display(LK_FACTOR_GENDER, gender),
             lk_factor_display(LK_FACTOR_AGE, age));
    return out;
}

static bool is_done(const struct lk_selection *s, int source) {
    int pool = lk_selection_chosen(s, source);
    const struct lk_candidate *c = pool ? lk_selection_candidate(s, source, pool) : NULL;
    bool done = c;
    for (int i = 0; c && i < LK_N_CRITERIA; i++) done &= c->criteria[i];
    return done;
}

/* The first cell from `source` on that is not done; `source` itself when all are. */
static int selection_next_open(const struct lk_selection *s, int source) {
    for (int i = 0; i < LK_N_SOURCES; i++)
        if (!is_done(s, (source + i) % LK_N_SOURCES)) return (source + i) % LK_N_SOURCES;
    return source;
}

static void hidden(const struct selection_server *s, int source, int pool, struct lk_text *out) {
    lk_text_add(out,
                "<input type=\"hidden\" name=\"form\" value=\"%s\"><input type=\"hidden\" name=\"cell\" value=\"%d\">",
                s->site.form_token, source + 1);
    if (pool) lk_text_add(out, "<input type=\"hidden\" name=\"pool\" value=\"%d\">", pool);
}

static void candidate(const struct selection_server *s, int source, int pool, const char *name, struct lk_text *out) {
    const struct lk_candidate *c = lk_selection_candidate(s->selection, source, pool);
    page_html(out,
              "<section class=\"candidate%s%s\">\n<h2>%d</h2>\n<img src=\"/picture/%d/%d\" alt=\"Candidate %d of "
              "%s\">\n<form method=\"post\" action=\"/act\">",
              c->chosen ? " chosen" : "", c->flagged ? " flagged" : "", pool, source + 1, pool, pool, name);
    hidden(s, source, pool, out);
    lk_text_add(out, "\n<fieldset><legend>It has</legend>\n");
    for (int i = 0; i < LK_N_CRITERIA; i++) {
        const char *words = lk_criteria_words[i];
        page_html(out, "<label title=\"%s", words);
        lk_text_add(out, "\"><input type=\"checkbox\" name=\"%s\" value=\"yes\"%s>%.*s</label>\n", lk_criteria[i],
                    c->criteria[i] ? " checked" : "", (int)strcspn(words, ":"), words);
    }
    lk_text_add(
        out, "</fieldset>\n<p class=\"buttons\"><button class=\"first\" name=\"action\" value=\"choose\">%s</button>",
        c->chosen ? "Choose again" : "Choose");
    if (c->chosen) lk_text_add(out, "<button name=\"action\" value=\"unchoose\">Take back</button>");
    lk_text_add(out, "<button name=\"action\" value=\"flag\">%s</button></p>\n</form>\n",
                c->flagged ? "Unflag" : "Flag");
    lk_text_add(out, "<form method=\"post\" action=\"/act\">");
    hidden(s, source, pool, out);
    page_html(out,
              "<input type=\"hidden\" name=\"action\" value=\"note\">\n<input type=\"text\" name=\"note\" "
              "maxlength=\"300\" aria-label=\"Note on candidate %d\" placeholder=\"Note\" value=\"%s\">\n<button>Save "
              "note</button></form>\n</section>\n",
              pool, c->note);
}

static void cells(const struct lk_selection *s, int current, struct lk_text *out) {
    lk_text_add(out, "<ol class=\"cells\" aria-label=\"All cells\">\n");
    for (int i = 0; i < LK_N_SOURCES; i++) {
        char name[128];
        bool part = false;
        for (int v = 1; v <= LK_N_POOLS; v++) part |= lk_selection_candidate(s, i, v)->chosen;
        bool done = is_done(s, i);
        page_html(out, "<li><a href=\"/cell/%d\" class=\"%s\" title=\"%s", i + 1,
                  done   ? "done"
                  : part ? "part"
                         : "",
                  display(i, name));
        lk_text_add(out, "%s\"%s>%d</a></li>\n",
                    done   ? ", done"
                    : part ? ", not all criteria"
                           : "",
                    i == current ? " aria-current=\"page\"" : "", i + 1);
    }
    lk_text_add(out, "</ol>\n");
}

static void selection_page(const struct selection_server *s, int source, struct lk_text *out) {
    char name[128], title[200];
    int n_done = lk_selection_n_done(s->selection);
    size_t n_actions = lk_selection_n_actions(s->selection);
    display(source, name);
    snprintf(title, sizeof title, "%s: %d of %d done", name, n_done, LK_N_SOURCES);
    local_begin(out, title, false);
    page_html(out,
              "<header><h1>%d. %s</h1><p role=\"status\">%d of %d done, %zu action%s</p>\n<nav><a id=\"previous\" "
              "href=\"/cell/%d\">Previous</a><a id=\"next\" href=\"/cell/%d\">Next</a><a id=\"open\" "
              "href=\"/cell/%d\">Next open</a></nav>\n<form id=\"undo\" method=\"post\" action=\"/undo\">",
              source + 1, name, n_done, LK_N_SOURCES, n_actions, n_actions == 1 ? "" : "s",
              (source + LK_N_SOURCES - 1) % LK_N_SOURCES + 1, (source + 1) % LK_N_SOURCES + 1,
              selection_next_open(s->selection, (source + 1) % LK_N_SOURCES) + 1);
    hidden(s, source, 0, out);
    lk_text_add(out, "<button>Undo</button></form></header>\n<main>\n");
    for (int v = 1; v <= LK_N_POOLS; v++) candidate(s, source, v, name, out);
    lk_text_add(
        out, "</main>\n<details id=\"keys\"><summary>Keys</summary>\n<p>1 to 7: that candidate; Space: a box; a: all "
             "six; c or Enter: choose; f: flag; n: note; u: undo; left and right: previous and next cell; o: next "
             "open cell; ?: these lines.</p></details>\n");
    cells(s->selection, source, out);
    lk_text_add(out, "<script src=\"/script.js\"></script>\n</body>\n</html>\n");
}

static enum lk_code go(struct survey_reply *reply, int source) {
    reply->status = 303;
    snprintf(reply->location, sizeof reply->location, "/cell/%d", source + 1);
    return LK_OK;
}

/* The cell in "/cell/12"; -1 for none. */
static int cell_of(const char *text) { return (int)survey_number(text, LK_N_SOURCES) - 1; }

static enum lk_code picture(const struct selection_server *s, const char *rest, struct survey_reply *reply) {
    char number[4] = "";
    size_t digits = strspn(rest, "0123456789");
    if (digits && digits < sizeof number) memcpy(number, rest, digits);
    int source = cell_of(number), pool = rest[digits] == '/' ? (int)survey_number(rest + digits + 1, LK_N_POOLS) : -1;
    if (source < 0 || pool < 1) return local_refuse(&s->site, reply, 404, "There is no such picture.");
    reply->file = s->pictures[source][pool - 1];
    reply->may_be_kept = true;
    return LK_OK;
}

static enum lk_code read_page(const struct selection_server *s, const char *path, struct survey_reply *reply) {
    int source = !strncmp(path, "/cell/", 6) ? cell_of(path + 6) : -1;
    if (!strcmp(path, "/style.css")) return local_file(&s->site, "selection_style", "text/css; charset=utf-8", reply);
    if (!strcmp(path, "/script.js"))
        return local_file(&s->site, "selection_script", "text/javascript; charset=utf-8", reply);
    if (!strcmp(path, "/")) return go(reply, selection_next_open(s->selection, 0));
    if (!strncmp(path, "/picture/", 9)) return picture(s, path + 9, reply);
    if (source < 0) return local_refuse(&s->site, reply, 404, "There is no such page.");
    selection_page(s, source, &reply->body);
    return reply->body.rc;
}

/* One of a cell is chosen at most: choosing takes back what was. */
static enum lk_code choose(struct selection_server *s, struct lk_selection_action *action) {
    for (int v = 1; v <= LK_N_POOLS; v++) {
        const struct lk_candidate *c = lk_selection_candidate(s->selection, action->source, v);
        struct lk_selection_action back = *action;
        if (!c->chosen) continue;
        back.kind = LK_SELECT_UNCHOOSE, back.pool = v;
        memcpy(back.criteria, c->criteria, sizeof back.criteria);
        LK_TRY(lk_selection_act(s->selection, &back));
    }
    return lk_selection_act(s->selection, action);
}

static enum lk_code act(struct selection_server *s, const struct survey_form *form, const char *time,
                        struct survey_reply *reply) {
    struct lk_selection_action a = {.time = time, .actor = s->actor, .kind = LK_N_SELECTION_KINDS, .note = ""};
    a.source = cell_of(survey_form_value(form, "cell"));
    a.pool = (int)survey_number(survey_form_value(form, "pool"), LK_N_POOLS);
    for (int i = 0; i < LK_N_CRITERIA; i++) a.criteria[i] = !strcmp(survey_form_value(form, lk_criteria[i]), "yes");
    for (int k = 0; k < LK_N_SELECTION_KINDS; k++)
        if (!strcmp(survey_form_value(form, "action"), lk_selection_kinds[k])) a.kind = (enum lk_selection_kind)k;
    if (a.source < 0 || a.pool < 1 || a.kind == LK_N_SELECTION_KINDS)
        return local_refuse(&s->site, reply, 400, "This form is not of the selection.");
    if (a.kind == LK_SELECT_NOTE) a.note = survey_form_value(form, "note");
    enum lk_code rc = a.kind == LK_SELECT_CHOOSE ? choose(s, &a) : lk_selection_act(s->selection, &a);
    if (rc == LK_E_INPUT) return local_refuse(&s->site, reply, 409, lk_error_text());
    if (rc) return rc;
    return go(reply, a.kind == LK_SELECT_CHOOSE ? selection_next_open(s->selection, a.source) : a.source);
}

static enum lk_code write_form(struct selection_server *s, const char *path, const struct survey_form *form,
                               int64_t now, struct survey_reply *reply) {
    char text[32];
    int source;
    time_t seconds = (time_t)(now / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!strcmp(path, "/act")) return act(s, form, text, reply);
    if (strcmp(path, "/undo")) return local_refuse(&s->site, reply, 404, "There is no such page.");
    enum lk_code rc = lk_selection_undo(s->selection, text, s->actor, &source);
    if (rc == LK_E_INPUT) return local_refuse(&s->site, reply, 409, lk_error_text());
    return rc ? rc : go(reply, source);
}

static enum lk_code get(struct local_site *site, const char *path, struct survey_reply *reply) {
    struct selection_server *s = (struct selection_server *)site;
    pthread_mutex_lock(&s->lock);
    enum lk_code rc = read_page(s, path, reply);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static enum lk_code post(struct local_site *site, const char *path, const struct survey_form *form, int64_t now,
                         struct survey_reply *reply) {
    struct selection_server *s = (struct selection_server *)site;
    pthread_mutex_lock(&s->lock);
    enum lk_code rc = write_form(s, path, form, now, reply);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

const struct local_site selection_site = {.name = "selection", .command = "serve selection", .get = get, .post = post};

/* Pictures lie in the folder of the pools, links followed: nothing else of this machine is shown. */
static enum lk_code find_pictures(struct selection_server *s, const char *pools) {
    char whole[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(pools, '/');
    char *beside = slash ? lk_strndup(pools, (size_t)(slash - pools) + 1) : lk_strdup(".");
    const char *real = beside ? realpath(beside, folder) : NULL;
    if (!real) {
        lk_free(beside);
        return lk_fail(LK_E_NOT_FOUND, "%s: its folder cannot be found", pools);
    }
    enum lk_code rc = LK_OK;
    for (int i = 0; i < LK_N_SOURCES * LK_N_POOLS && !rc; i++) {
        const char *file = lk_selection_candidate(s->selection, i / LK_N_POOLS, i % LK_N_POOLS + 1)->file;
        char *path = *file == '/' ? lk_strdup(file) : lk_format("%s/%s", beside, file);
        size_t n = strlen(folder);
        if (!path || !realpath(path, whole))
            rc = lk_fail(LK_E_NOT_FOUND, "%s: field \"file\": no picture %.200s", pools, file);
        else if (strncmp(whole, folder, n) || whole[n] != '/')
            rc = lk_fail(LK_E_ESCAPES, "%s: field \"file\": picture %.200s lies outside its folder", pools, file);
        else if (!(s->pictures[i / LK_N_POOLS][i % LK_N_POOLS] = lk_strdup(whole)))
            rc = lk_fail(LK_E_NOMEM, "serve selection: out of memory");
        lk_free(path);
    }
    lk_free(beside);
    return rc;
}

enum lk_code study_serve_selection(const struct cli_arguments *a) {
    LK_TRY(local_check_bind(&selection_site, a->survey.bind));
    struct selection_server *s = lk_calloc(1, sizeof *s);
    if (!s) return lk_fail(LK_E_NOMEM, "serve selection: out of memory");
    s->site = selection_site;
    pthread_mutex_init(&s->lock, NULL);
    s->actor = a->stats.by ? a->stats.by : "";
    enum lk_code rc = study_selection_open(a->more[0], "serve selection", &s->selection);
    if (!rc) rc = find_pictures(s, a->more[0]);
    if (!rc) rc = local_serve(&s->site, (int)a->survey.port);
    for (int i = 0; i < LK_N_SOURCES * LK_N_POOLS; i++) lk_free(s->pictures[i / LK_N_POOLS][i % LK_N_POOLS]);
    lk_selection_close(s->selection);
    pthread_mutex_destroy(&s->lock);
    lk_free(s);
    return rc;
}
