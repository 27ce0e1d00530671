#include "eval/scores/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/scores/csv.h"
#include "eval/scores/fields.h"
#include "eval/scores/level.h"
#include "eval/scores/words.h"
#include "eval/study/factors.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The exponent behind an 'e', kept within limits that no level comes near; n_used 0 when it is none. */
static int exponent_of(const char *text, size_t n, bool *ok) {
    size_t i = 0;
    int value = 0;
    bool negative = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+')) i++;
    *ok = i < n;
    for (; i < n; i++) {
        if (!is_digit(text[i])) *ok = false;
        if (value < 100000) value = value * 10 + (text[i] - '0');
    }
    return negative ? -value : value;
}

int lk_level_of_number(const char *text, size_t n) {
    size_t i = 0;
    int exponent = 0, level = 0, place = 0; /* place: power of ten of the digit that is not zero */
    bool point = false, any = false;
    for (; i < n && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        if (level && !point) place++;
        if (!level && point) place--;
        if (text[i] == '0') continue;
        if (level) return 0; /* a second digit */
        level = text[i] - '0';
    }
    if (!any) return 0;
    if (i < n) {
        bool ok = text[i] == 'e' || text[i] == 'E';
        if (ok) exponent = exponent_of(text + i + 1, n - i - 1, &ok);
        if (!ok) return 0;
    }
    return level >= 1 && level <= 5 && place + exponent == 0 ? level : 0;
}

int lk_level_of_string(const char *text, size_t n) {
    return n == 1 && text[0] >= '1' && text[0] <= '5' ? text[0] - '0' : 0;
}

long lk_count_of_text(const char *text, size_t n, long max) {
    long value = 0;
    size_t i = 0;
    for (; i < n && is_digit(text[i]); i++) {
        if (value > (max - (text[i] - '0')) / 10) return -1;
        value = value * 10 + (text[i] - '0');
    }
    if (!i) return -1;
    if (i < n && text[i] == '.') {
        size_t point = i++;
        while (i < n && text[i] == '0') i++;
        if (i == point + 1) return -1;
    }
    return i == n ? value : -1;
}

bool lk_decimal_of_text(const char *text, size_t n, double *out) {
    char copy[64];
    size_t i = 0, n_digits = 0;
    if (n >= sizeof copy) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    i += copy[i] == '-' || copy[i] == '+';
    for (; is_digit(copy[i]); i++) n_digits++;
    i += copy[i] == '.';
    for (; is_digit(copy[i]); i++) n_digits++;
    if (!n_digits) return false;
    if (copy[i] == 'e' || copy[i] == 'E') {
        i++;
        i += copy[i] == '-' || copy[i] == '+';
        if (!is_digit(copy[i])) return false;
        while (is_digit(copy[i])) i++;
    }
    if (i != n) return false;
    *out = strtod(copy, NULL); /* the program never leaves the C locale */
    return isfinite(*out);
}

int lk_level_of_years(double years, double near, double far) {
    if (years <= -far) return 1;
    if (years >= far) return 5;
    return years < -near ? 2 : years > near ? 4 : 3;
}

static const char *const brackets[] = {"0-2",   "3-9",   "10-19", "20-29",       "30-39",
                                       "40-49", "50-59", "60-69", "more than 70"};
static const char *const skin_classes[] = {"very light", "light", "intermediate", "tan", "brown", "dark", NULL};

const char *lk_age_bracket_name(int age) { return brackets[age]; }
const char *lk_skin_class_name(int skin_class) { return skin_classes[skin_class]; }

int lk_age_bracket_parse(const char *text, size_t n) {
    for (int i = 0; i < LK_N_AGE_BRACKETS; i++)
        if (strlen(brackets[i]) == n && !strncasecmp(brackets[i], text, n)) return i;
    int age = lk_factor_parse(LK_FACTOR_AGE, text, n);
    return age < 0 ? -1 : age + 3;
}

