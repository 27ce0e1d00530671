/* Drawn portraits: what edits do to them, and that all of it is read back from the pixels. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"
#include "tools/portrait/editor.h"
#include "tools/portrait/read.h"

enum { SIZE = 64 };
static uint8_t picture[SIZE * SIZE * 3];

struct sample {
    struct edit edit;
    struct portrait before, after;
    int source;
    struct lk_stream stream;
};

static void draw_sample(struct sample *s, const char *name, int i) {
    lk_stream_numbered(&s->stream, 2000, name, (uint64_t)i);
    edit_draw(&s->stream, -1, false, &s->edit, &s->source, &s->before);
    edit_apply(&s->edit, &s->before, &s->after);
}

static bool is_read(const struct portrait *truth, const struct portrait *start, int i) {
    struct portrait read;
    portrait_draw_into(picture, truth, SIZE);
    assert_true(portrait_read(picture, SIZE, start, &read) < 0.5 || memcmp(truth, &read, sizeof read));
    for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
        if (truth->level[f] != read.level[f])
            print_message("%d: %s %d, read %d\n", i, portrait_field_name(f), truth->level[f], read.level[f]);
    return !memcmp(truth, &read, sizeof read);
}

/* Whatever is drawn is read back, from nowhere and from the portrait before. */
static void drawings_are_read_exactly(void **state) {
    (void)state;
    for (int i = 0, n = test_is_full() ? 3000 : 30; i < n; i++) {
        struct sample s;
        draw_sample(&s, "test|", i);
        assert_true(is_read(&s.before, NULL, i) & is_read(&s.after, &s.before, i));
    }
}

/* The sum of twelve uniforms less 6: mean 0, deviation 1. */
static double normal(struct lk_stream *stream) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(lk_stream_u64(stream) >> 11) * 0x1p-53;
    return sum;
}

static uint8_t level(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5); }

static void add_noise(struct lk_stream *stream, double deviation) {
    for (size_t i = 0; i < sizeof picture; i++) picture[i] = level(picture[i] + deviation * normal(stream));
}

/* Each channel of the whole picture by one amount: the false colours of a decoder. */
static void add_cast(struct lk_stream *stream, double deviation) {
    for (size_t k = 0; k < 3; k++) {
        double by = deviation * normal(stream);
        for (size_t i = k; i < sizeof picture; i += 3) picture[i] = level(picture[i] + by);
    }
}

/* Weights 1 2 1 over three rows and columns. */
static void blur(void) {
    static uint8_t sharp[sizeof picture];
    memcpy(sharp, picture, sizeof sharp);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        int x = i / 3 % SIZE, y = i / 3 / SIZE, sum = 0, weights = 0;
        for (int d = 0; d < 9; d++) {
            int dx = d % 3 - 1, dy = d / 3 - 1, weight = (2 - abs(dx)) * (2 - abs(dy));
            if (x + dx < 0 || x + dx >= SIZE || y + dy < 0 || y + dy >= SIZE) continue;
            sum += weight * sharp[i + 3 * (dy * SIZE + dx)];
            weights += weight;
        }
        picture[i] = (uint8_t)((sum + weights / 2) / weights);
    }
}

static void compress(int quality) {
    struct lk_image drawn = {.width = SIZE, .height = SIZE, .channels = 3, .pixels = picture}, decoded;
    void *bytes;
    size_t n;
    assert_ok(lk_jpeg_encode("a drawing", &drawn, quality, &bytes, &n));
    assert_ok(lk_image_decode(&decoded, bytes, n, "a drawing", 0, 0));
    memcpy(picture, decoded.pixels, sizeof picture);
    lk_image_free(&decoded);
    lk_free(bytes);
}

/* What an editor's decoder and a camera's file do to a picture: the edit is still read, and the person is still the
 * same. Observed right, same of 300: noise 300, 300; blur 299, 290; blur, noise and cast 299, 281; JPEG 297, 295. */
static void damaged_drawings_are_read(void **state) {
    (void)state;
    enum { NOISE, BLUR, ALL, JPEG, N_DAMAGES };
    static const int least_right[N_DAMAGES] = {100, 99, 97, 97}, least_same[N_DAMAGES] = {99, 93, 90, 93}; /* percent */
    int n = test_is_full() ? 300 : 10;
    for (int damage = 0; damage < N_DAMAGES; damage++) {
        int right = 0, same = 0;
        for (int i = 0; i < n; i++) {
            struct sample s;
            struct portrait read;
            struct portrait_change change;
            draw_sample(&s, "damaged|", i);
            portrait_draw_into(picture, &s.after, SIZE);
            if (damage == BLUR || damage == ALL) blur();
            if (damage == NOISE || damage == ALL) add_noise(&s.stream, 8);
            if (damage == ALL) add_cast(&s.stream, 6);
            if (damage == JPEG) compress(85);
            double misfit = portrait_read(picture, SIZE, &s.before, &read);
            portrait_compare(&s.edit, &s.before, &read, misfit, &change);
            right += change.right;
            same += abs(change.lighter) < 5 && !change.gender && !change.n_looks && !change.older;
        }
        print_message("damage %d: %d right, %d the same person, of %d\n", damage, right, same, n);
        assert_in_range(right * 100, least_right[damage] * n, 100 * n);
        assert_in_range(same * 100, least_same[damage] * n, 100 * n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings_are_read_exactly),
        cmocka_unit_test(damaged_drawings_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
