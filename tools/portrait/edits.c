#include "tools/portrait/edits.h"

#include <string.h>

#include "eval/study/factors.h"

static bool is_study(int instruction) { return instruction < EDITS_N_STUDY; }

int edit_ways(int instruction) {
    int n = 0;
    while (n < EDITS_MAX_TEMPLATES && edit_instruction(instruction)->templates[n]) n++;
    return is_study(instruction) ? n + 1 : n;
}

int edit_words(int instruction, int slot) {
    const struct edit_word *words = edit_instruction(instruction)->slots[slot];
    int n = 0;
    while (words && words[n].text) n++;
    return words ? n : 1;
}

/* Of two slots each ninth pair of words in any way; of one each seventh pair of a way and a word; nothing of others. */
bool edit_held_out(const struct edit *edit) {
    const struct edit_instruction *of = edit_instruction(edit->instruction);
    if (of->slots[1]) return (2 * edit->word[0] + 5 * edit->word[1] + edit->instruction) % 9 == 0;
    return of->slots[0] && (2 * edit->way + edit->word[0] + edit->instruction) % 7 == 0;
}

/* A template with its words; "a" becomes "an" before a vowel. */
static void fill(const struct edit *edit, const char *template, struct lk_text *out) {
    const struct edit_instruction *of = edit_instruction(edit->instruction);
    for (const char *at = template; *at; at++) {
        if (*at != '{') {
            lk_text_bytes(out, at, 1);
            continue;
        }
        int slot = at[1] - '0';
        const char *word = of->slots[slot][edit->word[slot]].text;
        bool article = at - template >= 3 && !memcmp(at - 3, " a ", 3);
        if (article && strchr("aeiou", *word)) {
            out->n--; /* the space */
            lk_text_bytes(out, "n ", 2);
        }
        lk_text_bytes(out, word, strlen(word));
        at += 2;
    }
}

void edit_text(const struct edit *edit, const struct lk_prompts *prompts, struct lk_text *out) {
    bool study = is_study(edit->instruction);
    size_t start = out->n;
    if (study && !edit->way)
        lk_text_add(out, "%s", prompts->edit[edit->instruction].text);
    else
        fill(edit, edit_instruction(edit->instruction)->templates[edit->way - study], out);
    if (!edit->preserve || out->rc) return;
    if (out->n > start && out->bytes[out->n - 1] == '.') out->n--;
    lk_text_add(out, " while preserving the person's identity.");
}

bool edit_next(struct edit *e) {
    if (is_study(e->instruction) && !e->preserve) return e->preserve = true;
    e->preserve = false;
    for (int s = EDITS_MAX_SLOTS - 1; s >= 0; s--) {
        if (++e->word[s] < edit_words(e->instruction, s)) return true;
        e->word[s] = 0;
    }
    if (++e->way < edit_ways(e->instruction)) return true;
    e->way = 0;
    return ++e->instruction < EDITS_N;
}

enum lk_code edit_parse(const char *text, const struct lk_prompts *prompts, struct edit *out) {
    struct lk_text said = {0};
    bool same = false;
    *out = (struct edit){0};
    do {
        said.n = 0;
        edit_text(out, prompts, &said);
        if (said.rc) break;
        same = !strcmp(said.bytes, text);
    } while (!same && edit_next(out));
    enum lk_code rc = said.rc;
    lk_text_free(&said);
    return rc || same ? rc
                      : lk_fail(LK_E_INPUT, "\"%.80s\" is no instruction of the drawings (make_pairs --prompts)", text);
}

static void set_all(struct portrait *p, const struct edit_set *sets, int n) {
    for (int i = 0; i < n && sets[i].field != EDITS_END; i++) {
        if (sets[i].field == EDITS_AGE) {
            int age = portrait_age_of(p, true) + sets[i].level;
            portrait_age(p, age < 0 ? 0 : age > PORTRAIT_OLDEST ? PORTRAIT_OLDEST : age);
        } else {
            p->level[sets[i].field] = sets[i].level;
        }
    }
}