struct columns {
    int file_path, prompt_id, model_tag, seed, cfg, face_found, race, race_conf, gender, gender_conf, age, age_conf;
    int skin_tone, skin_value;
};

static int first_column(const struct lk_csv *csv, const char *const *names) {
    for (; *names; names++) {
        int column = lk_csv_column(csv, *names);
        if (column >= 0) return column;
    }
    return -1;
}

static enum lk_code find_columns(const struct lk_csv *csv, struct columns *c) {
    static const char *const files[] = {"file_path", "file", "face_name_align", "img_name", NULL};
    *c = (struct columns){
        first_column(csv, files),          lk_csv_column(csv, "prompt_id"), lk_csv_column(csv, "model_tag"),
        lk_csv_column(csv, "seed"),        lk_csv_column(csv, "cfg"),       lk_csv_column(csv, "face_found"),
        lk_csv_column(csv, "race"),        lk_csv_column(csv, "race_conf"), lk_csv_column(csv, "gender"),
        lk_csv_column(csv, "gender_conf"), lk_csv_column(csv, "age"),       lk_csv_column(csv, "age_conf"),
        lk_csv_column(csv, "skin_tone"),   lk_csv_column(csv, "skin_value")};
    int ignored;
    if (c->file_path < 0) return lk_csv_require(csv, "file_path", &ignored);
    if (c->race < 0 && c->gender < 0 && c->age < 0) return lk_csv_require(csv, "race", &ignored);
    return LK_OK;
}

/* A misspelled label is a column that nobody reads. */
static enum lk_code find_unread(const struct lk_csv *csv, const struct columns *c, struct lk_names *out) {
    const int read[] = {c->file_path,  c->prompt_id, c->model_tag, c->seed,       c->cfg,
                        c->face_found, c->race,      c->race_conf, c->gender,     c->gender_conf,
                        c->age,        c->age_conf,  c->skin_tone, c->skin_value, lk_csv_column(csv, "sha256")};
    for (size_t i = 0; i < csv->n_columns; i++) {
        int32_t number;
        size_t k = 0;
        while (k < sizeof read / sizeof *read && read[k] != (int)i) k++;
        if (k < sizeof read / sizeof *read) continue;
        LK_TRY(lk_names_number(out, csv->columns[i], strlen(csv->columns[i]), &number));
    }
    return LK_OK;
}

/* Of a cell that says something; 0 without the column or where it is missing. */
static size_t length(const struct lk_csv *csv, int column) {
    const size_t n = column < 0 ? 0 : csv->cells[column].n;
    return lk_is_missing(lk_csv_cell(csv, column), n) ? 0 : n;
}

/* A decimal number of a whole cell (no hexadecimal, no words, no spaces). NaN for an empty cell. */
static enum lk_code take_number(const struct lk_csv *csv, int column, double low, double high, double *out) {
    const char *text = lk_csv_cell(csv, column);
    *out = NAN;
    if (!length(csv, column)) return LK_OK;
    if (!lk_decimal_of_text(text, length(csv, column), out) || !(*out >= low && *out <= high))
        return lk_csv_fail(csv, column, "expected a number from %g to %g, got \"%.40s\"", low, high, text);
    return LK_OK;
}

static enum lk_code take_confidence(const struct lk_csv *csv, int column, float *out) {
    double value;
    LK_TRY(take_number(csv, column, 0, 1, &value));
    *out = (float)value;
    return LK_OK;
}

static enum lk_code take_level(const struct lk_csv *csv, int column, const char *what, bool face, int level,
                               int8_t *out) {
    *out = -1;
    if (!length(csv, column)) return LK_OK;
    if (!face) return lk_csv_fail(csv, column, "a %s where face_found is false", what);
    if (level < 0) return lk_csv_fail(csv, column, "\"%.40s\" is no %s", lk_csv_cell(csv, column), what);
    *out = (int8_t)level;
    return LK_OK;
}

