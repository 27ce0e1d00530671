#include "tools/portrait/portrait.h"

#include <math.h>
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

/* Only + - * / and comparisons, so that a picture is the same on every machine. Strokes are at least two pixels of a
 * picture of 64 (0.031) wide. */

static bool ellipse(double x, double y, double cx, double cy, double rx, double ry) {
    double dx = (x - cx) / rx, dy = (y - cy) / ry;
    return dx * dx + dy * dy < 1;
}

static bool box(double x, double y, double left, double top, double right, double bottom) {
    return x >= left && x < right && y >= top && y < bottom;
}

/* Within w of the segment from (ax, ay) to (bx, by). */
static bool stroke(double x, double y, double ax, double ay, double bx, double by, double w) {
    double ux = bx - ax, uy = by - ay, t = ((x - ax) * ux + (y - ay) * uy) / (ux * ux + uy * uy);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    double dx = x - ax - t * ux, dy = y - ay - t * uy;
    return dx * dx + dy * dy < w * w;
}

/* 0 to 1 and back over a period of 0.16. */
static double zigzag(double t) {
    t = t / 0.16;
    t -= floor(t);
    return t < 0.5 ? 2 * t : 2 - 2 * t;
}

static enum part scene(const struct portrait *p, double x, double y) {
    switch (p->level[PORTRAIT_SCENE]) {
    case SCENE_OFFICE: /* a window, a shelf */
        if (box(x, y, 0.22, 0.06, 0.46, 0.42)) return x > 0.32 && x < 0.36 ? PART_SCENE_2 : PART_SCENE_3;
        return x < -0.38 ? PART_SCENE_4 : PART_WALL;
    case SCENE_CLASSROOM: /* a board in its frame */
        if (y > 0.10 && y < 0.46) return PART_SCENE_2;
        return y > 0.06 && y < 0.50 ? PART_SCENE_3 : PART_WALL;
    case SCENE_COURT: /* columns */
        return (x < -0.30 && x > -0.40) || (x > 0.30 && x < 0.40) ? PART_SCENE_2 : y < 0.06 ? PART_SCENE_3 : PART_WALL;
    case SCENE_BEACH:
        if (ellipse(x, y, 0.36, 0.14, 0.08, 0.08)) return PART_SCENE_4;
        return y > 0.62 ? PART_SCENE_3 : y > 0.44 ? PART_SCENE_2 : PART_WALL;
    case SCENE_PARK: /* a tree */
        if (ellipse(x, y, 0.40, 0.26, 0.14, 0.18)) return PART_SCENE_3;
        if (box(x, y, 0.37, 0.40, 0.43, 0.66)) return PART_SCENE_4;
        return y > 0.58 ? PART_SCENE_2 : PART_WALL;
    case SCENE_STAGE: /* two spotlights */
        return stroke(x, y, -0.10, -0.1, -0.48, 0.9, 0.06) || stroke(x, y, 0.10, -0.1, 0.48, 0.9, 0.06) ? PART_SCENE_2
                                                                                                        : PART_WALL;
    case SCENE_FLAG:
        return x < -0.17 ? PART_SCENE_2 : x > 0.17 ? PART_SCENE_3 : PART_WALL;
    default:
        return PART_WALL;
    }
}

/* The upper left corner. */
static enum part sign(const struct portrait *p, enum part under, double x, double y) {
    int kind = p->level[PORTRAIT_SIGN];
    if (kind == SIGN_QUESTION) {
        if (!ellipse(x, y, -0.37, 0.17, 0.12, 0.13)) return under;
        bool mark = ellipse(x, y, -0.37, 0.255, 0.022, 0.022) || stroke(x, y, -0.37, 0.20, -0.34, 0.13, 0.02) ||
                    stroke(x, y, -0.34, 0.12, -0.39, 0.10, 0.02);
        return mark ? PART_SIGN_MARK : PART_SIGN;
    }
    if (!kind || !box(x, y, -0.49, 0.04, -0.25, 0.30)) return under;
    if (kind == SIGN_PRIORITY) /* a seat */
        return box(x, y, -0.44, 0.09, -0.40, 0.25) || box(x, y, -0.44, 0.21, -0.30, 0.25) ? PART_SIGN_MARK : PART_SIGN;
    return ellipse(x, y, -0.37, 0.11, 0.03, 0.03) || ellipse(x, y, -0.36, 0.21, 0.05, 0.06) ? PART_SIGN_MARK
                                                                                            : PART_SIGN;
}

