#include "tools/portrait/portrait.h"

#include <stdlib.h>
#include <string.h>

#include "eval/study/factors.h"

enum { SAMPLES = 2, MAX_LEVELS = N_COLOURS + 1 };

#define COLOUR_NAMES "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "white", "black", "grey"

static const struct {
    const char *name;
    int n; /* levels */
    const char *names[MAX_LEVELS + 1];
} fields[PORTRAIT_N_FIELDS] = {
    [PORTRAIT_SKIN] = {"skin", 51, {0}},
    [PORTRAIT_TEXTURE] = {"texture", 3, {"straight", "wavy", "coily"}},
    [PORTRAIT_FRINGE] = {"fringe", 2, {"none", "fringe"}},
    [PORTRAIT_BROWS] = {"brows", 2, {"thin", "thick"}},
    [PORTRAIT_LIDS] = {"lids", 2, {"wide", "narrow"}},
    [PORTRAIT_GENDER] = {"gender", 2, {"male", "female"}},
    [PORTRAIT_BEARD] = {"beard", 2, {"none", "beard"}},
    [PORTRAIT_WRINKLES] = {"wrinkles", 4, {0}},
    [PORTRAIT_GREY] = {"grey", 6, {0}},
    [PORTRAIT_EYES] = {"eyes", 3, {"brown", "green", "blue"}},
    [PORTRAIT_HAIR] = {"hair", N_HAIRS, {"black", "brown", "blond", "red", "blue", "green", "purple", "pink"}},
    [PORTRAIT_LENGTH] = {"length", 3, {"bald", "short", "long"}},
    [PORTRAIT_LIPS] = {"lips", 4, {"natural", "red", "pink", "purple"}},
    [PORTRAIT_EXPRESSION] = {"expression", 3, {"neutral", "smile", "frown"}},
    [PORTRAIT_TIRED] = {"tired", 2, {"none", "tired"}},
    [PORTRAIT_SCAR] = {"scar", 2, {"none", "scar"}},
    [PORTRAIT_PLASTER] = {"plaster", 2, {"none", "plaster"}},
    [PORTRAIT_GLASSES] = {"glasses", 3, {"none", "glasses", "sunglasses"}},
    [PORTRAIT_HAT] = {"hat",
                      8,
                      {"none", "cap", "peaked cap", "surgical cap", "headband", "headscarf", "turban", "top hat"}},
    [PORTRAIT_HAT_COLOUR] = {"hat_colour", N_COLOURS, {COLOUR_NAMES}},
    [PORTRAIT_CLOTHES] = {"clothes",
                          10,
                          {"shirt", "suit", "uniform", "scrubs", "sweater", "apron", "sportswear", "dress", "overalls",
                           "gown"}},
    [PORTRAIT_CLOTHES_COLOUR] = {"clothes_colour", N_COLOURS, {COLOUR_NAMES}},
    [PORTRAIT_TIE] = {"tie", N_COLOURS + 1, {"none", COLOUR_NAMES}},
    [PORTRAIT_SCARF] = {"scarf", N_COLOURS + 1, {"none", COLOUR_NAMES}},
    [PORTRAIT_EARRINGS] = {"earrings", 2, {"none", "earrings"}},
    [PORTRAIT_SCENE] = {"scene", 8, {"plain", "office", "classroom", "courtroom", "beach", "park", "stage", "flag"}},
    [PORTRAIT_BACKGROUND] = {"background", N_BACKGROUNDS, {COLOUR_NAMES}},
    [PORTRAIT_SIGN] = {"sign", 4, {"none", "priority", "pregnancy", "question"}},
    [PORTRAIT_HELD] = {"held", 6, {"none", "cane", "crutch", "mop", "balloon", "flower"}},
    [PORTRAIT_HELD_COLOUR] = {"held_colour", N_COLOURS, {COLOUR_NAMES}},
    [PORTRAIT_FRONT] = {"front", 3, {"none", "bowl", "book"}},
    [PORTRAIT_WHEELCHAIR] = {"wheelchair", 2, {"none", "wheelchair"}},
};

const char *portrait_field_name(int field) { return fields[field].name; }
int portrait_field_levels(int field) { return fields[field].n; }
const char *portrait_level_name(int field, int level) { return fields[field].names[level]; }

bool portrait_shows(const struct portrait *p, int field) {
    const int *v = p->level;
    bool hair = v[PORTRAIT_LENGTH] != LENGTH_BALD && v[PORTRAIT_HAT] != HAT_HEADSCARF;
    switch (field) {
    case PORTRAIT_TEXTURE:
        return hair;
    case PORTRAIT_LENGTH:
        return v[PORTRAIT_HAT] != HAT_HEADSCARF;
    case PORTRAIT_FRINGE:
        return hair && v[PORTRAIT_HAT] == HAT_NONE;
    case PORTRAIT_HAIR:
        return (hair || v[PORTRAIT_BEARD]) && v[PORTRAIT_GREY] < 4;
    case PORTRAIT_GREY:
        return hair || v[PORTRAIT_BEARD];
    case PORTRAIT_EYES:
    case PORTRAIT_LIDS:
        return v[PORTRAIT_GLASSES] != GLASSES_SUN;
    case PORTRAIT_TIRED:
        return v[PORTRAIT_GLASSES] == GLASSES_NONE;
    case PORTRAIT_HAT_COLOUR:
        return v[PORTRAIT_HAT] != HAT_NONE;
    case PORTRAIT_TIE:
        return !v[PORTRAIT_SCARF] && v[PORTRAIT_TIE] - 1 != v[PORTRAIT_CLOTHES_COLOUR];
    case PORTRAIT_SCARF: /* its end hangs over the clothes, the rest under the headscarf */
        return v[PORTRAIT_HAT] != HAT_HEADSCARF || v[PORTRAIT_SCARF] - 1 != v[PORTRAIT_CLOTHES_COLOUR];
    case PORTRAIT_EARRINGS:
        return v[PORTRAIT_HAT] != HAT_HEADSCARF;
    case PORTRAIT_BACKGROUND:
        return v[PORTRAIT_SCENE] == SCENE_PLAIN;
    case PORTRAIT_HELD_COLOUR:
        return v[PORTRAIT_HELD] == HELD_BALLOON || v[PORTRAIT_HELD] == HELD_FLOWER;
    default:
        return true;
    }
}

