/* FairFace's classifier against torchvision's resnet34 of the same weights, which a formula gives, and its chips
 * against dlib's (generate_fairface.py). Files that are not the net's are refused. */
#include <math.h>
#include <stdarg.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/judge/perceived.h"
#include "eval/study/factors.h"
#include "tests/common/test.h"
#include "tools/cli/cli.h"
#include "weights/safetensors.h"

enum { MAX_TENSORS = 256 };

struct weights {
    struct lk_st_named list[MAX_TENSORS];
    char names[MAX_TENSORS][48];
    size_t n;
};

/* From -0.5 to 0.5, scaled as the script does. */
static void add(struct weights *w, int64_t out, int64_t in, int64_t side, const char *format, ...) {
    const int64_t n_row = in * side * side, n = out * (in ? n_row : 1);
    char *name = w->names[w->n];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof w->names[0], format, args);
    va_end(args);
    uint32_t seed = 0;
    for (const char *at = name; *at; at++) seed = seed * 31 + (unsigned char)*at;
    float *v = malloc((size_t)n * sizeof *v);
    const char *end = strrchr(name, '.');
    const bool factor = !in && strncmp(name, "fc", 2) && (!strcmp(end, ".weight") || !strcmp(end, ".running_var"));
    for (int64_t i = 0; i < n; i++) {
        uint32_t h = ((uint32_t)i ^ seed) * 0x9E3779B1u;
        h = (h ^ (h >> 15)) * 0x85EBCA77u;
        h ^= h >> 13;
        const float u = (float)(h >> 8) / (float)(1 << 24) - 0.5f;
        v[i] = in ? u * 3.0f / sqrtf((float)n_row) : factor ? 1.0f + u * 0.5f : u;
    }
    struct lk_tensor t = !in                               ? LK_TENSOR(v, LK_F32, out)
                         : side == 1 && strstr(name, "fc") ? LK_TENSOR(v, LK_F32, out, in)
                                                           : LK_TENSOR(v, LK_F32, out, in, side, side);
    w->list[w->n++] = (struct lk_st_named){name, t};
}

static void add_norm(struct weights *w, int64_t n, const char *name) {
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    for (int i = 0; i < 4; i++) add(w, n, 0, 0, "%s.%s", name, parts[i]);
}

static void make_weights(struct weights *w) {
    static const int n_blocks[4] = {3, 4, 6, 3};
    char name[48];
    int64_t in = 64;
    w->n = 0;
    add(w, 64, 3, 7, "conv1.weight");
    add_norm(w, 64, "bn1");
    for (int l = 0; l < 4; l++)
        for (int b = 0; b < n_blocks[l]; b++) {
            const int64_t out = 64 << l;
            for (int k = 1; k <= 2; k++) {
                add(w, out, k == 1 ? in : out, 3, "layer%d.%d.conv%d.weight", l + 1, b, k);
                snprintf(name, sizeof name, "layer%d.%d.bn%d", l + 1, b, k);
                add_norm(w, out, name);
            }
            if (l && !b) {
                add(w, out, in, 1, "layer%d.0.downsample.0.weight", l + 1);
                snprintf(name, sizeof name, "layer%d.0.downsample.1", l + 1);
                add_norm(w, out, name);
            }
            in = out;
        }
    add(w, 18, 512, 1, "fc.weight");
    add(w, 18, 0, 0, "fc.bias");
}

static void free_weights(struct weights *w) {
    for (size_t i = 0; i < w->n; i++) free(w->list[i].tensor.data);
}

static void make_picture(struct lk_image *image, int width, int height) {
    assert_ok(lk_image_new(image, width, height, 3));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                image->pixels[3 * (width * y + x) + c] = (uint8_t)(x * 7 + y * 13 + c * 29 + x * y / 5);
}

static char model[1024];

static int write_model(void **state) {
    (void)state;
    struct weights *w = malloc(sizeof *w);
    snprintf(model, sizeof model, "%s", test_path("fairface.safetensors"));
    make_weights(w);
    enum lk_code rc = lk_safetensors_write(model, w->list, w->n, NULL);
    free_weights(w);
    free(w);
    return rc;
}

static int remove_model(void **state) {
    (void)state;
    return unlink(model); /* 85 MB */
}

static void chips_of_dlib_and_logits_of_torchvision(void **state) {
    (void)state;
    size_t n_bytes, n_off = 0;
    char *text = test_read("golden/data/fairface.txt", &n_bytes), *at = strchr(text, '\n');
    int sizes[3][2];
    struct lk_image image, chip;
    for (int i = 0; i < 3; i++) {
        struct lk_face face = {0};
        double mean = 0;
        for (int k = 0; k < 2; k++) sizes[i][k] = (int)strtol(at, &at, 10);
        for (int k = 0; k < 4; k++) face.points[k / 2][k % 2] = strtof(at, &at);
        make_picture(&image, sizes[i][0], sizes[i][1]);
        assert_ok(lk_fairface_chip(&image, &face, &chip));
        assert_true(chip.width == 300 && chip.height == 300 && chip.channels == 3);
        for (int y = 7; y < 300; y += 25)
            for (int x = 4; x < 300; x += 25)
                for (int c = 0; c < 3; c++) {
                    long expected = strtol(at, &at, 10), got = chip.pixels[3 * (300 * y + x) + c];
                    if (labs(got - expected) > 1) fail_msg("chip %d at %d,%d: %ld for %ld", i, x, y, got, expected);
                    n_off += got != expected;
                }
        for (int p = 0; p < 270000; p++) mean += chip.pixels[p] / 270000.0;
        const double expected = strtod(at, &at);
        if (fabs(mean - expected) > 0.01) fail_msg("chip %d: mean %.9g for %.9g", i, mean, expected);
        lk_image_free(&image);
        lk_image_free(&chip);
    }
    printf("chips: %zu of 1296 values off by one\n", n_off);
    assert_true(n_off <= 13);

    struct lk_fairface *net;
    assert_ok(lk_fairface_open(&net, model, 2));
    for (int i = 0; i < 2; i++) {
        float logits[LK_FAIRFACE_OUTPUTS];
        double off = 0, all = 0;
        make_picture(&image, sizes[i][0], sizes[i][1]);
        assert_ok(lk_fairface_classify(net, &image, logits));
        for (int k = 0; k < LK_FAIRFACE_OUTPUTS; k++) {
            double expected = strtod(at, &at);
            off += (logits[k] - expected) * (logits[k] - expected);
            all += expected * expected;
        }
        printf("logits %.1e off\n", sqrt(off / all));
        assert_true(sqrt(off / all) <= 2e-5);
        lk_image_free(&image);
    }
    lk_fairface_close(net);
    free(text);
}

