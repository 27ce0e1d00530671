/* YuNet against onnxruntime: every cell's score, box and points, and what is kept of overlapping ones
 * (generate_yunet.py). Files that are not the net's are refused. */
#include "engine/base/alloc.h"
#include "models/face/yunet.h"
#include "tests/common/test.h"
#include "weights/safetensors.h"

#include <math.h>

#define MODEL "golden/data/yunet/tiny.safetensors"
enum { COLUMNS = 5 + 2 * LK_FACE_POINTS };

static void make_picture(struct lk_image *image) {
    assert_ok(lk_image_new(image, 90, 61, 3));
    for (int y = 0; y < 61; y++)
        for (int x = 0; x < 90; x++)
            for (int c = 0; c < 3; c++)
                image->pixels[3 * (90 * y + x) + c] = (uint8_t)(x * 7 + y * 13 + c * 29 + x * y / 5);
}

static void to_row(const struct lk_face *face, double scale, double row[COLUMNS]) {
    const float box[] = {face->x, face->y, face->width, face->height};
    for (int k = 0; k < 4; k++) row[k] = box[k] * scale;
    row[4] = face->score;
    for (int k = 0; k < 2 * LK_FACE_POINTS; k++) row[5 + k] = face->points[k / 2][k % 2] * scale;
}

/* The lines that follow; the largest distance from them. */
static double distance(const struct lk_face *faces, size_t n, char **at) {
    double worst = 0, row[COLUMNS];
    for (size_t i = 0; i < n; i++) {
        to_row(&faces[i], 1, row);
        for (int k = 0; k < COLUMNS; k++) {
            double off = fabs(row[k] - strtod(*at, at));
            if (!(off <= 1e-4)) fail_msg("face %zu, number %d: %.9g is off by %g", i, k, row[k], off);
            worst = fmax(worst, off);
        }
    }
    return worst;
}

static void cells_and_faces_of_onnxruntime(void **state) {
    (void)state;
    size_t n_bytes, n;
    char *text = test_read("golden/data/yunet/faces.txt", &n_bytes), *at = text;
    struct lk_yunet *net;
    struct lk_image image;
    struct lk_face *faces;
    make_picture(&image);
    assert_ok(lk_yunet_open(&net, MODEL));
    size_t n_cells = strtoul(at, &at, 10), n_kept = strtoul(at, &at, 10);
    assert_ok(lk_yunet_detect(net, &image, &(struct lk_yunet_search){.min_score = 0, .max_overlap = 1}, &faces, &n));
    assert_int_equal(n, n_cells);
    assert_int_equal(n, 12 * 8 + 6 * 4 + 3 * 2);
    double worst = distance(faces, n, &at);
    lk_free(faces);
    assert_ok(
        lk_yunet_detect(net, &image, &(struct lk_yunet_search){.min_score = 0.35, .max_overlap = 0.3}, &faces, &n));
    assert_int_equal(n, n_kept);
    worst = fmax(worst, distance(faces, n, &at));
    printf("%zu cells, %zu faces, at most %.1e pixels off\n", n_cells, n, worst);
    lk_free(faces);
    lk_image_free(&image);
    lk_yunet_close(net);
    free(text);
}

/* A picture of twice the size is seen at the size that is asked for; what is found is in its own pixels. */
static void large_pictures_are_reduced(void **state) {
    (void)state;
    const struct lk_yunet_search all = {.min_score = 0, .max_overlap = 1, .max_side = 90};
    struct lk_yunet *net;
    struct lk_image small, large, reduced;
    struct lk_face *faces[2];
    size_t n[2];
    make_picture(&small);
    assert_ok(lk_image_resize(&large, &small, 180, 122, LK_RESAMPLE_NEAREST));
    assert_ok(lk_image_resize(&reduced, &large, 90, 61, LK_RESAMPLE_BICUBIC));
    assert_ok(lk_yunet_open(&net, MODEL));
    assert_ok(lk_yunet_detect(net, &large, &all, &faces[0], &n[0]));
    assert_ok(lk_yunet_detect(net, &reduced, &all, &faces[1], &n[1]));
    assert_int_equal(n[0], 126);
    assert_int_equal(n[1], 126);
    for (size_t i = 0; i < n[0]; i++) {
        double a[COLUMNS], b[COLUMNS];
        to_row(&faces[0][i], 1, a);
        to_row(&faces[1][i], 2, b);
        assert_memory_equal(a, b, sizeof a);
    }
    for (int i = 0; i < 2; i++) lk_free(faces[i]);
    lk_image_free(&small);
    lk_image_free(&large);
    lk_image_free(&reduced);
    lk_yunet_close(net);
}

