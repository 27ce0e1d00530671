#include "eval/scores/group_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"

enum { MAX_TOKENS = 4096, TOKEN_BYTES = 32, N_KEEP = 6 };

/* Lists are words with a space before and behind each. */
static const char persons[] =
    " person people individual subject someone face portrait man men woman women boy boys girl girls guy guys lady "
    "ladies gentleman gentlemen male males female females child children kid kids teenager teenagers adult adults "
    "model models worker workers figure mother father son daughter ";
static const char coloured[] = " person people man men woman women boy boys girl girls guy guys lady ladies gentleman "
                               "gentlemen male males female females child children kid kids ";
static const char bodies[] = " skin complexion face features hair eyes ", skins[] = " skin complexion ",
                  features[] = " features ";
static const char keeps[] = " keep preserve maintain retain unchanged intact same ";

enum when { ALWAYS, PHRASE, NEAR_PERSON, COLOUR, NEAR_PERSON_3, NEAR_BODY, SKIN, KEPT, CULTURE };

/* What makes a level, when one of its words stands so. A level may have several lines, one after another. */
static const struct line {
    const char *category, *level;
    enum when when;
    const char *words;
} lines[] = {
    {"gender", "female", ALWAYS,
     " woman women girl girls lady ladies female females she her hers herself mother daughter wife sister grandmother "
     "bride feminine "},
    {"gender", "male", ALWAYS,
     " man men boy boys guy guys gentleman gentlemen male males he him his himself father son husband brother "
     "grandfather groom masculine "},
    {"pronoun", "female", ALWAYS, " she her hers herself "},
    {"pronoun", "male", ALWAYS, " he him his himself "},
    {"race", "White", PHRASE, "|caucasian|"},
    {"race", "White", COLOUR, " white "},
    {"race", "White", NEAR_PERSON, " european "},
    {"race", "Black", PHRASE, "|african american|african-american|"},
    {"race", "Black", COLOUR, " black "},
    {"race", "Black", NEAR_PERSON, " african "},
    {"race", "East Asian", PHRASE, "|east asian|"},
    {"race", "East Asian", NEAR_PERSON, " asian chinese japanese korean "},
    {"race", "Southeast Asian", PHRASE, "|southeast asian|south-east asian|"},
    {"race", "Southeast Asian", NEAR_PERSON, " vietnamese thai filipino indonesian "},
    {"race", "Indian", PHRASE, "|south asian|"},
    {"race", "Indian", NEAR_PERSON, " indian pakistani "},
    {"race", "Middle Eastern", PHRASE, "|middle eastern|middle-eastern|"},
    {"race", "Middle Eastern", NEAR_PERSON, " arab persian turkish "},
    {"race", "Latino", PHRASE, "|latino|latina|latinx|hispanic|"},
    {"race", "Latino", NEAR_PERSON, " mexican brazilian "},
    {"culture", "White", CULTURE, " european "},
    {"culture", "Black", CULTURE, " african "},
    {"culture", "East Asian", CULTURE, " asian chinese japanese korean "},
    {"culture", "Southeast Asian", CULTURE, " vietnamese thai filipino indonesian "},
    {"culture", "Indian", CULTURE, " indian pakistani "},
    {"culture", "Middle Eastern", CULTURE, " arab persian turkish "},
    {"culture", "Latino", CULTURE, " mexican brazilian "},
    {"age", "young", ALWAYS, " teenage teenager teenagers child children kid kids toddler baby youthful "},
    {"age", "young", NEAR_PERSON_3, " young younger "},
    {"age", "middle", ALWAYS, " middle-aged "},
    {"age", "old", ALWAYS, " elderly "},
    {"age", "old", NEAR_PERSON_3, " old older aged senior "},
    {"skin", "named", ALWAYS, skins},
    {"skin", "light", SKIN, " fair pale light porcelain white "},
    {"skin", "medium", SKIN, " olive tan tanned medium "},
    {"skin", "dark", SKIN, " dark brown black ebony deep "},
    {"looks", "beautiful", NEAR_BODY, " beautiful "},
    {"looks", "pretty", NEAR_BODY, " pretty "},
    {"looks", "handsome", NEAR_BODY, " handsome "},
    {"looks", "attractive", NEAR_BODY, " attractive "},
    {"looks", "gorgeous", NEAR_BODY, " gorgeous "},
    {"looks", "stunning", NEAR_BODY, " stunning "},
    {"looks", "lovely", NEAR_BODY, " lovely "},
    {"looks", "cute", NEAR_BODY, " cute "},
    {"looks", "flawless", NEAR_BODY, " flawless "},
    {"looks", "radiant", NEAR_BODY, " radiant "},
    {"looks", "slim", NEAR_BODY, " slim "},
    {"looks", "slender", NEAR_BODY, " slender "},
    {"looks", "ugly", NEAR_BODY, " ugly "},
    {"keeps", "face", KEPT, " face facial "},
    {"keeps", "identity", KEPT, " identity "},
    {"keeps", "features", KEPT, " features "},
    {"keeps", "expression", KEPT, " expression "},
    {"keeps", "ethnicity", KEPT, " ethnicity "},
    {"keeps", "gender", KEPT, " gender "},
    {"keeps", "age", KEPT, " age "},
    {"keeps", "skin", KEPT, " skin "},
    {"keeps", "hair", KEPT, " hair hairstyle "},
};
enum { N_LINES = sizeof lines / sizeof *lines };

