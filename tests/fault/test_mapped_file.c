/* Mapped files that are cut while they are read, and faults that are not theirs. */
#include "tests/common/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"
#include "weights/mapped_file.h"

#define STEM "diffusion_pytorch_model"

static float values[20000];

/* Runs `body` in a child and gives how it ended: an exit status, or minus the signal. */
static int in_child(void (*body)(const char *), const char *argument) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        body(argument);
        _exit(99);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static struct lk_mapped_file *map_and_cut(const char *path, size_t bytes, off_t cut) {
    memset(values, 0x3f, sizeof values);
    test_write(path, values, bytes);
    struct lk_mapped_file *file;
    if (lk_mapped_open(&file, path) || truncate(path, cut)) _exit(1);
    return file;
}

/* Pages behind the cut read as zeros, the check says so, and a healthy file stays usable. */
static void read_cut_file(const char *path) {
    struct lk_mapped_file *file = map_and_cut(path, 70000, 4096), *healthy;
    volatile const unsigned char *data = file->data;
    if (lk_mapped_check(NULL)) _exit(2);
    if (data[0] != 0x3f || data[4095] != 0x3f) _exit(3);
    if (data[69999] || data[40000] || data[4096]) _exit(4);
    if (data[4095] != 0x3f) _exit(5);
    if (lk_mapped_check(file) != LK_E_CHANGED) _exit(6);
    if (lk_mapped_check(NULL) != LK_E_IO || strncmp(lk_error_text(), path, strlen(path))) _exit(7);
    lk_mapped_close(file);
    test_write(path, "12345", 5);
    if (lk_mapped_open(&healthy, path) || healthy->data[4] != '5') _exit(8);
    if (lk_mapped_check(healthy) != LK_E_IO) _exit(9); /* for good: nobody can say what was used */
    lk_mapped_close(healthy);
    _exit(0);
}

/* A fault on a mapping that is not ours goes to whoever was there before. */
static void fault_elsewhere(const char *path, bool above) {
    struct lk_mapped_file *file;
    test_write(path, values, 8192);
    int fd = open(path, O_RDONLY);
    volatile const char *first = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    if (lk_mapped_open(&file, path)) _exit(1);
    volatile const char *last = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    if (truncate(path, 0)) _exit(2);
    bool is_above = (uintptr_t)first > (uintptr_t)file->data;
    _exit((above == is_above ? first : last)[5000] ? 3 : 4);
}

static void exit_42(int number) {
    (void)number;
    _exit(lk_mapped_check(NULL) ? 45 : 42); /* and no fault of ours was counted */
}

static void exit_43(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    _exit(info->si_code > 0 && info->si_addr ? 43 : 44);
}

static void fault_elsewhere_with_handler(const char *path) {
    signal(SIGBUS, exit_42);
    fault_elsewhere(path, true);
}

static void fault_elsewhere_with_sigaction(const char *path) {
    struct sigaction action = {.sa_sigaction = exit_43, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    fault_elsewhere(path, false);
}

static void fault_elsewhere_by_default(const char *path) {
    signal(SIGBUS, SIG_DFL); /* a sanitizer's handler would print and exit */
    fault_elsewhere(path, true);
}

static void raised(const char *path) {
    struct lk_mapped_file *file;
    signal(SIGBUS, SIG_DFL);
    test_write(path, values, 8192);
    if (lk_mapped_open(&file, path)) _exit(1);
    raise(SIGBUS);
    _exit(0);
}

static void raised_but_ignored(const char *path) {
    struct lk_mapped_file *file;
    signal(SIGBUS, SIG_IGN);
    test_write(path, values, 8192);
    if (lk_mapped_open(&file, path)) _exit(1);
    raise(SIGBUS);
    _exit(0);
}

/* Weights that are converted while the file is cut: refused, not half used. */
static void bind_cut_file(const char *path) {
    char folder[2048];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    struct lk_st_named t = {"w", LK_TENSOR(values, LK_F32, 20000)};
    struct lk_checkpoint cp;
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    if (lk_safetensors_write(path, &t, 1, NULL) || lk_checkpoint_open(&cp, folder, STEM)) _exit(1);
    if (lk_bind_begin(&b, &cp, "x", LK_BF16)) _exit(2);
    LK_BIND(b, &out, LK_SHAPE(20000), "w");
    if (truncate(path, 10000)) _exit(3);
    enum lk_code rc = lk_bind_finish(b, &owned, NULL);
    _exit(rc == LK_E_CHANGED && !owned ? 0 : 4);
}

static void a_fault_is_an_error_and_no_crash(void **state) {
    (void)state;
    const char *folder = test_path("faults");
    char path[2048];
    mkdir(folder, 0777);
    static const struct {
        void (*body)(const char *);
        const char *name;
        int end;
    } cases[] = {
        {read_cut_file, "cut", 0},
        {bind_cut_file, STEM ".safetensors", 0},
        {fault_elsewhere_with_handler, "a", 42},
        {fault_elsewhere_with_sigaction, "b", 43},
        {fault_elsewhere_by_default, "c", -SIGBUS},
        {raised, "d", -SIGBUS},
        {raised_but_ignored, "e", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        assert_int_equal(in_child(cases[i].body, path), cases[i].end);
    }
}

static void many_mappings(void **state) {
    (void)state;
    static struct lk_mapped_file *files[1100];
    const char *path = test_path("many");
    test_write(path, "x", 1);
    int64_t live = lk_alloc_live();
    int n = 0;
    while (n < 1100 && !lk_mapped_open(&files[n], path)) n++;
    assert_int_equal(n, 1024);
    assert_non_null(strstr(lk_error_text(), "1024"));
    for (int round = 0; round < 3; round++) { /* slots come back */
        lk_mapped_close(files[500]);
        assert_ok(lk_mapped_open(&files[500], path));
    }
    for (int i = 0; i < n; i++) lk_mapped_close(files[i]);
    lk_mapped_close(NULL);
    assert_int_equal(lk_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_an_error_and_no_crash),
        cmocka_unit_test(many_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