/* The command, of a picture whose surest face is the detector's: what is said of its chip stands in the table. */
static void labels_of_a_picture(void **state) {
    (void)state;
    static const char detector[] = "golden/data/yunet/tiny.safetensors";
    char folder[900], command[4096], expected[400];
    struct lk_yunet *yunet;
    struct lk_fairface *net;
    struct lk_image image, chip;
    struct lk_face *faces;
    struct lk_perceived p;
    float logits[LK_FAIRFACE_OUTPUTS];
    double conf[3];
    size_t n;
    snprintf(folder, sizeof folder, "%s", test_path("labels"));
    make_picture(&image, 90, 61);
    snprintf(command, sizeof command,
             "rm -rf '%s' && mkdir '%s' && cd '%s' && printf "
             "'prompt_id,model_tag,seed,cfg,file_path\n7,sdxl,3,6.5,a.png\n' >log.csv",
             folder, folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/a.png", folder);
    assert_ok(lk_png_write(command, &image, NULL, 0));
    assert_ok(lk_yunet_open(&yunet, detector));
    assert_ok(
        lk_yunet_detect(yunet, &image, &(struct lk_yunet_search){.min_score = 0.6, .max_overlap = 0.3}, &faces, &n));
    assert_true(n > 0);
    assert_ok(lk_fairface_chip(&image, faces, &chip));
    assert_ok(lk_fairface_open(&net, model, 1));
    assert_ok(lk_fairface_classify(net, &chip, logits));
    lk_perceived_of_fairface(logits, &p);
    const int race = lk_perceived_level(&p, LK_PERCEIVED_RACE, &conf[0]);
    const int gender = lk_perceived_level(&p, LK_PERCEIVED_GENDER, &conf[1]);
    const int age = lk_perceived_level(&p, LK_PERCEIVED_AGE, &conf[2]);
    snprintf(expected, sizeof expected, "\r\na.png,7,sdxl,3,6.5,true,%s,%.6f,%s,%.6f,%s,%.6f,",
             lk_factor_display(LK_FACTOR_RACE, race), conf[0], lk_factor_display(LK_FACTOR_GENDER, gender), conf[1],
             lk_age_bracket_name(age), conf[2]);
    char log[1000], table[1000];
    struct cli_arguments a;
    snprintf(log, sizeof log, "%s/log.csv", folder);
    snprintf(table, sizeof table, "%s/l.csv", folder);
    const char *const argv[] = {"likeness", "t2i",          "label", "--log",   log,      "--labeler", "fairface",
                                "-q",       "--classifier", model,   "--faces", detector, "-o",        table};
    cli_arguments_init(&a);
    assert_ok(cli_arguments_parse(&a, sizeof argv / sizeof *argv, argv));
    assert_ok(cli_t2i(&a));
    char *text = test_read(table, &n);
    if (!strstr(text, expected)) fail_msg("expected%s, got %s", expected, text);
    free(text);
    lk_free(faces);
    lk_fairface_close(net);
    lk_yunet_close(yunet);
    lk_image_free(&image);
    lk_image_free(&chip);
}

static void other_files_are_refused(void **state) {
    (void)state;
    char path[1024];
    struct weights *w = malloc(sizeof *w);
    struct lk_fairface *net;
    snprintf(path, sizeof path, "%s", test_path("other.safetensors"));
    w->n = 0;
    add(w, 64, 3, 7, "conv1.weight");
    add_norm(w, 64, "bn1");
    const char *const needed[] = {"layer1.0.conv1.weight", "bn1.running_var", "bn1.running_mean"};
    for (int i = 0; i < 3; i++) {
        assert_ok(lk_safetensors_write(path, w->list, w->n - (size_t)i, NULL));
        assert_fails(lk_fairface_open(&net, path, 1), LK_E_BIND, needed[i]);
        assert_null(net);
    }
    w->list[0].tensor.shape[1] = 49, w->list[0].tensor.shape[2] = 3, w->list[0].tensor.shape[3] = 1;
    assert_ok(lk_safetensors_write(path, w->list, w->n, NULL));
    assert_fails(lk_fairface_open(&net, path, 1), LK_E_BIND, "ResNet-34's layer");
    free_weights(w);
    free(w);
    struct lk_image image, chip;
    make_picture(&image, 60, 40);
    const struct lk_face face = {.points = {{20, 20}, {20, 20}}};
    assert_fails(lk_fairface_chip(&image, &face, &chip), LK_E_INPUT, "one place");
    lk_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chips_of_dlib_and_logits_of_torchvision),
        cmocka_unit_test(labels_of_a_picture),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
