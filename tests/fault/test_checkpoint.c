/* W5: model folders that are damaged, lead elsewhere or change while they are used; and the Hugging Face cache. */
#include "tests/common/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"
#include "weights/mapped_file.h"

#define STEM  "diffusion_pytorch_model"
#define ONE   STEM "-00001-of-00002.safetensors"
#define TWO   STEM "-00002-of-00002.safetensors"
#define INDEX STEM ".safetensors.index.json"
#define GOOD_INDEX                                                                                                     \
    "{\"metadata\":{\"total_size\":80},\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE "\",\"c\":\"" TWO "\"}}"

static float values[20000];

/* A path inside a fresh folder of this test; eight may be in use. */
static const char *in(const char *folder, const char *name) {
    static char ring[8][2048];
    static int next;
    char *out = ring[next++ % 8];
    if (snprintf(out, sizeof ring[0], "%s/%s", folder, name) >= (int)sizeof ring[0]) fail_msg("%s: too long", name);
    return out;
}

static void write_text(const char *path, const char *text) { test_write(path, text, strlen(text)); }

static void write_shard(const char *path, const char *first, const char *second) {
    struct lk_st_named t[] = {{first, LK_TENSOR(values, LK_F32, 2, 4)},
                              {second ? second : "", LK_TENSOR(values, LK_F32, 4)}};
    assert_ok(lk_safetensors_write(path, t, second ? 2 : 1, NULL));
}

/* Two shards and an index. */
static const char *sharded(const char *name) {
    const char *folder = test_fresh(name);
    write_shard(in(folder, ONE), "a", "b");
    write_shard(in(folder, TWO), "c", NULL);
    write_text(in(folder, INDEX), GOOD_INDEX);
    return folder;
}

#define REFUSED(folder, code, part)                                                                                    \
    do {                                                                                                               \
        struct lk_checkpoint cp_;                                                                                      \
        int64_t live_ = lk_alloc_live();                                                                               \
        assert_fails(lk_checkpoint_open(&cp_, folder, STEM), code, part);                                              \
        assert_int_equal(lk_alloc_live(), live_);                                                                      \
    } while (0)

static void opens_one_file_or_shards(void **state) {
    (void)state;
    const char *folder = sharded("good");
    struct lk_checkpoint cp;
    assert_ok(lk_checkpoint_open(&cp, folder, STEM));
    assert_int_equal(cp.n_shards, 2);
    assert_int_equal(cp.n_tensors, 3);
    assert_non_null(lk_checkpoint_find(&cp, "b"));
    assert_int_equal(lk_checkpoint_find(&cp, "a")->tensor.shape[1], 4);
    assert_null(lk_checkpoint_find(&cp, "d"));
    assert_null(lk_checkpoint_find(&cp, ""));
    assert_ok(lk_checkpoint_check(&cp));
    char sharded_id[65], again[65], single_id[65];
    assert_ok(lk_checkpoint_identity(&cp, sharded_id));
    lk_checkpoint_close(&cp);

    assert_ok(lk_checkpoint_open(&cp, folder, STEM));
    assert_ok(lk_checkpoint_identity(&cp, again));
    assert_string_equal(sharded_id, again);
    assert_int_equal(strlen(again), 64);
    lk_checkpoint_close(&cp);

    const char *single = test_fresh("single");
    write_shard(in(single, STEM ".safetensors"), "a", "b");
    assert_ok(lk_checkpoint_open(&cp, single, STEM));
    assert_int_equal(cp.n_shards, 1);
    assert_int_equal(cp.n_tensors, 2);
    assert_ok(lk_checkpoint_identity(&cp, single_id));
    assert_string_not_equal(single_id, sharded_id);
    lk_checkpoint_close(&cp);
    write_shard(in(single, STEM ".safetensors"), "a", "c"); /* another name, another identity */
    assert_ok(lk_checkpoint_open(&cp, single, STEM));
    assert_ok(lk_checkpoint_identity(&cp, again));
    assert_string_not_equal(single_id, again);
    lk_checkpoint_close(&cp);

    size_t n;
    char *bytes = test_read(in(single, STEM ".safetensors"), &n);
    bytes[n - 1] ^= 1; /* another value, another identity */
    test_write(in(single, STEM ".safetensors"), bytes, n);
    free(bytes);
    assert_ok(lk_checkpoint_open(&cp, single, STEM));
    assert_ok(lk_checkpoint_identity(&cp, single_id));
    assert_string_not_equal(single_id, again);
    lk_checkpoint_close(&cp);

    write_text(in(single, INDEX), GOOD_INDEX);
    REFUSED(single, LK_E_INDEX, "both");
    REFUSED(test_fresh("nothing"), LK_E_NOT_FOUND, "found neither");
    REFUSED(test_path("no_such_folder"), LK_E_NOT_FOUND, "no_such_folder");
}

