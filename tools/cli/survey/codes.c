#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/human/ratings.h"
#include "eval/study/packing.h"
#include "eval/survey/survey.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

/* survey cost: what raters are paid, by a printed plan or by numbers of one's own. */

/* "$1,200.00" */
static const char *survey_money(double dollars, char out[32]) {
    char digits[32];
    const long long cents = (long long)(dollars * 100 + 0.5);
    const int n = snprintf(digits, sizeof digits, "%lld", cents / 100);
    char *at = out;
    *at++ = '$';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *at++ = ',';
        *at++ = digits[i];
    }
    *at++ = '.';
    *at++ = (char)('0' + cents / 10 % 10);
    *at++ = (char)('0' + cents % 10);
    *at = '\0';
    return out;
}

static void print_money(const char *name, double dollars) {
    char text[32];
    printf("%s %s\n", name, survey_money(dollars, text));
}

/* The plan that the options describe. */
static enum lk_code plan_of_options(const struct cli_arguments *a, struct lk_cost_plan *out) {
    const struct cli_survey_arguments *o = &a->survey;
    const struct {
        const char *name;
        bool given;
    } needed[] = {{"tasks", a->study.tasks}, {"pay", o->pay > 0}, {"minutes", o->minutes > 0}, {"raters", o->raters}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].given)
            return lk_fail(LK_E_USAGE,
                           "--%s: missing; a cost without a PLAN needs --tasks, --pay, --minutes and --raters",
                           needed[i].name);
    *out = (struct lk_cost_plan){
        .name = "",
        .lines = {{"tasks", a->study.tasks * o->raters, o->pay, o->minutes * 60, o->minutes * 60}},
        .n_lines = 1,
        .fee_rate = o->fee / 100,
        .bonus = o->bonus,
        .bonus_share = 1,
        .fee_on_bonus = true};
    return LK_OK;
}

static void print_line(const struct lk_study_cost *cost, const struct lk_cost_line *line, int i) {
    char money[5][32];
    const double dollars[] = {line->pay, cost->line_subtotal[i], cost->hourly_min[i], cost->hourly_max[i],
                              cost->floor[i]};
    for (int k = 0; k < 5; k++) survey_money(dollars[k], money[k]);
    printf("%s: %lld x %s = %s; %s to %s an hour; minimum wage %s%s\n", line->name, (long long)line->n, money[0],
           money[1], money[2], money[3], money[4], cost->below_floor[i] ? ", PAY IS LOWER" : "");
}

enum lk_code survey_cost(const struct cli_arguments *a) {
    const char *name = a->more[0];
    const struct cli_survey_arguments *o = &a->survey;
    const bool options = a->study.tasks || o->raters || o->pay > 0 || o->minutes > 0 || o->fee > 0 || o->bonus > 0;
    const struct lk_cost_plan *plan = lk_cost_plan(name ? name : "003");
    struct lk_cost_plan own;
    struct lk_study_cost cost;
    if (!plan) return lk_fail(LK_E_USAGE, "survey cost: expected 000, 004, 001, 003, 000-packed or pilot");
    if (options && name) return lk_fail(LK_E_USAGE, "survey cost: expected a PLAN or its numbers, got both");
    if (options) LK_TRY(plan_of_options(a, &own));
    if (options) plan = &own;
    lk_cost(plan, &cost);
    for (int i = 0; i < plan->n_lines; i++) print_line(&cost, &plan->lines[i], i);
    print_money("subtotal", cost.subtotal);
    print_money("fee", cost.fee);
    print_money("total", cost.total);
    if (cost.bonus > 0) print_money("bonus", cost.bonus);
    if (cost.bonus > 0) print_money("with bonus", cost.total_with_bonus);
    if (!strcmp(plan->name, "003"))
        lk_log(LK_LOG_WARNING, "the ethical statement promises $12 an hour; this pays less");
    return LK_OK;
}

/* survey pay: whom the platform is to pay, from its own list of submissions. */

enum { MAX_LIST_BYTES = 1 << 26 };

