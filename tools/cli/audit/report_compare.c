#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/intake/gallery.h"
#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "eval/intake/audit.h"
#include "eval/report/compare.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"

static void print_rate(struct lk_rate rate) {
    if (!rate.n) {
        printf("  %14s", "-");
        return;
    }
    long long tenths = (long long)lk_percent_tenths(rate.k, rate.n);
    char text[64];
    snprintf(text, sizeof text, "%lld/%lld %lld.%lld%%", (long long)rate.k, (long long)rate.n, tenths / 10,
             tenths % 10);
    printf("  %14s", text);
}

/* Rates of the baseline arm by model; of the raters' majority where no judge scored. */
static void print_summary(const struct cli_report_input *in) {
    static const enum lk_measure shown[] = {LK_MEASURE_SUCCESS, LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,
                                            LK_MEASURE_GENDER_DRIFT};
    bool human = !lk_scores_any(&in->data, LK_SCORES_JUDGE) && lk_scores_any(&in->data, LK_SCORES_HUMAN);
    printf("%-24s", human ? "By the raters' majority" : "");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) printf("  %14s", lk_measure_name(shown[i]));
    putchar('\n');
    for (int m = 0; m < LK_N_MODELS; m++) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = m;
        printf("%-24s", lk_factor_display(LK_FACTOR_MODEL, m));
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
            print_rate(lk_measure_rate_by(&in->data, &group, shown[i], human ? LK_SCORES_HUMAN : LK_SCORES_JUDGE,
                                          &in->options.thresholds));
        putchar('\n');
    }
}

static enum lk_code print_query(struct lk_audit *audit, const char *sql, bool json) {
    struct lk_table *table;
    LK_TRY(lk_audit_query(audit, sql, &table));
    const enum lk_code rc = cli_print_table(table, json);
    lk_table_free(table);
    return rc;
}

/* The name ends as a page's does, so that no table or journal is replaced by one. */
static enum lk_code show_gallery(const struct cli_report_arguments *a, struct lk_audit *audit,
                                 struct cli_report_input *in) {
    const size_t n = strlen(a->gallery);
    struct lk_gallery shown;
    if (n < 6 || strcmp(a->gallery + n - 5, ".html") != 0)
        return lk_fail(LK_E_USAGE, "--gallery: expected a name that ends in .html, got \"%.200s\"", a->gallery);
    const enum lk_code rc = lk_audit_gallery(audit, &in->data, &in->options, a->query, a->gallery, &shown);
    if (rc && rc != LK_E_PARTIAL) return rc;
    printf("%s: %zu outputs", a->gallery, shown.n);
    if (shown.has_counted) printf(", %g of them counted", shown.counted);
    printf("\n");
    return rc;
}

/* Of any study: the store, then a query, or the report that is made of queries. */
static enum lk_code report_any(const struct cli_arguments *a, const struct lk_study *study,
                               struct cli_report_input *in) {
    struct lk_audit *audit;
    LK_TRY(lk_audit_open(&audit, a->report.save));
    enum lk_code rc = cli_report_store(audit, &a->report, study, in);
    if (!rc && a->report.gallery) rc = show_gallery(&a->report, audit, in);
    if (!rc && a->report.query && !a->report.gallery) rc = print_query(audit, a->report.query, a->json);
    if (!rc && a->output && !lk_study_is_documented(study))
        if (!(rc = lk_any_report_write(audit, study, &in->options, a->output))) rc = cli_findings_print(a->output);
    lk_audit_close(audit);
    return rc;
}

/* The portrait study's own report. */
static enum lk_code report_portraits(const struct cli_arguments *a, struct cli_report_input *in) {
    struct lk_report *report = NULL;
    enum lk_code rc = lk_report_build(&report, &in->data, &in->options);
    if (!rc) rc = lk_report_write(report, a->output);
    const enum lk_code told = !rc || rc == LK_E_PARTIAL ? cli_findings_print(a->output) : rc;
    if (!told) print_summary(in);
    if (told) rc = told;
    lk_report_free(report);
    return rc;
}

/* What is of the portrait study's page alone is refused where it would do nothing. */
static enum lk_code check_own(const struct cli_arguments *a) {
    const struct cli_report_arguments *r = &a->report;
    const struct {
        const char *option;
        bool given;
    } portraits[] = {{"sources", r->sources},
                     {"figure-prompt", r->figure_prompt},
                     {"figure-gender", r->figure_gender},
                     {"figure-age", r->figure_age},
                     {"feature-prompts", r->feature_prompts},
                     {"manifest", a->manifest},
                     {"legacy", r->legacy.n},
                     {"images", r->images && !r->gallery},
                     {"pictures", r->pictures.n && !r->gallery},
                     {"embed-images", r->embed_images && !r->gallery},
                     {"audit-safe", r->audit_safe && !r->gallery},
                     {"png", r->png},
                     {"data-folder", r->data_folder},
                     {"drifted-only", r->drifted_only}};
    for (size_t i = 0; i < sizeof portraits / sizeof *portraits; i++)
        if (portraits[i].given)
            return lk_fail(LK_E_USAGE,
                           "--%s: is of the portrait study's report, and this study has its own; leave it "
                           "out",
                           portraits[i].option);
    return LK_OK;
}

