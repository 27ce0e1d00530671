#include "eval/study/sql.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who holds a lock on a file, for messages. */

enum { LK_HOLDER_BYTES = 120 };

/* /proc/locks: "1: POSIX  ADVISORY  WRITE 3057 08:01:1234 1073741824 1073742335". Devices differ from the file's where
 * file systems lie on each other; SQLite's locks are known by where they begin. */
static long holder_of(const struct stat *st) {
    enum { SQLITE_LOCKS = 0x40000000 };
    char line[256];
    long found = 0;
    FILE *locks = fopen("/proc/locks", "r");
    while (locks && !found && fgets(line, sizeof line, locks)) {
        long pid, start;
        unsigned long inode;
        if (sscanf(line, "%*d: %*s %*s %*s %ld %*x:%*x:%lu %ld", &pid, &inode, &start) == 3 && pid > 0 &&
            pid != (long)getpid() && inode == (unsigned long)st->st_ino && start >= SQLITE_LOCKS)
            found = pid;
    }
    if (locks) fclose(locks);
    return found;
}

/* /proc/PID/stat: "3057 (name) T ..."; a name may hold anything. */
static char state_of(long pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

/* "process 3057, which is stopped (kill -CONT 3057 lets it go on)", "process 3057", or "another program" where the
 * system does not say: another machine's, or no Linux. */
static void lock_holder(const char *path, char out[LK_HOLDER_BYTES]) {
    struct stat st;
    const long pid = !stat(path, &st) ? holder_of(&st) : 0;
    if (!pid)
        snprintf(out, LK_HOLDER_BYTES, "another program");
    else if (state_of(pid) == 'T')
        snprintf(out, LK_HOLDER_BYTES, "process %ld, which is stopped (kill -CONT %ld lets it go on)", pid, pid);
    else
        snprintf(out, LK_HOLDER_BYTES, "process %ld", pid);
}

enum { WAIT_MS = 50, MINUTE_MS = 60000, TOLD_AFTER_MS = 2000 };
void (*lk_sql_waiting)(const char *text);

static int patience_ms(const struct lk_sql *s) { return s->wait_ms ? s->wait_ms : MINUTE_MS; }

static enum lk_code failed(const struct lk_sql *s) {
    const char *advice = s->advice ? s->advice : "put a copy back, or remove it to begin anew";
    int code = sqlite3_errcode(s->db) & 0xff;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR) /* our SQL is right where tables are */
        return lk_fail(LK_E_INPUT,
                       "%s: expected what this program wrote, got a file that is damaged or another's (%s); %s",
                       s->name, sqlite3_errmsg(s->db), advice);
    const int extended = sqlite3_extended_errcode(s->db);
    if (s->lockless || extended == SQLITE_IOERR_LOCK || extended == SQLITE_IOERR_RDLOCK)
        return lk_fail(LK_E_IO,
                       "%s: this file system has no locks, so two programs could write the file at once; put it on a "
                       "local disk, and copy it when all is done",
                       s->name);
    if (extended == SQLITE_READONLY && !access(sqlite3_db_filename(s->db, "main"), W_OK))
        return lk_fail(
            LK_E_INPUT,
            "%s: byte 18: expected 1, the version that this program writes, got another: the file is damaged "
            "or another's; %s",
            s->name, advice);
    if (extended == SQLITE_READONLY_DBMOVED)
        return lk_fail(LK_E_IO,
                       "%s: the file was moved or removed while it was in use; put it back, then give the "
                       "command again",
                       s->name);
    if (code == SQLITE_BUSY) {
        char holder[LK_HOLDER_BYTES];
        lock_holder(sqlite3_db_filename(s->db, "main"), holder);
        return lk_fail(LK_E_IO, "%s: %s has held it for %g s; let it end, or end it, then give the command again",
                       s->name, holder, patience_ms(s) / 1e3);
    }
    return lk_fail(code == SQLITE_FULL    ? LK_E_DISK_FULL
                   : code == SQLITE_NOMEM ? LK_E_NOMEM
                                          : LK_E_IO,
                   "%s: %s", s->name, sqlite3_errmsg(s->db));
}

/* Another process holds the file: wait. SQLite takes a file system without locks for the same. */
static int wait_for_lock(void *context, int n_waits) {
    struct lk_sql *s = context;
    s->lockless = errno == ENOLCK;
    if (s->lockless || n_waits * WAIT_MS >= patience_ms(s)) return 0;
    if (n_waits == TOLD_AFTER_MS / WAIT_MS && lk_sql_waiting) {
        char holder[LK_HOLDER_BYTES], text[LK_HOLDER_BYTES + 600];
        lock_holder(sqlite3_db_filename(s->db, "main"), holder);
        snprintf(text, sizeof text, "%.500s: %s holds it; waiting up to %d s", s->name, holder, patience_ms(s) / 1000);
        lk_sql_waiting(text);
    }
    sqlite3_sleep(WAIT_MS);
    return 1;
}