/* What is not simply paid, line by line, and the sums. */
static void print(const struct lk_pay *pay) {
    static const char *const words[] = {"settled already", "approve", "reject", "by hand"};
    char money[32];
    for (size_t i = 0; i < pay->n; i++) {
        const struct lk_pay_row *row = &pay->rows[i];
        if (!*row->reason) continue;
        printf("line %zu: ", row->line);
        lk_log_text(stdout, row->id, false);
        printf(": %s: ", words[row->verdict]);
        lk_log_text(stdout, row->reason, false);
        putchar('\n');
    }
    for (int i = LK_PAY_APPROVE; i < LK_PAY_N_VERDICTS; i++) printf("%s %zu\n", words[i], pay->n_of[i]);
    printf("%s %zu\n", words[LK_PAY_SETTLED], pay->n_of[LK_PAY_SETTLED]);
    printf("bonus %zu, %s\n", pay->n_bonus, survey_money(pay->bonus, money));
}

static enum lk_code write_lists(const struct lk_pay *pay, const char *path) {
    struct survey_folder folder;
    const char *name;
    enum lk_code rc = LK_OK;
    LK_TRY(survey_folder_begin(&folder, path));
    for (int i = 0; !rc; i++) {
        struct lk_text text = {0};
        rc = lk_pay_file(pay, i, &name, &text);
        if (!rc && name) rc = survey_folder_write(&folder, name, &text);
        lk_text_free(&text);
        if (!name) break;
    }
    return survey_folder_end(&folder, rc);
}

enum lk_code survey_pay(const struct cli_arguments *a, const struct lk_survey_study *study, struct lk_survey *survey) {
    const char *path = a->survey.platform, *policy = a->report.qc_policy;
    struct lk_quality_options options;
    struct lk_pay pay;
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, MAX_LIST_BYTES, &text, &n));
    lk_quality_defaults(study->protocol, &options);
    if (policy) options.policy = (enum lk_quality_policy)lk_quality_policy_parse(policy);
    enum lk_code rc = lk_pay_read(&pay, survey, options.policy, text, n, path);
    if (!rc) print(&pay);
    if (!rc) cli_print_unread(path, &pay.unread);
    if (!rc && pay.n_unlisted)
        lk_log(LK_LOG_WARNING, "%s: %zu submissions of the survey are of nobody on this list", path, pay.n_unlisted);
    if (!rc && a->output) rc = write_lists(&pay, a->output);
    lk_pay_free(&pay);
    lk_free(text);
    return rc;
}

/* survey codes: which completion codes are good, from a platform's table or a list of one a line. */

struct checker {
    const struct lk_survey_study *study;
    struct lk_survey *survey;
    const char *path;
    struct lk_names entered; /* codes, alone and with who entered them */
    size_t *line_of;         /* [entered.n]: the first that has it */
    size_t capacity, n_all, n_wrong, first_wrong;
};

static void count(struct checker *c, size_t line, bool valid) {
    c->n_all++;
    c->n_wrong += !valid;
    if (!valid && !c->first_wrong) c->first_wrong = line;
}

/* *line: the first that has this key, which `here` may be. */
static enum lk_code first_line(struct checker *c, const char *id, const char *code, size_t here, size_t *line) {
    int32_t at;
    const size_t n = c->entered.n;
    char *key = lk_format("%s,%s", id, code);
    if (!key) return lk_fail(LK_E_NOMEM, "out of memory for codes");
    for (size_t i = 0; i < strlen(id); i++) key[i] = (char)tolower((unsigned char)key[i]);
    enum lk_code rc = lk_names_number(&c->entered, key, strlen(key), &at);
    lk_free(key);
    if (!rc) rc = lk_grow(&c->line_of, &c->capacity, c->entered.n, sizeof *c->line_of);
    if (rc) return rc;
    if ((size_t)at == n) c->line_of[at] = here;
    *line = c->line_of[at];
    return LK_OK;
}

