/* Writing a file whole: calls that a signal cuts short, limits of size, and what a killed program leaves. */
#include "tests/common/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/atomic_file.h"

/* The linker puts these in the place of the calls that atomic_file.c makes. */
static bool interrupting;
static int n_interrupted;

static int calls_left = -1; /* until the one before which this process is killed */

static bool interrupted(void) {
    static bool again;
    if (calls_left >= 0 && !calls_left--) raise(SIGKILL);
    again = interrupting && !again; /* every first attempt */
    if (again) n_interrupted++;
    errno = again ? EINTR : errno;
    return again;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) { return interrupted() ? -1 : __real_open(path, flags, 0666); }
int __real_fsync(int fd);
int __wrap_fsync(int fd);
static int n_synced;
int __wrap_fsync(int fd) {
    n_synced++;
    return interrupted() ? -1 : __real_fsync(fd);
}
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
static int renames_left = -1; /* until one fails */
int __wrap_rename(const char *from, const char *to) {
    if (renames_left >= 0 && !renames_left--) return errno = EIO, -1;
    return interrupted() ? -1 : __real_rename(from, to);
}
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n) { return interrupted() ? -1 : __real_write(fd, bytes, n); }

/* What a batch changes a folder with. */
#define COUNTED(name, parameters, ...)                                                                                 \
    int __real_##name parameters;                                                                                      \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters { return interrupted() ? -1 : __real_##name(__VA_ARGS__); }
COUNTED(link, (const char *from, const char *to), from, to)
COUNTED(mkdir, (const char *name, mode_t mode), name, mode)
COUNTED(remove, (const char *name), name)
int __real_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags);
static const char *arrives; /* a file that somebody makes just before */
int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    if (arrives) test_write(arrives, "l", 1);
    arrives = NULL;
    return interrupted() ? -1 : __real_renameat2(a, from, b, to, flags);
}

static char folder[1100], path[1200];

static int n_entries(void) {
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static int fresh_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s-XXXXXX", test_path("atomic"));
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) closedir(dir);
    return rmdir(folder);
}

static void interrupted_calls_are_made_again(void **state) {
    (void)state;
    static char bytes[100000];
    interrupting = true;
    enum lk_code rc = lk_atomic_write_file(path, bytes, sizeof bytes);
    interrupting = false;
    assert_int_equal(rc, LK_OK);
    assert_int_equal(n_interrupted, 6); /* open, write, fsync, rename; open and fsync of the folder */
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, sizeof bytes);
    assert_int_equal(n_entries(), 1);
}

static void a_limit_of_size_is_an_error(void **state) {
    (void)state;
    static char bytes[200000];
    struct rlimit limit, small;
    signal(SIGXFSZ, SIG_IGN); /* as the program does */
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){.rlim_cur = 100000, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    enum lk_code rc = lk_atomic_write_file(path, bytes, sizeof bytes);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(lk_exit_code(rc), 7);
    assert_int_equal(n_entries(), 0);
}

