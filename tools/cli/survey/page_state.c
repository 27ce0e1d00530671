/* What the study's team sees at /admin. */
#include <math.h>

#include "tools/cli/survey/http.h"

/* Who breaks a rule, by the first digits of the hash that exports have in full. */
static void outliers(const struct survey_page *p, const struct lk_survey_counts *n) {
    struct lk_text *out = &p->reply->body;
    const int n_told = n->n_outliers < LK_SURVEY_MAX_OUTLIERS ? n->n_outliers : LK_SURVEY_MAX_OUTLIERS;
    if (!n_told) return;
    lk_text_add(out,
                "<table>\n<tr><th>Outliers: %d, %d shown</th><th>Checks right</th><th>Median time</th><th>Rules</th>"
                "<th>Excluded</th></tr>\n",
                n->n_outliers, n_told);
    for (int i = 0; i < n_told; i++) {
        const struct lk_survey_outlier *one = &n->outliers[i];
        lk_text_add(out, "<tr><td>%.12s</td><td>%d of %d</td>", one->worker, one->n_checks_right, one->n_checks);
        if (isnan(one->median_ms))
            lk_text_add(out, "<td></td><td>");
        else
            lk_text_add(out, "<td>%.1f s</td><td>", one->median_ms / 1000);
        for (int rule = 0, first = 1; rule < LK_N_QUALITY_RULES; rule++)
            if (one->rules >> rule & 1) {
                lk_text_add(out, "%s%s", first ? "" : " ", lk_quality_rule_name(rule));
                first = 0;
            }
        lk_text_add(out, "</td><td>%s</td></tr>\n", one->excluded ? "yes" : "no");
    }
    lk_text_add(out, "</table>\n");
}

enum lk_code page_admin(struct survey_page *p) {
    struct lk_survey_counts n;
    struct lk_text *out = &p->reply->body;
    LK_TRY(lk_survey_count(p->server->reader ? p->server->reader : p->server->survey, p->now, &n));
    page_begin(p, "admin_title", "narrow");
    lk_text_add(out,
                "<table>\n<tr><th>Participants</th><td>%d</td></tr>\n<tr><th>Refused, on the list of "
                "--block</th><td>%d</td></tr>\n<tr><th>Consented</th><td>%d</td></tr>\n<tr><th>"
                "Places taken</th><td>%d of %d</td></tr>\n<tr><th>Submitted</th><td>%d</td></tr>\n<tr><th>Abandoned"
                "</th><td>%d</td></tr>\n<tr><th>Submitted in 24 hours</th><td>%d</td></tr>\n<tr><th>Attention checks "
                "right</th><td>%d of %d</td></tr>\n<tr><th>Comments</th><td>%d</td></tr>\n<tr><th>Problems reported"
                "</th><td>%d</td></tr>\n</table>\n",
                n.n_participants, n.n_refused, n.n_consented, n.n_open + n.n_submitted,
                p->study->n_tasks * p->study->places, n.n_submitted, n.n_abandoned, n.n_last_day, n.n_checks_right,
                n.n_checks, n.n_comments, n.n_errors);
    if (!isnan(n.median_minutes))
        lk_text_add(out, "<p>A task took %.1f minutes (median of %d); participants are told %s.</p>\n",
                    n.median_minutes, n.n_timed, n.told);
    if (n.time_off)
        lk_text_add(out,
                    "<p class=\"note bad\">Alert: tasks take over 20%% less or more time than participants are told "
                    "(adjust pay and \"minutes\").</p>\n");
    if (n.few_hits)
        lk_text_add(out, "<p class=\"note bad\">Alert: fewer than 5 tasks in 24 hours (consider +$0.25).</p>\n");
    if (n.many_failures)
        lk_text_add(out, "<p class=\"note bad\">Alert: more than 30%% of attention checks failed (revise them).</p>\n");
    if (n.errors) lk_text_add(out, "<p class=\"note bad\">Alert: a technical problem was reported (pause).</p>\n");
    lk_text_add(out, "<table>\n<tr><th>Rule</th><th>What</th><th>Participants of %d</th></tr>\n", n.n_raters);
    for (int i = 0; i < LK_N_QUALITY_RULES; i++)
        lk_text_add(out, "<tr><td>%s</td><td>%s</td><td>%d</td></tr>\n", lk_quality_rule_name(i),
                    lk_quality_rule_text(i), n.n_hit[i]);
    lk_text_add(out, "<tr><td></td><td>excluded, if all ended now</td><td>%d</td></tr>\n</table>\n", n.n_excluded);
    outliers(p, &n);
    page_exports(p);
    lk_text_add(out, "<table>\n<tr><th>Day</th><th>Answers</th><th>Submitted</th></tr>\n");
    for (int i = 0; i < n.n_days; i++)
        lk_text_add(out, "<tr><td>%s</td><td>%d</td><td>%d</td></tr>\n", n.days[i].date, n.days[i].n_answers,
                    n.days[i].n_submitted);
    lk_text_add(out, "</table>\n");
    if (*p->form_token) { /* a session, which can be ended */
        page_form(p, "/admin", "");
        page_add(p, "<button>{admin_leave}</button>\n</form>\n");
    }
    page_end(p);
    return out->rc;
}
