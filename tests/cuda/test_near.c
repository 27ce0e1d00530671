/* The node of the host's memory that is near the device: pinned memory comes from there, and readers run there. */
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <sys/stat.h>

#include "kernels/cuda/cuda.h"
#include "models/placement.h"
#include "tests/common/cuda.h"
#include "tests/common/tiny_edit.h"

static void edit(const struct tiny_job *job, const struct lk_budget *budget) {
    struct lk_device *dev;
    struct lk_result result;
    assert_ok(lk_device_cuda_create(0, &dev));
    dev->budget = *budget;
    assert_ok(lk_pipeline_edit(job->pipeline, dev, &job->request, &result));
    lk_result_free(&result);
    lk_device_free(dev);
}

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
            edit(&job, &budget);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_the_device)};
    lk_device_free(test_cuda_open());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
