/* Previews by the published maps, as numpy has them: golden/generate_preview.py. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/preview.h"
#include "models/parameters.h"
#include "tests/common/test.h"

static float *values(int n, int step) {
    float *x = lk_malloc((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++) x[i] = (float)(i * step % 101 / 25.0 - 2);
    return x;
}

static void as_numpy(void **state) {
    (void)state;
    static const struct {
        const char *name;
        unsigned bit;
    } families[] = {{"flux2", LK_FOR_FLUX2}, {"qwen", LK_FOR_QWEN}, {"flux1", LK_FOR_STEP1X}};
    char *lines = test_read("golden/data/preview.txt", NULL), *rest = lines;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        char name[16], *line = strtok_r(rest, "\n", &rest);
        int n, columns, rows, at;
        assert_int_equal(sscanf(line, "%15s %d %d %d %n", name, &n, &columns, &rows, &at), 4);
        assert_string_equal(name, families[f].name);
        const struct lk_preview_map *map = lk_preview_map_of(families[f].bit);
        assert_int_equal(map->n, n);
        struct lk_image image;
        assert_ok(lk_image_new(&image, 2 * columns, 2 * rows, 3));
        float *x = values(rows * columns * 4 * n, 37), *v = values(rows * columns * 4 * n, 53);
        lk_preview_draw(map, &image, n, x, v, 0.25F);
        for (int i = 0; i < 12 * columns * rows; i++) {
            unsigned expected;
            assert_int_equal(sscanf(line + at + 2 * i, "%2x", &expected), 1);
            assert_in_range(image.pixels[i] + 1 - (int)expected, 0, 2);
        }
        lk_free(x);
        lk_free(v);
        lk_image_free(&image);
    }
    assert_null(lk_preview_map_of(LK_FOR_SD));
    free(lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_numpy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