/* SQLite counts its memory behind a lock that every allocation takes; nobody asks how much it is. */
static void count_no_memory(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

enum lk_code lk_sql_attach(struct lk_sql *s, const char *path, const char *name, const char *schema) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_mutexattr_t again;
    pthread_once(&once, count_no_memory);
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &again);
    pthread_mutexattr_destroy(&again);
    s->name = name;
    const int mutex = s->one_thread ? SQLITE_OPEN_NOMUTEX : SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | mutex, NULL)) return failed(s);
    sqlite3_busy_handler(s->db, wait_for_lock, s);
    /* A kept journal whose head is zeroed and synced: a commit is durable without an entry of a folder to sync. */
    if (sqlite3_exec(s->db,
                     "PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL; PRAGMA journal_size_limit=1048576; PRAGMA "
                     "cache_size=-512;",
                     NULL, NULL, NULL) ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL))
        return failed(s);
    return LK_OK;
}

void lk_sql_close(struct lk_sql *s) {
    if (!s->name) return;
    sqlite3_close(s->db);
    pthread_mutex_destroy(&s->lock);
    *s = (struct lk_sql){0};
}

enum lk_code lk_sql_execute(struct lk_sql *s, const char *sql) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) ? failed(s) : LK_OK;
}

static enum lk_code bind(struct lk_sql *s, sqlite3_stmt **out, const char *sql, const char *types, va_list values) {
    if (sqlite3_prepare_v2(s->db, sql, -1, out, NULL) != SQLITE_OK) return failed(s);
    for (int i = 0; types[i]; i++) {
        int rc = types[i] == 'i'   ? sqlite3_bind_int64(*out, i + 1, va_arg(values, int64_t))
                 : types[i] == 'd' ? sqlite3_bind_double(*out, i + 1, va_arg(values, double))
                                   : sqlite3_bind_text(*out, i + 1, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
        if (rc == SQLITE_OK) continue;
        enum lk_code code = failed(s);
        sqlite3_finalize(*out);
        *out = NULL;
        return code;
    }
    return LK_OK;
}

enum lk_code lk_sql_open(struct lk_sql *s, sqlite3_stmt **out, const char *sql, const char *types, ...) {
    va_list values;
    va_start(values, types);
    enum lk_code rc = bind(s, out, sql, types, values);
    va_end(values);
    return rc;
}

enum lk_code lk_sql_step(struct lk_sql *s, sqlite3_stmt *statement, bool *row) {
    int rc = sqlite3_step(statement);
    *row = rc == SQLITE_ROW;
    return *row || rc == SQLITE_DONE ? LK_OK : failed(s);
}

const char *lk_sql_text(sqlite3_stmt *statement, int column) {
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

enum lk_code lk_sql_run(struct lk_sql *s, const char *sql, const char *types, ...) {
    sqlite3_stmt *statement;
    bool row = true;
    va_list values;
    va_start(values, types);
    enum lk_code rc = bind(s, &statement, sql, types, values);
    va_end(values);
    if (rc) return rc;
    while (!rc && row) rc = lk_sql_step(s, statement, &row);
    sqlite3_finalize(statement);
    return rc;
}

enum lk_code lk_sql_number(struct lk_sql *s, int64_t *out, int64_t otherwise, const char *sql, const char *types, ...) {
    sqlite3_stmt *statement;
    bool row = false;
    va_list values;
    va_start(values, types);
    enum lk_code rc = bind(s, &statement, sql, types, values);
    va_end(values);
    *out = otherwise;
    if (rc) return rc;
    rc = lk_sql_step(s, statement, &row);
    if (row && sqlite3_column_type(statement, 0) != SQLITE_NULL) *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc;
}

enum lk_code lk_sql_begin(struct lk_sql *s) {
    pthread_mutex_lock(&s->lock);
    enum lk_code rc = lk_sql_run(s, s->depth ? "SAVEPOINT part" : "BEGIN IMMEDIATE", "");
    if (rc)
        pthread_mutex_unlock(&s->lock);
    else
        s->depth++;
    return rc;
}

enum lk_code lk_sql_end(struct lk_sql *s, enum lk_code rc) {
    bool whole = !--s->depth;
    if (!rc) rc = lk_sql_run(s, whole ? "COMMIT" : "RELEASE part", "");
    if (rc) sqlite3_exec(s->db, whole ? "ROLLBACK" : "ROLLBACK TO part; RELEASE part", NULL, NULL, NULL);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
