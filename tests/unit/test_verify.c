/* W3: damage in the data area is found. Digests of the FIPS 180 examples and of git are the outside witnesses. */
#include "tests/common/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "weights/safetensors.h"
#include "weights/verify.h"

#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HELLO "ce013625030ba8dba906f756967f9e9ca394464a" /* printf 'hello\n' | git hash-object --stdin */

static char folder[1024];

static const char *in(const char *name) {
    static char ring[8][2048];
    static int next;
    char *out = ring[next++ % 8];
    if (snprintf(out, sizeof ring[0], "%s/%s", folder, name) >= (int)sizeof ring[0]) fail_msg("%s: too long", name);
    return out;
}

static void fresh(const char *name) {
    char command[4096];
    snprintf(folder, sizeof folder, "%s", test_path(name));
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", folder, folder);
    assert_int_equal(system(command), 0);
}

static void write_text(const char *path, const char *text) { test_write(path, text, strlen(text)); }

static const struct lk_verify_file *find(const struct lk_verify_report *report, const char *path) {
    for (size_t i = 0; i < report->n_files; i++)
        if (!strcmp(report->files[i].path, path)) return &report->files[i];
    fail_msg("%s is not in the report", path);
    return NULL;
}

static void known_digests(void **state) {
    (void)state;
    char hex[65];
    lk_sha256("abc", 3, hex);
    assert_string_equal(hex, ABC);
    lk_sha256("", 0, hex);
    assert_string_equal(hex, EMPTY);
    fresh("digests");
    write_text(in("abc"), "abc");
    assert_ok(lk_digest_file(LK_DIGEST_SHA256, in("abc"), hex));
    assert_string_equal(hex, ABC);
    write_text(in("empty"), "");
    assert_ok(lk_digest_file(LK_DIGEST_SHA256, in("empty"), hex));
    assert_string_equal(hex, EMPTY);
    char *a = malloc(1000000);
    memset(a, 'a', 1000000);
    test_write(in("million"), a, 1000000);
    free(a);
    assert_ok(lk_digest_file(LK_DIGEST_SHA256, in("million"), hex));
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    write_text(in("hello"), "hello\n");
    assert_ok(lk_digest_file(LK_DIGEST_GIT_BLOB, in("hello"), hex));
    assert_string_equal(hex, HELLO);
    assert_fails(lk_digest_file(LK_DIGEST_SHA256, in("absent"), hex), LK_E_NOT_FOUND, "absent");
    assert_string_equal(hex, "");
    assert_fails(lk_digest_file(LK_DIGEST_SHA256, folder, hex), LK_E_NOT_REGULAR, "folder");
}

/* A cache with a weight file, a git blob, and a shard that no digest is known of. */
static void write_cache(const char *bytes, size_t n, char blob[65]) {
    char command[8192], link[200];
    fresh("hfverify");
    snprintf(command, sizeof command, "mkdir -p '%s/models--o--n/blobs' '%s/models--o--n/snapshots/abc/vae'", folder,
             folder);
    assert_int_equal(system(command), 0);
    lk_sha256(bytes, n, blob);
    snprintf(link, sizeof link, "models--o--n/blobs/%s", blob);
    test_write(in(link), bytes, n);
    write_text(in("models--o--n/blobs/" HELLO), "hello\n");
    write_text(in("models--o--n/snapshots/abc/plain.txt"), "no digest");
    snprintf(link, sizeof link, "../../../blobs/%s", blob);
    assert_int_equal(symlink(link, in("models--o--n/snapshots/abc/vae/model.safetensors")), 0);
    assert_int_equal(symlink("../../blobs/" HELLO, in("models--o--n/snapshots/abc/config.json")), 0);
}

