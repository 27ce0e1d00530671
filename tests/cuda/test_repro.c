/* The bits of the tiny edits against the committed table of the card's architecture: of an A100 as the simulated one
 * predicts them (repro/cuda_sm_80.txt), of an H200 as it gave them (repro/cuda_sm_90.txt). The simulated GPU must give
 * these bits; a real card tells where its bits differ, and must give them twice. When kernels have changed on purpose,
 * a new table is written by
 *
 *     cd tests && BUILD_DIR=$PWD/../build cuda/on-device ../build/tests/test_cuda_repro --print repro/cuda_sm_80.txt
 */
#include <unistd.h>

#include "tests/common/cuda.h"
#include "tests/common/pipeline_checks.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

#define N_ROWS (2 * TINY_EDITS)

static char architecture[16], table[64];

static const char head[] =
    "# SHA-256 of the pixels and of the last latents (little-endian, in their dtype) of the edits in\n"
    "# tests/common/tiny_edit.c on %s. Those of sm_80 were made on tools/gpusim, the simulated A100: predictions\n"
    "# until an A100 has confirmed them. tests/cuda/test_repro.c compares with ==, and says how to write them anew.\n"
    "# edit | dtype | pixels | latents\n";

static void run_row(int row, struct test_digests *d) {
    struct tiny_job job;
    struct lk_device *dev;
    tiny_job_open(&job, &tiny_edits[row / 2], row % 2 ? LK_BF16 : LK_F32, 2);
    assert_ok(lk_device_cuda_create(0, &dev));
    test_edit_digests(job.pipeline, dev, &job.request, (const char *[2]){"step.1.latents"}, d);
    lk_device_free(dev);
    tiny_job_close(&job);
}

static void print_row(int row, const struct test_digests *d, char out[256]) {
    snprintf(out, 256, "%s | %s | %s | %s\n", tiny_edits[row / 2].name, row % 2 ? "bf16" : "f32", d->pixels,
             d->traced[0]);
}

/* The committed row of the edit, without what follows it; NULL: there is none. */
static const char *committed_row(const char *committed, const char *line, const struct test_digests *d) {
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)(strstr(line, d->pixels) - line), line);
    return committed ? strstr(committed, key) : NULL;
}

static void same_bits_as_committed(void **state) {
    (void)state;
    char *committed = test_read(table, NULL), line[256];
    int n_other = 0;
    for (int row = 0; row < N_ROWS; row++) {
        struct test_digests d;
        run_row(row, &d);
        print_row(row, &d, line);
        const char *expected = committed_row(committed, line, &d);
        if (expected && !strncmp(expected, line, strlen(line))) continue;
        n_other++;
        if (expected)
            printf("expected %.*s\n", (int)strcspn(expected, "\n"), expected);
        else
            printf("expected a row of %s, which has none\n", table);
        printf("got      %s", line);
    }
    free(committed);
    if (n_other) fail_msg("%d of %d edits have other bits than %s", n_other, N_ROWS, table);
}

/* Cards of one architecture may round exp2 or a reciprocal otherwise, so other bits than the committed ones are told
 * and are no failure. Two runs on one card must agree. Lines with "bits: " are read by tools/gpu-acceptance. */
static void two_runs_agree(void **state) {
    (void)state;
    char *committed = access(table, F_OK) ? NULL : test_read(table, NULL), line[256], again[256];
    int n_same = 0;
    for (int row = 0; row < N_ROWS; row++) {
        struct test_digests d, d2;
        run_row(row, &d);
        run_row(row, &d2);
        print_row(row, &d, line);
        print_row(row, &d2, again);
        assert_string_equal(line, again);
        const char *expected = committed_row(committed, line, &d);
        const bool same = expected && !strncmp(expected, line, strlen(line));
        const bool pixels = expected && !strncmp(expected, line, (size_t)(strstr(line, d.traced[0]) - line));
        n_same += same;
        if (!same)
            printf("bits: %s %s: pixels %.12s%s, latents %.12s\n", tiny_edits[row / 2].name, row % 2 ? "bf16" : "f32",
                   d.pixels, pixels ? " as committed" : "", d.traced[0]);
    }
    printf("bits: %d of %d edits: as %s%s\n", n_same, N_ROWS, table,
           committed ? "" : ", which is not there: --print writes it");
    free(committed);
}

static const char *path;

static void write_table(void **state) {
    (void)state;
    char line[256];
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, head, architecture);
    for (int row = 0; row < N_ROWS; row++) {
        struct test_digests d;
        run_row(row, &d);
        print_row(row, &d, line);
        fputs(line, f);
    }
    assert_int_equal(fclose(f), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest compare[] = {cmocka_unit_test(same_bits_as_committed)};
    const struct CMUnitTest agree[] = {cmocka_unit_test(two_runs_agree)};
    const struct CMUnitTest print[] = {cmocka_unit_test(write_table)};
    struct lk_device *dev = test_cuda_open();
    snprintf(architecture, sizeof architecture, "%s", dev->architecture);
    snprintf(table, sizeof table, "repro/cuda_%s.txt", architecture);
    lk_device_free(dev);
    if (argc == 3 && !strcmp(argv[1], "--print")) {
        path = argv[2];
        return cmocka_run_group_tests(print, NULL, NULL);
    }
    const bool predicted = simulated_gpu()->hooks && !getenv("GPUSIM_MUFU");
    return predicted ? cmocka_run_group_tests(compare, NULL, NULL) : cmocka_run_group_tests(agree, NULL, NULL);
}
