/* The page of one cell. It works without a script; the script adds keys. */
#include <stdio.h>
#include <string.h>

#include "tools/cli/study/selection.h"

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

int selection_next_open(const struct lk_selection *s, int source) {
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
    lk_text_add(out,
                "<section class=\"candidate%s%s\">\n<h2>%d</h2>\n<img src=\"/picture/%d/%d\" alt=\"Candidate %d of ",
                c->chosen ? " chosen" : "", c->flagged ? " flagged" : "", pool, source + 1, pool, pool);
    page_text(out, name);
    lk_text_add(out, "\">\n<form method=\"post\" action=\"/act\">");
    hidden(s, source, pool, out);
    lk_text_add(out, "\n<fieldset><legend>It has</legend>\n");
    for (int i = 0; i < LK_N_CRITERIA; i++) {
        const char *words = lk_criteria_words[i];
        lk_text_add(out, "<label title=\"");
        page_text(out, words);
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
    lk_text_add(out,
                "<input type=\"hidden\" name=\"action\" value=\"note\">\n<input type=\"text\" name=\"note\" "
                "maxlength=\"300\" aria-label=\"Note on candidate %d\" placeholder=\"Note\" value=\"",
                pool);
    page_text(out, c->note);
    lk_text_add(out, "\">\n<button>Save note</button></form>\n</section>\n");
}

static void cells(const struct lk_selection *s, int current, struct lk_text *out) {
    lk_text_add(out, "<ol class=\"cells\" aria-label=\"All cells\">\n");
    for (int i = 0; i < LK_N_SOURCES; i++) {
        char name[128];
        bool part = false;
        for (int v = 1; v <= LK_N_POOLS; v++) part |= lk_selection_candidate(s, i, v)->chosen;
        bool done = is_done(s, i);
        lk_text_add(out, "<li><a href=\"/cell/%d\" class=\"%s\" title=\"", i + 1, done ? "done" : part ? "part" : "");
        page_text(out, display(i, name));
        lk_text_add(out, "%s\"%s>%d</a></li>\n",
                    done   ? ", done"
                    : part ? ", not all criteria"
                           : "",
                    i == current ? " aria-current=\"page\"" : "", i + 1);
    }
    lk_text_add(out, "</ol>\n");
}

void selection_page(const struct selection_server *s, int source, struct lk_text *out) {
    char name[128], title[200];
    int n_done = lk_selection_n_done(s->selection);
    size_t n_actions = lk_selection_n_actions(s->selection);
    display(source, name);
    snprintf(title, sizeof title, "%s: %d of %d done", name, n_done, LK_N_SOURCES);
    local_begin(out, title, false);
    lk_text_add(out, "<header><h1>%d. ", source + 1);
    page_text(out, name);
    lk_text_add(
        out,
        "</h1><p role=\"status\">%d of %d done, %zu action%s</p>\n<nav><a id=\"previous\" href=\"/cell/%d\">"
        "Previous</a><a id=\"next\" href=\"/cell/%d\">Next</a><a id=\"open\" href=\"/cell/%d\">Next open</a></nav>\n"
        "<form id=\"undo\" method=\"post\" action=\"/undo\">",
        n_done, LK_N_SOURCES, n_actions, n_actions == 1 ? "" : "s", (source + LK_N_SOURCES - 1) % LK_N_SOURCES + 1,
        (source + 1) % LK_N_SOURCES + 1, selection_next_open(s->selection, (source + 1) % LK_N_SOURCES) + 1);
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
