/* M2 and M3 on the simulated GPU: a plan is the peak of device memory, to the byte; one byte less than the least budget
 * is exit code 4 with what to do; an allocation that fails leads to a smaller placement. */
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "kernels/cuda/cuda.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_queue.h"

static const struct simulated_gpu *gpu;
static uint64_t allowed; /* bytes, where the card itself cannot be made smaller; 0: all */

static void limit_memory(uint64_t bytes) {
    gpu->memory_limit(bytes);
    allowed = gpu->hooks ? 0 : bytes;
}

static void expect_peak(uint64_t bytes) {
    if (gpu->hooks) assert_int_equal(gpu->memory_peak(0), bytes);
}

static enum lk_code open_and_edit(const struct tiny_job *job, struct lk_result *result) {
    struct lk_device *dev;
    *result = (struct lk_result){0};
    LK_TRY(lk_device_cuda_create(0, &dev));
    dev->budget.bytes = allowed;
    enum lk_code rc = lk_pipeline_edit(job->pipeline, dev, &job->request, result);
    lk_device_free(dev);
    return rc;
}

static struct lk_plan plan_of(const struct tiny_job *job) {
    struct lk_device *dev;
    struct lk_plan plan;
    assert_ok(lk_device_cuda_create(0, &dev));
    assert_ok(lk_pipeline_plan(job->pipeline, dev, &job->request, &plan));
    lk_device_free(dev);
    return plan;
}

static uint64_t planned(const struct tiny_job *job) { return plan_of(job).device_bytes; }
static uint64_t least(const struct tiny_job *job) { return plan_of(job).least_bytes; }

static uint64_t arena_room(const struct lk_plan *plan) { return (plan->arena_bytes + 511) / 512 * 512; }

/* From config files alone, as `likeness plan` does it. Weights of bf16 then count as the compute dtype, and prompts are
 * as long as they may be. */
static struct lk_plan plan_of_configs(const struct tiny_edit *edit, const struct tiny_job *job, enum lk_dtype dtype) {
    struct tiny_job configs = *job;
    assert_ok(lk_pipeline_open_configs(&configs.pipeline, edit->checkpoint, dtype));
    struct lk_plan plan = plan_of(&configs);
    lk_pipeline_close(configs.pipeline);
    return plan;
}

static void plan_is_the_peak(void **state) {
    (void)state;
    for (int i = 0; i < TINY_EDITS + TINY_FAMILIES; i++) { /* the edits in f32 as well */
        const struct tiny_edit *edit = &tiny_edits[i % TINY_EDITS];
        enum lk_dtype dtype = i < TINY_EDITS ? LK_BF16 : LK_F32;
        struct tiny_job job;
        struct lk_result result;
        tiny_job_open(&job, edit, dtype, 0);
        struct lk_plan plan = plan_of(&job), from_configs = plan_of_configs(edit, &job, dtype);
        gpu->memory_peak(0);
        assert_ok(open_and_edit(&job, &result));
        uint64_t peak = gpu->memory_peak(0);
        printf("%-14s %-4s planned %8llu, peak %8llu, from configs alone %8llu\n", edit->name, lk_dtype_name(dtype),
               (unsigned long long)plan.device_bytes, (unsigned long long)peak,
               (unsigned long long)from_configs.device_bytes);
        assert_true(!gpu->hooks || plan.device_bytes == peak);
        if (dtype == LK_BF16)
            assert_int_equal(from_configs.device_bytes - arena_room(&from_configs),
                             plan.device_bytes - arena_room(&plan));
        lk_result_free(&result);
        tiny_job_close(&job);
    }
}