void portrait_normalise(struct portrait *p) {
    for (int i = 0; i < PORTRAIT_N_FIELDS; i++)
        if (!portrait_shows(p, i)) p->level[i] = i == PORTRAIT_LENGTH ? LENGTH_SHORT : 0;
}

static const int age_grey[] = {0, 0, 1, 2, 3, 4, 5}, age_wrinkles[] = {0, 1, 1, 2, 2, 3, 3};

void portrait_age(struct portrait *p, int steps) {
    p->level[PORTRAIT_GREY] = age_grey[steps];
    p->level[PORTRAIT_WRINKLES] = age_wrinkles[steps];
}

int portrait_age_of(const struct portrait *p, bool hair) {
    int best = 0, least = 100;
    for (int i = 0; i <= PORTRAIT_OLDEST; i++) {
        int away = abs(age_wrinkles[i] - p->level[PORTRAIT_WRINKLES]);
        if (hair && portrait_shows(p, PORTRAIT_GREY)) away += abs(age_grey[i] - p->level[PORTRAIT_GREY]);
        if (away < least) {
            least = away;
            best = i;
        }
    }
    return best;
}

static const struct look {
    int skin, texture, fringe, brows, lids, eyes, hair;
} looks[LK_N_RACES] = {
    {2, TEXTURE_STRAIGHT, 0, 0, 0, EYES_BLUE, HAIR_BLOND},   {43, TEXTURE_COILY, 0, 1, 0, EYES_BROWN, HAIR_BLACK},
    {8, TEXTURE_STRAIGHT, 1, 0, 1, EYES_BROWN, HAIR_BLACK},  {19, TEXTURE_STRAIGHT, 0, 0, 1, EYES_BROWN, HAIR_BLACK},
    {33, TEXTURE_STRAIGHT, 0, 1, 0, EYES_BROWN, HAIR_BLACK}, {13, TEXTURE_WAVY, 0, 1, 0, EYES_GREEN, HAIR_BLACK},
    {23, TEXTURE_WAVY, 0, 0, 0, EYES_BROWN, HAIR_BROWN},
};

/* 0 to n - 1: drawn, or where nothing is drawn spread by the source's number. */
static int choose(struct lk_stream *stream, int source, int factor, int n) {
    return stream ? (int)lk_stream_bounded(stream, (uint64_t)n) : source * factor / 3 % n;
}

void portrait_source(struct portrait *p, int source, struct lk_stream *stream) {
    int race, gender, age, *v = p->level;
    memset(p, 0, sizeof *p);
    lk_source_factors(source, &race, &gender, &age);
    const struct look *look = &looks[race];
    v[PORTRAIT_SKIN] = look->skin + choose(stream, source, 5, 7);
    v[PORTRAIT_TEXTURE] = look->texture;
    v[PORTRAIT_FRINGE] = look->fringe;
    v[PORTRAIT_BROWS] = look->brows;
    v[PORTRAIT_LIDS] = look->lids;
    v[PORTRAIT_EYES] = look->eyes;
    v[PORTRAIT_HAIR] = look->hair;
    v[PORTRAIT_GENDER] = gender;
    v[PORTRAIT_LENGTH] = gender ? LENGTH_LONG : LENGTH_SHORT;
    v[PORTRAIT_BEARD] = !gender && choose(stream, source, 7, 4) == 0;
    portrait_age(p, age);
    v[PORTRAIT_CLOTHES] = choose(stream, source, 4, 2) ? CLOTHES_SWEATER : CLOTHES_SHIRT;
    v[PORTRAIT_CLOTHES_COLOUR] = choose(stream, source, 10, N_COLOURS);
    v[PORTRAIT_BACKGROUND] = choose(stream, source, 13, N_BACKGROUNDS);
    portrait_normalise(p);
}

void portrait_draw_into(uint8_t *rgb, const struct portrait *p, int size) {
    uint8_t palette[PORTRAIT_N_PARTS][3];
    portrait_palette(p, palette);
    for (int py = 0; py < size; py++)
        for (int px = 0; px < size; px++, rgb += 3) {
            int sum[3] = {0};
            for (int s = 0; s < SAMPLES * SAMPLES; s++) {
                double x = (px + (s % SAMPLES + 0.5) / SAMPLES) / size - 0.5;
                double y = (py + ((double)(s / SAMPLES) + 0.5) / SAMPLES) / size;
                const uint8_t *c = palette[portrait_part(p, x, y)];
                for (int k = 0; k < 3; k++) sum[k] += c[k];
            }
            for (int k = 0; k < 3; k++) rgb[k] = (uint8_t)((sum[k] + SAMPLES * SAMPLES / 2) / (SAMPLES * SAMPLES));
        }
}

enum lk_code portrait_draw(struct lk_image *out, const struct portrait *p, int size) {
    enum lk_code rc = lk_image_new(out, size, size, 3);
    if (!rc) portrait_draw_into(out->pixels, p, size);
    return rc;
}