/* At the right side. */
static enum part held(const struct portrait *p, enum part under, double x, double y) {
    switch (p->level[PORTRAIT_HELD]) {
    case HELD_CANE:
        return stroke(x, y, 0.42, 0.56, 0.42, 1.1, 0.02) || stroke(x, y, 0.42, 0.55, 0.34, 0.55, 0.024) ? PART_HELD
                                                                                                        : under;
    case HELD_CRUTCH:
        return stroke(x, y, 0.34, 0.50, 0.46, 0.50, 0.024) || stroke(x, y, 0.35, 0.50, 0.40, 0.9, 0.018) ||
                       stroke(x, y, 0.45, 0.50, 0.40, 0.9, 0.018) || stroke(x, y, 0.40, 0.9, 0.40, 1.1, 0.02)
                   ? PART_HELD
                   : under;
    case HELD_MOP:
        if (box(x, y, 0.33, 0.08, 0.47, 0.24)) return PART_HELD_2;
        return stroke(x, y, 0.40, 0.2, 0.40, 1.1, 0.02) ? PART_HELD : under;
    case HELD_BALLOON:
        if (ellipse(x, y, 0.37, 0.22, 0.11, 0.14)) return PART_HELD;
        return stroke(x, y, 0.37, 0.36, 0.40, 0.9, 0.016) ? PART_HELD_2 : under;
    case HELD_FLOWER:
        if (ellipse(x, y, 0.39, 0.55, 0.035, 0.035)) return PART_GOLD;
        if (ellipse(x, y, 0.39, 0.55, 0.09, 0.09)) return PART_HELD;
        return stroke(x, y, 0.39, 0.6, 0.39, 1.0, 0.018) ? PART_HELD_2 : under;
    default:
        return under;
    }
}

static enum part hair_behind(const struct portrait *p, enum part under, double x, double y) {
    int texture = p->level[PORTRAIT_TEXTURE], length = p->level[PORTRAIT_LENGTH];
    bool hair = false;
    double side = fabs(x);
    if (length == LENGTH_SHORT) {
        if (texture == TEXTURE_COILY)
            hair = ellipse(x, y, 0, 0.33, 0.29, 0.27);
        else if (texture == TEXTURE_WAVY)
            hair = ellipse(x, y, 0, 0.40, 0.23 + 0.07 * zigzag(y), 0.29 + 0.03 * zigzag(x + 0.08)) && y < 0.53;
        else
            hair = ellipse(x, y, 0, 0.40, 0.235, 0.28) && y < 0.46;
    } else if (length == LENGTH_LONG) {
        if (texture == TEXTURE_COILY)
            hair = ellipse(x, y, 0, 0.42, 0.34, 0.36);
        else if (texture == TEXTURE_WAVY)
            hair = ellipse(x, y, 0, 0.40, 0.25 + 0.04 * zigzag(y), 0.29 + 0.03 * zigzag(x + 0.08)) ||
                   (side < 0.23 + 0.11 * zigzag(y) && y > 0.40 && y < 0.78);
        else
            hair = ellipse(x, y, 0, 0.40, 0.25, 0.29) || (side < 0.25 && y > 0.40 && y < 0.84);
    }
    return hair ? PART_HAIR : under;
}

static bool head(const struct portrait *p, double x, double y) {
    if (p->level[PORTRAIT_GENDER]) return ellipse(x, y, 0, 0.42, 0.185, 0.26);
    double dx = fabs(x) / 0.20, dy = fabs(y - 0.42) / 0.265;
    return dx * dx * dx + dy * dy * dy < 1;
}

