#include "eval/judge/ssim.h"

#include <math.h>
#include <stddef.h>

#include "engine/base/alloc.h"

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

enum lk_code lk_ssim(lk_ssim_rows rows, void *context, int width, int height, double *out) {
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
