#include "eval/study/factors.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LEVELS = 7, MAX_ALIASES = 4 };

struct level {
    const char *key, *display;
    const char *aliases[MAX_ALIASES]; /* lower case; a space stands for an underscore too */
};

static const struct {
    const char *name;
    int n;
    struct level levels[MAX_LEVELS];
} factors[LK_N_FACTORS] = {
    [LK_FACTOR_RACE] = {"race",
                        7,
                        {{"White", "White", {0}},
                         {"Black", "Black", {0}},
                         {"EastAsian", "East Asian", {0}},
                         {"SoutheastAsian", "Southeast Asian", {"south-east asian"}},
                         {"Indian", "Indian", {0}},
                         {"MiddleEastern", "Middle Eastern", {0}},
                         {"Latino", "Latino", {"latino/hispanic", "latino hispanic"}}}},
    [LK_FACTOR_GENDER] = {"gender", 2, {{"Male", "Male", {0}}, {"Female", "Female", {0}}}},
    [LK_FACTOR_AGE] = {"age",
                       6,
                       {{"20s", "20s", {"20-29", "20–29"}},
                        {"30s", "30s", {"30-39", "30–39"}},
                        {"40s", "40s", {"40-49", "40–49"}},
                        {"50s", "50s", {"50-59", "50–59"}},
                        {"60s", "60s", {"60-69", "60–69"}},
                        {"70plus", "70+", {"more than 70"}}}},
    [LK_FACTOR_AGE_GROUP] = {"age_group", 3, {{"Young", "Young", {0}}, {"Middle", "Middle", {0}}, {"Old", "Old", {0}}}},
    [LK_FACTOR_MODEL] = {"model",
                         3,
                         {{"flux", "FLUX.2-dev", {"flux.2"}},
                          {"step1x", "Step1X-Edit", {"step1x-edit-v1p2"}},
                          {"qwen", "Qwen-Edit", {"qwen-image-edit", "qwen-image-edit-2511"}}}},
    [LK_FACTOR_CATEGORY] = {"category",
                            2,
                            {{"O", "Occupational Stereotype", {"b"}}, {"V", "Vulnerability Attributes", {"d"}}}},
    [LK_FACTOR_ARM] = {"arm", 2, {{"edited", "Baseline", {0}}, {"preserved", "Ours", {0}}}},
    [LK_FACTOR_AXIS] = {"axis",
                        5,
                        {{"edit_success", "Edit Success", {0}},
                         {"skin_tone", "Skin Tone Change", {"skin stone"}},
                         {"race_drift", "Race Change", {0}},
                         {"gender_drift", "Gender Change", {0}},
                         {"age_drift", "Age Change", {0}}}},
};

int lk_factor_levels(enum lk_factor factor) { return factors[factor].n; }
const char *lk_factor_name(enum lk_factor factor) { return factors[factor].name; }
const char *lk_factor_key(enum lk_factor factor, int level) { return factors[factor].levels[level].key; }
const char *lk_factor_display(enum lk_factor factor, int level) { return factors[factor].levels[level].display; }

const char *lk_factor_short(enum lk_factor factor, int level) {
    static const char *const models[LK_N_MODELS] = {"FLUX", "Step1X", "Qwen"};
    return factor == LK_FACTOR_MODEL ? models[level] : lk_factor_display(factor, level);
}

static char fold(char c) { return c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c; }

static bool same(const char *spelling, const char *text, size_t n) {
    if (!spelling || strlen(spelling) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (fold(spelling[i]) != fold(text[i])) return false;
    return true;
}

int lk_factor_parse(enum lk_factor factor, const char *text, size_t n) {
    for (int i = 0; i < factors[factor].n; i++) {
        const struct level *level = &factors[factor].levels[i];
        if (same(level->key, text, n) || same(level->display, text, n) || same(lk_factor_short(factor, i), text, n))
            return i;
        for (int a = 0; a < MAX_ALIASES; a++)
            if (same(level->aliases[a], text, n)) return i;
    }
    return -1;
}

int lk_age_group(int age) { return age / 2; }
int lk_age_midpoint(int age) { return 25 + 10 * age; }

int lk_source(int race, int gender, int age) { return (race * LK_N_GENDERS + gender) * LK_N_AGES + age; }

void lk_source_factors(int source, int *race, int *gender, int *age) {
    *age = source % LK_N_AGES;
    *gender = source / LK_N_AGES % LK_N_GENDERS;
    *race = source / (LK_N_AGES * LK_N_GENDERS);
}

void lk_source_id(int source, char *out) {
    int race, gender, age;
    lk_source_factors(source, &race, &gender, &age);
    snprintf(out, 48, "%s_%s_%s", lk_factor_key(LK_FACTOR_RACE, race), lk_factor_key(LK_FACTOR_GENDER, gender),
             lk_factor_key(LK_FACTOR_AGE, age));
}

/* Where the last underscore of the first n bytes is; n when there is none. */
static size_t last_underscore(const char *text, size_t n) {
    for (size_t i = n; i-- > 0;)
        if (text[i] == '_') return i;
    return n;
}

/* From the right, because a race may be spelled with an underscore. */
int lk_source_parse(const char *text, size_t n) {
    size_t age_at = last_underscore(text, n);
    if (age_at == n) return -1;
    size_t gender_at = last_underscore(text, age_at);
    if (gender_at == age_at) return -1;
    int race = lk_factor_parse(LK_FACTOR_RACE, text, gender_at);
    int gender = lk_factor_parse(LK_FACTOR_GENDER, text + gender_at + 1, age_at - gender_at - 1);
    int age = lk_factor_parse(LK_FACTOR_AGE, text + age_at + 1, n - age_at - 1);
    return race < 0 || gender < 0 || age < 0 ? -1 : lk_source(race, gender, age);
}
