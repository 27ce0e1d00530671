/* Streamed weights from the pages of their files, registered with the driver, where the simulated driver can do that,
 * says that it cannot, or refuses: the same picture, by the way that was told with details on and not otherwise;
 * everything registered is given back while it is mapped. And the node of the host's memory that is near the device. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"
#include "models/placement.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/tiny_edit.h"

static const struct simulated_gpu *gpu;

static const struct {
    const char *setting;
    bool packed;
    const char *told; /* of the weights that steps read */
    int calls;        /* to register; -1: one for each weight */
} cases[] = {{"0", false, "transformer: 0 of 22 weights are registered in their mapped files, threads", 0},
             {"1", false, "transformer: 22 of 22 weights are registered in their mapped files\n", -1},
             {"2", false, "cuMemHostRegister_v2 failed with 801", 2}, /* both stages ask once */
             {"1", true, "22 weights are registered in their mapped files, threads read the others\n", -1}};
#define N_CASES ((int)(sizeof cases / sizeof *cases))

static struct lk_image edit(const struct tiny_job *job, const struct lk_budget *budget) {
    struct lk_device *dev;
    struct lk_result result;
    assert_ok(lk_device_cuda_create(0, &dev));
    if (budget) dev->budget = *budget;
    for (int i = 0; i < (budget ? 2 : 1); i++) { /* a second job keeps what is registered */
        if (i) lk_result_free(&result);
        assert_ok(lk_pipeline_edit(job->pipeline, dev, &job->request, &result));
    }
    lk_device_free(dev);
    struct lk_image image = result.image;
    result.image = (struct lk_image){0};
    lk_result_free(&result);
    return image;
}

/* What `stderr` got is read back from the file that it goes to. */
static void expect_told(const char *path, const char *text, bool told) {
    size_t n;
    char *all = test_read(path, &n);
    if (!strstr(all, text) == told) fail_msg("%s", all);
    free(all);
}

/* A checkpoint with packed weights, whose scales are made as they are read and lie in no file. */
static const char *packed(void) {
    const char *folder = test_path("registered-nf4");
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s' && '%s/likeness' quantize '%s' -o '%s' >&2", folder,
             getenv("BUILD_DIR"), tiny_edits[1].checkpoint, folder);
    assert_int_equal(system(command), 0);
    return folder;
}

static void one_case(int n, const char *path) {
    struct tiny_job job;
    const char *checkpoint = cases[n].packed ? packed() : tiny_edits[1].checkpoint;
    tiny_job_open_with(&job, &tiny_edits[1], checkpoint, &(struct lk_pipeline_options){.compute = LK_BF16}, 2);
    struct lk_image good = edit(&job, NULL);
    const int64_t live = lk_alloc_live();
    int saved = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    for (int verbose = 0; verbose < 2; verbose++) {
        lk_log_open(false, verbose);
        uint64_t calls = gpu->calls("cuMemHostRegister_v2"), ends = gpu->calls("cuMemHostUnregister");
        uint64_t read = gpu->calls("cuLaunchHostFunc"), reports = gpu->report_count();
        struct lk_image image = edit(&job, &(struct lk_budget){.resident_bytes = 1, .host_bytes = 1, .readers = 2});
        calls = gpu->calls("cuMemHostRegister_v2") - calls;
        ends = gpu->calls("cuMemHostUnregister") - ends;
        read = gpu->calls("cuLaunchHostFunc") - read;
        assert_memory_equal(image.pixels, good.pixels, (size_t)good.width * good.height * 3);
        lk_image_free(&image);
        printf("case %d: %d registered, %d given back, %d calls of readers\n", n, (int)calls, (int)ends, (int)read);
        if (cases[n].calls >= 0) assert_int_equal(calls, cases[n].calls);
        if (cases[n].calls < 0) assert_true(calls > 10 && ends == calls);
        assert_int_equal(gpu->report_count(), reports);
        assert_int_equal(lk_alloc_live(), live);
        expect_told(path, cases[n].told, verbose);
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(file);
    lk_image_free(&good);
    tiny_job_close(&job);
}

/* In a process each, since the driver's settings are read once. */
static void one_picture(void **state) {
    if (!gpu->hooks) skip();
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("GPUSIM_REGISTER", cases[i].setting, 1);
            setenv("GPUSIM_EXIT_CODE", "9", 1); /* when anything is left registered at the end */
            execl("/proc/self/exe", "test_cuda_registered", "case", (const char *[]){"0", "1", "2", "3"}[i],
                  (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status) fail_msg("case %d: status %d", i, status);
    }
}

/* --- near the device --- */

static char pci_id[32];

static void describe(const char *cpus) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", lk_cuda_pci_devices, pci_id);
    mkdir(path, 0700);
    strcat(path, "/local_cpulist");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(cpus, f);
    fclose(f);
}

