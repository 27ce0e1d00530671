/* The page of a run. A script fetches it again every few seconds; without one the browser does. */
#include <stdio.h>
#include <string.h>

#include "engine/base/log.h"
#include "tools/cli/study/live.h"

void live_failure(struct lk_text *out, const char *name, const char *error, int attempts) {
    lk_text_add(out, "<li><b>");
    page_text(out, name);
    lk_text_add(out, "</b> tried %d time%s: ", attempts, attempts == 1 ? "" : "s");
    page_text(out, error);
    lk_text_add(out, "</li>\n");
}

static void add_duration(struct lk_text *out, double seconds) {
    char text[32];
    lk_log_duration(seconds > 0 ? seconds : 0, text);
    lk_text_add(out, "%s", text);
}

/* 5,040 */
static const char *grouped(int64_t n, char out[32]) {
    if (n < 1000)
        snprintf(out, 32, "%d", (int)n);
    else if (n < 1000000)
        snprintf(out, 32, "%d,%03d", (int)(n / 1000), (int)(n % 1000));
    else
        snprintf(out, 32, "%lld,%03d,%03d", (long long)(n / 1000000), (int)(n / 1000 % 1000), (int)(n % 1000));
    return out;
}

static void add_summary(struct lk_text *out, const struct live_view *v) {
    const struct lk_journal_counts *c = &v->counts;
    int64_t left = c->all[LK_JOB_QUEUED] + c->all[LK_JOB_LEASED];
    char a[32], b[32];
    lk_text_add(out, "<p role=\"status\">%s of %s pictures", grouped(c->all[LK_JOB_DONE], a), grouped(c->total, b));
    if (c->all[LK_JOB_FAILED]) lk_text_add(out, ", %s failed", grouped(c->all[LK_JOB_FAILED], a));
    if (c->all[LK_JOB_REFUSED]) lk_text_add(out, ", %s refused", grouped(c->all[LK_JOB_REFUSED], a));
    if (!left) lk_text_add(out, ". The run has ended.");
    if (left && v->per_hour > 0) {
        if (v->per_hour < 10)
            lk_text_add(out, "; %.1f an hour, ", v->per_hour);
        else
            lk_text_add(out, "; %s an hour, ", grouped((int64_t)(v->per_hour + 0.5), a));
        add_duration(out, 3600 * (double)left / v->per_hour);
        lk_text_add(out, " left");
    }
    if (left && v->n_latest) {
        lk_text_add(out, "; the last one ");
        add_duration(out, (double)(v->now_ms - v->latest[0].ended_ms) / 1000);
        lk_text_add(out, " ago");
    }
    lk_text_add(out, "</p>");
}

static void add_models(struct lk_text *out, const struct lk_journal_counts *c) {
    lk_text_add(out,
                "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Pictures by model\"><table>\n"
                "<thead><tr><th scope=\"col\">Model</th><th scope=\"col\">Made</th><th scope=\"col\">Failed</th><th "
                "scope=\"col\">In hand</th><th scope=\"col\">Waiting</th><th scope=\"col\">Seconds each</th><th "
                "scope=\"col\">Share made</th></tr></thead>\n<tbody>\n");
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        const int64_t *of = c->of[m], n = study_nominal(of);
        const int64_t cells[] = {of[LK_JOB_FAILED], of[LK_JOB_LEASED], of[LK_JOB_QUEUED]};
        const char *name = c->keys[m];
        char text[32], all[32];
        if (!n) continue;
        lk_text_add(out, "<tr><th scope=\"row\">%s</th><td>%s of %s</td>", name, grouped(of[LK_JOB_DONE], text),
                    grouped(n, all));
        for (int k = 0; k < 3; k++) lk_text_add(out, "<td>%s</td>", grouped(cells[k], text));
        if (of[LK_JOB_DONE])
            lk_text_add(out, "<td>%.3g</td>", c->seconds[m] / (double)of[LK_JOB_DONE]);
        else
            lk_text_add(out, "<td>–</td>");
        lk_text_add(out, "<td><progress value=\"%lld\" max=\"%lld\" aria-label=\"%s\"></progress></td></tr>\n",
                    (long long)of[LK_JOB_DONE], (long long)n, name);
    }
    lk_text_add(out, "</tbody>\n</table></div>\n");
}

/* A line may break behind each underscore. */
static void add_name(struct lk_text *out, const char *name) {
    for (const char *end = name; *name; name = end) {
        char part[LK_STUDY_NAME_BYTES];
        end += strcspn(end, "_");
        end += *end == '_';
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        page_text(out, part);
        lk_text_add(out, "<wbr>");
    }
}

static void add_preview(struct lk_text *out, const struct live_view *v) {
    lk_text_add(out, "<h2>In hand</h2>\n<ul class=\"pictures\"><li><img src=\"/preview?v=%lld\" alt=\"\"><span>",
                (long long)v->preview_ms);
    page_text(out, v->preview);
    lk_text_add(out, "</span></li></ul>\n");
}

static void add_pictures(struct lk_text *out, const struct live_view *v) {
    lk_text_add(out, "<h2>Latest pictures</h2>\n");
    if (!v->n_latest) lk_text_add(out, "<p>There is none yet.</p>\n");
    lk_text_add(out, "<ul class=\"pictures\">\n");
    for (int i = 0; i < v->n_latest; i++) {
        const struct live_picture *p = &v->latest[i];
        lk_text_add(out, "<li><a href=\"/picture/%lld?v=%s\"><img src=\"/picture/%lld?v=%s\" alt=\"\"><span>",
                    (long long)p->index, p->digest, (long long)p->index, p->digest);
        add_name(out, p->name);
        lk_text_add(out, "</span></a></li>\n");
    }
    lk_text_add(out, "</ul>\n");
}

void live_page(const struct live_site *site, const struct live_view *v, struct lk_text *out) {
    const struct lk_journal_counts *c = &v->counts;
    char title[100];
    snprintf(title, sizeof title, "%lld of %lld pictures", (long long)c->all[LK_JOB_DONE], (long long)c->total);
    local_begin(out, title, true);
    lk_text_add(out, "<header><h1>");
    page_text(out, site->folder);
    lk_text_add(out, "</h1>");
    add_summary(out, v);
    lk_text_add(out, "<p id=\"said\" role=\"alert\"></p></header>\n<main>\n");
    add_models(out, c);
    if (v->n_failures) {
        char n[32];
        lk_text_add(out, "<h2>Failed: %s%s</h2>\n<ul class=\"failures\">\n%s</ul>\n", grouped(v->n_failures, n),
                    v->n_failures > LIVE_FAILURES ? ", the first of them" : "", v->failures.bytes);
    }
    if (*v->preview) add_preview(out, v);
    add_pictures(out, v);
    lk_text_add(out, "</main>\n<script src=\"/script.js\"></script>\n</body>\n</html>\n");
}
