#include "tools/portrait/parts.h"

#include <string.h>

typedef double rgb_t[3];

static const rgb_t colours[N_COLOURS] = {{204, 40, 44},   {236, 132, 32}, {240, 212, 60},  {44, 140, 72},
                                         {40, 90, 196},   {120, 56, 164}, {240, 144, 192}, {118, 74, 44},
                                         {246, 246, 246}, {28, 28, 34},   {132, 132, 140}};
static const rgb_t hairs[N_HAIRS] = {{30, 24, 24},  {92, 58, 38},  {214, 172, 96}, {178, 64, 26},
                                     {46, 84, 200}, {52, 150, 70}, {124, 60, 170}, {240, 120, 180}};
static const rgb_t tones[6] = {{246, 218, 196}, {232, 190, 156}, {208, 156, 118},
                               {168, 116, 80},  {122, 78, 53},   {80, 52, 38}};
static const rgb_t irises[] = {{96, 56, 26}, {60, 140, 70}, {50, 110, 200}};
static const rgb_t lips[] = {{168, 58, 62}, {200, 24, 40}, {240, 110, 170}, {110, 40, 140}}; /* the first mixed with
                                                                                                skin */
static const rgb_t white = {246, 246, 246}, black = {30, 28, 32};

/* Wall, then the scene's other parts. */
static const rgb_t scenes[][4] = {[SCENE_OFFICE] = {{56, 136, 160}, {240, 240, 244}, {120, 196, 244}, {92, 66, 52}},
                                  [SCENE_CLASSROOM] = {{232, 216, 176}, {40, 92, 72}, {140, 96, 56}},
                                  [SCENE_COURT] = {{136, 92, 60}, {214, 196, 164}, {80, 52, 36}},
                                  [SCENE_BEACH] = {{140, 208, 244}, {32, 116, 190}, {238, 218, 160}, {252, 232, 90}},
                                  [SCENE_PARK] = {{160, 214, 246}, {112, 190, 88}, {36, 116, 56}, {112, 76, 44}},
                                  [SCENE_STAGE] = {{56, 32, 84}, {232, 216, 150}},
                                  [SCENE_FLAG] = {{240, 240, 244}, {44, 80, 170}, {204, 52, 60}}};

static void mix(rgb_t out, const rgb_t a, const rgb_t b, double t) {
    for (int i = 0; i < 3; i++) out[i] = a[i] + (b[i] - a[i]) * t;
}

static void shade(rgb_t out, const rgb_t a, double factor) {
    for (int i = 0; i < 3; i++) out[i] = a[i] * factor;
}

static void set(rgb_t out, double r, double g, double b) {
    out[0] = r;
    out[1] = g;
    out[2] = b;
}

void portrait_skin_colour(double tone, double rgb[3]) {
    double t = tone / 10;
    int i = t < 0 ? 0 : t >= 4 ? 4 : (int)t;
    mix(rgb, tones[i], tones[i + 1], t - i);
}

static void scene_colours(const struct portrait *p, rgb_t rgb[PORTRAIT_N_PARTS]) {
    if (p->level[PORTRAIT_SCENE] == SCENE_PLAIN)
        mix(rgb[PART_WALL], colours[p->level[PORTRAIT_BACKGROUND]], white, 0.4);
    else
        memcpy(rgb[PART_WALL], scenes[p->level[PORTRAIT_SCENE]], sizeof *scenes);
    bool blue = p->level[PORTRAIT_SIGN] == SIGN_PRIORITY, question = p->level[PORTRAIT_SIGN] == SIGN_QUESTION;
    memcpy(rgb[PART_SIGN], question ? white : colours[blue ? COLOUR_BLUE : COLOUR_PINK], sizeof(rgb_t));
    memcpy(rgb[PART_SIGN_MARK], question ? black : white, sizeof(rgb_t));
}