/* Of models of text alone, with all weights and with as few at a time as can be: the same picture. */
static void pictures_plan_their_peak(void **state) {
    (void)state;
    for (int i = 0; i < TINY_PICTURES; i++) {
        struct tiny_job job;
        struct lk_result whole, streamed;
        tiny_job_open(&job, &tiny_pictures[i], i ? LK_F32 : LK_BF16, 0);
        const struct lk_plan plan = plan_of(&job);
        gpu->memory_peak(0);
        assert_ok(open_and_edit(&job, &whole));
        expect_peak(plan.device_bytes);
        assert_true(plan.least_bytes < plan.device_bytes);
        gpu->memory_peak(0);
        limit_memory(plan.least_bytes);
        assert_ok(open_and_edit(&job, &streamed));
        expect_peak(plan.least_bytes);
        limit_memory(0);
        assert_memory_equal(whole.image.pixels, streamed.image.pixels,
                            (size_t)(job.request.width * job.request.height * 3));
        lk_result_free(&whole);
        lk_result_free(&streamed);
        tiny_job_close(&job);
    }
}

/* A transformer in slices, of a prompt so long that its memory is the most there is with and without them. */
static void slices_plan_their_peak(void **state) {
    struct tiny_job job;
    struct lk_result result;
    (void)state;
    tiny_job_open(&job, &tiny_edits[3], LK_BF16, 0);
    job.request.max_sequence_length = 160;
    const struct lk_plan all = plan_of(&job);
    job.request.slice_rows = 48;
    const struct lk_plan plan = plan_of(&job);
    for (int i = 0; i < plan.n_stages; i++)
        assert_int_equal(plan.stages[i].peak_bytes == plan.arena_bytes, !strcmp(plan.stages[i].name, "transformer"));
    assert_true(plan.arena_bytes < all.arena_bytes);
    gpu->memory_peak(0);
    assert_ok(open_and_edit(&job, &result));
    expect_peak(plan.device_bytes);
    assert_int_equal(result.peak_bytes, plan.arena_bytes);
    lk_result_free(&result);
    tiny_job_close(&job);
}

/* With the pages that a GPU has, in place of grains that suit tiny models. */
static void pages_of_hardware(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    struct tiny_job job;
    struct lk_result result;
    tiny_job_open(&job, &tiny_edits[0], LK_BF16, 0);
    gpu->memory_pages((uint64_t)2 << 20);
    for (int i = 0; i < 2; i++) {
        struct lk_plan plan = plan_of(&job);
        gpu->memory_peak(0);
        if (i) gpu->memory_limit(plan.least_bytes);
        assert_ok(open_and_edit(&job, &result));
        assert_int_equal(gpu->memory_peak(0), i ? plan.least_bytes : plan.device_bytes);
        assert_int_equal(plan.device_bytes % (2 << 20), 0);
        lk_result_free(&result);
        gpu->memory_limit(plan.least_bytes - 1);
        assert_fails(open_and_edit(&job, &result), LK_E_FIT, "are needed");
        gpu->memory_limit(0);
    }
    gpu->memory_pages(0);
    tiny_job_close(&job);
}

/* Of jobs that pass through a layer together: the arena that was decided ahead is what they use, to the byte, resident
 * and with as little as will do. */