static enum lk_code take_text(struct lk_labels *out, const struct lk_csv *csv, int column, const char **text) {
    size_t n = column < 0 ? 0 : csv->cells[column].n;
    const char *cell = lk_trim(lk_csv_cell(csv, column), &n); /* a name, whatever it is */
    *text = lk_store_copy(&out->texts, cell, n);
    return *text ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory for labels", csv->name);
}

static enum lk_code take_face(const struct lk_csv *csv, int column, bool *out) {
    const struct lk_field field = {
        .name = "face_found", .text = lk_csv_cell(csv, column), .n = length(csv, column), .kind = 'c'};
    int found = column < 0 ? 1 : lk_field_bool(&field);
    if (found < 0) return lk_csv_fail(csv, column, "expected true or false, got \"%.40s\"", field.text);
    *out = found;
    return LK_OK;
}

static enum lk_code read_row(struct lk_labels *out, const struct lk_csv *csv, const struct columns *c) {
    struct lk_label label = {.seed = -1};
    double seed;
    LK_TRY(take_text(out, csv, c->file_path, &label.file_path));
    LK_TRY(take_text(out, csv, c->prompt_id, &label.prompt_id));
    LK_TRY(take_text(out, csv, c->model_tag, &label.model_tag));
    if (!*label.file_path) return lk_csv_fail(csv, c->file_path, "expected a file path");
    LK_TRY(take_number(csv, c->seed, 0, 9007199254740991.0, &seed));
    if (!isnan(seed) && seed != floor(seed)) return lk_csv_fail(csv, c->seed, "a seed is an integer");
    if (!isnan(seed)) label.seed = (int64_t)seed;
    LK_TRY(take_number(csv, c->cfg, 0, 1000, &label.cfg));
    LK_TRY(take_face(csv, c->face_found, &label.face_found));
    bool face = label.face_found;
    int race = lk_factor_parse(LK_FACTOR_RACE, lk_csv_cell(csv, c->race), length(csv, c->race));
    int gender = lk_factor_parse(LK_FACTOR_GENDER, lk_csv_cell(csv, c->gender), length(csv, c->gender));
    int age = lk_age_bracket_parse(lk_csv_cell(csv, c->age), length(csv, c->age));
    LK_TRY(take_level(csv, c->race, "race", face, race, &label.race));
    LK_TRY(take_level(csv, c->gender, "gender", face, gender, &label.gender));
    LK_TRY(take_level(csv, c->age, "age bracket", face, age, &label.age));
    LK_TRY(take_level(csv, c->skin_tone, "skin tone", face,
                      lk_word_of(skin_classes, lk_csv_cell(csv, c->skin_tone), length(csv, c->skin_tone)),
                      &label.skin_tone));
    LK_TRY(take_confidence(csv, c->race_conf, &label.race_conf));
    LK_TRY(take_confidence(csv, c->gender_conf, &label.gender_conf));
    LK_TRY(take_confidence(csv, c->age_conf, &label.age_conf));
    LK_TRY(take_number(csv, c->skin_value, -90, 90, &label.skin_value));
    LK_TRY(lk_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list));
    out->list[out->n++] = label;
    return LK_OK;
}

enum lk_code lk_labels_read(struct lk_labels *out, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    struct columns columns;
    memset(out, 0, sizeof *out);
    LK_TRY(lk_csv_open(&csv, text, n, name));
    enum lk_code rc = find_columns(&csv, &columns);
    if (!rc) rc = find_unread(&csv, &columns, &out->unread);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = read_row(out, &csv, &columns);
    }
    lk_csv_close(&csv);
    if (rc) lk_labels_free(out);
    return rc;
}

void lk_labels_free(struct lk_labels *labels) {
    lk_free(labels->list);
    lk_store_free(&labels->texts);
    lk_names_free(&labels->unread);
    memset(labels, 0, sizeof *labels);
}