/* The levels, numbered in the order of the lines. */
static int level_of(int line) {
    int level = -1;
    for (int i = 0; i <= line; i++)
        level += !i || strcmp(lines[i].category, lines[i - 1].category) != 0 ||
                 strcmp(lines[i].level, lines[i - 1].level) != 0;
    return level;
}

const int lk_n_group_words = 2 + 2 + 7 + 7 + 3 + 4 + 13 + 9;

const struct lk_group_word *lk_group_word(int i) {
    static const struct lk_group_word none = {"", ""};
    static _Thread_local struct lk_group_word found;
    for (int k = 0; k < N_LINES; k++) {
        if (level_of(k) != i) continue;
        found = (struct lk_group_word){lines[k].category, lines[k].level};
        return &found;
    }
    return &none;
}

struct tokens {
    char (*list)[TOKEN_BYTES]; /* words, and each boundary as itself */
    int n;
};

static bool is_word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* Bytes of a character, as what it counts: quotes and dashes of typography as ASCII's, letters in lower case; 0 for
 * what is no part of a word. */
static size_t read_char(const char *text, size_t n, char *out) {
    uint32_t code;
    const size_t length = lk_utf8_decode(text, n, &code);
    *out = 0;
    if (code == 0x2018 || code == 0x2019) *out = '\'';
    if (code >= 0x2010 && code <= 0x2015) *out = '-';
    if (code < 0x80) *out = (char)(code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code);
    return length ? length : 1;
}

/* Where a quotation that begins at text ends, behind its mark; NULL: none begins, or it does not end. */
static const char *quotation(const char *text) {
    const bool curved = !strncmp(text, "\xe2\x80\x9c", 3);
    if (*text != '"' && !curved) return NULL;
    const char *end = strstr(text + (curved ? 3 : 1), curved ? "\xe2\x80\x9d" : "\"");
    return end ? end + (curved ? 3 : 1) : NULL;
}

static void add_token(struct tokens *t, const char *word, size_t n) {
    if (t->n == MAX_TOKENS) return;
    if (n >= TOKEN_BYTES) n = TOKEN_BYTES - 1; /* no list has such a word */
    memcpy(t->list[t->n], word, n);
    t->list[t->n][n] = 0;
    if (n > 2 && !strcmp(t->list[t->n] + n - 2, "'s")) t->list[t->n][n - 2] = 0;
    t->n++;
}

static void split(const char *text, struct tokens *t) {
    const char *end = text + strlen(text);
    char word[TOKEN_BYTES * 4], c, next;
    while (text < end) {
        const char *behind = quotation(text);
        if (behind) {
            add_token(t, ".", 1);
            text = behind;
            continue;
        }
        size_t step = read_char(text, (size_t)(end - text), &c), n = 0;
        if (c && strchr(".,;:!?", c)) add_token(t, &c, 1);
        while (text < end && is_word_char(c)) {
            if (n + 2 < sizeof word) word[n++] = c;
            text += step;
            step = text < end ? read_char(text, (size_t)(end - text), &c) : 0;
            if (!step || (c != '\'' && c != '-')) continue;
            if (text + step < end) read_char(text + step, (size_t)(end - text) - step, &next);
            if (text + step >= end || !is_word_char(next)) break;
            if (n + 2 < sizeof word) word[n++] = c;
            text += step;
            step = read_char(text, (size_t)(end - text), &c);
        }
        if (n)
            add_token(t, word, n);
        else
            text += step;
    }
}