static void a_batch_plans_its_peak(void **state) {
    (void)state;
    for (int i = test_is_full() ? 0 : 9; i < (test_is_full() ? 18 : 11); i++) {
        const int family = i / 2 % TINY_FAMILIES, jobs_per_visit = 1 + i / 6;
        struct lk_queued jobs[3] = {0}, *of_queue[3];
        struct tiny_queue q;
        struct lk_device *dev;
        uint64_t used = 0;
        assert_ok(lk_device_cuda_create(0, &dev));
        tiny_queue_open_with(&q, dev, &tiny_edits[family], &(struct lk_pipeline_options){.compute = LK_BF16}, 0);
        for (int k = 0; k < 3; k++) jobs[k].request = &q.requests[k], of_queue[k] = &jobs[k];
        const struct lk_queue queue = {.jobs = of_queue, .n_jobs = 3, .jobs_per_visit = jobs_per_visit};
        if (i % 2) dev->budget.resident_bytes = 1;
        gpu->memory_peak(0);
        assert_ok(lk_pipeline_edit_queue(q.tiny.pipeline, dev, &queue));
        for (int k = 0; k < 3; k++) {
            if (jobs[k].result.peak_bytes > used) used = jobs[k].result.peak_bytes;
            lk_result_free(&jobs[k].result);
        }
        uint64_t peak = gpu->memory_peak(0), decided = dev->arena_block_bytes;
        const struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
        uint64_t block = dev->memory_own + (decided + 511) / 512 * 512 + cuda->weights->held;
        assert_int_equal(cuda->placed.active, i % 2);
        if (i % 2) decided = cuda->placed.placement.arena_bytes;
        printf("%-14s %d a visit: arena of %7llu bytes, used %7llu; %8llu on the device\n", tiny_edits[family].name,
               jobs_per_visit, (unsigned long long)decided, (unsigned long long)used, (unsigned long long)peak);
        assert_int_equal(used, decided);
        assert_true(!gpu->hooks || peak == block);
        lk_device_free(dev);
        tiny_queue_close(&q);
    }
}

/* A device that has run one job and runs another holds what the larger arena and the weights of both need. */
static void a_second_job_plans_on_top(void **state) {
    (void)state;
    struct tiny_job edit, text;
    struct lk_result result;
    struct lk_device *dev;
    tiny_job_open(&edit, &tiny_edits[0], LK_BF16, 0);
    text = edit;
    text.request.n_images = 0;
    uint64_t plan = planned(&edit);
    assert_ok(lk_device_cuda_create(0, &dev));
    gpu->memory_peak(0);
    assert_ok(lk_pipeline_edit(edit.pipeline, dev, &edit.request, &result));
    lk_result_free(&result);
    assert_ok(lk_pipeline_edit(edit.pipeline, dev, &text.request, &result));
    lk_result_free(&result);
    assert_ok(lk_pipeline_edit(edit.pipeline, dev, &edit.request, &result));
    lk_result_free(&result);
    expect_peak(plan);
    lk_device_free(dev);
    tiny_job_close(&edit);
}

static void budget_to_the_byte(void **state) {
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct tiny_job job;
        struct lk_result result;
        tiny_job_open(&job, &tiny_edits[i], LK_BF16, 0);
        uint64_t plan = least(&job);
        assert_true(plan < planned(&job));
        limit_memory(plan);
        gpu->memory_peak(0);
        assert_ok(open_and_edit(&job, &result));
        expect_peak(plan);
        lk_result_free(&result);
        limit_memory(plan - 1);
        uint64_t copies = gpu->calls("cuMemcpyHtoD"), allocations = gpu->calls("cuMemAlloc_v2");
        assert_fails(open_and_edit(&job, &result), LK_E_FIT, "are needed");
        assert_int_equal(lk_exit_code(LK_E_FIT), 4);
        assert_non_null(strstr(lk_error_text(), "are free or allowed; the smallest --vram for this is"));
        assert_non_null(strstr(lk_error_text(), "make the picture smaller"));
        assert_null(result.image.pixels);
        assert_int_equal(gpu->calls("cuMemcpyHtoD"), copies); /* nothing was read, and only the report allocated */
        assert_true(!gpu->hooks || gpu->calls("cuMemAlloc_v2") == allocations + 1);
        limit_memory(0);
        tiny_job_close(&job);
    }
}

/* Bytes that a family's released model takes at 1024x1024 with one reference: with everything resident, and at least.
 */