static void shards_missing_swapped_or_cut(void **state) {
    (void)state;
    const char *folder = sharded("shards");
    unlink(in(folder, TWO));
    REFUSED(folder, LK_E_SHARD, TWO "\" is missing");

    folder = sharded("shards");
    rename(in(folder, ONE), in(folder, "x"));
    rename(in(folder, TWO), in(folder, ONE));
    rename(in(folder, "x"), in(folder, TWO));
    REFUSED(folder, LK_E_SHARD, "tensor \"a\": expected in \"" ONE "\", found in \"" TWO);

    folder = sharded("shards");
    write_shard(in(folder, TWO), "c", "a"); /* "a" twice */
    REFUSED(folder, LK_E_SHARD, "\"a\"");

    folder = sharded("shards");
    write_shard(in(folder, TWO), "c", "d");
    REFUSED(folder, LK_E_SHARD, TWO "\" holds tensor \"d\"");

    folder = sharded("shards");
    write_shard(in(folder, ONE), "a", NULL);
    REFUSED(folder, LK_E_SHARD, "\"b\" is not in \"" ONE);

    folder = sharded("shards");
    struct stat st;
    assert_int_equal(stat(in(folder, ONE), &st), 0);
    for (off_t cut = st.st_size - 1; cut >= 0; cut -= cut > 300 ? 7 : 61) {
        assert_int_equal(truncate(in(folder, ONE), cut), 0);
        REFUSED(folder, LK_E_ST_TRUNCATED, ONE);
    }

    folder = sharded("shards");
    unlink(in(folder, TWO));
    mkdir(in(folder, TWO), 0777);
    REFUSED(folder, LK_E_NOT_REGULAR, TWO);
    folder = sharded("shards");
    unlink(in(folder, TWO));
    mkfifo(in(folder, TWO), 0666); /* must not wait for a writer */
    REFUSED(folder, LK_E_NOT_REGULAR, TWO);
}