static void every_flipped_bit_is_found(void **state) {
    (void)state;
    float values[256];
    for (int i = 0; i < 256; i++) values[i] = (float)i;
    struct lk_st_named t = {"w", LK_TENSOR(values, LK_F32, 16, 16)};
    fresh("flips");
    assert_ok(lk_safetensors_write(in("model.safetensors"), &t, 1, NULL));
    size_t n;
    char *bytes = test_read(in("model.safetensors"), &n), blob[65], path[300];
    char snapshot[2048];
    write_cache(bytes, n, blob);
    snprintf(path, sizeof path, "models--o--n/blobs/%s", blob);
    snprintf(snapshot, sizeof snapshot, "%s", in("models--o--n/snapshots/abc"));
    struct lk_verify_report report;
    uint64_t random = 1;
    for (int round = -1; round < 200; round++) {
        size_t bit = round < 0 ? 0 : round == 0 ? n * 8 - 1 : test_random(&random) % (n * 8);
        if (round >= 0) bytes[bit / 8] ^= (char)(1 << (bit % 8));
        test_write(in(path), bytes, n);
        if (round >= 0) bytes[bit / 8] ^= (char)(1 << (bit % 8));
        assert_ok(lk_verify(&report, snapshot, NULL, 2));
        assert_int_equal(report.n_bad, round < 0 ? 0 : 1);
        assert_int_equal(find(&report, "vae/model.safetensors")->result, round < 0 ? LK_VERIFY_OK : LK_VERIFY_DIFFERS);
        lk_verify_free(&report);
    }
    for (size_t cut = 0; cut < n; cut += 97) { /* and every other length */
        test_write(in(path), bytes, cut);
        assert_ok(lk_verify(&report, snapshot, NULL, 1));
        assert_int_equal(report.n_bad, 1);
        lk_verify_free(&report);
    }
    free(bytes);
}

static void cache_report(void **state) {
    (void)state;
    char blob[65], outside[2048];
    struct lk_verify_report report;
    write_cache("abc", 3, blob);
    assert_string_equal(blob, ABC);
    snprintf(outside, sizeof outside, "%s", test_path("outside-the-cache"));
    write_text(outside, "x");
    assert_int_equal(symlink("../../blobs/absent", in("models--o--n/snapshots/abc/missing")), 0);
    assert_int_equal(symlink(outside, in("models--o--n/snapshots/abc/outside")), 0);
    assert_int_equal(symlink("loop", in("models--o--n/snapshots/abc/loop")), 0);
    assert_int_equal(symlink("..", in("models--o--n/snapshots/abc/vae/up")), 0);
    assert_ok(lk_verify(&report, in("models--o--n/snapshots/abc"), NULL, 8));
    assert_int_equal(report.n_files, 7);
    for (size_t i = 1; i < report.n_files; i++) assert_true(strcmp(report.files[i - 1].path, report.files[i].path) < 0);
    assert_int_equal(find(&report, "config.json")->result, LK_VERIFY_OK);
    assert_string_equal(find(&report, "config.json")->got, HELLO);
    assert_int_equal(find(&report, "config.json")->bytes, 6);
    assert_int_equal(find(&report, "vae/model.safetensors")->result, LK_VERIFY_OK);
    assert_int_equal(find(&report, "plain.txt")->result, LK_VERIFY_NO_DIGEST);
    assert_string_equal(find(&report, "plain.txt")->expected, "");
    static const char *const unreadable[] = {"missing", "outside", "loop", "vae/up"};
    for (int i = 0; i < 4; i++) assert_int_equal(find(&report, unreadable[i])->result, LK_VERIFY_UNREADABLE);
    assert_int_equal(report.n_bad, 4);
    lk_verify_free(&report);
    assert_int_equal(report.n_files, 0);
}

static void manifests(void **state) {
    (void)state;
    struct lk_verify_report report;
    fresh("manifest");
    mkdir(in("vae"), 0777);
    write_text(in("a b.txt"), "abc");
    write_text(in("vae/empty"), "");
    write_text(in("new\nline"), "abc");
    write_text(in("extra"), "?");
    /* as sha256sum writes it: text and binary mode, "./", an escaped name, DOS line ends */
    write_text(test_path("sums"), ABC "  a b.txt\n" EMPTY " *./vae/empty\n\n\\" ABC "  new\\nline\r\n");
    assert_ok(lk_verify(&report, folder, test_path("sums"), 3));
    assert_int_equal(report.n_files, 4);
    assert_int_equal(report.n_bad, 0);
    assert_int_equal(find(&report, "a b.txt")->result, LK_VERIFY_OK);
    assert_int_equal(find(&report, "new\nline")->result, LK_VERIFY_OK);
    assert_int_equal(find(&report, "extra")->result, LK_VERIFY_NO_DIGEST);
    lk_verify_free(&report);

    write_text(test_path("sums"), EMPTY "  a b.txt\n" ABC "  absent\nBA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9C"
                                        "B410FF61F20015AD  new\\nline");
    assert_ok(lk_verify(&report, folder, test_path("sums"), 3));
    assert_int_equal(report.n_bad, 3); /* differs; not there; not there under the unescaped name */
    assert_int_equal(find(&report, "a b.txt")->result, LK_VERIFY_DIFFERS);
    assert_string_equal(find(&report, "a b.txt")->got, ABC);
    assert_int_equal(find(&report, "absent")->result, LK_VERIFY_UNREADABLE);
    assert_string_equal(find(&report, "new\\nline")->expected, ABC);
    lk_verify_free(&report);
}

