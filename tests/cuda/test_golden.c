/* Goldens of whole families on the cuda device: `test_cuda_golden FAMILY [CASE...]`. Without arguments one quick case
 * of each family in f32 and bf16, all stages; with LIKENESS_TEST_FULL in the environment all of them. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/cuda.h"
#include "tests/common/golden.h"
#include "tests/common/golden_run.h"
#include "tests/common/simulated_gpu.h"

static const struct {
    const char *family;
    size_t min_cases;
    double image_share; /* golden.h; as the family's test on the cpu device has it */
    char *quick[3];
} families[] = {
    {"flux2", 12, 0.001, {"fast/text f32", "fast/text bf16"}},
    {"qwen_edit", 9, 0.001, {"text/cut f32", "text/cut bf16"}},
    {"step1x", 9, 0.005, {"plain/text f32", "plain/text bf16"}},
    {"sd", 13, 0.005, {"sd15/pndm f32", "sdxl/sizes f32", "sd15/f32_concepts_cool f32"}},
};
#define N_FAMILIES (sizeof families / sizeof *families)

/* One family in a process of its own: golden_run is a whole main. */
static int run(size_t i, int argc, char **argv) {
    fflush(stdout);
    golden_image_share = families[i].image_share;
    pid_t child = fork();
    if (child == 0) exit(golden_run_cuda(families[i].family, families[i].min_cases, argc, argv));
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) return 1;
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    const bool full = argc < 2 && test_is_full();
    int worst = 0, known = full || argc < 2;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        char *const *q = families[i].quick, *quick[] = {argv[0], q[0], q[1], q[2], NULL};
        int code = 0;
        if (full)
            code = run(i, 1, argv);
        else if (argc < 2)
            code = run(i, q[2] ? 4 : 3, quick);
        else if (!strcmp(argv[1], families[i].family))
            known = 1, code = run(i, argc - 1, argv + 1);
        if (code) worst = code;
    }
    if (!known) fprintf(stderr, "no family %s\n", argv[1]);
    return known ? worst : 2;
}