static bool crown(const struct portrait *p, double x, double y) {
    int hat = p->level[PORTRAIT_HAT];
    if (p->level[PORTRAIT_LENGTH] == LENGTH_BALD || (hat && hat != HAT_HEADBAND)) return false;
    if (hat) return y < 0.24;
    if (p->level[PORTRAIT_FRINGE]) return y < 0.285;
    return !ellipse(x, y, 0.03, 0.47, 0.20, 0.235);
}

static enum part clothes(const struct portrait *p, enum part c, double x, double y) {
    double side = fabs(x), v = y - 0.72;
    switch (p->level[PORTRAIT_CLOTHES]) {
    case CLOTHES_SUIT:
        if (side < 0.15 * (1 - v / 0.27)) c = PART_CLOTHES_WHITE;
        break;
    case CLOTHES_UNIFORM:
        if (box(side, y, 0.20, 0.80, 0.34, 0.845) || ellipse(x, y, -0.16, 0.92, 0.035, 0.035)) c = PART_GOLD;
        break;
    case CLOTHES_SCRUBS:
        if (side < 0.12 * (1 - v / 0.18)) c = PART_SKIN_SHADE;
        if (box(x, y, 0.12, 0.90, 0.24, 0.94) || box(x, y, 0.16, 0.86, 0.20, 0.98)) c = PART_CLOTHES_WHITE;
        break;
    case CLOTHES_SWEATER:
        if (ellipse(x, y, 0, 0.73, 0.14, 0.06)) c = PART_CLOTHES_SHADE;
        if (y > 0.86 && y < 0.91) c = PART_CLOTHES_WHITE;
        break;
    case CLOTHES_APRON:
        if ((side < 0.19 && y > 0.85) || (side > 0.13 && side < 0.19)) c = PART_CLOTHES_WHITE;
        break;
    case CLOTHES_SPORTSWEAR:
        if (side > 0.29) c = PART_SKIN_SHADE;
        if (side > 0.19 && side < 0.235) c = PART_CLOTHES_WHITE;
        break;
    case CLOTHES_DRESS:
        if (ellipse(x, y, 0, 0.73, 0.22, 0.13)) c = PART_SKIN_SHADE;
        if (side > 0.33) c = PART_SKIN_SHADE;
        break;
    case CLOTHES_OVERALLS:
        c = (side < 0.21 && y > 0.88) || (side > 0.12 && side < 0.20) ? PART_CLOTHES : PART_CLOTHES_WHITE;
        break;
    case CLOTHES_GOWN:
        if (ellipse(x, y, 0, 0.90, 0.03, 0.03) || ellipse(side, y, 0.15, 0.84, 0.03, 0.03) ||
            ellipse(side, y, 0.15, 0.95, 0.03, 0.03) || ellipse(side, y, 0.28, 0.90, 0.03, 0.03))
            c = PART_CLOTHES_WHITE;
        break;
    }
    return c;
}

static enum part body(const struct portrait *p, enum part c, double x, double y) {
    bool torso = ellipse(x, y, 0, 1.06, 0.46, 0.34);
    if (torso) c = clothes(p, PART_CLOTHES, x, y);
    if (box(x, y, -0.085, 0.58, 0.085, 0.75)) c = PART_SKIN_SHADE;
    if (torso && p->level[PORTRAIT_TIE] && fabs(x) < 0.025 + 0.1 * (y - 0.74) && y > 0.75) c = PART_TIE;
    if (p->level[PORTRAIT_SCARF] && (ellipse(x, y, 0, 0.735, 0.17, 0.055) || box(x, y, -0.13, 0.74, -0.05, 0.92)))
        c = PART_SCARF;
    return c;
}