static void bad_manifests(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum lk_code code;
        const char *part;
    } cases[] = {
        {"", LK_E_CHECKSUM, "sha256sum"},
        {ABC "  a\nabc  a\n", LK_E_INPUT, "line 2"},
        {ABC " a", LK_E_INPUT, "line 1"},
        {ABC "  ", LK_E_INPUT, "line 1"},
        {"x" ABC "  a", LK_E_INPUT, "line 1"},
        {"\\" ABC "  a\\q", LK_E_INPUT, "line 1"},
        {"\\" ABC "  a\\", LK_E_INPUT, "line 1"},
        {ABC "  ../a", LK_E_ESCAPES, "../a"},
        {ABC "  /etc/passwd", LK_E_ESCAPES, "line 1"},
        {ABC "  b/../../a", LK_E_ESCAPES, "b/../../a"},
        {ABC "  a\n" ABC "  a\n", LK_E_INPUT, "twice"},
    };
    struct lk_verify_report report;
    fresh("badmanifest");
    write_text(in("a"), "abc");
    int64_t live = lk_alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(test_path("sums"), cases[i].text);
        assert_fails(lk_verify(&report, folder, test_path("sums"), 1), cases[i].code, cases[i].part);
    }
    test_write(test_path("sums"), ABC "  a\0", 68);
    assert_fails(lk_verify(&report, folder, test_path("sums"), 1), LK_E_INPUT, "NUL");
    assert_fails(lk_verify(&report, folder, test_path("absent"), 1), LK_E_NOT_FOUND, "absent");
    assert_fails(lk_verify(&report, test_path("absent"), NULL, 1), LK_E_NOT_FOUND, "absent");
    assert_fails(lk_verify(&report, folder, NULL, 1), LK_E_CHECKSUM, "sha256sum"); /* no cache: nothing is known */
    assert_int_equal(lk_alloc_live(), live);
}

static void the_result_does_not_depend_on_threads(void **state) {
    (void)state;
    static char line[100], sums[8000];
    size_t n = 0;
    fresh("threads");
    for (int i = 0; i < 40; i++) {
        char name[20], text[20], hex[65];
        snprintf(name, sizeof name, "f%02d", i);
        size_t n_text = (size_t)snprintf(text, sizeof text, "%d", i * i);
        lk_sha256(text, n_text, hex);
        write_text(in(name), i % 7 == 3 ? "damaged" : text);
        snprintf(line, sizeof line, "%s  %s\n", hex, name);
        n += (size_t)snprintf(sums + n, sizeof sums - n, "%s", line);
    }
    write_text(test_path("sums"), sums);
    for (int threads = 0; threads <= 70; threads += threads < 4 ? 1 : 22) {
        struct lk_verify_report report;
        assert_ok(lk_verify(&report, folder, test_path("sums"), threads));
        assert_int_equal(report.n_files, 40);
        assert_int_equal(report.n_bad, 6);
        for (int i = 0; i < 40; i++)
            assert_int_equal(report.files[i].result, i % 7 == 3 ? LK_VERIFY_DIFFERS : LK_VERIFY_OK);
        lk_verify_free(&report);
    }
}

/* M1 for verify. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    char blob[65], snapshot[2048];
    write_cache("abc", 3, blob);
    snprintf(snapshot, sizeof snapshot, "%s", in("models--o--n/snapshots/abc"));
    write_text(test_path("sums"), ABC "  vae/model.safetensors\n" ABC "  absent\n");
    int64_t live = lk_alloc_live();
    for (int with_manifest = 0; with_manifest < 2; with_manifest++)
        for (int64_t nth = 1;; nth++) {
            struct lk_verify_report report;
            int64_t before = lk_alloc_count();
            lk_alloc_fail_at(nth);
            enum lk_code rc = lk_verify(&report, snapshot, with_manifest ? test_path("sums") : NULL, 1);
            lk_alloc_fail_at(0);
            if (!rc) {
                assert_int_equal(report.n_bad, with_manifest);
                lk_verify_free(&report);
                assert_true(nth > 15);
                assert_true(lk_alloc_count() - before < nth); /* no failure was swallowed */
                break;
            }
            assert_int_equal(rc, LK_E_NOMEM);
            assert_int_equal(lk_alloc_live(), live);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(cache_report),
        cmocka_unit_test(manifests),
        cmocka_unit_test(bad_manifests),
        cmocka_unit_test(the_result_does_not_depend_on_threads),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
