/* The Hugging Face cache in the layouts it has had, and where the environment says it is. */
#include "tests/common/test.h"

#include <stdlib.h>

#include "engine/base/alloc.h"
#include "weights/checkpoint.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define BLOB   "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

/* Where a file of a snapshot or of a folder may lead, by the layouts that the HF library has had. The file is FROM, a
 * link to TO, both below a folder that has hub/ (a cache), moved/ (another disk) and local/ (a folder of the user's).
 * digest: what verify is told. */
#define HUB  "hub/models--org--name/"
#define SNAP HUB "snapshots/" COMMIT "/"
#define XET  "11223344556677889900aabbccddeeff11223344556677889900aabbccddeeff"
static void links_of_every_layout(void **state) {
    static const char git[] = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    static const struct {
        const char *what, *links, *folder; /* links: "FROM>TO" with blanks between */
        bool opens;
        const char *digest;
    } cases[] = {
        {"a blob", SNAP "f>../../blobs/" BLOB, SNAP, true, BLOB},
        {"a blob named by git", SNAP "f>../../blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709", SNAP, true, git},
        {"a blob in the store of all repositories",
         HUB "blobs/" BLOB ">../../blobs/11/" XET " " SNAP "f>../../blobs/" BLOB, SNAP, true, BLOB},
        {"the same, by absolute links", HUB "blobs/" BLOB ">=hub/blobs/11/" XET " " SNAP "f>=" HUB "blobs/" BLOB, SNAP,
         true, BLOB},
        {"straight into the store", SNAP "f>../../../blobs/11/" XET, SNAP, true, ""},
        {"a store on another disk",
         "hub/blobs>=moved/store " HUB "blobs/" BLOB ">../../blobs/11/" XET " " SNAP "f>../../blobs/" BLOB, SNAP, true,
         BLOB},
        {"blobs on another disk", HUB "blobs>=moved/blobs " SNAP "f>../../blobs/" BLOB, SNAP, true, BLOB},
        {"a repository on another disk", "hub/models--org--name>=moved/models--org--name " SNAP "f>../../blobs/" BLOB,
         SNAP, true, BLOB},
        {"a cache on another disk", "hub>=moved/hub " SNAP "f>../../blobs/" BLOB, SNAP, true, BLOB},
        {"a file itself", "", SNAP, true, ""},
        {"a link within the snapshot", SNAP "f>g", SNAP, true, ""},
        {"a blob of another repository", SNAP "f>../../../models--org--other/blobs/" BLOB, SNAP, true, BLOB},
        {"elsewhere in the cache", SNAP "f>../../refs/f", SNAP, true, ""},
        {"out of the cache", SNAP "f>=moved/f", SNAP, false, ""},
        {"a blob that leads out of the cache", HUB "blobs/" BLOB ">=moved/f " SNAP "f>../../blobs/" BLOB, SNAP, false,
         BLOB},
        {"a store without its mark", HUB "blobs/" BLOB ">=moved/unmarked/11/" XET " " SNAP "f>../../blobs/" BLOB, SNAP,
         false, BLOB},
        {"a cache beside it", SNAP "f>=hub2/models--org--name/blobs/" BLOB, SNAP, false, BLOB},
        {"a folder linked to a snapshot", "local>" SNAP " " SNAP "f>../../blobs/" BLOB, "local/", true, BLOB},
        {"a folder of links to blobs", "local/f>=" HUB "blobs/" BLOB, "local/", true, BLOB},
        {"a folder of links to blobs in the store",
         HUB "blobs/" BLOB ">../../blobs/11/" XET " local/f>=" HUB "blobs/" BLOB, "local/", true, BLOB},
        {"a folder of links to a snapshot", SNAP "f>../../blobs/" BLOB " local/f>=" SNAP "f", "local/", true, BLOB},
        {"a folder of files", "", "local/", true, ""},
        {"a folder of files with what the library kept", "m>nothing", "local/", true, BLOB},
        {"a folder with a link out", "local/f>../moved/f", "local/", false, ""},
        {"a folder with a link that a blob's name only seems to pass", "local/f>=moved/blobs/" BLOB, "local/", false,
         ""},
        {"a component elsewhere", "local>moved/whole", "local/", true, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[1024], copy[1024], digest[65], *path, *rest = NULL;
        snprintf(root, sizeof root, "%s", test_fresh("layouts"));
        snprintf(copy, sizeof copy, "%s", cases[i].links);
        char command[16384];
        snprintf(command, sizeof command,
                 "cd '%s' && mkdir -p moved/store/11 moved/blobs moved/hub moved/models--org--name moved/whole "
                 "moved/unmarked/11 hub2/models--org--name/blobs && touch moved/store/.huggingface-shared-blobs",
                 root);
        assert_int_equal(system(command), 0);
        for (char *link = strtok_r(copy, " ", &rest); link; link = strtok_r(NULL, " ", &rest)) {
            char *to = strchr(link, '>');
            *to++ = 0;
            snprintf(command, sizeof command, "cd '%s' && mkdir -p \"$(dirname %s)\" && ln -s '%s%s%s' %s", root, link,
                     *to == '=' ? root : "", *to == '=' ? "/" : "", *to == '=' ? to + 1 : to, link);
            if (strcmp(link, "m")) assert_int_equal(system(command), 0);
        }
        /* What is not there yet is made, through the links. */
        snprintf(command, sizeof command,
                 "cd '%s' && mkdir -p " SNAP " hub/models--org--other/blobs " HUB "blobs " HUB "refs hub/blobs/11 && "
                 "( [ -e local ] || mkdir local ) && touch hub/blobs/.huggingface-shared-blobs hub/blobs/11/" XET
                 " moved/unmarked/11/" XET " moved/f " HUB "refs/f " HUB "blobs/%s hub2/models--org--name/blobs/" BLOB
                 " hub/models--org--other/blobs/" BLOB " moved/blobs/" BLOB " " SNAP "g && touch " HUB "blobs/" BLOB
                 " " SNAP "f local/f",
                 root, git);
        assert_int_equal(system(command), 0);
        if (!strncmp(cases[i].links, "m>", 2)) {
            snprintf(command, sizeof command,
                     "cd '%s/local' && mkdir -p .cache/huggingface/download && printf '" COMMIT "\n" BLOB
                     "\n1700000000.5\n' > .cache/huggingface/download/f.metadata",
                     root);
            assert_int_equal(system(command), 0);
        }
        char folder[2048];
        snprintf(folder, sizeof folder, "%s/%.*s", root, (int)strlen(cases[i].folder) - 1, cases[i].folder);
        enum lk_code rc = lk_model_path(folder, "f", &path);
        if (rc != (cases[i].opens ? LK_OK : LK_E_ESCAPES)) fail_msg("%s: %s", cases[i].what, lk_error_text());
        if (rc) assert_non_null(strstr(lk_error_text(), "--follow-links"));
        lk_free(path);
        lk_model_follow_links(true);
        assert_ok(lk_model_path(folder, "f", &path));
        lk_model_follow_links(false);
        lk_free(path);
        assert_ok(lk_model_digest(folder, "f", digest));
        if (strcmp(digest, cases[i].digest)) fail_msg("%s: digest %s", cases[i].what, digest);
    }
}

/* The cache's folder from the environment, as huggingface_hub 2.4 reads it; but an empty variable, which it takes for
 * the current folder, says nothing here. %: the folder of the test, which is HOME. */
static void the_cache_by_the_environment(void **state) {
    static const struct {
        const char *variables[4]; /* NAME=VALUE */
        const char *cache;
    } cases[] = {
        {{"HF_HUB_CACHE=%/a"}, "%/a"},
        {{"HF_HUB_CACHE=~/a"}, "%/a"},
        {{"HF_HUB_CACHE=$HOME/a"}, "%/a"},
        {{"HF_HUB_CACHE=${HOME}/a"}, "%/a"},
        {{"U=%/u", "HF_HUB_CACHE=$U/a"}, "%/u/a"},
        {{"U=u", "HF_HUB_CACHE=~/${U}x"}, "%/ux"},
        {{"U=u", "HF_HUB_CACHE=~/$U.x"}, "%/u.x"},
        {{"HF_HUB_CACHE=%/$NO_SUCH/a"}, "%/$NO_SUCH/a"},
        {{"HF_HUB_CACHE=%/a$"}, "%/a$"},
        {{"HF_HUB_CACHE=%/${"}, "%/${"},
        {{"HF_HUB_CACHE=%/~/a"}, "%/~/a"},
        {{"HF_HUB_CACHE=%/a", "HUGGINGFACE_HUB_CACHE=%/b", "HF_HOME=%/c", "XDG_CACHE_HOME=%/d"}, "%/a"},
        {{"HUGGINGFACE_HUB_CACHE=%/b", "HF_HOME=%/c", "XDG_CACHE_HOME=%/d"}, "%/b"},
        {{"HUGGINGFACE_HUB_CACHE=~/b"}, "%/b"},
        {{"HF_HOME=%/c", "XDG_CACHE_HOME=%/d"}, "%/c/hub"},
        {{"HF_HOME=~/c"}, "%/c/hub"},
        {{"U=%", "HF_HOME=$U/c"}, "%/c/hub"},
        {{"HF_HOME=~"}, "%/hub"},
        {{"XDG_CACHE_HOME=%/d"}, "%/d/huggingface/hub"},
        {{"XDG_CACHE_HOME=~/d"}, "%/d/huggingface/hub"},
        {{NULL}, "%/.cache/huggingface/hub"},
        {{"HF_HUB_CACHE=", "HF_HOME=%/c"}, "%/c/hub"},
    };
    static const char *const names[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "U"};
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[1024], cache[2048], value[2048], expected[4096], command[8192], *path;
        snprintf(root, sizeof root, "%s", test_fresh("environment"));
        setenv("HOME", root, 1);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) unsetenv(names[k]);
        for (size_t k = 0; k < 4 && cases[i].variables[k]; k++) {
            char name[64];
            const char *text = strchr(cases[i].variables[k], '=') + 1;
            snprintf(name, sizeof name, "%.*s", (int)(text - cases[i].variables[k]) - 1, cases[i].variables[k]);
            snprintf(value, sizeof value, "%s%s", *text == '%' ? root : "", text + (*text == '%'));
            setenv(name, value, 1);
        }
        snprintf(cache, sizeof cache, "%s%s", root, cases[i].cache + 1);
        snprintf(command, sizeof command,
                 "mkdir -p '%s/models--org--name/refs' '%s/models--org--name/snapshots/" COMMIT "' && printf " COMMIT
                 " > '%s/models--org--name/refs/main'",
                 cache, cache, cache);
        assert_int_equal(system(command), 0);
        snprintf(expected, sizeof expected, "%s/models--org--name/snapshots/" COMMIT, cache);
        if (lk_model_find("org/name", &path)) fail_msg("case %zu: %s", i, lk_error_text());
        assert_string_equal(path, expected);
        lk_free(path);
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) unsetenv(names[k]);
    char *path; /* a folder may be written so, too */
    assert_ok(lk_model_find("~/", &path));
    lk_free(path);
    assert_fails(lk_model_find("~/no/such", &path), LK_E_NOT_FOUND, "~/no/such");
    setenv("HOME", home, 1);
    free(home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_of_every_layout),
        cmocka_unit_test(the_cache_by_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