static void released(int family, uint64_t *whole, uint64_t *least_bytes) {
    static const char *const names[] = {"flux2-dev", "qwen-edit-2511", "step1x-v1p2"};
    struct lk_image image = {.width = 1024, .height = 1024, .channels = 3};
    struct tiny_job job = {0};
    struct lk_plan plan;
    struct lk_device *a100;
    assert_ok(lk_pipeline_open_configs(&job.pipeline, names[family], LK_BF16));
    lk_request_init(&job.request, job.pipeline);
    job.request.images = &image;
    job.request.n_images = 1;
    assert_ok(lk_device_cuda_describe("sm_80", &a100));
    assert_ok(lk_pipeline_plan(job.pipeline, a100, &job.request, &plan));
    *whole = plan.device_bytes + plan.beside_bytes;
    *least_bytes = plan.least_bytes + plan.beside_bytes;
    lk_device_free(a100);
    lk_pipeline_close(job.pipeline);
}

/* Cards as large for the tiny models as real ones are for the released ones: from the least that will do to everything
 * in the same proportion. All memory of a card is used, and what plan says of device and of pinned memory is what a run
 * takes, to the byte. */
static void cards(void **state) {
    (void)state;
    static const int sizes[] = {16, 80, 24, 20, 12}; /* GiB */
    for (int i = 0; i < (test_is_full() ? TINY_FAMILIES * 5 : 2); i++) {
        struct tiny_job job;
        struct lk_result result;
        struct lk_device *dev;
        struct lk_plan plan;
        uint64_t whole, lowest, most, card = (uint64_t)sizes[i / TINY_FAMILIES] << 30;
        tiny_job_open(&job, &tiny_edits[i % TINY_FAMILIES], LK_BF16, 0);
        released(i % TINY_FAMILIES, &whole, &lowest);
        most = planned(&job);
        uint64_t tiny = most;
        if (card < whole)
            tiny = least(&job) +
                   (uint64_t)((double)(most - least(&job)) * (double)(card - lowest) / (double)(whole - lowest));
        limit_memory(tiny);
        assert_ok(lk_device_cuda_create(0, &dev));
        dev->budget.bytes = allowed;
        dev->budget.host_bytes = i % 2 ? 1 : (uint64_t)1 << 30;
        assert_ok(lk_pipeline_plan(job.pipeline, dev, &job.request, &plan));
        assert_true(plan.fits);
        gpu->memory_peak(0);
        gpu->memory_peak(-1);
        uint64_t own = gpu->memory_peak(-1);
        assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
        uint64_t peak = gpu->memory_peak(0), pinned = gpu->memory_peak(-1) - own;
        printf("%-14s %2d GiB of %5.1f: %8llu of %8llu bytes, planned %8llu, pinned %7llu, planned %7llu\n",
               tiny_edits[i % TINY_FAMILIES].name, sizes[i / TINY_FAMILIES], (double)whole / (1 << 30),
               (unsigned long long)peak, (unsigned long long)tiny, (unsigned long long)plan.placed_bytes,
               (unsigned long long)pinned, (unsigned long long)plan.pinned_bytes);
        assert_true(!gpu->hooks || peak == plan.placed_bytes);
        assert_true(!gpu->hooks || pinned == plan.pinned_bytes);
        assert_int_equal(plan.whole, card >= whole);
        assert_true(peak <= tiny);
        lk_result_free(&result);
        lk_device_free(dev);
        limit_memory(0);
        tiny_job_close(&job);
    }
}

/* What did not fit leaves nothing that a smaller job would have to carry. */
static void a_smaller_job_fits_afterwards(void **state) {
    (void)state;
    struct tiny_job edit, text;
    struct lk_result result;
    struct lk_device *dev;
    tiny_job_open(&edit, &tiny_edits[0], LK_F32, 0);
    text = edit;
    text.request.n_images = 0;
    uint64_t plan = least(&text);
    const bool fits = !gpu->hooks && plan == least(&edit); /* pages of hardware hold both */
    assert_true(fits || plan < least(&edit));
    limit_memory(plan);
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget.bytes = allowed;
    if (!fits) assert_fails(lk_pipeline_edit(edit.pipeline, dev, &edit.request, &result), LK_E_FIT, "are needed");
    assert_ok(lk_pipeline_edit(edit.pipeline, dev, &text.request, &result));
    lk_result_free(&result);
    lk_device_free(dev);
    limit_memory(0);
    tiny_job_close(&edit);
}

