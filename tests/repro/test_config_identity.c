/* The identity of configs (weights/config_identity.h), over every key of every config and tokenizer of all families: a
 * change is refused, or named by file, or makes the same picture. */
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/text/chat.h"
#include "weights/config_identity.h"

/* A folder whose files are changed, and what it gives unchanged. */
struct subject {
    char folder[512];
    const struct tiny_edit *edit;
    struct tiny_job job; /* of the folder as it was */
    char picture[65];
    struct lk_device *dev;
    int n_refused, n_named, n_same;
};

static void picture_of(struct subject *s, struct lk_pipeline *pipeline, char sha256[65]) {
    struct lk_result result;
    assert_ok(lk_pipeline_edit(pipeline, s->dev, &s->job.request, &result));
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, sha256);
    lk_result_free(&result);
}

static void begin(struct subject *s, const struct tiny_edit *edit) {
    char command[1200];
    memset(s, 0, sizeof *s);
    s->edit = edit;
    snprintf(s->folder, sizeof s->folder, "%s", test_path("config_identity"));
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", s->folder, edit->checkpoint, s->folder);
    assert_int_equal(system(command), 0);
    tiny_job_open_with(&s->job, edit, s->folder, &(struct lk_pipeline_options){.compute = LK_F32}, 0);
    assert_ok(lk_device_cpu_create(1, &s->dev));
    picture_of(s, s->job.pipeline, s->picture);
}

static void end(struct subject *s) {
    tiny_job_close(&s->job);
    lk_device_free(s->dev);
}

/* The folder as it is now: *named is whether its identity is another. */
static enum lk_code look(struct subject *s, const char *file, const char *what, bool *named) {
    struct lk_pipeline *p;
    *named = false;
    enum lk_code rc = lk_pipeline_open(&p, s->folder, LK_F32);
    if (rc) {
        s->n_refused++;
        return rc;
    }
    *named = strcmp(lk_pipeline_configs(p), lk_pipeline_configs(s->job.pipeline)) != 0;
    if (*named) {
        assert_fails(lk_config_identity_check("a.png", s->folder, lk_pipeline_configs(s->job.pipeline),
                                              lk_pipeline_configs(p), NULL),
                     LK_E_CHANGED, file);
        s->n_named++;
    } else {
        char sha256[65];
        picture_of(s, p, sha256);
        if (strcmp(sha256, s->picture)) fail_msg("%s: %s: the identity is the same, the picture is not", file, what);
        s->n_same++;
    }
    lk_pipeline_close(p);
    return LK_OK;
}

static bool write_and_look(struct subject *s, const char *file, const cJSON *root, const char *what) {
    char path[1200], *text = cJSON_Print(root);
    bool named;
    snprintf(path, sizeof path, "%s/%s", s->folder, file);
    test_write(path, text, strlen(text));
    cJSON_free(text);
    look(s, file, what, &named);
    return named;
}

/* Each value below `item` changed in turn, in up to three ways. */
static void vary(struct subject *s, const char *file, cJSON *root, cJSON *item, const char *above) {
    char name[256];
    snprintf(name, sizeof name, "%.180s.%.60s", above, item->string ? item->string : "[]");
    if (item->string && (!strcmp(item->string, "vocab") || !strcmp(item->string, "merges"))) return;
    if (cJSON_IsNumber(item)) {
        const double was = item->valuedouble, others[] = {was * 2, was + 1, was / 2};
        for (int i = 0; i < 3; i++) {
            cJSON_SetNumberValue(item, others[i]);
            if (others[i] != was) write_and_look(s, file, root, name);
        }
        cJSON_SetNumberValue(item, was);
    } else if (cJSON_IsBool(item)) {
        item->type ^= cJSON_True | cJSON_False;
        write_and_look(s, file, root, name);
        item->type ^= cJSON_True | cJSON_False;
    } else if (cJSON_IsString(item)) {
        char *was = item->valuestring, longer[4096];
        snprintf(longer, sizeof longer, "%.4000sx", was);
        item->valuestring = longer;
        write_and_look(s, file, root, name);
        item->valuestring = was;
    }
    for (cJSON *child = item->child; child; child = child->next) vary(s, file, root, child, name);
}

