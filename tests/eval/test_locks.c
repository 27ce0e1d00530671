/* File systems without locks, as some that clusters share: refused at once and by name, not after a minute's wait. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eval/study/sql.h"
#include "tests/common/test.h"

static int lock_errno; /* what locking fails with; 0: it works */
static int n_calls;

static int no_locks(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (lock_errno && (command == F_SETLK || command == F_SETLKW || command == F_GETLK)) {
        n_calls++;
        errno = lock_errno;
        return -1;
    }
    return fcntl(fd, command, argument);
}

static enum lk_code open_store(void) {
    struct lk_sql sql = {0};
    enum lk_code rc =
        lk_sql_attach(&sql, test_path("store.sqlite"), "store.sqlite", "CREATE TABLE IF NOT EXISTS t(x);");
    lk_sql_close(&sql);
    return rc;
}

static void a_file_system_without_locks_is_named(void **state) {
    static const int kinds[] = {ENOLCK, ENOSYS, EOPNOTSUPP};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    (void)state;
    assert_ok(open_store());
    assert_int_equal(vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)no_locks), SQLITE_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        lock_errno = kinds[i];
        n_calls = 0;
        assert_fails(open_store(), LK_E_IO, "store.sqlite: this file system has no locks");
        assert_true(n_calls > 0 && n_calls < 10); /* it does not try for a minute */
    }
    lock_errno = 0;
    assert_ok(open_store());
    vfs->xSetSystemCall(vfs, "fcntl", NULL);
}

static char told[800];
static void tell(const char *text) { snprintf(told, sizeof told, "%s", text); }

/* Whether /proc/locks tells of the process. */
static bool system_names(pid_t pid) {
    char line[256], number[24];
    bool found = false;
    FILE *f = fopen("/proc/locks", "r");
    snprintf(number, sizeof number, " %ld ", (long)pid);
    while (f && fgets(line, sizeof line, f)) found |= strstr(line, number) != NULL;
    if (f) fclose(f);
    return found;
}

/* Another process that is stopped within a transaction: waited for, told of by name, and not for ever. */
static void a_stopped_holder_is_named(void **state) {
    struct lk_sql sql = {0};
    int64_t found;
    int ready[2];
    char name[64], byte = 0;
    (void)state;
    assert_ok(open_store());
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        if (lk_sql_attach(&sql, test_path("store.sqlite"), "store.sqlite", "") ||
            lk_sql_execute(&sql, "BEGIN EXCLUSIVE") || write(ready[1], &byte, 1) != 1)
            _exit(1);
        raise(SIGSTOP);
        _exit(lk_sql_execute(&sql, "COMMIT") ? 1 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    lk_sql_waiting = tell;
    sql.wait_ms = 3000;
    snprintf(name, sizeof name, "process %ld, which is stopped", (long)child);
    assert_fails(lk_sql_attach(&sql, test_path("store.sqlite"), "store.sqlite", "SELECT * FROM t;"), LK_E_IO,
                 "has held it for 3 s");
    const bool named = strstr(lk_error_text(), name) != NULL;
    assert_non_null(strstr(told, "store.sqlite: "));
    assert_non_null(strstr(told, "waiting up to 3 s"));
    if (system_names(child) && !named) fail_msg("%s", lk_error_text());
    lk_sql_close(&sql);
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sql = (struct lk_sql){.wait_ms = 3000};
    assert_ok(lk_sql_attach(&sql, test_path("store.sqlite"), "store.sqlite", ""));
    assert_ok(lk_sql_number(&sql, &found, 0, "SELECT count(*) FROM t", ""));
    lk_sql_close(&sql);
    lk_sql_waiting = NULL;
    close(ready[0]);
    close(ready[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_system_without_locks_is_named),
        cmocka_unit_test(a_stopped_holder_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