static void bad_indexes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum lk_code code;
        const char *part;
    } cases[] = {
        {"", LK_E_JSON, INDEX},
        {"[]", LK_E_JSON, "an object"},
        {"{}", LK_E_INDEX, "missing or empty"},
        {"{\"weight_map\":{}}", LK_E_INDEX, "missing or empty"},
        {"{\"weight_map\":[]}", LK_E_INDEX, "expected an object"},
        {"{\"weight_map\":{\"a\":1}}", LK_E_INDEX, "\"a\""},
        {"{\"weight_map\":{\"a\":\"\"}}", LK_E_INDEX, "empty"},
        {"{\"weight_map\":{\"a\":\"" ONE "\"},\"x\":1}", LK_E_INDEX, "\"x\""},
        {"{\"weight_map\":{\"a\":\"" ONE "\",\"a\":\"" TWO "\"}}", LK_E_JSON_DUPLICATE, "\"a\""},
        {"{\"weight_map\":{\"a\":\"" ONE "\"},\"weight_map\":{}}", LK_E_JSON_DUPLICATE, "\"weight_map\""},
        {"{\"weight_map\":{\"a\":\"" ONE "\\u0000\"}}", LK_E_JSON, "NUL"},
        {"{\"weight_map\":{\"a\":\"../" ONE "\"}}", LK_E_ESCAPES,
         INDEX ": weight_map: expected the name of a file inside"},
        {"{\"weight_map\":{\"a\":\"sub/../" ONE "\"}}", LK_E_ESCAPES, "sub/.."},
        {"{\"weight_map\":{\"a\":\"..\"}}", LK_E_ESCAPES, "\"..\""},
        {"{\"weight_map\":{\"a\":\"\\u002e\\u002e/x\"}}", LK_E_ESCAPES, "../x"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", LK_E_ESCAPES, "/etc/passwd"},
        {"{\"weight_map\":{\"a\":\"absent.safetensors\"}}", LK_E_SHARD, "absent.safetensors"},
        {"{\"weight_map\":{\"a\":\".\"}}", LK_E_ESCAPES, "outside"},
        {"{\"weight_map\":{\"a\":\"" ONE "/x\"}}", LK_E_SHARD, "missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = sharded("index");
        write_text(in(folder, INDEX), cases[i].text);
        REFUSED(folder, cases[i].code, cases[i].part);
    }
}

static void links_out_of_the_folder(void **state) {
    (void)state;
    char outside[2048], folder[2048];
    snprintf(outside, sizeof outside, "%s", test_fresh("outside"));
    write_shard(in(outside, "secret.safetensors"), "c", NULL);
    snprintf(folder, sizeof folder, "%s", sharded("links"));

    unlink(in(folder, TWO));
    assert_int_equal(symlink(in(outside, "secret.safetensors"), in(folder, TWO)), 0);
    REFUSED(folder, LK_E_ESCAPES, "outside the model folder");
    unlink(in(folder, TWO));
    assert_int_equal(symlink("../outside/secret.safetensors", in(folder, TWO)), 0);
    REFUSED(folder, LK_E_ESCAPES, "outside the model folder");
    unlink(in(folder, TWO));
    assert_int_equal(symlink(outside, in(folder, "sub")), 0);
    write_text(in(folder, INDEX), "{\"weight_map\":{\"c\":\"sub/secret.safetensors\"}}");
    REFUSED(folder, LK_E_ESCAPES, "outside the model folder");
    /* a folder whose name only begins like the model's */
    char beside[2100];
    snprintf(beside, sizeof beside, "%s_beside", folder);
    mkdir(beside, 0777);
    write_shard(in(beside, "x.safetensors"), "c", NULL);
    assert_int_equal(symlink(in(beside, "x.safetensors"), in(folder, "x.safetensors")), 0);
    write_text(in(folder, INDEX), "{\"weight_map\":{\"c\":\"x.safetensors\"}}");
    REFUSED(folder, LK_E_ESCAPES, "outside the model folder");
    /* a blobs folder means nothing outside a cache */
    mkdir(in(outside, "blobs"), 0777);

    snprintf(folder, sizeof folder, "%s", sharded("links")); /* loops, long and short */
    unlink(in(folder, TWO));
    assert_int_equal(symlink(TWO, in(folder, TWO)), 0);
    REFUSED(folder, LK_E_INPUT, "loop");
    unlink(in(folder, TWO));
    assert_int_equal(symlink("p", in(folder, TWO)), 0);
    assert_int_equal(symlink(TWO, in(folder, "p")), 0);
    REFUSED(folder, LK_E_INPUT, "loop");
    unlink(in(folder, INDEX));
    assert_int_equal(symlink(INDEX, in(folder, INDEX)), 0);
    REFUSED(folder, LK_E_INPUT, "loop");

    snprintf(folder, sizeof folder, "%s", sharded("links")); /* a link that stays inside is fine */
    rename(in(folder, TWO), in(folder, "real"));
    assert_int_equal(symlink("real", in(folder, TWO)), 0);
    struct lk_checkpoint cp;
    assert_ok(lk_checkpoint_open(&cp, folder, STEM));
    lk_checkpoint_close(&cp);
    char *path;
    assert_fails(lk_model_path(folder, "", &path), LK_E_ESCAPES, "");
    assert_null(path);
}

static void a_file_that_changes_is_noticed(void **state) {
    (void)state;
    const char *folder = sharded("changes");
    struct lk_checkpoint cp;
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    for (int kind = 0; kind < 5; kind++) {
        folder = sharded("changes");
        assert_ok(lk_checkpoint_open(&cp, folder, STEM));
        assert_ok(lk_checkpoint_check(&cp));
        if (kind == 0) write_shard(in(folder, TWO), "c", NULL); /* replaced by an equal file */
        if (kind == 1) unlink(in(folder, TWO));
        if (kind == 2) { /* one byte written in place */
            int fd = open(in(folder, TWO), O_WRONLY);
            struct timespec later[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 2000000000}};
            assert_int_equal(pwrite(fd, "x", 1, 100), 1);
            futimens(fd, later); /* clocks of file systems may be too coarse for a quick test */
            close(fd);
        }
        if (kind == 3) assert_int_equal(truncate(in(folder, TWO), 60), 0);
        if (kind == 4) { /* replaced by another file of the same size and time */
            struct stat st;
            assert_int_equal(stat(in(folder, TWO), &st), 0);
            write_shard(in(folder, TWO), "d", NULL);
            utimensat(AT_FDCWD, in(folder, TWO), (struct timespec[]){st.st_atim, st.st_mtim}, 0);
        }
        assert_fails(lk_checkpoint_check(&cp), LK_E_CHANGED, TWO);
        assert_ok(lk_bind_begin(&b, &cp, "transformer", LK_F32)); /* and before weights are handed out */
        LK_BIND(b, &out, LK_SHAPE(2, 4), "a");
        LK_BIND(b, &out, LK_SHAPE(4), "b");
        LK_BIND(b, &out, LK_SHAPE(2, 4), "c");
        assert_fails(lk_bind_finish(b, &owned, NULL), LK_E_CHANGED, TWO);
        assert_null(owned);
        lk_checkpoint_close(&cp);
    }
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER  "ffffffffffffffffffffffffffffffffffffffff"
#define BLOB   "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

static void write_cache(const char *cache) {
    char command[8192];
    const char *repo = in(cache, "models--org--name");
    snprintf(command, sizeof command,
             "mkdir -p '%s/refs/refs/pr' '%s/blobs' '%s/snapshots/" COMMIT "/transformer' '%s/snapshots/" OTHER
             "' && printf " COMMIT " > '%s/refs/main' && echo " OTHER " > '%s/refs/refs/pr/1' && printf '../x' > "
             "'%s/refs/bad' && printf aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > '%s/refs/gone'",
             repo, repo, repo, repo, repo, repo, repo, repo);
    assert_int_equal(system(command), 0);
}

static void finds_models_in_the_cache(void **state) {
    (void)state;
    char cache[1024], *path, expected[3000];
    snprintf(cache, sizeof cache, "%s", test_fresh("hf"));
    write_cache(cache);
    setenv("HF_HUB_CACHE", cache, 1);
    static const struct {
        const char *model, *commit;
    } good[] = {{"org/name", COMMIT},
                {"org/name@main", COMMIT},
                {"org/name@" COMMIT, COMMIT},
                {"org/name@" OTHER, OTHER},
                {"org/name@refs/pr/1", OTHER}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(lk_model_find(good[i].model, &path));
        snprintf(expected, sizeof expected, "%s/models--org--name/snapshots/%s", cache, good[i].commit);
        assert_string_equal(path, expected);
        lk_free(path);
    }
    static const struct {
        const char *model;
        enum lk_code code;
        const char *part;
    } bad[] = {
        {"org/name@nosuch", LK_E_REVISION, "nosuch"},
        {"org/name@bad", LK_E_REVISION, "commit hash"},
        {"org/name@gone", LK_E_REVISION, "gone"},
        {"org/name@", LK_E_NOT_FOUND, "ORG/NAME"},
        {"org/name@../../x", LK_E_NOT_FOUND, "ORG/NAME"},
        {"org/other", LK_E_NOT_FOUND, "HF_HUB_CACHE"},
        {"org/other", LK_E_NOT_FOUND, "models--org--other"},
        {"../name", LK_E_NOT_FOUND, "ORG/NAME"},
        {"org/..", LK_E_NOT_FOUND, "ORG/NAME"},
        {"org/a/b", LK_E_NOT_FOUND, "ORG/NAME"},
        {"/no/such/folder", LK_E_NOT_FOUND, "/no/such/folder"},
        {"name", LK_E_NOT_FOUND, "name"},
        {"", LK_E_NOT_FOUND, ""},
        {"/dev/null", LK_E_NOT_REGULAR, "/dev/null"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(lk_model_find(bad[i].model, &path), bad[i].code, bad[i].part);
        assert_null(path);
    }
    assert_ok(lk_model_find(cache, &path)); /* a folder is a folder */
    assert_string_equal(path, cache);
    lk_free(path);

    unsetenv("HF_HUB_CACHE"); /* the other places, in their order */
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    static const struct {
        const char *variable, *below;
    } places[] = {{"HOME", ".cache/huggingface/hub"}, {"XDG_CACHE_HOME", "huggingface/hub"}, {"HF_HOME", "hub"}};
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    for (size_t i = 0; i < 3; i++) {
        char root[1100], hub[2048], command[4096];
        snprintf(root, sizeof root, "%s/%s", cache, places[i].variable);
        snprintf(hub, sizeof hub, "%s/%s", root, places[i].below);
        snprintf(command, sizeof command, "mkdir -p '%s'", hub);
        assert_int_equal(system(command), 0);
        write_cache(hub);
        setenv(places[i].variable, root, 1);
        assert_ok(lk_model_find("org/name", &path));
        assert_memory_equal(path, hub, strlen(hub));
        lk_free(path);
    }
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    free(home);
}

/* M1 for the cache and for paths. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    char cache[1024];
    snprintf(cache, sizeof cache, "%s", test_fresh("hf"));
    write_cache(cache);
    write_text(in(cache, "models--org--name/snapshots/" COMMIT "/transformer/config.json"), "{}");
    setenv("HF_HUB_CACHE", cache, 1);
    int64_t live = lk_alloc_live();
    for (int64_t nth = 1;; nth++) {
        char *model, *path;
        int64_t before = lk_alloc_count();
        lk_alloc_fail_at(nth);
        enum lk_code rc = lk_model_find("org/name", &model);
        if (!rc) {
            rc = lk_model_path(model, "transformer/config.json", &path);
            lk_free(path);
        }
        lk_alloc_fail_at(0);
        lk_free(model);
        assert_int_equal(lk_alloc_live(), live);
        if (!rc) {
            assert_true(nth > 6 && lk_alloc_count() - before < nth);
            break;
        }
        assert_int_equal(rc, LK_E_NOMEM);
    }
    unsetenv("HF_HUB_CACHE");
}

static void reads_a_snapshot_of_links_read_only(void **state) {
    (void)state;
    char cache[1024], repo[1200], folder[2048], *model, *path;
    snprintf(cache, sizeof cache, "%s", test_fresh("hf"));
    write_cache(cache);
    snprintf(repo, sizeof repo, "%s/models--org--name", cache);
    snprintf(folder, sizeof folder, "%s/snapshots/" COMMIT "/transformer", repo);
    write_shard(in(repo, "blobs/" BLOB), "a", NULL);
    assert_int_equal(symlink("../../../blobs/" BLOB, in(folder, STEM ".safetensors")), 0);
    char command[4096];
    snprintf(command, sizeof command, "chmod -R a-w '%s'", cache);
    assert_int_equal(system(command), 0);

    setenv("HF_HUB_CACHE", cache, 1);
    assert_ok(lk_model_find("org/name", &model));
    assert_ok(lk_model_path(model, "transformer/" STEM ".safetensors", &path));
    lk_free(path);
    struct lk_checkpoint cp;
    char with_blob[65], without[65];
    assert_ok(lk_checkpoint_open(&cp, folder, STEM));
    assert_ok(lk_checkpoint_check(&cp));
    assert_ok(lk_checkpoint_identity(&cp, with_blob));
    lk_checkpoint_close(&cp);
    snprintf(command, sizeof command, "chmod -R u+w '%s'", cache);
    assert_int_equal(system(command), 0);

    /* one model, wherever it lies; older versions told a cache's by its blobs */
    const char *plain = test_fresh("plain");
    write_shard(in(plain, STEM ".safetensors"), "a", NULL);
    assert_ok(lk_checkpoint_open(&cp, plain, STEM));
    assert_ok(lk_checkpoint_identity(&cp, without));
    assert_string_equal(with_blob, without);
    assert_ok(lk_checkpoint_identity_of_cache(&cp, without));
    assert_string_equal(with_blob, without);
    lk_checkpoint_close(&cp);
    assert_ok(lk_checkpoint_open(&cp, folder, STEM));
    assert_ok(lk_checkpoint_identity_of_cache(&cp, without));
    assert_string_not_equal(with_blob, without);
    lk_checkpoint_close(&cp);

    unlink(in(folder, STEM ".safetensors")); /* a link to a blob that was not downloaded */
    assert_int_equal(symlink("../../../blobs/absent", in(folder, STEM ".safetensors")), 0);
    REFUSED(folder, LK_E_NOT_FOUND, "found neither");
    lk_free(model);
    unsetenv("HF_HUB_CACHE");
}

/* One file as other programs write it: all names behind the same words. */
static void names_behind_a_prefix(void **state) {
    (void)state;
    static const struct {
        const char *first, *second, *find; /* find: a name afterwards */
    } cases[] = {
        {"a.weight", "b", "a.weight"},
        {"model.diffusion_model.a.weight", "model.diffusion_model.b", "a.weight"},
        {"diffusion_model.a.weight", "diffusion_model.b", "b"},
        {"transformer.a.weight", "transformer.b", "b"},
        {"model.diffusion_model.a", "vae.b", "model.diffusion_model.a"}, /* two models in one file */
        {"transformer_blocks.0.a", "transformer_blocks.1.a", "transformer_blocks.1.a"},
    };
    const char *path = test_path("prefix.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_checkpoint cp;
        write_shard(path, cases[i].first, cases[i].second);
        assert_ok(lk_checkpoint_open_file(&cp, path));
        assert_string_equal(lk_checkpoint_place(&cp), path);
        if (!lk_checkpoint_find(&cp, cases[i].find)) fail_msg("%s is not found", cases[i].find);
        lk_checkpoint_close(&cp);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_one_file_or_shards),
        cmocka_unit_test(shards_missing_swapped_or_cut),
        cmocka_unit_test(bad_indexes),
        cmocka_unit_test(links_out_of_the_folder),
        cmocka_unit_test(a_file_that_changes_is_noticed),
        cmocka_unit_test(finds_models_in_the_cache),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(reads_a_snapshot_of_links_read_only),
        cmocka_unit_test(names_behind_a_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
