/* tools/attack on a program of a few lines: what it finds does not depend on how many workers there are. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/digest.h"
#include "tests/common/test.h"
#include "tools/attack/campaign.h"

#ifndef __has_feature /* gcc 12, which has the macro below instead */
#define __has_feature(x) 0
#endif

static const char undamaged[] = "{\"a\": 1, \"b\": [true, \"text\"], \"c\": null}\n";

/* KIND FILE: what is wrong with some damaged files. */
static int program(int argc, char **argv) {
    char text[1 << 16];
    FILE *f = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!f) return 1;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    if (!strcmp(argv[1], "never")) return 5;
    bool reads = !strcmp(argv[1], "silent") || !strcmp(argv[1], "blind"); /* the first byte of each damaged file, or
                                                                             none */
    if (reads) {
        FILE *result = fopen("result/what", "wb");
        if (!result || fputc(strcmp(argv[1], "blind") && n ? text[0] : '{', result) < 0 || fclose(result)) return 1;
        return 0;
    }
    if (!strcmp(text, undamaged)) return 0;
    bool some = n % 4 == 1;
    if (some && !strcmp(argv[1], "nameless")) {
        fprintf(stderr, "error: %s: what is this?\n", argv[2]);
        return 3;
    }
    if (some && !strcmp(argv[1], "dies")) raise(SIGKILL);
    if (some && !strcmp(argv[1], "leaks")) *(void *volatile *)text = malloc(7);
    if (some && !strcmp(argv[1], "kills")) kill(getppid(), SIGKILL);
    memset(text, 0, sizeof text);
    if (some && !strcmp(argv[1], "leaks")) return 0;
    fprintf(stderr, "error: %s: byte %zu: %.*s\n", argv[2], n, (int)(n % 50),
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    return 3;
}

/* A campaign on these kinds; what it left is removed: how many survivors, and one digest of all. */
static bool attacked(const char *const *kinds, int n, int workers, struct attack_counts *found, char digest[65]) {
    static char files[4][16], commands[4][64];
    struct attack_target targets[4];
    char folder[512], path[1024], all[1 << 16] = "";
    snprintf(folder, sizeof folder, "%s", test_path("attacked"));
    assert_true(!mkdir(folder, 0700) || errno == EEXIST);
    for (int i = 0; i < n; i++) {
        snprintf(files[i], sizeof files[i], "%d.json", i);
        snprintf(commands[i], sizeof commands[i], "%s %s", kinds[i], files[i]);
        bool same = !strcmp(kinds[i], "silent") || !strcmp(kinds[i], "blind");
        targets[i] =
            (struct attack_target){files[i], same ? ATTACK_CONFIG : ATTACK_JSON, commands[i], NULL, same ? 0 : i, 0};
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        test_write(path, undamaged, strlen(undamaged));
    }
    struct attack_campaign c = {targets, n, program, 100, 5, "", NULL, workers};
    bool done = attack_campaign(&c, folder, found);
    unsigned long survivors = 0;
    for (unsigned long run = 0; run < 10 * c.runs; run++) {
        snprintf(path, sizeof path, "%s/survivor-5-%lu", folder, run);
        if (lk_digest_file(LK_DIGEST_SHA256, path, all + 65 * survivors)) continue;
        survivors++;
        assert_int_equal(remove(path), 0);
    }
    if (done) assert_int_equal(survivors, found->bad);
    lk_sha256(all, 65 * survivors, digest);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s.worker-%d", folder, i);
        assert_int_equal(access(path, F_OK), -1);
    }
    return done;
}

static void workers_find_what_one_finds(void **state) {
    (void)state;
    static const char *const kinds[] = {"good", "nameless", "good", "dies"};
    struct attack_counts one, several;
    char digest[65], same[65];
    assert_true(attacked(kinds, 4, 1, &one, digest));
    assert_int_equal(one.done, 100);
    assert_true(one.bad > 5 && one.endings > 20);
    for (int workers = 2; workers <= 4; workers++) {
        assert_true(attacked(kinds, 4, workers, &several, same));
        assert_memory_equal(&several, &one, sizeof one);
        assert_string_equal(same, digest);
    }
}

static void any_worker_may_find_it(void **state) {
    (void)state;
    static const char *const first[] = {"nameless", "good"}, *const last[] = {"good", "nameless"},
                             *const none[] = {"good", "good"};
    struct attack_counts found;
    char digest[65];
    assert_true(attacked(first, 2, 2, &found, digest));
    assert_true(found.bad > 0);
    assert_true(attacked(last, 2, 2, &found, digest));
    assert_true(found.bad > 0);
    assert_true(attacked(none, 2, 2, &found, digest));
    assert_int_equal(found.bad, 0);
}

/* Damage that leads to another result and no error is found, damage that says nothing is none. */
static void another_result_is_found(void **state) {
    (void)state;
    static const char *const silent[] = {"good", "silent"}, *const blind[] = {"good", "blind"};
    struct attack_counts found;
    char digest[65];
    assert_true(attacked(silent, 2, 1, &found, digest));
    assert_true(found.bad > 0);
    assert_true(attacked(blind, 2, 1, &found, digest));
    assert_int_equal(found.bad, 0);
}

/* A statement changes one value of a database that stays whole: each such change is another. */
static void values_of_databases_change(void **state) {
    (void)state;
    sqlite3 *db;
    sqlite3_int64 n;
    int n_changed = 0, n_whole = 0;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE a(x INTEGER, y TEXT); INSERT INTO a VALUES(5,'five'),(6,'six')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    unsigned char *bytes = sqlite3_serialize(db, "main", &n, 0);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t state_of = seed * 1000003;
        struct attack_bytes b = {malloc((size_t)n + 1), (size_t)n};
        assert_non_null(b.data);
        memcpy(b.data, bytes, (size_t)n);
        attack_mutate_database(&b, &state_of);
        n_changed += b.n != (size_t)n || memcmp(b.data, bytes, (size_t)n) != 0;
        n_whole += b.n >= 100 && !memcmp(b.data, "SQLite format 3", 16);
        free(b.data);
    }
    sqlite3_free(bytes);
    sqlite3_close(db);
    assert_int_equal(n_whole, 60);
    assert_true(n_changed > 50);
}

static void what_cannot_be_done_is_said(void **state) {
    (void)state;
    static const char *const never[] = {"good", "never"}, *const kills[] = {"good", "kills"};
    struct attack_counts found;
    char digest[65];
    assert_false(attacked(never, 2, 2, &found, digest));
    assert_false(attacked(kills, 2, 2, &found, digest));
    assert_false(attacked(never, 0, 1, &found, digest));
    assert_false(attacked(never, 1, 0, &found, digest));
}

/* Where nobody would see a leak there is nothing to test. */
static void a_leak_is_found(void **state) {
    (void)state;
    static const char *const kinds[] = {"leaks"};
    struct attack_counts found;
    char digest[65];
    assert_true(attacked(kinds, 1, 1, &found, digest));
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
    assert_true(found.bad > 0);
#else
    assert_int_equal(found.bad, 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_find_what_one_finds), cmocka_unit_test(any_worker_may_find_it),
        cmocka_unit_test(another_result_is_found),     cmocka_unit_test(values_of_databases_change),
        cmocka_unit_test(what_cannot_be_done_is_said), cmocka_unit_test(a_leak_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
