/* File systems without locks, as some that clusters share: refused at once and by name, not after a minute's wait. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sqlite3.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_system_without_locks_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
