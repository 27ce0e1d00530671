/* What the host's memory and the limits of control groups leave, read below a folder that stands for /. */
#include <sys/stat.h>

#include "models/host_room.h"
#include "tests/common/test.h"

#define GIB ((uint64_t)1 << 30)

static char root[512];

/* A file below the root, with its folders. */
static void put(const char *path, const char *text) {
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(whole, 0755);
    }
    test_write(whole, text, strlen(text));
}

/* An empty folder that stands for /, on a machine of 64 GiB. */
static void machine(const char *name, const char *groups) {
    snprintf(root, sizeof root, "%s-XXXXXX", test_path(name));
    assert_non_null(mkdtemp(root));
    put("/proc/meminfo", "MemTotal:       99999999 kB\nMemFree:         1000000 kB\nMemAvailable:   67108864 kB\n");
    put("/proc/self/cgroup", groups);
}

#define expect_gib(n)                                                                                                  \
    do {                                                                                                               \
        if (lk_host_room(root) != (uint64_t)(n)*GIB)                                                                   \
            fail_msg("%s: expected %d GiB, got %llu bytes", root, (int)(n), (unsigned long long)lk_host_room(root));   \
    } while (0)

static void no_limits(void **state) {
    (void)state;
    machine("room_none", "0::/user.slice\n");
    expect_gib(60); /* 4 are left to others */
    put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/memory.current", "1073741824\n");
    expect_gib(60);
    put("/proc/meminfo", "MemAvailable:   3145728 kB\n");
    expect_gib(0);
    snprintf(root, sizeof root, "%s", test_path("room_without_proc"));
    expect_gib(0);
}

/* The limit that counts is that of a group above; pages of files are no use of it. */
static void version_2(void **state) {
    (void)state;
    machine("room_2", "0::/slurm/job_7/step_0\n");
    put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("/sys/fs/cgroup/slurm/job_7/memory.max", "34359738368\n");
    put("/sys/fs/cgroup/slurm/job_7/memory.current", "10737418240\n");
    expect_gib(32 - 10 - 4);
    put("/sys/fs/cgroup/slurm/job_7/memory.stat",
        "anon 4294967296\nfile 6442450944\ninactive_file 5368709120\nactive_file 1073741824\n");
    expect_gib(32 - 4 - 4);
    put("/sys/fs/cgroup/slurm/job_7/step_0/memory.high", "17179869184\n");
    expect_gib(16 - 4);
    put("/sys/fs/cgroup/slurm/memory.max", "3221225472\n");
    expect_gib(0);
}

static void container(void **state) {
    (void)state;
    machine("room_container", "0::/docker/0123456789\n");
    put("/sys/fs/cgroup/memory.max", "17179869184\n");
    put("/sys/fs/cgroup/memory.current", "2147483648\n");
    expect_gib(16 - 2 - 4);
    put("/sys/fs/cgroup/memory.current", "99999999999\n");
    expect_gib(0);
}

static void version_1(void **state) {
    (void)state;
    machine("room_1", "12:cpuset:/docker/ab\n9:cpu,memory:/docker/ab\n1:name=systemd:/docker/ab\n0::/docker/ab\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "25769803776\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "8589934592\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.stat",
        "cache 999\ninactive_file 1\ntotal_inactive_file 2147483648\ntotal_active_file 1073741824\n");
    expect_gib(24 - 5 - 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_limits), cmocka_unit_test(version_2),
                                       cmocka_unit_test(container), cmocka_unit_test(version_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
