#include "eval/judge/pixel.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

/* Rows y of two grey pictures, [width] each in 0..1; called for 0 to height - 1 in turn. */
typedef void (*ssim_rows)(void *context, int y, double *a, double *b);

enum { RADIUS = 5, TAPS = 2 * RADIUS + 1, N_MOMENTS = 5 };

/* a, b, a a, b b, a b under the window, at one place of the rows that were blurred across already. */
struct moments {
    double m[N_MOMENTS];
};

static void window(double taps[TAPS]) {
    double sum = 0;
    for (int i = 0; i < TAPS; i++) {
        double d = i - RADIUS;
        taps[i] = exp(-0.5 / (1.5 * 1.5) * d * d);
        sum += taps[i];
    }
    for (int i = 0; i < TAPS; i++) taps[i] /= sum;
}

static void blur_row(const double *a, const double *b, int width, const double taps[TAPS], struct moments *row) {
    for (int x = 0; x + TAPS <= width; x++) {
        struct moments sum = {{0}};
        for (int i = 0; i < TAPS; i++) {
            double u = a[x + i], v = b[x + i], w = taps[i];
            sum.m[0] += w * u;
            sum.m[1] += w * v;
            sum.m[2] += w * u * u;
            sum.m[3] += w * v * v;
            sum.m[4] += w * u * v;
        }
        row[x] = sum;
    }
}

static double similarity(const struct moments *s) {
    const double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
    double ux = s->m[0], uy = s->m[1];
    double vx = s->m[2] - ux * ux, vy = s->m[3] - uy * uy, vxy = s->m[4] - ux * uy;
    return (2 * ux * uy + c1) * (2 * vxy + c2) / ((ux * ux + uy * uy + c1) * (vx + vy + c2));
}

/* Of pictures [height, width], of which 11 rows are held at a time. Wang et al. 2004: Gaussian window with a standard
 * deviation of 1.5 and 11 x 11 pixels, population covariances, K1 0.01, K2 0.03, the mean over all windows that lie
 * within the picture; equal to skimage.metrics.structural_similarity(a, b, gaussian_weights=True,
 * use_sample_covariance=False, data_range=1). LK_E_IMAGE_SIZE: a side below 11; LK_E_NOMEM. */
static enum lk_code lk_ssim(ssim_rows rows, void *context, int width, int height, double *out) {
    if (width < TAPS || height < TAPS)
        return lk_fail(LK_E_IMAGE_SIZE, "structural similarity: expected sides of at least %d pixels, got %d x %d",
                       TAPS, width, height);
    int columns = width - TAPS + 1, n_rows = height - TAPS + 1;
    size_t ring_bytes = (size_t)TAPS * (size_t)columns * sizeof(struct moments);
    struct moments *ring = lk_malloc(ring_bytes + 2 * (size_t)width * sizeof(double));
    if (!ring) return lk_fail(LK_E_NOMEM, "structural similarity: out of memory");
    double *a = (double *)((unsigned char *)ring + ring_bytes), *b = a + width;
    double taps[TAPS], sum = 0;
    window(taps);
    for (int y = 0; y < height; y++) {
        rows(context, y, a, b);
        blur_row(a, b, width, taps, ring + (size_t)(y % TAPS) * (size_t)columns);
        if (y < TAPS - 1) continue;
        double row = 0;
        for (int x = 0; x < columns; x++) {
            struct moments s = {{0}};
            for (int i = 0; i < TAPS; i++)
                for (int k = 0; k < N_MOMENTS; k++)
                    s.m[k] += taps[i] * ring[(size_t)((y - TAPS + 1 + i) % TAPS) * (size_t)columns + (size_t)x].m[k];
            row += similarity(&s);
        }
        sum += row;
    }
    lk_free(ring);
    *out = sum / ((double)columns * (double)n_rows);
    return LK_OK;
}

enum { ROUNDED_SIDE = 32 }; /* editors make sides multiples of this at most */
#define SKIN_SHARE_MIN 0.05 /* of the region; fewer pixels tell nothing about a face */

/* One picture as the judge sees it: RGB, row by row. Nothing that grows with the picture is held beside its bytes but
 * one number for each skin pixel. */