static size_t pixel_bytes(const struct lk_image *image) { return (size_t)image->width * (size_t)image->height * 3; }

static void every_failing_allocation(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    for (int i = 0; i < TINY_FAMILIES; i++) {
        struct tiny_job job;
        struct lk_result good, result;
        tiny_job_open(&job, &tiny_edits[i], LK_BF16, 0);
        uint64_t before = gpu->calls("cuMemAlloc_v2");
        assert_ok(open_and_edit(&job, &good));
        uint64_t n_allocations = gpu->calls("cuMemAlloc_v2") - before;
        int64_t live = lk_alloc_live();
        assert_true(n_allocations >= 3);                /* report, arena, weights */
        for (uint64_t n = 1; n <= n_allocations; n++) { /* of what the device needs itself; then a smaller placement */
            gpu->fail_at("cuMemAlloc_v2", n, 2, false);
            if (n == 1)
                assert_fails(open_and_edit(&job, &result), LK_E_FIT, "are free; make the picture smaller");
            else
                assert_ok(open_and_edit(&job, &result));
            assert_string_equal(gpu->failed_call(), "cuMemAlloc_v2");
            gpu->fail_at(NULL, 0, 0, false);
            if (n > 1) assert_memory_equal(good.image.pixels, result.image.pixels, pixel_bytes(&good.image));
            lk_result_free(&result);
            assert_int_equal(lk_alloc_live(), live);
        }
        gpu->fail_at("cuMemHostAlloc", 1, 2, false);
        assert_fails(open_and_edit(&job, &result), LK_E_FIT, "cuMemHostAlloc");
        gpu->fail_at(NULL, 0, 0, false);
        gpu->memory_peak(0);
        assert_int_equal(gpu->memory_peak(0), 0); /* all was given back */
        assert_ok(open_and_edit(&job, &result));
        assert_int_equal(good.image.width, result.image.width);
        assert_memory_equal(good.image.pixels, result.image.pixels, pixel_bytes(&good.image));
        lk_result_free(&result);
        lk_result_free(&good);
        tiny_job_close(&job);
    }
    assert_int_equal(gpu->report_count(), 0);
}

/* Free memory that lies in pieces: ever smaller placements are tried, down to the least one, and then it is exit code
 * 4 with nothing read and nothing kept. */
static void a_ladder_of_placements(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    for (int i = 0; i < (test_is_full() ? TINY_FAMILIES : 1); i++) {
        struct tiny_job job;
        struct lk_result good, result;
        tiny_job_open(&job, &tiny_edits[i], LK_BF16, 0);
        const struct lk_plan plan = plan_of(&job);
        const uint64_t own = 512, lowest = plan.least_bytes - own, most = plan.device_bytes - own;
        assert_ok(open_and_edit(&job, &good));
        const int64_t live = lk_alloc_live();
        for (uint64_t rung = 0; rung < (test_is_full() ? 8 : 1); rung++) {
            gpu->memory_piece(lowest + (most - lowest) * rung / 8 / 512 * 512);
            assert_ok(open_and_edit(&job, &result));
            assert_memory_equal(good.image.pixels, result.image.pixels, pixel_bytes(&good.image));
            lk_result_free(&result);
        }
        uint64_t arena = arena_room(&plan), weights = most - arena; /* two pieces do if everything is free */
        uint64_t larger = arena > weights ? arena : weights;
        gpu->memory_piece((larger < lowest ? larger : lowest) - 512);
        uint64_t copies = gpu->calls("cuMemcpyHtoD"), allocations = gpu->calls("cuMemAlloc_v2");
        assert_fails(open_and_edit(&job, &result), LK_E_FIT, "cuMemAlloc_v2");
        assert_int_equal(lk_exit_code(LK_E_FIT), 4);
        assert_int_equal(gpu->calls("cuMemcpyHtoD"), copies);
        uint64_t tried = gpu->calls("cuMemAlloc_v2") - allocations - 1;
        printf("%-14s %llu placements tried\n", tiny_edits[i].name, (unsigned long long)tried);
        assert_true(tried >= 2 && tried < 12);
        gpu->memory_piece(0);
        assert_int_equal(lk_alloc_live(), live);
        gpu->memory_peak(0);
        assert_int_equal(gpu->memory_peak(0), 0);
        lk_result_free(&good);
        tiny_job_close(&job);
    }
}