static enum part eye(const struct portrait *p, enum part c, double x, double y, double cx) {
    bool woman = p->level[PORTRAIT_GENDER];
    if (ellipse(x, y, cx, 0.40, 0.055, p->level[PORTRAIT_LIDS] ? 0.018 : 0.034)) {
        c = PART_EYE_WHITE;
        if (ellipse(x, y, cx, 0.40, 0.026, 0.034)) c = PART_IRIS;
    }
    if (woman && box(x, y, cx - 0.062, 0.347, cx + 0.062, 0.378)) c = PART_LASH;
    if (box(x, y, cx - 0.055, p->level[PORTRAIT_BROWS] ? 0.282 : 0.303, cx + 0.055, 0.335)) c = PART_BROW;
    if (p->level[PORTRAIT_TIRED] && box(x, y, cx - 0.045, 0.44, cx + 0.045, 0.473)) c = PART_TIRED;
    return c;
}

static enum part glasses(const struct portrait *p, enum part c, double x, double y) {
    int kind = p->level[PORTRAIT_GLASSES];
    double side = fabs(x);
    if (!kind) return c;
    if (box(side, y, 0, 0.375, 0.05, 0.407)) c = PART_FRAME;
    if (ellipse(side, y, 0.09, 0.40, 0.082, 0.07)) {
        if (kind == GLASSES_SUN)
            c = PART_LENS;
        else if (!ellipse(side, y, 0.09, 0.40, 0.055, 0.042))
            c = PART_FRAME;
    }
    return c;
}

/* A smile and a frown show teeth: lips alone are too faint for the small autoencoders. */
static enum part mouth(const struct portrait *p, enum part c, double x, double y) {
    int expression = p->level[PORTRAIT_EXPRESSION];
    double bend = expression == EXPRESSION_SMILE ? 0.07 : expression == EXPRESSION_FROWN ? -0.07 : 0, t = x / 0.095;
    if (t <= -1 || t >= 1) return c;
    double ends = 0.575 - bend / 2, line = ends + bend * (1 - t * t);
    if (fabs(y - line) < 0.021) return PART_LIPS;
    return (y > ends) != (y > line) ? PART_EYE_WHITE : c;
}

static enum part face(const struct portrait *p, double x, double y) {
    enum part c = PART_SKIN;
    double side = fabs(x);
    if (p->level[PORTRAIT_BEARD] && ((side > 0.135 && y > 0.47) || y > 0.618)) c = PART_HAIR;
    if (box(x, y, -0.022, 0.43, 0.022, 0.51)) c = PART_SKIN_SHADE;
    int wrinkles = p->level[PORTRAIT_WRINKLES];
    if (wrinkles > 0 && stroke(side, y, 0.055, 0.49, 0.085, 0.53, 0.017)) c = PART_WRINKLE;
    if (wrinkles > 1 && stroke(side, y, 0.13, 0.46, 0.125, 0.54, 0.017)) c = PART_WRINKLE;
    if (wrinkles > 2 && stroke(side, y, 0.115, 0.58, 0.085, 0.63, 0.017)) c = PART_WRINKLE;
    c = mouth(p, c, x, y);
    c = eye(p, c, x, y, -0.09);
    c = eye(p, c, x, y, 0.09);
    if (p->level[PORTRAIT_SCAR] && stroke(x, y, -0.165, 0.46, -0.075, 0.56, 0.021)) c = PART_SCAR;
    if (p->level[PORTRAIT_PLASTER] && box(x, y, 0.075, 0.49, 0.17, 0.55)) c = PART_PLASTER;
    return c;
}