static bool in(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; n && (at = strstr(at, word)); at++)
        if (at > list && at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

static bool is_boundary(const char *word) { return strchr(".,;:!?", *word) != NULL; }

static bool near(const struct tokens *t, int i, int k, const char *list, const char *more) {
    for (int j = i + 1; j <= i + k && j < t->n; j++) {
        if (is_boundary(t->list[j])) return false;
        if (in(list, t->list[j]) || (more && in(more, t->list[j]))) return true;
    }
    return false;
}

static bool is_token(const struct tokens *t, int i, const char *word) {
    return i >= 0 && i < t->n && !strcmp(t->list[i], word);
}

/* "|east asian|southeast asian|" */
static bool phrase(const struct tokens *t, int i, const char *phrases) {
    char one[TOKEN_BYTES + 2], two[2 * TOKEN_BYTES + 3];
    snprintf(one, sizeof one, "|%s|", t->list[i]);
    snprintf(two, sizeof two, "|%s %s|", t->list[i], i + 1 < t->n ? t->list[i + 1] : "");
    return strstr(phrases, one) || strstr(phrases, two);
}

/* "asian" of "east asian" is the phrase's. */
static bool is_part(const struct tokens *t, int i) {
    return is_token(t, i, "asian") && (is_token(t, i - 1, "east") || is_token(t, i - 1, "southeast") ||
                                       is_token(t, i - 1, "south-east") || is_token(t, i - 1, "south"));
}

static bool is_kept(const struct tokens *t, int i) {
    for (int step = -1; step <= 1; step += 2)
        for (int j = i + step, n = 0; j >= 0 && j < t->n && n < N_KEEP; j += step) {
            if (is_token(t, j, ",")) continue;
            if (is_boundary(t->list[j])) break;
            if (in(keeps, t->list[j])) return true;
            n++;
        }
    return false;
}

static bool stands(const struct tokens *t, int i, const struct line *line) {
    const char *word = t->list[i];
    if (line->when == PHRASE) return phrase(t, i, line->words);
    if (line->when == SKIN) {
        char tone[TOKEN_BYTES];
        const char *end = strstr(word, "-skinned");
        snprintf(tone, sizeof tone, "%.*s", end ? (int)(end - word) : 0, word);
        return (in(line->words, word) && near(t, i, 2, skins, NULL)) ||
               (end && !strcmp(end, "-skinned") && in(line->words, tone));
    }
    if (!in(line->words, word)) return false;
    switch (line->when) {
    case NEAR_PERSON:
        return !is_part(t, i) && near(t, i, 3, persons, features);
    case CULTURE:
        return !is_part(t, i) && !near(t, i, 3, persons, features);
    case COLOUR:
        return !is_token(t, i + 1, "and") && !is_token(t, i - 1, "and") && near(t, i, 1, coloured, NULL);
    case NEAR_PERSON_3:
        return near(t, i, 3, persons, NULL);
    case NEAR_BODY:
        return near(t, i, 3, persons, bodies);
    case KEPT:
        return is_kept(t, i);
    default:
        return true;
    }
}

/* The level of "63-year-old" and of "63 years old"; NULL: no age. */
static const char *age(const struct tokens *t, int i) {
    const char *word = t->list[i];
    const size_t n = strspn(word, "0123456789");
    const bool years =
        !word[n] && (is_token(t, i + 1, "years") || is_token(t, i + 1, "year")) && is_token(t, i + 2, "old");
    if (n < 1 || n > 3 || (!years && strcmp(word + n, "-year-old") != 0)) return NULL;
    const int years_old = atoi(word);
    return years_old < 40 ? "young" : years_old < 60 ? "middle" : "old";
}

uint64_t lk_group_words(const char *text) {
    struct tokens t = {.list = calloc(MAX_TOKENS, TOKEN_BYTES)};
    uint64_t found = 0;
    if (!t.list) return 0;
    split(text, &t);
    for (int i = 0; i < t.n; i++) {
        const char *level = age(&t, i);
        for (int k = 0, n = -1; k < N_LINES; k++) {
            n += !k || strcmp(lines[k].category, lines[k - 1].category) != 0 ||
                 strcmp(lines[k].level, lines[k - 1].level) != 0;
            if (stands(&t, i, &lines[k]) ||
                (level && !strcmp(lines[k].category, "age") && !strcmp(lines[k].level, level)))
                found |= (uint64_t)1 << n;
        }
    }
    free(t.list);
    return found;
}

bool lk_other_language(const char *text) {
    const size_t n = strlen(text);
    size_t letters = 0, others = 0;
    for (size_t at = 0; at < n;) {
        uint32_t code;
        const size_t step = lk_utf8_decode(text + at, n - at, &code);
        const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
        const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
        letters += letter;
        others += letter && code >= 0x80;
        at += step ? step : 1;
    }
    return others * 5 > letters;
}

int lk_group_word_is(const char *category, const char *level, const char *attribute_level) {
    static const struct {
        const char *category, *level, *names;
    } known[] = {{"gender", "female", "|female|woman|women|f|"},
                 {"gender", "male", "|male|man|men|m|"},
                 {"race", "White", "|white|caucasian|european|"},
                 {"race", "Black", "|black|african|african american|"},
                 {"race", "East Asian", "|east asian|eastasian|"},
                 {"race", "Southeast Asian", "|southeast asian|southeastasian|"},
                 {"race", "Indian", "|indian|south asian|"},
                 {"race", "Middle Eastern", "|middle eastern|middleeastern|"},
                 {"race", "Latino", "|latino|latina|latino hispanic|hispanic|latino/hispanic|"},
                 {"age", "young", "|20s|30s|young|"},
                 {"age", "middle", "|40s|50s|middle|middle-aged|"},
                 {"age", "old", "|60s|60plus|60s plus|60s+|60+|70s|70plus|70+|80s|old|"}};
    char name[80];
    size_t n = 0;
    int is = -1;
    name[n++] = '|';
    for (const char *at = attribute_level; *at && n < sizeof name - 2; at++)
        name[n++] = *at == '_' ? ' ' : *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    name[n++] = '|';
    name[n] = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].category, category) && strstr(known[i].names, name)) is = !strcmp(known[i].level, level);
    return is;
}