/* The same values in other words: keys from the last to the first, notes of the tools that write configs. */
static cJSON *reversed(const cJSON *item) {
    if (!cJSON_IsObject(item)) return cJSON_Duplicate(item, true);
    cJSON *out = cJSON_CreateObject();
    for (int i = cJSON_GetArraySize(item); i-- > 0;) {
        const cJSON *child = cJSON_GetArrayItem(item, i);
        cJSON_AddItemToObject(out, child->string, reversed(child));
    }
    return out;
}

static void say_the_same(struct subject *s, const char *file, const cJSON *root) {
    cJSON *same = reversed(root);
    for (int i = 0; i < 2; i++) {
        static const char *const notes[] = {"_diffusers_version", "_name_or_path"};
        const int before = s->n_refused;
        assert_false(write_and_look(s, file, same, "the order of keys"));
        assert_int_equal(s->n_refused, before);
        if (!cJSON_HasObjectItem(same, notes[i])) continue;
        cJSON_ReplaceItemInObjectCaseSensitive(same, notes[i], cJSON_CreateString("/somewhere/0.99"));
        assert_false(write_and_look(s, file, same, notes[i]));
        assert_int_equal(s->n_refused, before);
    }
    cJSON_Delete(same);
}

static void vary_file(struct subject *s, const char *file) {
    char path[1200];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", s->folder, file);
    char *text = test_read(path, &n);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    say_the_same(s, file, root);
    vary(s, file, root, root, "");
    test_write(path, text, n);
    cJSON_Delete(root);
    free(text);
}

/* Files that the pipeline has read, by its own identity. */
static void every_key_counts(void **state) {
    (void)state;
    for (int k = 0; k < TINY_FAMILIES; k++) {
        struct subject s;
        begin(&s, &tiny_edits[k]);
        cJSON *files = cJSON_Parse(lk_pipeline_configs(s.job.pipeline));
        const cJSON *file;
        assert_true(cJSON_GetArraySize(files) >= 6);
        cJSON_ArrayForEach(file, files) vary_file(&s, file->string);
        cJSON_Delete(files);
        printf("%s: %d changes refused, %d named, %d make the same picture\n", s.edit->name, s.n_refused, s.n_named,
               s.n_same);
        assert_true(s.n_refused > 100 && s.n_named > 100 && s.n_same > 20);
        end(&s);
    }
}

/* A default is the value that it stands for. */
static void defaults_count_as_written(void **state) {
    (void)state;
    static const struct {
        const char *key, *value;
    } defaults[] = {{"base_shift", "0.5"},
                    {"shift_terminal", "0"},
                    {"max_image_seq_len", "4096"},
                    {"time_shift_type", "\"exponential\""},
                    {"use_karras_sigmas", "false"}};
    static const char file[] = "scheduler/scheduler_config.json";
    struct subject s;
    char path[1200];
    begin(&s, &tiny_edits[0]);
    snprintf(path, sizeof path, "%s/%s", s.folder, file);
    char *text = test_read(path, NULL);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        cJSON *root = cJSON_Parse(text);
        cJSON_DeleteItemFromObject(root, defaults[i].key);
        assert_false(write_and_look(&s, file, root, defaults[i].key));
        cJSON_AddItemToObject(root, defaults[i].key, cJSON_Parse(defaults[i].value));
        assert_false(write_and_look(&s, file, root, defaults[i].key));
        cJSON_Delete(root);
    }
    assert_int_equal(s.n_same, 10);
    free(text);
    end(&s);
}