static enum lk_code report(const struct cli_arguments *a, const struct lk_study *study, struct cli_report_input *in) {
    const bool own = study && !lk_study_is_documented(study), store = a->report.query || a->report.save;
    if (store && !study)
        return lk_fail(LK_E_USAGE, "--query, --save: expected --from RUN, whose study says what is asked for");
    if ((!own && a->output) || a->report.gallery) LK_TRY(cli_report_images(in, &a->report));
    if (a->manifest) LK_TRY(cli_report_manifest(in, a->manifest));
    if (a->review.file) LK_TRY(cli_review_read(&in->data, a->review.file));
    in->options.with_review = a->review.file != NULL;
    if (own || store) LK_TRY(report_any(a, study, in));
    if (a->output && !own) LK_TRY(report_portraits(a, in));
    if (!in->n_refused) return LK_OK;
    if (own && !lk_scores_any(&in->data, LK_SCORES_JUDGE) && !lk_scores_any(&in->data, LK_SCORES_HUMAN))
        return lk_fail(
            LK_E_INPUT,
            "report: all %zu answers were refused, as said above: nothing is judged; 'judge run --mode forced' "
            "makes a model fill in a form",
            in->n_refused);
    return lk_fail(LK_E_PARTIAL, "report: %zu answers were refused; %s%s is of the others", in->n_refused,
                   a->output ? "the report in " : "what is printed", a->output ? a->output : "");
}

enum lk_code cli_report(const struct cli_arguments *a) {
    struct cli_report_input input = {0};
    struct cli_report_arguments arguments = a->report;
    struct cli_report_runs runs;
    if (a->report.gallery && !a->report.query)
        return lk_fail(LK_E_USAGE, "--gallery: expected --query, whose rows name the outputs to show");
    if (!a->output && !a->report.query && !a->report.save)
        return lk_fail(LK_E_USAGE, "--output: missing; usage: likeness report --output DIR [options]");
    arguments.allow = a->study.allow;
    enum lk_code rc = cli_report_runs_read(&runs, &arguments);
    if (!rc && runs.first && !lk_study_is_documented(runs.first)) rc = check_own(a);
    if (!rc) rc = cli_report_input(&input, &arguments, runs.first);
    cli_report_runs_set(&runs, &input.options);
    if (!rc) rc = report(a, runs.first, &input);
    cli_report_input_free(&input);
    cli_report_runs_free(&runs);
    return rc;
}

/* report compare: two folders that report wrote, of runs that were analysed in the same way. */

/* Settings of the analysis without which two reports' numbers are not of one kind. */
static const char *const shared[] = {"judges",         "thresholds",  "rounding",    "alpha",
                                     "secondary_only", "with_review", "score_source"};
enum { N_SHARED = sizeof shared / sizeof *shared };

struct run {
    const char *folder, *name;
    cJSON *configuration;
    struct lk_dataset data;
    char hash[65];
};

static enum lk_code read_run(struct run *run) {
    char path[5000], *text;
    size_t n;
    snprintf(path, sizeof path, "%.4000s/configuration.json", run->folder);
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (rc == LK_E_NOT_FOUND)
        return lk_fail(rc,
                       "%s: expected a folder that report wrote, got one without configuration.json and outcomes.csv",
                       run->folder);
    LK_TRY(rc);
    run->configuration = cJSON_ParseWithLength(text, n);
    lk_sha256(text, n, run->hash);
    lk_free(text);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(run->configuration, "run");
    if (!cJSON_IsString(name))
        return lk_fail(LK_E_INPUT, "%s: expected a folder that report wrote: %s names no run", run->folder, path);
    run->name = name->valuestring;
    snprintf(path, sizeof path, "%.4000s/items.csv", run->folder);
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    rc = lk_report_items_read(&run->data, text, n, path);
    lk_free(text);
    return rc;
}

static enum lk_code check_allowed(const char *allowed) {
    for (const char *at = allowed; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ","), k = 0;
        while (k < N_SHARED && (strlen(shared[k]) != n || strncmp(at, shared[k], n) != 0)) k++;
        if (k < N_SHARED) continue;
        struct lk_text known = {0};
        for (k = 0; k < N_SHARED; k++)
            lk_text_add(&known, "%s%s", shared[k], k + 2 < N_SHARED ? ", " : k + 2 == N_SHARED ? " or " : "");
        enum lk_code rc = lk_fail(LK_E_USAGE, "report compare: --allow: expected %s, got \"%.*s\"",
                                  known.rc ? "a setting" : known.bytes, (int)n, at);
        lk_text_free(&known);
        return rc;
    }
    return LK_OK;
}

