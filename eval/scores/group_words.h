/* Words that name a group of people, or ask to keep what makes a person, in a prompt: gender, race, age, skin, looks.
 * What counts as such a word depends on what stands near it: "a black hat" says nothing of a person, "a Black man"
 * does. Text in quotation marks is to be painted and is not looked at.
 *
 *     const uint64_t before = lk_group_words(original), after = lk_group_words(rewritten), added = after & ~before;
 *     for (int i = 0; i < lk_n_group_words; i++)
 *         if (added >> i & 1) use(lk_group_word(i)->category, lk_group_word(i)->level); */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lk_group_word {
    const char *category; /* "gender", "pronoun", "race", "culture", "age", "skin", "looks", "keeps" */
    const char *level;    /* "female", "East Asian", "old", "hair" */
};

extern const int lk_n_group_words; /* at most 64: the bits of a set */
const struct lk_group_word *lk_group_word(int i);

uint64_t lk_group_words(const char *text);

/* More than a fifth of its letters are none of ASCII's: the lists are English. */
bool lk_other_language(const char *text);

/* Whether an attribute's level, by its key or heading, is the level that a word of the category names:
 * "Latino_Hispanic" of race is "Latino", "60s" of age "old". 1 yes, 0 no, -1: it is none of the category's levels. */
int lk_group_word_is(const char *category, const char *level, const char *attribute_level);