/* The name of the one temporary file, of which the child that wrote it has ended. */
static void leave_one(char name[256]) {
    pid_t child = fork();
    if (!child) {
        struct lk_atomic_file *file;
        _exit(lk_atomic_open(&file, path) ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    DIR *dir = opendir(folder);
    name[0] = 0;
    for (struct dirent *e; (e = readdir(dir));)
        if (!strncmp(e->d_name, ".lk-", 4)) snprintf(name, 256, "%s", e->d_name);
    closedir(dir);
    assert_non_null(strstr(name, ".tmp"));
}

static void touch(const char *format, const char *name, long pid) {
    char other[1400];
    int n = snprintf(other, sizeof other, "%s/", folder);
    snprintf(other + n, sizeof other - (size_t)n, format, 13, name, pid); /* ".lk-HOSTHOST-" */
    test_write(other, "x", 1);
}

static void files_of_dead_processes_are_swept(void **state) {
    (void)state;
    char name[256], other_host[256];
    leave_one(name);
    assert_int_equal(n_entries(), 1);
    memcpy(other_host, name, sizeof name);
    other_host[4] = other_host[4] == '0' ? '1' : '0';
    char kept[1400];
    snprintf(kept, sizeof kept, "%s/%s", folder, other_host);
    test_write(kept, "x", 1);
    touch("%.*s%ld-0.tmp", name, (long)getppid()); /* it lives */
    touch("%.*s%ld-0.tmp", name, 1);               /* so does the first */
    touch("%.*s%ld-0.tmp.png", name, 999999999);   /* named otherwise */
    touch("%.*s-%ld-0.tmp", name, 5);
    assert_int_equal(n_entries(), 6);
    assert_ok(lk_atomic_write_file(path, "new", 3));
    assert_int_equal(n_entries(), 6); /* less the dead one's, and the new file */
    char gone[1400];
    snprintf(gone, sizeof gone, "%s/%s", folder, name);
    assert_int_equal(access(gone, F_OK), -1);
    assert_int_equal(access(kept, F_OK), 0);
}

/* As a program that has run out of descriptors, but for one. */
static void discard_with_one_descriptor(struct lk_atomic_file *file) {
    struct rlimit all, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    const int next = dup(0);
    close(next);
    few = (struct rlimit){(rlim_t)next + 1, all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    lk_atomic_discard(file);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
}

/* Filled beside its place, then there with all that is in it, or gone with it; so are those of the dead. */
static void a_folder_appears_whole(void **state) {
    (void)state;
    char made[1400], in[2400];
    struct lk_atomic_file *file;
    snprintf(made, sizeof made, "%s/made/", folder);
    for (int kept = 0; kept < 2; kept++) {
        assert_ok(lk_atomic_open_folder(&file, made));
        assert_int_equal(access(made, F_OK), -1);
        snprintf(in, sizeof in, "%s/inner", lk_atomic_folder(file));
        assert_int_equal(mkdir(in, 0777), 0);
        snprintf(in, sizeof in, "%s/inner/a", lk_atomic_folder(file));
        assert_ok(lk_atomic_write_file(in, "x", 1));
        if (kept)
            assert_ok(lk_atomic_commit(file));
        else
            discard_with_one_descriptor(file);
        assert_int_equal(n_entries(), kept);
    }
    snprintf(in, sizeof in, "%s/made/inner/a", folder);
    assert_int_equal(access(in, F_OK), 0);
    assert_int_equal(lk_atomic_open_folder(&file, made), LK_E_USAGE);
    pid_t child = fork();
    if (!child) _exit(lk_atomic_open_folder(&file, path) || mkdir(lk_atomic_folder(file), 0777) != -1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(n_entries(), 2);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(lk_atomic_write_file(path, "new", 3));
    assert_int_equal(n_entries(), 2); /* the file, without what the child left */
    unlink(in);
    snprintf(in, sizeof in, "%s/made/inner", folder);
    assert_int_equal(rmdir(in), 0);
    assert_int_equal(rmdir(made), 0);
}

/* What the file `name` of the folder holds: one letter; 0: there is none. */
static char letter(const char *name) {
    char of[1400], text[2] = "";
    snprintf(of, sizeof of, "%s/%s", folder, name);
    FILE *file = fopen(of, "r");
    if (!file) return 0;
    assert_int_equal(fread(text, 1, 1, file), 1);
    fclose(file);
    return *text;
}

static void write_three(const char *text) {
    for (const char *name = "abc"; *name; name++) {
        char of[1400];
        snprintf(of, sizeof of, "%s/%c", folder, *name);
        assert_ok(lk_atomic_write_file(of, text, 1));
    }
}

static void a_batch_appears_together(void **state) {
    (void)state;
    n_synced = 0;
    lk_atomic_batch_begin();
    write_three("1");
    assert_int_equal(letter("a"), 0);
    assert_int_equal(n_synced, 0);
    assert_int_equal(lk_atomic_batch_end(LK_OK), LK_OK);
    assert_int_equal(n_synced, 1); /* of the folder, however many files; what they hold is synced at once */
    assert_int_equal(letter("a") + letter("b") + letter("c"), 3 * '1');
    lk_atomic_batch_begin();
    write_three("2");
    assert_int_equal(lk_atomic_batch_end(LK_E_DISK_FULL), LK_E_DISK_FULL);
    assert_int_equal(letter("a") + letter("b") + letter("c"), 3 * '1');
    lk_atomic_batch_begin();
    write_three("3");
    char other[1400]; /* with somebody else's file in the folder they get their places one by one */
    snprintf(other, sizeof other, "%s/other", folder);
    test_write(other, "x", 1);
    renames_left = 1;
    assert_fails(lk_atomic_batch_end(LK_OK), LK_E_IO, "1 of 3 files are new, the others as they were");
    assert_int_equal(letter("a"), '3');
    assert_int_equal(letter("b") + letter("c"), 2 * '1');
    assert_int_equal(n_entries(), 4);
    write_three("4"); /* one by one again */
    assert_int_equal(letter("c"), '4');
}

static enum lk_code write_set(const char *text) {
    static const char *const names[] = {"a", "b", "inner/c"};
    lk_atomic_batch_begin();
    enum lk_code rc = LK_OK;
    for (int i = 0; i < 3 && !rc; i++) {
        char of[1400];
        snprintf(of, sizeof of, "%s/made/%s", folder, names[i]);
        rc = lk_atomic_write_file(of, text, 1);
    }
    return lk_atomic_batch_end(rc);
}

static char set_holds(void) {
    char a = letter("made/a");
    return letter("made/b") == a && letter("made/inner/c") == a ? a : '?';
}

/* Killed before each of its calls, a batch over an older one leaves the one or the other, and what the next one
 * removes. */
static void a_killed_batch_is_whole_or_absent(void **state) {
    (void)state;
    char inner[1400], other[1400];
    int n_old = 0, n_new = 0, how;
    snprintf(inner, sizeof inner, "%s/made", folder);
    assert_int_equal(__real_mkdir(inner, 0750), 0);
    snprintf(inner, sizeof inner, "%s/made/inner", folder);
    assert_int_equal(__real_mkdir(inner, 0700), 0);
    for (int k = 0, ended = 0; !ended; k++) {
        assert_ok(write_set("1"));
        assert_int_equal(n_entries(), 1);
        pid_t child = fork();
        calls_left = child ? -1 : k;
        if (!child) _exit(write_set("2") != LK_OK);
        assert_int_equal(waitpid(child, &how, 0), child);
        ended = WIFEXITED(how) && !WEXITSTATUS(how);
        assert_true(ended || WTERMSIG(how) == SIGKILL);
        char holds = set_holds();
        assert_true(holds == '1' || holds == '2');
        if (holds == '1') n_old++;
        if (holds == '2') n_new++;
        assert_true(n_old + n_new < 1000);
    }
    assert_true(n_old > 5 && n_new > 1);
    struct stat st;
    assert_int_equal(stat(inner, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    snprintf(other, sizeof other, "%s/made/late", folder);
    arrives = other;
    assert_ok(write_set("4"));
    assert_int_equal(set_holds(), '4');
    assert_int_equal(letter("made/late"), 'l');
    snprintf(other, sizeof other, "%s/made/notes", folder); /* somebody else's: one after the other, it stays */
    assert_ok(lk_atomic_write_file(other, "n", 1));
    assert_ok(write_set("3"));
    assert_int_equal(set_holds(), '3');
    assert_int_equal(letter("made/notes"), 'n');
    assert_int_equal(n_entries(), 1);
    for (const char *const *name = (const char *const[]){"inner/c", "inner", "a", "b", "notes", "late", "", NULL};
         *name; name++) {
        snprintf(other, sizeof other, "%s/made/%s", folder, *name);
        assert_int_equal(__real_remove(other), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(interrupted_calls_are_made_again, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_limit_of_size_is_an_error, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_of_dead_processes_are_swept, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_appears_whole, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_batch_appears_together, fresh_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_killed_batch_is_whole_or_absent, fresh_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