/* The file with one tensor taken away, renamed, or with another shape. */
static void other_files_are_refused(void **state) {
    (void)state;
    struct lk_safetensors st;
    struct lk_yunet *net;
    struct lk_st_named list[256];
    assert_ok(lk_safetensors_open(&st, MODEL));
    assert_true(st.n_tensors < 256);
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("other.safetensors"));
    for (size_t i = 0; i < st.n_tensors; i++) {
        struct lk_st_named *t = &list[i];
        *t = (struct lk_st_named){st.tensors[i].name, st.tensors[i].tensor};
    }
    for (size_t i = 0; i < st.n_tensors; i += 7) {
        struct lk_st_named kept = list[i];
        list[i].name = "head.weight";
        assert_ok(lk_safetensors_write(path, list, st.n_tensors, NULL));
        assert_int_equal(lk_yunet_open(&net, path), LK_E_BIND);
        assert_null(net);
        list[i] = kept;
        list[i].tensor.dtype = LK_I32;
        assert_ok(lk_safetensors_write(path, list, st.n_tensors, NULL));
        assert_fails(lk_yunet_open(&net, path), LK_E_BIND, kept.name);
        list[i] = kept;
    }
    struct lk_tensor counted = {.data = &(int64_t){7}, .dtype = LK_I64};
    list[st.n_tensors] = (struct lk_st_named){"neck.lateral_convs.0.bn.num_batches_tracked", counted};
    assert_ok(lk_safetensors_write(path, list, st.n_tensors + 1, NULL));
    assert_ok(lk_yunet_open(&net, path));
    lk_yunet_close(net);
    list[st.n_tensors].name = "neck.lateral_convs.3.conv1.bias";
    assert_ok(lk_safetensors_write(path, list, st.n_tensors + 1, NULL));
    assert_fails(lk_yunet_open(&net, path), LK_E_BIND, "another net");
    assert_fails(lk_yunet_open(&net, "golden/data/yunet/none"), LK_E_NOT_FOUND, "none");
    lk_safetensors_close(&st);
}

static float *values_of(const struct lk_safetensors *st, const char *prefix, const char *part) {
    char name[176];
    snprintf(name, sizeof name, "%s.%s", prefix, part);
    const struct lk_st_tensor *found = lk_safetensors_find(st, name);
    if (!found) fail_msg("no %s", name);
    return found->tensor.data;
}

/* As an export has it: each norm within the convolution before it, and gone. */
static void norms_may_be_folded(void **state) {
    (void)state;
    struct lk_safetensors st;
    struct lk_yunet *net;
    struct lk_image image;
    struct lk_face *faces;
    struct lk_st_named list[256];
    float *made[256];
    size_t n = 0, n_made = 0, n_bytes, n_faces;
    assert_ok(lk_safetensors_open(&st, MODEL));
    for (size_t i = 0; i < st.n_tensors; i++) {
        const char *name = st.tensors[i].name, *part = strrchr(name, '.') + 1;
        if (strstr(name, ".bn")) continue;
        bool stem = !strncmp(name, "backbone.model0.conv1.", 22),
             deep = strstr(name, ".conv2.w") || strstr(name, ".conv2.b");
        char norm[160];
        snprintf(norm, sizeof norm, "%.*s%s", (int)(part - name - 7), name, stem ? ".bn1" : ".bn");
        struct lk_tensor t = st.tensors[i].tensor;
        if ((stem || deep) && !strstr(name, "multi_level_cls") && !strstr(name, "_bbox.") && !strstr(name, "_obj.") &&
            !strstr(name, "_kps.")) {
            size_t per = 1, rows = (size_t)t.shape[0];
            for (int d = 1; d < t.n_dims; d++) per *= (size_t)t.shape[d];
            const float *g = values_of(&st, norm, "weight"), *b = values_of(&st, norm, "bias");
            const float *m = values_of(&st, norm, "running_mean"), *v = values_of(&st, norm, "running_var");
            float *to = made[n_made++] = malloc(rows * per * sizeof *to);
            const float *from = t.data;
            for (size_t k = 0; k < rows * per; k++) {
                double scale = g[k / per] / sqrt(v[k / per] + 1e-5);
                to[k] = (float)(*part == 'w' ? from[k] * scale : b[k] + ((double)from[k] - m[k]) * scale);
            }
            t.data = to;
        }
        list[n++] = (struct lk_st_named){name, t};
    }
    assert_int_equal(n_made, 2 * (1 + 1 + 10 + 3 + 3));
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("folded.safetensors"));
    assert_ok(lk_safetensors_write(path, list, n, NULL));
    make_picture(&image);
    assert_ok(lk_yunet_open(&net, path));
    assert_ok(
        lk_yunet_detect(net, &image, &(struct lk_yunet_search){.min_score = 0, .max_overlap = 1}, &faces, &n_faces));
    char *text = test_read("golden/data/yunet/faces.txt", &n_bytes), *at = text;
    assert_int_equal(n_faces, strtoul(at, &at, 10));
    strtoul(at, &at, 10);
    distance(faces, n_faces, &at);
    free(text);
    lk_free(faces);
    lk_image_free(&image);
    lk_yunet_close(net);
    for (size_t i = 0; i < n_made; i++) free(made[i]);
    lk_safetensors_close(&st);
}

static enum lk_code open_and_detect(void) {
    struct lk_yunet *net;
    struct lk_image image = {0};
    struct lk_face *faces = NULL;
    size_t n;
    LK_TRY(lk_image_new(&image, 40, 33, 1));
    memset(image.pixels, 90, 40 * 33);
    enum lk_code rc = lk_yunet_open(&net, MODEL);
    if (!rc)
        rc = lk_yunet_detect(net, &image, &(struct lk_yunet_search){.max_overlap = 0.3, .max_side = 32}, &faces, &n);
    lk_free(faces);
    lk_yunet_close(net);
    lk_image_free(&image);
    return rc;
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    test_every_allocation(open_and_detect, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_and_faces_of_onnxruntime), cmocka_unit_test(large_pictures_are_reduced),
        cmocka_unit_test(other_files_are_refused),        cmocka_unit_test(norms_may_be_folded),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