void edit_apply(const struct edit *edit, const struct portrait *before, struct portrait *after) {
    const struct edit_instruction *of = edit_instruction(edit->instruction);
    *after = *before;
    set_all(after, of->set, EDITS_MAX_SETS);
    for (int s = 0; s < EDITS_MAX_SLOTS && of->slots[s]; s++) set_all(after, of->slots[s][edit->word[s]].set, 3);
    portrait_normalise(after);
}

static bool sets_touch(const struct edit_set *sets, int n, int field) {
    bool age = field == PORTRAIT_GREY || field == PORTRAIT_WRINKLES;
    for (int i = 0; i < n && sets[i].field != EDITS_END; i++)
        if (sets[i].field == field || (age && sets[i].field == EDITS_AGE)) return true;
    return false;
}

bool edit_touches(const struct edit *edit, int field) {
    const struct edit_instruction *of = edit_instruction(edit->instruction);
    if (sets_touch(of->set, EDITS_MAX_SETS, field)) return true;
    for (int s = 0; s < EDITS_MAX_SLOTS && of->slots[s]; s++)
        if (sets_touch(of->slots[s][edit->word[s]].set, 3, field)) return true;
    return false;
}

static int below(struct lk_stream *stream, int n) { return (int)lk_stream_bounded(stream, (uint64_t)n); }

/* Things that a portrait may have before: each in one picture of `rarity`. */
static void dress(struct lk_stream *stream, struct portrait *p) {
    static const struct {
        int field, rarity;
    } extras[] = {{PORTRAIT_LENGTH, 4},  {PORTRAIT_HAIR, 8},       {PORTRAIT_EXPRESSION, 3}, {PORTRAIT_TIRED, 12},
                  {PORTRAIT_SCAR, 12},   {PORTRAIT_PLASTER, 12},   {PORTRAIT_GLASSES, 5},    {PORTRAIT_HAT, 5},
                  {PORTRAIT_CLOTHES, 2}, {PORTRAIT_TIE, 8},        {PORTRAIT_SCARF, 10},     {PORTRAIT_EARRINGS, 8},
                  {PORTRAIT_SCENE, 4},   {PORTRAIT_SIGN, 12},      {PORTRAIT_HELD, 8},       {PORTRAIT_FRONT, 10},
                  {PORTRAIT_LIPS, 8},    {PORTRAIT_WHEELCHAIR, 15}};
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        if (!below(stream, extras[i].rarity))
            p->level[extras[i].field] = below(stream, portrait_field_levels(extras[i].field));
    p->level[PORTRAIT_HAT_COLOUR] = below(stream, N_COLOURS);
    p->level[PORTRAIT_HELD_COLOUR] = below(stream, N_COLOURS);
}

static bool meets(struct portrait *p, const struct edit_set needs[2], struct lk_stream *stream) {
    for (int i = 0; i < 2 && needs[i].field != EDITS_END; i++) {
        int levels = portrait_field_levels(needs[i].field);
        p->level[needs[i].field] = needs[i].level < 0 ? 1 + below(stream, levels - 1) : needs[i].level;
    }
    portrait_normalise(p);
    for (int i = 0; i < 2 && needs[i].field != EDITS_END; i++)
        if (!portrait_shows(p, needs[i].field)) return false;
    return true;
}

void edit_draw(struct lk_stream *stream, int instruction, bool held_out, struct edit *edit, int *source,
               struct portrait *before) {
    struct portrait after;
    do {
        int first = held_out ? EDITS_N_STUDY : 0;
        edit->instruction = instruction >= 0 ? instruction : first + below(stream, EDITS_N - first);
        bool study = is_study(edit->instruction);
        edit->way = study && below(stream, 4) ? 0 : below(stream, edit_ways(edit->instruction));
        for (int s = 0; s < EDITS_MAX_SLOTS; s++) edit->word[s] = below(stream, edit_words(edit->instruction, s));
        edit->preserve = study && !below(stream, 4);
    } while (edit_held_out(edit) != held_out);
    const struct edit_set *needs = edit_instruction(edit->instruction)->needs;
    bool changes;
    do {
        *source = below(stream, LK_N_SOURCES);
        portrait_source(before, *source, stream);
        if (below(stream, 2)) dress(stream, before);
        changes = meets(before, needs, stream);
        edit_apply(edit, before, &after);
    } while (!changes || !memcmp(before, &after, sizeof after));
}
