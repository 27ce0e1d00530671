#include "tests/common/config_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"

static char folder[1024];

const char *test_copied(const char *file) {
    static char ring[4][2048];
    static int i;
    char *path = ring[i++ % 4];
    snprintf(path, sizeof *ring, "%s/%s", folder, file);
    return path;
}

const char *test_copy_files(const char *name, const char *from, const char *const *files) {
    snprintf(folder, sizeof folder, "%s", test_path(name));
    mkdir(folder, 0777);
    for (; *files; files++) {
        char path[1024];
        snprintf(path, sizeof path, "%s", test_copied(*files));
        unlink(path);
        *strrchr(path, '/') = 0;
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s", from, *files);
        if (access(path, R_OK)) continue;
        size_t n;
        char *bytes = test_read(path, &n);
        test_write(test_copied(*files), bytes, n);
        free(bytes);
    }
    return folder;
}

static void put_json(const char *file, const cJSON *json) {
    char *text = cJSON_Print(json);
    test_write(test_copied(file), text, strlen(text));
    cJSON_free(text);
}

void test_set_key(const char *file, const char *key, const char *value) {
    char *text = test_read(test_copied(file), NULL);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    cJSON_DeleteItemFromObjectCaseSensitive(root, key);
    if (value) cJSON_AddItemToObject(root, key, cJSON_Parse(value));
    put_json(file, root);
    cJSON_Delete(root);
    free(text);
}

static enum lk_code try_open(test_open *open) {
    int64_t live = lk_alloc_live();
    enum lk_code rc = open(folder);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

void test_changes_are_refused(test_open *open, const struct test_change *changes, size_t n) {
    for (const struct test_change *c = changes; c < changes + n; c++) {
        char *text = test_read(test_copied(c->file), NULL);
        test_set_key(c->file, c->key, c->value);
        enum lk_code rc = try_open(open);
        const char *part = c->part ? c->part : c->key;
        if ((c->code ? rc != c->code : lk_exit_code(rc) != 3) || !strstr(lk_error_text(), part))
            fail_msg("%s: %s = %s: expected code %d and \"%s\", got %d: %s", c->file, c->key,
                     c->value ? c->value : "(removed)", (int)c->code, part, (int)rc,
                     rc ? lk_error_text() : "(no error)");
        test_write(test_copied(c->file), text, strlen(text));
        free(text);
    }
}

static bool among(const char *key, const char *const *list) {
    while (*list && strcmp(key, *list)) list++;
    return *list;
}

static int expect_refused(const struct test_keys *keys, const char *file, const cJSON *root, const char *key,
                          const char *what) {
    put_json(file, root);
    enum lk_code rc = try_open(keys->open);
    if (lk_exit_code(rc) != 3 || !strstr(lk_error_text(), key) ||
        !strstr(lk_error_text(), strrchr(file, '/') ? strrchr(file, '/') + 1 : file))
        fail_msg("%s: key \"%s\" %s: expected a refusal that names both, got code %d: %s", file, key, what, (int)rc,
                 rc ? lk_error_text() : "(no error)");
    return 1;
}

/* A fresh parse of `text`; *object is the root, or the member named `inside`. */
static cJSON *parse(const char *text, const char *inside, cJSON **object) {
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    *object = inside ? cJSON_GetObjectItemCaseSensitive(root, inside) : root;
    return root;
}

static int vary_key(const struct test_keys *keys, const char *file, const char *text, const char *inside,
                    const char *key) {
    cJSON *object, *root = parse(text, inside, &object);
    bool is_text = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(object, key));
    cJSON_ReplaceItemInObjectCaseSensitive(object, key, is_text ? cJSON_CreateNumber(7) : cJSON_CreateString("seven"));
    expect_refused(keys, file, root, key, "of the wrong type");
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (!among(key, keys->optional)) {
        /* Without the newer form of the rope settings the older one is looked for. */
        expect_refused(keys, file, root, strcmp(key, "rope_parameters") ? key : "rope_theta", "removed");
    } else {
        put_json(file, root);
        enum lk_code rc = try_open(keys->open);
        if (keys->optional_open) assert_ok(rc);
    }
    cJSON_Delete(root);
    return 2;
}

static int vary_object(const struct test_keys *keys, const char *file, const char *text, const char *inside) {
    int n = 0;
    cJSON *object, *root = parse(text, inside, &object);
    for (const cJSON *item = object->child; item; item = item->next) {
        if (among(item->string, keys->inert)) continue;
        if (cJSON_IsObject(item) && !inside) n += vary_object(keys, file, text, item->string);
        n += vary_key(keys, file, text, inside, item->string);
    }
    cJSON_AddNumberToObject(object, "novel_key", 1);
    n += expect_refused(keys, file, root, "novel_key", "added");
    cJSON_Delete(root);
    return n;
}

int test_every_key_counts(const struct test_keys *keys) {
    int n = 0;
    assert_ok(try_open(keys->open));
    for (const char *const *file = keys->files; *file; file++) {
        char *text = test_read(test_copied(*file), NULL);
        n += vary_object(keys, *file, text, NULL);
        test_write(test_copied(*file), text, strlen(text));
        assert_ok(try_open(keys->open));
        free(text);
    }
    return n;
}
