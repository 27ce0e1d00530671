#include "eval/t2i/distribution.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "eval/data/data.h"
#include "eval/scores/fields.h"
#include "eval/scores/level.h"
#include "eval/study/factors.h"

static const struct {
    const char *key, *name;
    int n;
} attributes[LK_N_T2I_ATTRIBUTES] = {
    {"gender", "Perceived gender", LK_N_GENDERS},
    {"age", "Perceived age", LK_N_AGE_BRACKETS},
    {"race", "Perceived race", LK_N_RACES},
    {"skin_tone", "Perceived skin tone", LK_N_SKIN_CLASSES},
};

const char *lk_t2i_attribute_key(int attribute) { return attributes[attribute].key; }
const char *lk_t2i_attribute_name(int attribute) { return attributes[attribute].name; }
int lk_t2i_levels(int attribute) { return attributes[attribute].n; }

int lk_t2i_attribute_parse(const char *key) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        if (!strcasecmp(attributes[a].key, key)) return a;
    return -1;
}

const char *lk_t2i_level_name(int attribute, int level) {
    switch (attribute) {
    case LK_T2I_GENDER:
        return lk_factor_display(LK_FACTOR_GENDER, level);
    case LK_T2I_RACE:
        return lk_factor_display(LK_FACTOR_RACE, level);
    case LK_T2I_AGE:
        return lk_age_bracket_name(level);
    default:
        return lk_skin_class_name(level);
    }
}

int lk_t2i_level_parse(int attribute, const char *text) {
    if (attribute == LK_T2I_GENDER) return lk_factor_parse(LK_FACTOR_GENDER, text, strlen(text));
    if (attribute == LK_T2I_RACE) return lk_factor_parse(LK_FACTOR_RACE, text, strlen(text));
    if (attribute == LK_T2I_AGE) return lk_age_bracket_parse(text, strlen(text));
    for (int s = 0; s < LK_N_SKIN_CLASSES; s++)
        if (!strcasecmp(lk_skin_class_name(s), text)) return s;
    return -1;
}

bool lk_t2i_level_find(const char *attribute, const char *level, int *a, int *g) {
    const int named = lk_t2i_attribute_parse(attribute);
    for (*a = 0; *a < LK_N_T2I_ATTRIBUTES; ++*a)
        if ((named < 0 || named == *a) && (*g = lk_t2i_level_parse(*a, level)) >= 0) return true;
    return false;
}

int lk_t2i_level_of(const struct lk_label *label, int attribute) {
    const int levels[] = {label->gender, label->age, label->race, label->skin_tone};
    return levels[attribute];
}

double lk_t2i_confidence_of(const struct lk_label *label, int attribute) {
    const double confidences[] = {(double)label->gender_conf, (double)label->age_conf, (double)label->race_conf, NAN};
    return confidences[attribute];
}

/* "race.East Asian": the attribute and the level, or LK_E_INPUT. */
static enum lk_code find_level(const char *file, const char *path, int *attribute, int *level) {
    char key[32];
    const char *dot = strchr(path, '.');
    size_t n = dot ? (size_t)(dot - path) : sizeof key;
    *attribute = -1;
    if (n < sizeof key) {
        memcpy(key, path, n);
        key[n] = 0;
        *attribute = lk_t2i_attribute_parse(key);
    }
    if (*attribute < 0)
        return lk_fail(LK_E_INPUT,
                       "%s: \"%.80s\": expected shares within gender, age, race or skin_tone, as {\"gender\": "
                       "{\"Male\": 0.5, \"Female\": 0.5}}",
                       file, path);
    *level = lk_t2i_level_parse(*attribute, dot + 1);
    if (*level < 0)
        return lk_fail(LK_E_INPUT, "%s: %s: \"%.80s\" is no level; expected \"%s\", \"%s\" and so on", file,
                       attributes[*attribute].key, dot + 1, lk_t2i_level_name(*attribute, 0),
                       lk_t2i_level_name(*attribute, 1));
    return LK_OK;
}

static enum lk_code take(struct lk_t2i_distribution *out, const char *file, const struct lk_field *field) {
    int attribute, level = -1;
    double share;
    LK_TRY(find_level(file, field->name, &attribute, &level));
    if (out->names[attribute][level])
        return lk_fail(LK_E_INPUT, "%s: %s: \"%s\" has two shares", file, attributes[attribute].key,
                       lk_t2i_level_name(attribute, level));
    if (field->kind != '0' || !lk_decimal_of_text(field->text, field->n, &share) || !(share >= 0 && share <= 1))
        return lk_fail(LK_E_INPUT, "%s: %s: \"%s\": expected a share from 0 to 1, got %.40s", file,
                       attributes[attribute].key, lk_t2i_level_name(attribute, level),
                       field->n ? field->text : "no number");
    out->has[attribute] = out->names[attribute][level] = true;
    out->shares[attribute][level] = share;
    return LK_OK;
}

static enum lk_code check(const struct lk_t2i_distribution *d, const char *file) {
    bool any = false;
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) {
        double sum = 0;
        for (int g = 0; g < attributes[a].n; g++) sum += d->shares[a][g];
        if (d->has[a] && !(fabs(sum - 1) <= 1e-9))
            return lk_fail(LK_E_INPUT, "%s: %s: expected shares that sum to 1, got %.12g", file, attributes[a].key,
                           sum);
        any |= d->has[a];
    }
    return any ? LK_OK : lk_fail(LK_E_INPUT, "%s: expected shares of gender, age, race or skin_tone, got none", file);
}

enum lk_code lk_t2i_distribution_read(struct lk_t2i_distribution *out, const char *text, size_t n, const char *name) {
    struct lk_fields fields = {0};
    *out = (struct lk_t2i_distribution){0};
    enum lk_code rc = lk_fields_json(&fields, text, n, name);
    for (size_t i = 0; i < fields.n && !rc; i++) rc = take(out, name, &fields.list[i]);
    lk_fields_free(&fields);
    return rc ? rc : check(out, name);
}

enum lk_code lk_t2i_distribution_uniform(struct lk_t2i_distribution *out) {
    struct lk_data_file file;
    if (!lk_data_find("uniform", &file)) return lk_fail(LK_E_INTERNAL, "the program has no data \"uniform\"");
    return lk_t2i_distribution_read(out, file.text, file.n_bytes, "uniform");
}

double lk_t2i_distribution_distance(const struct lk_t2i_distribution *a, const struct lk_t2i_distribution *b,
                                    int attribute) {
    double distance = 0;
    for (int g = 0; g < attributes[attribute].n; g++)
        distance += fabs(a->shares[attribute][g] - b->shares[attribute][g]);
    return distance;
}
