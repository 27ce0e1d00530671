/* Draws the demo's sample picture, a portrait of nobody.
 *
 *     make_face [--size WIDTHxHEIGHT] [--skin 1..6] [--hair 1..4] FILE.jpg|FILE.png
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/image/image.h"

/* A portrait drawn by code: a picture of nobody, for the demo and the tests. */

#define MAKE_FACE_SKINS 6
#define MAKE_FACE_HAIRS 4

struct make_face {
    int width, height;
    int skin;        /* 0 .. MAKE_FACE_SKINS - 1, light to dark */
    int hair;        /* 0 .. MAKE_FACE_HAIRS - 1: black, brown, blond, red */
    double grey;     /* of the hair, 0 to 1 */
    bool short_hair; /* above the neck */
};

/* The picture is a list of shapes, painted back to front, in units of the height; x = 0 is the middle, y = 0 the top.
 * Edges are smooth because each pixel is the mean of 4 x 4 points. */
#define SAMPLES 4

struct colour {
    double r, g, b;
};

static const struct colour skins[MAKE_FACE_SKINS] = {{244, 214, 190}, {231, 188, 154}, {207, 154, 117},
                                                     {168, 115, 80},  {122, 78, 53},   {78, 50, 37}};
static const struct colour hairs[MAKE_FACE_HAIRS] = {{32, 26, 25}, {92, 58, 38}, {205, 165, 98}, {152, 72, 36}};

