/* The parts of a portrait's picture, which are also the entries of its palette. */
#pragma once

#include "tools/portrait/portrait.h"

enum part {
    PART_WALL, /* the plain background, or a scene's largest part */
    PART_SCENE_2,
    PART_SCENE_3,
    PART_SCENE_4,
    PART_SIGN,
    PART_SIGN_MARK,
    PART_CHAIR,
    PART_WHEEL,
    PART_HUB,
    PART_HELD,
    PART_HELD_2,
    PART_HAIR,
    PART_SKIN,
    PART_SKIN_SHADE, /* neck, ears, nose */
    PART_WRINKLE,
    PART_SCAR,
    PART_PLASTER,
    PART_TIRED,
    PART_BROW,
    PART_EYE_WHITE,
    PART_IRIS,
    PART_LASH,
    PART_LIPS,
    PART_FRAME,
    PART_LENS,
    PART_HAT,
    PART_HAT_SHADE,
    PART_GOLD,
    PART_CLOTHES,
    PART_CLOTHES_SHADE,
    PART_CLOTHES_WHITE,
    PART_TIE,
    PART_SCARF,
    PART_FRONT,
    PART_FRONT_2,
    PORTRAIT_N_PARTS,
};

/* The part that the point shows; x = 0 is the middle, y = 0 the top, in units of the height. */
enum part portrait_part(const struct portrait *p, double x, double y);
void portrait_palette(const struct portrait *p, uint8_t rgb[PORTRAIT_N_PARTS][3]);
/* The colour of skin at a tone in tenths, of hair with its grey. */
void portrait_skin_colour(double tone, double rgb[3]);