/* The same lines in another order, from one look at the file or two. */
static void the_order_of_reading_does_not_count(void **state) {
    (void)state;
    static const char *const looks[3][2] = {
        {"a 1\nb 2\n", "c 3\n"}, {"c 3\nb 2\n", "b 2\na 1\n"}, {"a 1\nb 2\n", "c 4\n"}};
    char *texts[3];
    for (int i = 0; i < 3; i++) {
        assert_ok(lk_config_identity_begin("model"));
        assert_fails(lk_config_identity_begin("another"), LK_E_INTERNAL, "another: opened while model is");
        assert_true(lk_config_identity_wants("model/b.json"));
        assert_false(lk_config_identity_wants("models/b.json"));
        for (int k = 0; k < 2; k++) {
            lk_config_identity_add(k == i % 2 ? "model/b.json" : "model/a.json", "x 1\n");
            lk_config_identity_add("model/b.json", looks[i][k]);
            lk_config_identity_add("other/b.json", looks[i][k]);
        }
        assert_ok(lk_config_identity_end(LK_OK, &texts[i]));
        assert_null(strstr(texts[i], "other"));
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
    for (int i = 0; i < 3; i++) lk_free(texts[i]);
}

/* What no file in the folder says is no part of it. */
static void other_files_do_not_count(void **state) {
    (void)state;
    struct subject s;
    char path[1200];
    bool named;
    begin(&s, &tiny_edits[0]);
    snprintf(path, sizeof path, "%s/text_encoder/generation_config.json", s.folder);
    test_write(path, "{}", 2);
    assert_ok(look(&s, "generation_config.json", "of another program", &named));
    assert_false(named);
    end(&s);
}

/* Of two merges, "a b" or ["a", "b"]. */
static void swap_values(cJSON *a, cJSON *b) {
    cJSON *child = a->child;
    char *text = a->valuestring;
    a->child = b->child;
    a->valuestring = b->valuestring;
    b->child = child;
    b->valuestring = text;
}

/* Names in the order of ids, and merges, of the tokenizer of each family. */
static void vary_tokens(struct subject *s, const char *file) {
    char path[1200];
    size_t n;
    uint64_t random = 5;
    snprintf(path, sizeof path, "%s/%s", s->folder, file);
    char *text = test_read(path, &n);
    cJSON *root = cJSON_Parse(text), *model = cJSON_GetObjectItem(root, "model");
    cJSON *vocab = cJSON_GetObjectItem(model, "vocab"), *merges = cJSON_GetObjectItem(model, "merges");
    const int n_vocab = cJSON_GetArraySize(vocab), n_merges = cJSON_GetArraySize(merges);
    for (int i = 0; i < 12; i++) {
        cJSON *a = cJSON_GetArrayItem(vocab, (int)(test_random(&random) % (uint64_t)n_vocab));
        cJSON *b = a->next ? a->next : vocab->child;
        const double id = a->valuedouble;
        const int refused = s->n_refused;
        cJSON_SetNumberValue(a, b->valuedouble);
        cJSON_SetNumberValue(b, id);
        assert_true(write_and_look(s, file, root, "two ids changed places") || s->n_refused > refused);
        cJSON_SetNumberValue(b, a->valuedouble);
        cJSON_SetNumberValue(a, id);
        cJSON *merge = cJSON_GetArrayItem(merges, (int)(test_random(&random) % (uint64_t)(n_merges - 1)));
        swap_values(merge, merge->next);
        assert_true(write_and_look(s, file, root, "two merges changed places"));
        swap_values(merge, merge->next);
    }
    cJSON *last = cJSON_DetachItemFromArray(merges, n_merges - 1);
    assert_true(write_and_look(s, file, root, "a merge left out"));
    cJSON_AddItemToArray(merges, last);
    assert_false(write_and_look(s, file, root, "as it was"));
    cJSON *splits = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "pre_tokenizer"), "pretokenizers");
    cJSON *regex = cJSON_GetObjectItem(cJSON_GetObjectItem(splits->child, "pattern"), "Regex");
    char *was = regex->valuestring, other[1024];
    snprintf(other, sizeof other, "%.1000s|q", was);
    regex->valuestring = other;
    assert_true(write_and_look(s, file, root, "another pattern"));
    regex->valuestring = was;
    const bool ignored = cJSON_IsTrue(cJSON_GetObjectItem(model, "ignore_merges"));
    cJSON_DeleteItemFromObject(model, "ignore_merges");
    cJSON_AddBoolToObject(model, "ignore_merges", !ignored);
    assert_true(write_and_look(s, file, root, "ignore_merges"));
    test_write(path, text, n);
    cJSON_Delete(root);
    free(text);
}