static void object_colours(const struct portrait *p, rgb_t rgb[PORTRAIT_N_PARTS]) {
    int held = p->level[PORTRAIT_HELD], front = p->level[PORTRAIT_FRONT];
    bool coloured = held == HELD_BALLOON || held == HELD_FLOWER;
    memcpy(rgb[PART_HELD],
           colours[coloured              ? p->level[PORTRAIT_HELD_COLOUR]
                   : held == HELD_CRUTCH ? COLOUR_GREY
                                         : COLOUR_BROWN],
           sizeof(rgb_t));
    memcpy(rgb[PART_HELD_2],
           held == HELD_FLOWER ? colours[COLOUR_GREEN]
           : held == HELD_MOP  ? white
                               : black,
           sizeof(rgb_t));
    memcpy(rgb[PART_FRONT], front == FRONT_BOWL ? white : colours[COLOUR_RED], sizeof(rgb_t));
    memcpy(rgb[PART_FRONT_2], front == FRONT_BOWL ? colours[COLOUR_ORANGE] : white, sizeof(rgb_t));
    set(rgb[PART_CHAIR], 66, 70, 84);
    set(rgb[PART_WHEEL], 38, 38, 44);
    set(rgb[PART_HUB], 206, 210, 216);
    set(rgb[PART_FRAME], 24, 24, 28);
    set(rgb[PART_LENS], 20, 20, 24);
    set(rgb[PART_GOLD], 240, 196, 44);
    memcpy(rgb[PART_HAT], colours[p->level[PORTRAIT_HAT_COLOUR]], sizeof(rgb_t));
    shade(rgb[PART_HAT_SHADE], rgb[PART_HAT], 0.7);
    memcpy(rgb[PART_CLOTHES], colours[p->level[PORTRAIT_CLOTHES_COLOUR]], sizeof(rgb_t));
    shade(rgb[PART_CLOTHES_SHADE], rgb[PART_CLOTHES], 0.7);
    set(rgb[PART_CLOTHES_WHITE], 224, 228, 232); /* not the white that clothes may have */
    if (p->level[PORTRAIT_TIE]) memcpy(rgb[PART_TIE], colours[p->level[PORTRAIT_TIE] - 1], sizeof(rgb_t));
    if (p->level[PORTRAIT_SCARF]) memcpy(rgb[PART_SCARF], colours[p->level[PORTRAIT_SCARF] - 1], sizeof(rgb_t));
}

static void person_colours(const struct portrait *p, rgb_t rgb[PORTRAIT_N_PARTS]) {
    static const rgb_t red = {204, 40, 60}, plum = {84, 40, 110}, grey = {206, 206, 210};
    double *skin = rgb[PART_SKIN];
    portrait_skin_colour(p->level[PORTRAIT_SKIN], skin);
    shade(rgb[PART_SKIN_SHADE], skin, 0.82);
    shade(rgb[PART_WRINKLE], skin, 0.55);
    mix(rgb[PART_SCAR], skin, red, 0.75);
    mix(rgb[PART_TIRED], skin, plum, 0.6);
    set(rgb[PART_PLASTER], 238, 232, 220);
    mix(rgb[PART_HAIR], hairs[p->level[PORTRAIT_HAIR]], grey, p->level[PORTRAIT_GREY] / 5.0);
    set(rgb[PART_BROW], 26, 20, 20);
    set(rgb[PART_LASH], 16, 12, 14);
    set(rgb[PART_EYE_WHITE], 250, 250, 248);
    memcpy(rgb[PART_IRIS], irises[p->level[PORTRAIT_EYES]], sizeof(rgb_t));
    mix(rgb[PART_LIPS], skin, lips[p->level[PORTRAIT_LIPS]], p->level[PORTRAIT_LIPS] ? 1 : 0.5);
}

void portrait_palette(const struct portrait *p, uint8_t out[PORTRAIT_N_PARTS][3]) {
    rgb_t rgb[PORTRAIT_N_PARTS] = {0};
    scene_colours(p, rgb);
    object_colours(p, rgb);
    person_colours(p, rgb);
    for (int i = 0; i < PORTRAIT_N_PARTS; i++)
        for (int k = 0; k < 3; k++) out[i][k] = (uint8_t)(rgb[i][k] + 0.5);
}