/* Threads of this process that may run on `cpu` alone. */
static int threads_on(int cpu) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *e; (e = readdir(tasks));) {
        cpu_set_t cpus;
        if (e->d_name[0] == '.' || sched_getaffinity(atoi(e->d_name), sizeof cpus, &cpus)) continue;
        n += CPU_COUNT(&cpus) == 1 && CPU_ISSET(cpu, &cpus);
    }
    closedir(tasks);
    return n;
}

static int near_cpu, n_near_threads, n_allocated, n_allocated_near;
static lk_cu_result (*driver_host_alloc)(void **, size_t, unsigned);

static lk_cu_result counted_host_alloc(void **out, size_t bytes, unsigned flags) {
    cpu_set_t cpus;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    n_allocated++;
    n_allocated_near += CPU_COUNT(&cpus) == 1 && CPU_ISSET(near_cpu, &cpus);
    return driver_host_alloc(out, bytes, flags);
}

static enum lk_code look(void *context, const char *stage, int step, int n_steps) {
    (void)context, (void)n_steps;
    if (!strcmp(stage, "transformer") && step == 1) n_near_threads = threads_on(near_cpu);
    return LK_OK;
}

/* Pinned memory is asked for, and readers run, on CPUs of the device's node; the program's own threads run where they
 * did. Nothing is done where the system says nothing, or all CPUs. */
static void near_the_device(void **state) {
    (void)state;
    struct lk_cuda_driver *driver = (struct lk_cuda_driver *)(uintptr_t)lk_cuda();
    const char *system_folder = lk_cuda_pci_devices;
    struct lk_cuda_near near;
    cpu_set_t before, after;
    char list[64];
    assert_int_equal(driver->device_pci(pci_id, (int)sizeof pci_id, 0), 0);
    for (char *c = pci_id; *c; c++) *c = (char)tolower(*c); /* as the kernel names it */
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) near_cpu = i;
    lk_cuda_pci_devices = test_path("pci");
    mkdir(lk_cuda_pci_devices, 0700);
    lk_cuda_near_read("0000:FF:1F.7", &near);
    assert_int_equal(near.n, 0);
    static const char *const nothing[] = {"", "\n", "cpus\n", "0-1023\n"};
    for (int i = 0; i < 4; i++) {
        describe(nothing[i]);
        lk_cuda_near_read(pci_id, &near);
        assert_int_equal(near.n, 0);
    }
    snprintf(list, sizeof list, "%d-%d,1022-1023\n", near_cpu, near_cpu + 1);
    describe(list);
    lk_cuda_near_read(pci_id, &near);
    if (CPU_COUNT(&before) == 1) {
        printf("one CPU: there is none that is not near\n");
        assert_int_equal(near.n, 0);
    } else {
        assert_true(near.n == 1 && CPU_ISSET(near_cpu, &near.cpus));
        driver_host_alloc = driver->host_alloc;
        driver->host_alloc = counted_host_alloc;
        for (int pinned = 0; pinned < 2; pinned++) {
            struct tiny_job job;
            tiny_job_open(&job, &tiny_edits[0], LK_BF16, 2);
            job.request.progress = look;
            n_allocated = n_allocated_near = n_near_threads = 0;
            struct lk_budget budget = {.resident_bytes = 1, .host_bytes = pinned ? (uint64_t)1 << 30 : 1, .readers = 2};
            struct lk_image image = edit(&job, &budget);
            lk_image_free(&image);
            tiny_job_close(&job);
            assert_int_equal(n_near_threads, 2); /* of what is read once: the prompt's layers */
            assert_true(n_allocated >= 2 && n_allocated_near == n_allocated);
            assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
            assert_true(CPU_EQUAL(&before, &after));
        }
        driver->host_alloc = driver_host_alloc;
    }
    lk_cuda_pci_devices = system_folder;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_picture),
        cmocka_unit_test(near_the_device),
    };
    gpu = simulated_gpu();
    if (argc == 3) {
        one_case(atoi(argv[2]), test_path("cuda_registered.txt"));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
