/* The factors of the study: their keys in canonical order (the order of every loop and table that states no other),
 * how reports print them, and which spellings readers accept. A level is its index; -1 is "none" or "not known". */
#pragma once

#include <stddef.h>

enum lk_factor {
    LK_FACTOR_RACE,      /* 7 */
    LK_FACTOR_GENDER,    /* 2 */
    LK_FACTOR_AGE,       /* 6: 20s .. 70plus */
    LK_FACTOR_AGE_GROUP, /* 3: Young, Middle, Old */
    LK_FACTOR_MODEL,     /* 3: flux, step1x, qwen */
    LK_FACTOR_CATEGORY,  /* 2: O, V */
    LK_FACTOR_ARM,       /* 2: edited, preserved */
    LK_FACTOR_AXIS,      /* 5: edit_success, skin_tone, race_drift, gender_drift, age_drift */
    LK_N_FACTORS,
};

enum { LK_N_RACES = 7, LK_N_GENDERS = 2, LK_N_AGES = 6, LK_N_AGE_GROUPS = 3, LK_N_MODELS = 3, LK_N_SOURCES = 84 };
enum lk_arm { LK_ARM_EDITED, LK_ARM_PRESERVED, LK_N_ARMS };
enum lk_axis {
    LK_AXIS_EDIT_SUCCESS,
    LK_AXIS_SKIN_TONE,
    LK_AXIS_RACE_DRIFT,
    LK_AXIS_GENDER_DRIFT,
    LK_AXIS_AGE_DRIFT, /* age accuracy for V-03 */
    LK_N_AXES,
};

int lk_factor_levels(enum lk_factor factor);
const char *lk_factor_name(enum lk_factor factor);               /* "race" */
const char *lk_factor_key(enum lk_factor factor, int level);     /* "SoutheastAsian" */
const char *lk_factor_display(enum lk_factor factor, int level); /* "Southeast Asian" */
const char *lk_factor_short(enum lk_factor factor, int level);   /* models: FLUX, Step1X, Qwen; else as displayed */
/* The level that a text of n bytes names: key, display name or an accepted alias, in any letter case; -1 when none. */
int lk_factor_parse(enum lk_factor factor, const char *text, size_t n);

int lk_age_group(int age);    /* 0..2, by key, never by numeric bins */
int lk_age_midpoint(int age); /* 25, 35, .. 75 */
/* Sources are numbered race-major, then gender, then age: 0..83 (printed as 001..084). */
int lk_source(int race, int gender, int age);
void lk_source_factors(int source, int *race, int *gender, int *age);
/* "Black_Male_40s"; out holds at least 48 bytes. Parses the same with aliases; -1 when it is none. */
void lk_source_id(int source, char *out);
int lk_source_parse(const char *text, size_t n);