static void every_part_of_a_tokenizer_counts(void **state) {
    (void)state;
    static const char *const files[] = {"tokenizer/tokenizer.json", "processor/tokenizer.json",
                                        "processor/tokenizer.json"};
    for (int k = 0; k < TINY_FAMILIES; k++) {
        struct subject s;
        begin(&s, &tiny_edits[k]);
        vary_tokens(&s, files[k]);
        assert_true(s.n_named >= 14);
        end(&s);
    }
}

/* A chat reads files of its own. */
static void a_chat_has_an_identity_too(void **state) {
    (void)state;
    struct subject s;
    struct lk_chat *chat;
    char path[1200];
    begin(&s, &tiny_edits[0]);
    assert_ok(lk_chat_open(&chat, s.folder, LK_F32));
    char *before = lk_strdup(lk_chat_configs(chat));
    lk_chat_close(chat);
    assert_non_null(before);
    assert_non_null(strstr(before, "\"text_encoder/generation_config.json\""));
    assert_non_null(strstr(before, "\"tokenizer/tokenizer.json\""));
    assert_null(strstr(before, "scheduler"));
    snprintf(path, sizeof path, "%s/text_encoder/generation_config.json", s.folder);
    test_write(path, "{\"do_sample\": true, \"temperature\": 0.5}", 39);
    assert_ok(lk_chat_open(&chat, s.folder, LK_F32));
    assert_fails(lk_config_identity_check("judge.jsonl", s.folder, before, lk_chat_configs(chat), NULL), LK_E_CHANGED,
                 "text_encoder/generation_config.json");
    lk_chat_close(chat);
    lk_free(before);
    end(&s);
}

/* Out of memory anywhere, the folder is not opened, and can be afterwards. */
static void every_failing_allocation_is_an_error(void **state) {
    (void)state;
    struct subject s;
    struct lk_pipeline *p = NULL;
    begin(&s, &tiny_edits[0]);
    const int64_t live = lk_alloc_live();
    int n_failed = 0;
    for (int64_t n = 1; n < 3000; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_pipeline_open(&p, s.folder, LK_F32);
        lk_alloc_fail_at(0);
        if (!rc) { /* it was one that the open can do without, or none */
            assert_string_equal(lk_pipeline_configs(p), lk_pipeline_configs(s.job.pipeline));
            lk_pipeline_close(p);
        }
        n_failed += rc != LK_OK;
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n_failed > 500);
    end(&s);
}

static void texts_that_are_none(void **state) {
    (void)state;
    assert_fails(lk_config_identity_check("a.png", "m", "[]", "{}", NULL), LK_E_METADATA, "a.png");
    assert_fails(lk_config_identity_check("a.png", "m", "{\"a\":\"1\"}", "{}", NULL), LK_E_CHANGED, "m/a: ");
    assert_fails(lk_config_identity_check("a.png", "m", "{}", "{\"b\":\"1\"}", NULL), LK_E_CHANGED, "m/b: ");
    assert_ok(lk_config_identity_check("a.png", "m", "{\"a\":\"1\"}", "{\"a\":\"1\"}", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_counts),
        cmocka_unit_test(defaults_count_as_written),
        cmocka_unit_test(the_order_of_reading_does_not_count),
        cmocka_unit_test(other_files_do_not_count),
        cmocka_unit_test(every_part_of_a_tokenizer_counts),
        cmocka_unit_test(a_chat_has_an_identity_too),
        cmocka_unit_test(every_failing_allocation_is_an_error),
        cmocka_unit_test(texts_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