static enum part hat(const struct portrait *p, enum part c, double x, double y) {
    double side = fabs(x);
    switch (p->level[PORTRAIT_HAT]) {
    case HAT_CAP:
        if (ellipse(x, y, 0, 0.28, 0.24, 0.19) && y < 0.28) c = PART_HAT;
        if (stroke(x, y, 0.06, 0.262, 0.32, 0.262, 0.022)) c = PART_HAT_SHADE;
        break;
    case HAT_PEAKED:
        if (y > 0.03 && y < 0.17 && side < 0.20 + 0.10 * (0.17 - y) / 0.14) c = PART_HAT;
        if (box(side, y, 0, 0.17, 0.235, 0.23)) c = PART_HAT_SHADE;
        if (box(side, y, 0, 0.23, 0.20, 0.28)) c = PART_FRAME;
        if (ellipse(x, y, 0, 0.12, 0.035, 0.035)) c = PART_GOLD;
        break;
    case HAT_SURGICAL:
        if (ellipse(x, y, 0, 0.22, 0.26, 0.16) && y < 0.28) c = y > 0.24 ? PART_HAT_SHADE : PART_HAT;
        break;
    case HAT_HEADBAND:
        if (box(side, y, 0, 0.21, 0.225, 0.275)) c = PART_HAT;
        break;
    case HAT_HEADSCARF:
        if ((ellipse(x, y, 0, 0.42, 0.27, 0.34) || (side < 0.27 && y > 0.42 && y < 0.80)) &&
            !ellipse(x, y, 0, 0.44, 0.165, 0.225))
            c = PART_HAT;
        break;
    case HAT_TURBAN:
        if (ellipse(x, y, 0, 0.18, 0.27, 0.15) && y < 0.28)
            c = stroke(x, y, -0.25, 0.30, 0.12, 0.04, 0.02) ? PART_HAT_SHADE : PART_HAT;
        break;
    case HAT_TOP:
        if (box(side, y, 0, 0, 0.18, 0.22)) c = y > 0.17 ? PART_HAT_SHADE : PART_HAT;
        if (box(side, y, 0, 0.22, 0.29, 0.28)) c = PART_HAT;
        break;
    }
    return c;
}

static enum part chair_behind(const struct portrait *p, enum part c, double x, double y) {
    if (!p->level[PORTRAIT_WHEELCHAIR]) return c;
    return box(fabs(x), y, 0, 0.66, 0.37, 1) ? PART_CHAIR : c;
}

static enum part in_front(const struct portrait *p, enum part c, double x, double y) {
    double side = fabs(x);
    if (p->level[PORTRAIT_WHEELCHAIR]) {
        if (ellipse(side, y, 0.40, 0.96, 0.17, 0.18)) c = PART_WHEEL;
        if (ellipse(side, y, 0.40, 0.96, 0.10, 0.11)) c = PART_HUB;
    }
    if (p->level[PORTRAIT_FRONT] == FRONT_BOWL) {
        if (ellipse(x, y, 0, 0.90, 0.17, 0.06)) c = PART_FRONT_2;
        if (ellipse(x, y, 0, 0.90, 0.20, 0.12) && y > 0.90) c = PART_FRONT;
    } else if (p->level[PORTRAIT_FRONT] == FRONT_BOOK) {
        if (box(side, y, 0, 0.86, 0.22, 1)) c = side < 0.02 ? PART_FRONT_2 : PART_FRONT;
        if (box(side, y, 0, 0.86, 0.22, 0.90)) c = PART_FRONT_2;
    }
    return c;
}

enum part portrait_part(const struct portrait *p, double x, double y) {
    enum part c = held(p, sign(p, scene(p, x, y), x, y), x, y);
    c = chair_behind(p, c, x, y);
    bool covered = p->level[PORTRAIT_HAT] == HAT_HEADSCARF;
    if (!covered) c = hair_behind(p, c, x, y);
    c = body(p, c, x, y);
    bool inside = head(p, x, y);
    if (!covered && ellipse(fabs(x), y, 0.205, 0.43, 0.035, 0.05)) c = PART_SKIN_SHADE;
    if (inside) c = crown(p, x, y) ? PART_HAIR : glasses(p, face(p, x, y), x, y);
    if (!inside) c = glasses(p, c, x, y);
    if (p->level[PORTRAIT_EARRINGS] && ellipse(fabs(x), y, 0.225, 0.52, 0.032, 0.04)) c = PART_GOLD;
    return in_front(p, hat(p, c, x, y), x, y);
}