static enum lk_code check_same(const struct run runs[2], const char *allowed) {
    size_t n = 0;
    for (size_t k = 0; k < N_SHARED; k++) {
        const cJSON *values[2];
        char *texts[2];
        for (int r = 0; r < 2; r++) values[r] = cJSON_GetObjectItemCaseSensitive(runs[r].configuration, shared[k]);
        if (cJSON_Compare(values[0], values[1], true) || cli_report_allows(allowed, shared[k])) continue;
        n++;
        for (int r = 0; r < 2; r++) texts[r] = cJSON_PrintUnformatted(values[r]);
        lk_log(LK_LOG_ERROR, "%s: %.200s in %s, %.200s in %s", shared[k], texts[0] ? texts[0] : "nothing",
               runs[0].folder, texts[1] ? texts[1] : "nothing", runs[1].folder);
        for (int r = 0; r < 2; r++) cJSON_free(texts[r]);
    }
    if (!n) return LK_OK;
    return lk_fail(LK_E_INPUT,
                   "report compare: the reports differ in %zu settings of their analysis, named above; --allow KEY "
                   "accepts one",
                   n);
}

static int threshold(const struct run *run, const char *key, int otherwise) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(run->configuration, "thresholds"),
                *value = cJSON_GetObjectItemCaseSensitive(all, key);
    return cJSON_IsNumber(value) ? value->valueint : otherwise;
}

static enum lk_code compare(const struct run runs[2], const struct cli_arguments *a) {
    const struct lk_compare how = {.runs = {&runs[0].data, &runs[1].data},
                                   /* of equal names the folders tell which is which */
                                   .names = {strcmp(runs[0].name, runs[1].name) ? runs[0].name : runs[0].folder,
                                             strcmp(runs[0].name, runs[1].name) ? runs[1].name : runs[1].folder},
                                   .hashes = {runs[0].hash, runs[1].hash},
                                   .title = a->report.title ? a->report.title : "Two runs compared",
                                   .date = a->report.date,
                                   .thresholds = {threshold(&runs[0], "success", 4),
                                                  threshold(&runs[0], "soft_erasure", 2),
                                                  threshold(&runs[0], "drift", 3), threshold(&runs[0], "identity", 4)},
                                   .alpha = a->report.alpha,
                                   .margin = a->report.margin,
                                   .png = a->report.png};
    LK_TRY(lk_report_compare(&how, a->output));
    return cli_findings_print(a->output);
}

static bool has(const char *folder, const char *file) {
    char path[5000];
    snprintf(path, sizeof path, "%.4000s/%s", folder, file);
    return !access(path, F_OK);
}

/* Reports of studies of one's own: outcomes of what is in both. */
static enum lk_code compare_own(const struct cli_arguments *a) {
    char files[2][5000], *texts[2] = {NULL, NULL};
    struct lk_any_compare how = {.names = {a->more[0], a->more[1]},
                                 .title = a->report.title ? a->report.title : "Two runs compared",
                                 .date = a->report.date,
                                 .alpha = a->report.alpha};
    enum lk_code rc = LK_OK;
    if (a->study.allow) return lk_fail(LK_E_USAGE, "--allow: says nothing of reports of a study of your own");
    if (a->report.png) return lk_fail(LK_E_USAGE, "--png: reports of a study of your own have no figure to compare");
    for (int r = 0; r < 2 && !rc; r++) {
        snprintf(files[r], sizeof files[r], "%.4000s/outcomes.csv", a->more[r]);
        rc = lk_read_file(files[r], LK_SCORES_MAX_BYTES, &texts[r], &how.n[r]);
        how.texts[r] = texts[r], how.files[r] = files[r];
    }
    if (!rc) rc = lk_any_compare(&how, a->output);
    for (int r = 0; r < 2; r++) lk_free(texts[r]);
    return rc ? rc : cli_findings_print(a->output);
}

enum lk_code cli_report_compare(const struct cli_arguments *a) {
    struct run runs[2] = {{.folder = a->more[0]}, {.folder = a->more[1]}};
    if (has(a->more[0], "outcomes.csv") && has(a->more[1], "outcomes.csv")) return compare_own(a);
    enum lk_code rc = check_allowed(a->study.allow);
    for (int r = 0; r < 2 && !rc; r++) {
        lk_dataset_init(&runs[r].data);
        rc = read_run(&runs[r]);
    }
    if (!rc) rc = check_same(runs, a->study.allow);
    if (!rc) rc = compare(runs, a);
    for (int r = 0; r < 2; r++) {
        cJSON_Delete(runs[r].configuration);
        lk_dataset_free(&runs[r].data);
    }
    return rc;
}