static struct colour mix(struct colour a, struct colour b, double t) {
    return (struct colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static struct colour shade(struct colour c, double factor) {
    return (struct colour){c.r * factor, c.g * factor, c.b * factor};
}

static bool ellipse(double x, double y, double cx, double cy, double rx, double ry) {
    double dx = (x - cx) / rx, dy = (y - cy) / ry;
    return dx * dx + dy * dy < 1;
}

/* Inside a stroke of half-width w along the arc y = cy + bend (1 - (x - cx)^2 / r^2), |x - cx| < r. */
static bool arc(double x, double y, double cx, double cy, double r, double bend, double w) {
    double t = (x - cx) / r;
    return t > -1 && t < 1 && fabs(y - (cy + bend * (1 - t * t))) < w * sqrt(1 - t * t);
}

static struct colour background(double x, double y) {
    struct colour top = {112, 142, 168}, bottom = {186, 202, 206};
    return mix(mix(top, bottom, y), (struct colour){225, 226, 214}, 0.35 * exp(-8 * ((x - 0.3) * (x - 0.3) + y * y)));
}

static struct colour body(struct colour c, struct colour skin, double x, double y) {
    struct colour shirt = {58, 84, 122};
    if (ellipse(x, y, 0, 1.06, 0.44, 0.30)) c = mix(shirt, shade(shirt, 0.7), fabs(x) * 2);
    if (ellipse(x, y, 0, 0.80, 0.105, 0.13)) c = shade(skin, 0.86); /* neck and collar's opening */
    if (fabs(x) < 0.085 && y > 0.58 && y < 0.80) c = shade(skin, y < 0.68 ? 0.78 : 0.86);
    return c;
}

/* One eye; left and right differ only in cx. */
static struct colour eye(struct colour c, struct colour hair, double x, double y, double cx) {
    if (ellipse(x, y, cx, 0.43, 0.046, 0.024)) {
        c = (struct colour){244, 242, 238};
        if (ellipse(x, y, cx, 0.43, 0.021, 0.022)) c = (struct colour){84, 98, 72};
        if (ellipse(x, y, cx, 0.43, 0.010, 0.011)) c = (struct colour){18, 16, 16};
        if (ellipse(x, y, cx + 0.007, 0.423, 0.004, 0.004)) c = (struct colour){255, 255, 255};
    }
    if (arc(x, y, cx, 0.431, 0.050, -0.026, 0.005)) c = shade(hair, 0.5);
    if (arc(x, y, cx, 0.385, 0.060, -0.018, 0.009)) c = shade(hair, 0.8);
    return c;
}

static struct colour features(struct colour c, struct colour skin, struct colour hair, double x, double y) {
    c = eye(c, hair, x, y, -0.088);
    c = eye(c, hair, x, y, 0.088);
    if (arc(x, y, 0, 0.535, 0.036, 0.014, 0.006)) c = shade(skin, 0.72); /* under the nose */
    if (x > 0.008 && x < 0.020 && y > 0.44 && y < 0.53) c = shade(c, 0.95);
    struct colour lips = mix(skin, (struct colour){168, 58, 62}, 0.55);
    if (arc(x, y, 0, 0.600, 0.070, 0.012, 0.013)) c = lips;
    if (arc(x, y, 0, 0.600, 0.072, 0.008, 0.0025)) c = shade(lips, 0.6);
    return c;
}

static struct colour point(const struct make_face *f, double x, double y) {
    struct colour skin = skins[f->skin], c = background(x, y);
    struct colour hair = mix(hairs[f->hair], (struct colour){200, 200, 202}, f->grey);
    bool back_hair = (ellipse(x, y, 0, 0.43, 0.255, 0.315) || (fabs(x) < 0.235 && y > 0.45 && y < 0.70)) &&
                     (!f->short_hair || y < 0.48);
    if (back_hair) c = shade(hair, 0.75 + 0.1 * sin(90 * x));
    c = body(c, skin, x, y);
    if (ellipse(x, y, -0.205, 0.455, 0.03, 0.05) || ellipse(x, y, 0.205, 0.455, 0.03, 0.05)) c = shade(skin, 0.88);
    bool head = ellipse(x, y, 0, 0.44, 0.2, 0.265);
    if (head) {
        double light = 1.04 - 0.9 * fmax(0, x * x + 0.35 * (y - 0.42) * (y - 0.42)) - 0.25 * fmax(0, x);
        c = shade(skin, light);
        double blush = exp(-300 * ((fabs(x) - 0.11) * (fabs(x) - 0.11) + (y - 0.52) * (y - 0.52)));
        c = features(mix(c, (struct colour){210, 96, 84}, 0.18 * blush), skin, hair, x, y);
    }
    /* The fringe lies over the head: all of its upper part that a parting circle does not leave free. */
    bool crown = ellipse(x, y, 0, 0.40, 0.235, 0.275) && y < 0.40;
    bool forehead = ellipse(x, y, 0.03, 0.47, 0.185, 0.195);
    if (crown && !forehead) c = shade(hair, 0.92 + 0.12 * sin(70 * x + 25 * y) + 0.25 * fmax(0, 0.3 - y));
    return c;
}

static uint8_t level(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5); }

/* RGB. The same arguments give the same pixels. */
static enum lk_code make_face_draw(struct lk_image *out, const struct make_face *face) {
    enum lk_code rc = lk_image_new(out, face->width, face->height, 3);
    if (rc) return rc;
    double unit = 1.0 / face->height;
    for (int py = 0; py < face->height; py++) {
        for (int px = 0; px < face->width; px++) {
            struct colour sum = {0, 0, 0};
            for (int s = 0; s < SAMPLES * SAMPLES; s++) {
                double x = (px + (s % SAMPLES + 0.5) / SAMPLES - face->width / 2.0) * unit;
                double y = (py + ((double)(s / SAMPLES) + 0.5) / SAMPLES) * unit;
                struct colour c = point(face, x, y);
                sum = (struct colour){sum.r + c.r, sum.g + c.g, sum.b + c.b};
            }
            uint8_t *pixel = out->pixels + 3 * ((size_t)py * (size_t)face->width + (size_t)px);
            sum = shade(sum, 1.0 / (SAMPLES * SAMPLES));
            pixel[0] = level(sum.r);
            pixel[1] = level(sum.g);
            pixel[2] = level(sum.b);
        }
    }
    return LK_OK;
}

static enum lk_code run(int argc, char **argv) {
    struct make_face face = {.width = 512, .height = 512, .skin = 3, .hair = 2};
    const char *path = NULL;
    char rest;
    for (int i = 1; i < argc; i++) {
        bool valued = i + 1 < argc;
        if (!strcmp(argv[i], "--size") && valued) {
            if (sscanf(argv[++i], "%5dx%5d%c", &face.width, &face.height, &rest) != 2 || face.width < 16 ||
                face.height < 16 || face.width > 16384 || face.height > 16384)
                return lk_fail(LK_E_USAGE, "--size: expected WIDTHxHEIGHT from 16 to 16384, got \"%s\"", argv[i]);
        } else if (!strcmp(argv[i], "--skin") && valued) {
            if (sscanf(argv[++i], "%2d%c", &face.skin, &rest) != 1 || face.skin < 1 || face.skin > MAKE_FACE_SKINS)
                return lk_fail(LK_E_USAGE, "--skin: expected 1 to %d, got \"%s\"", MAKE_FACE_SKINS, argv[i]);
        } else if (!strcmp(argv[i], "--hair") && valued) {
            if (sscanf(argv[++i], "%2d%c", &face.hair, &rest) != 1 || face.hair < 1 || face.hair > MAKE_FACE_HAIRS)
                return lk_fail(LK_E_USAGE, "--hair: expected 1 to %d, got \"%s\"", MAKE_FACE_HAIRS, argv[i]);
        } else if (argv[i][0] != '-' && !path) {
            path = argv[i];
        } else {
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
        }
    }
    if (!path)
        return lk_fail(LK_E_USAGE, "usage: make_face [--size WIDTHxHEIGHT] [--skin 1..6] [--hair 1..4] FILE.jpg|.png");
    face.skin--;
    face.hair--;
    struct lk_image image = {0};
    enum lk_code rc = make_face_draw(&image, &face);
    size_t length = strlen(path);
    bool png = length > 4 && !strcmp(path + length - 4, ".png");
    if (!rc) rc = png ? lk_png_write(path, &image, NULL, 0) : lk_jpeg_write(path, &image, 92);
    lk_image_free(&image);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_face: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