/* id NULL: the list has codes alone, and nobody knows whose. A code that others enter is its owner's still. */
static enum lk_code verify(struct checker *c, const char *id, const char *code, size_t line) {
    static const char *const words[] = {
        " valid", " NOT VALID: no submission has this code", " NOT VALID: shared, it is another participant's",
        " NOT VALID: nobody of this id took part", " NOT VALID: this participant has not submitted"};
    enum lk_survey_code_verdict verdict = LK_SURVEY_CODE_UNKNOWN;
    size_t first = line, first_of_id = line;
    bool valid = false;
    if (!c->study->code) LK_TRY(first_line(c, "", code, line, &first)); /* a fixed code is everybody's */
    if (!c->study->code && id) LK_TRY(first_line(c, id, code, line, &first_of_id));
    if (id)
        LK_TRY(lk_survey_code_check(c->survey, id, code, &verdict));
    else
        LK_TRY(lk_survey_code_valid(c->survey, code, &valid));
    if (valid) verdict = LK_SURVEY_CODE_VALID;
    const bool again = (id ? first_of_id : first) < line;
    if (id) lk_log_text(stdout, id, false);
    if (id) putchar(',');
    lk_log_text(stdout, code, false);
    fputs(verdict == LK_SURVEY_CODE_VALID && again ? " NOT VALID: used again" : words[verdict], stdout);
    if (first < line) printf(", as in line %zu", first);
    putchar('\n');
    count(c, line, verdict == LK_SURVEY_CODE_VALID && !again);
    return LK_OK;
}

static void not_understood(struct checker *c, size_t line, const char *why) {
    printf("line %zu NOT UNDERSTOOD: %s\n", line, why);
    count(c, line, false);
}

/* *is_table: the text has columns of ids and of codes, by the names that platforms give them. */
static enum lk_code verify_table(struct checker *c, const char *text, size_t n, bool *is_table) {
    struct lk_records records;
    enum lk_code rc = lk_records_open(&records, text, n, c->path);
    *is_table = false;
    if (rc) return rc == LK_E_NOMEM ? rc : LK_OK; /* a list's first line need not be a table's */
    for (bool more = true, bad; !rc && more;) {
        bool ids, codes;
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more || (bad && !*is_table)) continue;
        const struct lk_field *id = bad ? NULL : lk_participant_id(&records.fields, &ids),
                              *code = bad ? NULL : lk_participant_code(&records.fields, &codes);
        if (!bad && !*is_table && !(*is_table = ids && codes)) break;
        if (bad || !id || !code)
            not_understood(c, records.line, bad ? lk_error_text() : id ? "no completion code" : "no participant's id");
        else
            rc = verify(c, id->text, code->text, records.line);
    }
    lk_records_close(&records);
    return rc;
}

/* Without the white space and quotes around it. */
static char *cell(char *text) {
    size_t n = strlen(text);
    while (n && strchr(" \t\r\"", text[n - 1])) text[--n] = '\0';
    return text + strspn(text, " \t\"");
}

/* A code a line, with or without the participant's id and a comma before it; text is cut into pieces. */
static enum lk_code verify_lines(struct checker *c, char *text) {
    size_t number = 0;
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        number++;
        if (!*cell(line)) continue;
        char *comma = strchr(line, ',');
        if (comma && strchr(comma + 1, ',')) {
            not_understood(c, number, "expected ID,CODE or a code, or a table with a head line that names its columns");
            continue;
        }
        if (comma) *comma = '\0';
        LK_TRY(verify(c, comma ? cell(line) : NULL, cell(comma ? comma + 1 : line), number));
    }
    return LK_OK;
}

static enum lk_code verify_all(struct checker *c, char *text, size_t n) {
    bool is_table = false;
    if (memchr(text, 0, n)) return lk_fail(LK_E_INPUT, "%s: byte %zu: expected text, got NUL", c->path, strlen(text));
    if (n) LK_TRY(verify_table(c, text, n, &is_table));
    if (!is_table) LK_TRY(verify_lines(c, text));
    if (!c->n_all) return lk_fail(LK_E_INPUT, "%s: expected a code in each line, got none", c->path);
    if (!c->n_wrong) return LK_OK;
    return lk_fail(c->n_wrong < c->n_all ? LK_E_PARTIAL : LK_E_INPUT,
                   "%s: %zu of %zu codes are not valid, line %zu the first", c->path, c->n_wrong, c->n_all,
                   c->first_wrong);
}

enum lk_code survey_codes(const struct cli_arguments *a, const struct lk_survey_study *study,
                          struct lk_survey *survey) {
    struct checker c = {.study = study, .survey = survey, .path = a->survey.verify};
    char *text;
    size_t n;
    LK_TRY(lk_read_file(c.path, 1 << 24, &text, &n));
    enum lk_code rc = verify_all(&c, text, n);
    lk_names_free(&c.entered);
    lk_free(c.line_of);
    lk_free(text);
    return rc;
}