struct view {
    const struct lk_image *image;
    struct lk_image resized; /* empty where the picture has the source's size */
};

struct pair {
    struct view views[2]; /* source, edited */
    int width, height;
    uint8_t *rgb; /* [2, width, 3] one row of each */
    double *lab;  /* [2, width, 3] */
};

static void pair_free(struct pair *pair) {
    for (int i = 0; i < 2; i++) lk_image_free(&pair->views[i].resized);
    lk_free(pair->rgb);
    lk_free(pair->lab);
}

/* Row y of a view as lk_image_to_rgb would have it. */
static const uint8_t *row_of(const struct pair *pair, int view, int y) {
    const struct lk_image *image = pair->views[view].image;
    size_t width = (size_t)pair->width, channels = (size_t)image->channels;
    const uint8_t *from = image->pixels + (size_t)y * width * channels;
    if (channels == 3) return from;
    uint8_t *to = pair->rgb + (size_t)view * width * 3;
    for (size_t x = 0; x < width; x++)
        for (size_t c = 0; c < 3; c++) to[3 * x + c] = from[x * channels + (channels > 3 ? c : 0)];
    return to;
}

void lk_srgb_to_lab(const uint8_t rgb[3], double lab[3]) {
    static const double from_rgb[3][3] = {
        {0.412453, 0.357580, 0.180423}, {0.212671, 0.715160, 0.072169}, {0.019334, 0.119193, 0.950227}};
    static const double white[3] = {0.95047, 1.0, 1.08883};
    double linear[3], f[3];
    for (int c = 0; c < 3; c++) {
        double v = rgb[c] / 255.0;
        linear[c] = v > 0.04045 ? pow((v + 0.055) / 1.055, 2.4) : v / 12.92;
    }
    for (int c = 0; c < 3; c++) {
        double v = (from_rgb[c][0] * linear[0] + from_rgb[c][1] * linear[1] + from_rgb[c][2] * linear[2]) / white[c];
        f[c] = v > 0.008856 ? cbrt(v) : 7.787 * v + 16.0 / 116.0;
    }
    lab[0] = 116.0 * f[1] - 16.0;
    lab[1] = 500.0 * (f[0] - f[1]);
    lab[2] = 200.0 * (f[1] - f[2]);
}

/* atan((L - 50) / b) in degrees (Chardon et al. 1991). b > 0. */
static double typology_angle(double lightness, double b) {
    return atan((lightness - 50) / b) * (180.0 / 3.14159265358979323846);
}

static const double class_limits[5] = {55, 41, 28, 10, -30};

int lk_typology_class(double angle) {
    int result = 0;
    while (result < 5 && angle <= class_limits[result]) result++;
    return result;
}

/* The chrominance box of Chai and Ngan (1999), which holds for skin of any tone: lightness is not asked. */
static bool is_skin(const uint8_t rgb[3]) {
    double r = rgb[0], g = rgb[1], b = rgb[2];
    double cb = 128 - 0.168736 * r - 0.331264 * g + 0.5 * b, cr = 128 + 0.5 * r - 0.418688 * g - 0.081312 * b;
    return cb >= 77 && cb <= 127 && cr >= 133 && cr <= 173;
}

/* Neighbours of one colour, as flat pictures have them by the million, are converted once. */
static const double *lab_row(const struct pair *pair, int view, int y) {
    const uint8_t *rgb = row_of(pair, view, y);
    double *lab = pair->lab + (size_t)view * (size_t)pair->width * 3;
    for (size_t i = 0; i < (size_t)pair->width; i++) {
        if (i && !memcmp(rgb + 3 * i, rgb + 3 * i - 3, 3))
            memcpy(lab + 3 * i, lab + 3 * i - 3, 3 * sizeof *lab);
        else
            lk_srgb_to_lab(rgb + 3 * i, lab + 3 * i);
    }
    return lab;
}

