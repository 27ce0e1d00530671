/* survey codes: which completion codes are good, from a platform's table or a list of one a line. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/human/ratings.h"
#include "tools/cli/cli.h"
#include "tools/cli/survey/http.h"

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