/* The program's exit code on the job of tiny_edits[3], its stderr in `text`. */
static int run_program(const char *setting, const char *value, const char *output, char text[4096]) {
    int ends[2];
    char program[1024];
    const char *memory = strcmp(setting, "GPUSIM_MEMORY") ? "80G" : value; /* none is left to others */
    snprintf(program, sizeof program, "%s/likeness", getenv("BUILD_DIR"));
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        setenv(setting, value, 1);
        execl(program, program, "edit", "--device", "cuda", "-m", tiny_edits[3].checkpoint, "-p", "a red scarf", "-W",
              "32", "-H", "48", "--steps", "2", "--text-encoder-out-layers", "1,2,3", "--max-sequence-length", "40",
              "--vram", memory, "-o", output, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n < 4095 && (got = read(ends[0], text + n, 4095 - n)) > 0;) n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void exit_code_of_the_program(void **state) {
    (void)state;
    const char *output = test_path("cuda_memory.png");
    char text[4096], memory[32];
    struct tiny_job job;
    tiny_job_open(&job, &tiny_edits[3], LK_BF16, 2);
    uint64_t plan = least(&job);
    tiny_job_close(&job);
    unlink(output);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)plan - 1);
    int code = run_program("GPUSIM_MEMORY", memory, output, text);
    if (code != 4 || !strstr(text, "error: ") || !strstr(text, "are needed") ||
        !strstr(text, "the smallest --vram for this"))
        fail_msg("code %d: %s", code, text);
    assert_int_equal(access(output, F_OK), -1);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)plan);
    code = run_program("GPUSIM_MEMORY", memory, output, text);
    if (code) fail_msg("code %d: %s", code, text);
    assert_int_equal(access(output, F_OK), 0);
    unlink(output);
}

/* GPUs and drivers that could not run the kernels are refused when the device is opened. */
static void lesser_gpus(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    const char *output = test_path("cuda_lesser.png");
    char text[4096];
    int code = run_program("GPUSIM_SHARED", "98K", output, text);
    if (code != 5 || !strstr(text, "gives a block at most 98 KiB of shared memory and the kernels need 99"))
        fail_msg("code %d: %s", code, text);
    code = run_program("GPUSIM_DRIVER", "11080", output, text);
    if (code != 5 || !strstr(text, "the driver is of CUDA 11.8 and the kernels of this build need CUDA 1") ||
        !strstr(text, "or newer, or put the folder of NVIDIA's package cuda-compat-1"))
        fail_msg("code %d: %s", code, text);
    assert_int_equal(access(output, F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_is_the_peak),
        cmocka_unit_test(pictures_plan_their_peak),
        cmocka_unit_test(slices_plan_their_peak),
        cmocka_unit_test(pages_of_hardware),
        cmocka_unit_test(a_batch_plans_its_peak),
        cmocka_unit_test(a_second_job_plans_on_top),
        cmocka_unit_test(budget_to_the_byte),
        cmocka_unit_test(cards),
        cmocka_unit_test(a_smaller_job_fits_afterwards),
        cmocka_unit_test(every_failing_allocation),
        cmocka_unit_test(a_ladder_of_placements),
        cmocka_unit_test(exit_code_of_the_program),
        cmocka_unit_test(lesser_gpus),
    };
    gpu = simulated_gpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
