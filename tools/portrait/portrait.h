/* Portraits of nobody, drawn from whole numbers: what small editors learn on, and what their edits are read back to.
 *
 *     struct portrait p;
 *     portrait_source(&p, lk_source(race, gender, age), NULL);
 *     p.level[PORTRAIT_GLASSES] = 1;
 *     rc = portrait_draw(&image, &p, 64);
 *
 * A portrait is a list of fields, each at one of a few levels. The picture is flat: every point belongs to a part
 * (parts.h), and every part has one colour. Nothing is smaller than two pixels of a picture of 64. */
#pragma once

#include "engine/image/image.h"
#include "eval/study/random.h"

enum portrait_field {
    /* who it is */
    PORTRAIT_SKIN,    /* in tenths of a tone: 0 light, 50 dark */
    PORTRAIT_TEXTURE, /* of the hair */
    PORTRAIT_FRINGE,
    PORTRAIT_BROWS,
    PORTRAIT_LIDS,
    PORTRAIT_GENDER, /* jaw and lashes */
    PORTRAIT_BEARD,
    PORTRAIT_WRINKLES,
    PORTRAIT_GREY, /* of the hair, in fifths */
    PORTRAIT_EYES,
    PORTRAIT_HAIR,
    PORTRAIT_LENGTH,
    /* what edits change */
    PORTRAIT_LIPS,
    PORTRAIT_EXPRESSION,
    PORTRAIT_TIRED,
    PORTRAIT_SCAR,
    PORTRAIT_PLASTER,
    PORTRAIT_GLASSES,
    PORTRAIT_HAT,
    PORTRAIT_HAT_COLOUR,
    PORTRAIT_CLOTHES,
    PORTRAIT_CLOTHES_COLOUR,
    PORTRAIT_TIE,
    PORTRAIT_SCARF,
    PORTRAIT_EARRINGS,
    PORTRAIT_SCENE,
    PORTRAIT_BACKGROUND,
    PORTRAIT_SIGN,
    PORTRAIT_HELD,
    PORTRAIT_HELD_COLOUR,
    PORTRAIT_FRONT,
    PORTRAIT_WHEELCHAIR,
    PORTRAIT_N_FIELDS,
    PORTRAIT_N_IDENTITY = PORTRAIT_LIPS,
};

enum portrait_colour {
    COLOUR_RED,
    COLOUR_ORANGE,
    COLOUR_YELLOW,
    COLOUR_GREEN,
    COLOUR_BLUE,
    COLOUR_PURPLE,
    COLOUR_PINK,
    COLOUR_BROWN,
    COLOUR_WHITE,
    N_BACKGROUNDS, /* what follows would be a background like grey hair */
    COLOUR_BLACK = N_BACKGROUNDS,
    COLOUR_GREY,
    N_COLOURS,
};
enum { TEXTURE_STRAIGHT, TEXTURE_WAVY, TEXTURE_COILY };
enum { LENGTH_BALD, LENGTH_SHORT, LENGTH_LONG };
enum { HAIR_BLACK, HAIR_BROWN, HAIR_BLOND, HAIR_RED, HAIR_BLUE, HAIR_GREEN, HAIR_PURPLE, HAIR_PINK, N_HAIRS };
enum { EYES_BROWN, EYES_GREEN, EYES_BLUE };
enum { EXPRESSION_NEUTRAL, EXPRESSION_SMILE, EXPRESSION_FROWN };
enum { GLASSES_NONE, GLASSES_CLEAR, GLASSES_SUN };
enum { HAT_NONE, HAT_CAP, HAT_PEAKED, HAT_SURGICAL, HAT_HEADBAND, HAT_HEADSCARF, HAT_TURBAN, HAT_TOP };
enum {
    CLOTHES_SHIRT,
    CLOTHES_SUIT,
    CLOTHES_UNIFORM,
    CLOTHES_SCRUBS,
    CLOTHES_SWEATER,
    CLOTHES_APRON,
    CLOTHES_SPORTSWEAR,
    CLOTHES_DRESS,
    CLOTHES_OVERALLS,
    CLOTHES_GOWN,
};
enum { SCENE_PLAIN, SCENE_OFFICE, SCENE_CLASSROOM, SCENE_COURT, SCENE_BEACH, SCENE_PARK, SCENE_STAGE, SCENE_FLAG };
enum { SIGN_NONE, SIGN_PRIORITY, SIGN_PREGNANCY, SIGN_QUESTION };
enum { HELD_NONE, HELD_CANE, HELD_CRUTCH, HELD_MOP, HELD_BALLOON, HELD_FLOWER };
enum { FRONT_NONE, FRONT_BOWL, FRONT_BOOK };

struct portrait {
    int level[PORTRAIT_N_FIELDS];
};

const char *portrait_field_name(int field);            /* "hat_colour" */
int portrait_field_levels(int field);                  /* each field's levels are 0 to this less 1 */
const char *portrait_level_name(int field, int level); /* "peaked cap"; NULL where levels are numbers */

/* Whether the picture shows the field: hair under a headscarf is not seen, nor the colour of no hat. */
bool portrait_shows(const struct portrait *p, int field);
/* Sets what is not seen to 0 (hair under a headscarf is short), so that equal pictures are equal portraits. */
void portrait_normalise(struct portrait *p);

/* One of the study's 84 sources (lk_source). stream: clothes, background and details vary by it; NULL: one fixed choice
 * a source. A race is looks alone: skin, hair, eyes, brows. */
void portrait_source(struct portrait *p, int source, struct lk_stream *stream);
/* Age in steps of ten years from the twenties: grey hair and wrinkles. Read back it is the step nearest to both, or
 * without hair (or where none is seen) to wrinkles, the youngest of those. */
enum { PORTRAIT_OLDEST = 6 };
void portrait_age(struct portrait *p, int steps);
int portrait_age_of(const struct portrait *p, bool hair);

/* RGB, square. The same arguments give the same pixels. LK_E_NOMEM. */
enum lk_code portrait_draw(struct lk_image *out, const struct portrait *p, int size);
/* The same into memory of size x size x 3. */
void portrait_draw_into(uint8_t *rgb, const struct portrait *p, int size);