static void luminance_rows(void *context, int y, double *a, double *b) {
    const struct pair *pair = context;
    double *out[2] = {a, b};
    for (int view = 0; view < 2; view++) {
        const uint8_t *p = row_of(pair, view, y);
        for (int x = 0; x < pair->width; x++, p += 3)
            out[view][x] = (0.2125 * p[0] + 0.7154 * p[1] + 0.0721 * p[2]) / 255.0;
    }
}

static enum lk_code pair_open(struct pair *pair, const struct lk_image *source, const struct lk_image *edited) {
    *pair = (struct pair){.views = {{.image = source}, {.image = edited}}, source->width, source->height, NULL, NULL};
    size_t row = 2 * 3 * (size_t)source->width;
    pair->rgb = lk_malloc(row * sizeof *pair->rgb);
    pair->lab = lk_malloc(row * sizeof *pair->lab);
    if (!pair->rgb || !pair->lab) return lk_fail(LK_E_NOMEM, "pixel judge: out of memory");
    if (edited->width == source->width && edited->height == source->height) return LK_OK;
    struct lk_image rgb;
    LK_TRY(lk_image_to_rgb(&rgb, edited));
    enum lk_code rc =
        lk_image_resize(&pair->views[1].resized, &rgb, source->width, source->height, LK_RESAMPLE_BICUBIC);
    lk_image_free(&rgb);
    pair->views[1].image = &pair->views[1].resized;
    return rc;
}

