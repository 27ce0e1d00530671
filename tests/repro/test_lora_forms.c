/* One picture for each model, form of its weights and set of adapters, however many jobs visit a layer together and
 * whatever the number of threads: bf16, q8, nf4, GGUF and a single fp8 file, with no, one and two LoRAs. What is packed
 * in a file gives the picture of the bf16 weights that it stands for. Everyday each form once with two LoRAs; the same
 * on the simulated GPU is cuda/residency. */
#include "tests/common/packed.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"
#include "tests/common/tiny_queue.h"

enum { MOST_LORAS = 2, N_JOBS = 3 };

static void open_queue(struct tiny_queue *q, int family, enum packed_form form, bool plain, int n_loras, int threads) {
    const struct lk_pipeline_options options = packed_options(family, form, n_loras, plain);
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(threads, &dev));
    tiny_queue_open_with(q, dev, &tiny_edits[family], &options, N_JOBS);
    lk_device_free(dev);
}

static int n_pictures;

/* out: the digests of its jobs' pictures. */
static void one_form(int family, enum packed_form form, int n_loras, char out[N_JOBS][65]) {
    static const int order[N_JOBS] = {2, 0, 1};
    struct tiny_queue q;
    open_queue(&q, family, form, false, n_loras, 2);
    for (int visit = 1; visit <= N_JOBS; visit++)
        for (int threads = 1; threads <= (test_is_full() ? 3 : 1); threads += 2) {
            struct lk_device *dev;
            assert_ok(lk_device_cpu_create(threads, &dev));
            tiny_queue_same(&q, dev, order, N_JOBS, visit);
            lk_device_free(dev);
            n_pictures += N_JOBS;
        }
    memcpy(out, q.alone, N_JOBS * sizeof *out);
    tiny_queue_close(&q);
    if (form < PACKED_GGUF) return;
    open_queue(&q, family, form, true, n_loras, 1);
    for (int i = 0; i < N_JOBS; i++)
        if (strcmp(q.alone[i], out[i]))
            fail_msg("%s, %s, %d LoRAs: another picture than of the bf16 weights that it stands for",
                     tiny_edits[family].name, packed_names[form], n_loras);
    tiny_queue_close(&q);
}

static void every_form(int family) {
    static char seen[PACKED_FORMS * (MOST_LORAS + 1)][N_JOBS][65];
    int n = 0;
    for (enum packed_form form = 0; form < PACKED_FORMS; form++)
        for (int n_loras = test_is_full() ? 0 : MOST_LORAS; n_loras <= MOST_LORAS; n_loras++, n++) {
            one_form(family, form, n_loras, seen[n]);
            for (int i = 0; i < n; i++) /* neither packing nor an adapter is nothing */
                if (!strcmp(seen[i][0], seen[n][0]))
                    fail_msg("%s, %s, %d LoRAs: the picture of other weights", tiny_edits[family].name,
                             packed_names[form], n_loras);
        }
    print_message("%s: %d forms and sets of adapters, %d pictures\n", tiny_edits[family].name, n, n_pictures);
    n_pictures = 0;
}

static void flux2(void **state) {
    (void)state;
    every_form(0);
}
static void qwen_edit(void **state) {
    (void)state;
    every_form(1);
}
static void step1x(void **state) {
    (void)state;
    every_form(2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flux2), cmocka_unit_test(qwen_edit), cmocka_unit_test(step1x)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