static bool inside(const struct lk_region *region, int x, int y, int width, int height) {
    double u = ((x + 0.5) / width - region->left) / region->width * 2 - 1;
    double v = ((y + 0.5) / height - region->top) / region->height * 2 - 1;
    return u * u + v * v <= 1;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of the two middle ones when n is even. */
static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool lk_region_of_face(const struct lk_face *face, int width, int height, struct lk_region *out) {
    double left = fmax(face->x, 0), right = fmin((double)face->x + face->width, width);
    double top = fmax(face->y, 0), bottom = fmin((double)face->y + face->height, height);
    *out = (struct lk_region){left / width, top / height, (right - left) / width, (bottom - top) / height};
    return out->width > 0 && out->height > 0;
}

/* Channel c of CIELAB of the region's skin pixels, into `values` unless it is NULL; returns how many there are. */
static size_t skin_values(const struct pair *pair, int view, const struct lk_region *region, int c, double *values,
                          size_t *n_region) {
    size_t n = 0;
    *n_region = 0;
    for (int y = 0; y < pair->height; y++) {
        const uint8_t *rgb = row_of(pair, view, y);
        const double *lab = values ? lab_row(pair, view, y) : NULL;
        for (int x = 0; x < pair->width; x++) {
            if (!inside(region, x, y, pair->width, pair->height)) continue;
            ++*n_region;
            if (!is_skin(rgb + 3 * x)) continue;
            if (values) values[n] = lab[3 * x + c];
            n++;
        }
    }
    return n;
}

/* Typology angle of a view's region; NAN when too little of it is skin or the skin's median has no warmth. */
static enum lk_code skin_tone(const struct pair *pair, int view, const struct lk_region *region, double *share,
                              double *angle) {
    size_t n_region, n = skin_values(pair, view, region, 0, NULL, &n_region);
    *share = n_region ? (double)n / (double)n_region : 0;
    *angle = NAN;
    if (!n || *share < SKIN_SHARE_MIN) return LK_OK;
    double *values = lk_malloc(n * sizeof *values);
    if (!values) return lk_fail(LK_E_NOMEM, "pixel judge: out of memory");
    skin_values(pair, view, region, 2, values, &n_region);
    double warmth = median(values, n);
    if (warmth > 0) {
        skin_values(pair, view, region, 0, values, &n_region);
        *angle = typology_angle(median(values, n), warmth);
    }
    lk_free(values);
    return LK_OK;
}

static void colour_changes(const struct pair *pair, const struct lk_region *region, struct lk_pixel_judgement *out) {
    double sums[2] = {0, 0};
    size_t counts[2] = {0, 0};
    for (int y = 0; y < pair->height; y++) {
        const double *s = lab_row(pair, 0, y), *e = lab_row(pair, 1, y);
        for (int x = 0; x < pair->width; x++, s += 3, e += 3) {
            double d0 = s[0] - e[0], d1 = s[1] - e[1], d2 = s[2] - e[2];
            bool in = inside(region, x, y, pair->width, pair->height);
            sums[in] += sqrt(d0 * d0 + d1 * d1 + d2 * d2);
            counts[in]++;
        }
    }
    out->change_inside = counts[1] ? sums[1] / (double)counts[1] : 0;
    out->change_outside = counts[0] ? sums[0] / (double)counts[0] : 0;
}

/* A picture that differs by less than a just noticeable difference has ignored its edit; how much more it differs is
 * the most that pixels can say. Skin tone: whole typology classes, none when both pictures share one. */
static void scores(struct lk_pixel_judgement *out) {
    double change = out->change_inside > out->change_outside ? out->change_inside : out->change_outside;
    out->score[LK_AXIS_EDIT_SUCCESS] = change < 2.3 ? 1 : change < 5 ? 2 : change < 10 ? 3 : 4;
    if (out->undefined) return;
    int shift = lk_typology_class(out->ita_source) - lk_typology_class(out->ita_edited); /* positive: lighter */
    if (fabs(out->ita_edited - out->ita_source) < 5) shift = 0; /* across a class's edge by a hair */
    if (shift > 2) shift = 2;
    if (shift < -2) shift = -2;
    out->score[LK_AXIS_SKIN_TONE] = (uint8_t)(3 + shift);
}

static enum lk_code judge(struct pair *pair, const struct lk_region *region, struct lk_pixel_judgement *out) {
    colour_changes(pair, region, out);
    LK_TRY(skin_tone(pair, 0, region, &out->skin_source, &out->ita_source));
    LK_TRY(skin_tone(pair, 1, region, &out->skin_edited, &out->ita_edited));
    if (isnan(out->ita_source))
        out->undefined = "the source's face region has no skin-coloured area";
    else if (isnan(out->ita_edited))
        out->undefined = "the edited picture's face region has no skin-coloured area";
    if (out->undefined) out->ita_source = out->ita_edited = 0;
    LK_TRY(lk_ssim(luminance_rows, pair, pair->width, pair->height, &out->ssim));
    scores(out);
    return LK_OK;
}

/* The width that the source's shape gives a picture of the edited one's height, against its width. */
static bool same_shape(const struct lk_image *source, const struct lk_image *edited) {
    double width = (double)source->width * edited->height / source->height, off = fabs(width - edited->width);
    return off <= ROUNDED_SIDE || off <= 0.05 * width;
}

static enum lk_code check_region(const struct lk_region **region) {
    static const struct lk_region portrait = LK_REGION_PORTRAIT;
    if (!*region) *region = &portrait;
    const struct lk_region *r = *region;
    if (r->left >= 0 && r->top >= 0 && r->width > 0 && r->height > 0 && r->left + r->width <= 1 &&
        r->top + r->height <= 1)
        return LK_OK;
    return lk_fail(LK_E_INPUT, "pixel judge: region: expected shares of the picture within 0..1, got %g,%g %gx%g",
                   r->left, r->top, r->width, r->height);
}

enum lk_code lk_pixel_skin_tone(const struct lk_image *image, const struct lk_region *region, double *angle) {
    struct pair pair;
    double share;
    LK_TRY(check_region(&region));
    enum lk_code rc = pair_open(&pair, image, image);
    if (!rc) rc = skin_tone(&pair, 0, region, &share, angle);
    pair_free(&pair);
    return rc;
}

enum lk_code lk_pixel_judge(const struct lk_image *source, const struct lk_image *edited,
                            const struct lk_region *region, struct lk_pixel_judgement *out) {
    *out = (struct lk_pixel_judgement){0};
    LK_TRY(check_region(&region));
    if (!same_shape(source, edited))
        return lk_fail(LK_E_IMAGE_SIZE,
                       "pixel judge: expected an edited picture of the source's shape, %dx%d, got %dx%d", source->width,
                       source->height, edited->width, edited->height);
    struct pair pair;
    enum lk_code rc = pair_open(&pair, source, edited);
    if (!rc) rc = judge(&pair, region, out);
    pair_free(&pair);
    return rc;
}
