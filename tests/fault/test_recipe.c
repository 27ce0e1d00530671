/* Recipes that were changed by hand: rerun says what is wrong in which file, as bad input, and never as a flag's fault.
 */
#include "tests/common/test.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "models/recipe.h"

#define MODEL "golden/data/flux2/deep/checkpoint"

static char made[512], changed[512], again[512], image_path[512];

static enum lk_code run(enum lk_code (*command)(const struct cli_arguments *), int argc, const char *const *argv) {
    struct cli_arguments a;
    assert_ok(cli_arguments_parse(&a, argc, argv));
    return command(&a);
}
#define RUN(command, ...)                                                                                              \
    run(command, (int)(sizeof((const char *[]){"likeness", __VA_ARGS__}) / sizeof(char *)),                            \
        (const char *const[]){"likeness", __VA_ARGS__})

static enum lk_code rerun(void) {
    return RUN(cli_rerun, "rerun", changed, "-m", MODEL, "-r", image_path, "-o", again, "-t", "2");
}

static void write_changed(const char *recipe, int n) {
    struct lk_image image;
    assert_ok(lk_image_read(&image, made, 0, 0));
    const struct lk_png_text texts[] = {{"likeness", recipe}, {"likeness", recipe}};
    assert_ok(lk_png_write(changed, &image, texts, n));
    lk_image_free(&image);
}

/* Writes the made picture's recipe n times into another, with `from` replaced by `to`. */
static void change(const char *from, const char *to, int n) {
    struct lk_recipe recipe;
    assert_ok(lk_recipe_read(&recipe, made));
    const char *at = strstr(recipe.text, from);
    assert_non_null(at);
    size_t size = strlen(recipe.text) + strlen(to) + 1;
    char *text = malloc(size);
    snprintf(text, size, "%.*s%s%s", (int)(at - recipe.text), recipe.text, to, at + strlen(from));
    write_changed(text, n);
    lk_recipe_free(&recipe);
    free(text);
}

static void changed_recipes(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"width\":32", "\"width\":32,\"size_level\":512",
         "field \"size_level\" of the recipe: flux2-dev has no such"},
        {"\"width\":32", "\"width\":32,\"thinking_mode\":true", "field \"thinking_mode\" of the recipe: flux2-dev has"},
        {"\"width\":32", "\"width\":33", "the recipe: width: expected a multiple of 4, got 33"},
        {"\"width\":32", "\"width\":0", "field \"width\""},
        {"\"width\":32", "\"depth\":32", "width"},
        {"\"text_encoder_out_layers\":[1,2,3]", "\"text_encoder_out_layers\":[1,2,99]", "the recipe: "},
        {"\"num_inference_steps\":1", "\"num_inference_steps\":1001", "field \"num_inference_steps\""},
        {"\"guidance_scale\":4", "\"guidance_scale\":-4", "field \"guidance_scale\""},
        {"\"dtype\":\"bf16\"", "\"dtype\":\"f16\"", "field \"dtype\": expected bf16|f32, got \"f16\""},
        {"\"seed\":42", "\"seed\":4.5", "field \"seed\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change(cases[i].from, cases[i].to, 1);
        enum lk_code rc = rerun();
        if (lk_exit_code(rc) != 3 || !strstr(lk_error_text(), cases[i].says) || !strstr(lk_error_text(), changed))
            fail_msg("%s: expected \"%s\", got %d: %s", cases[i].to, cases[i].says, rc, lk_error_text());
        assert_int_not_equal(access(again, F_OK), 0);
    }
    change("\"seed\":42", "\"seed\":42", 2);
    assert_fails(rerun(), LK_E_METADATA, "expected one recipe");
    assert_non_null(strstr(lk_error_text(), changed));
    change("\"seed\":42", "\"seed\":43", 1);
    assert_fails(rerun(), LK_E_CONFLICT, "made again from"); /* its noise is recorded */
    assert_int_equal(remove(again), 0);
}

/* Where things lay, and what `rerun` takes from its own command line. */
static bool is_free(const char *field) {
    static const char *const list[] = {".model", ".device", ".images.[].file", ".threads", ".exif_transpose"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (!strcmp(field, list[i])) return true;
    return false;
}

static int n_refused, n_conflicts;

static void try_recipe(cJSON *root, const char *field) {
    char *text = cJSON_PrintUnformatted(root);
    write_changed(text, 1);
    cJSON_free(text);
    enum lk_code rc = rerun();
    if (rc != LK_E_CONFLICT && lk_exit_code(rc) != 3) fail_msg("%s: falsified and passed: code %d", field, (int)rc);
    n_refused += rc != LK_E_CONFLICT;
    n_conflicts += rc == LK_E_CONFLICT;
    if (rc == LK_E_CONFLICT)
        assert_ok(
            RUN(cli_rerun, "rerun", changed, "-m", MODEL, "-r", image_path, "-o", again, "-t", "2", "--allow-other"));
}

/* Every value of the recipe falsified in turn: refused before the edit, or found after it. */
static void falsify(cJSON *root, cJSON *item, const char *above) {
    char field[256];
    snprintf(field, sizeof field, "%.180s%s%.60s", above, item == root ? "" : ".",
             item == root   ? ""
             : item->string ? item->string
                            : "[]");
    if (is_free(field)) return;
    if (cJSON_IsNumber(item)) {
        const double was = item->valuedouble;
        cJSON_SetNumberValue(item, was == 0 ? 1 : was / 2);
        try_recipe(root, field);
        cJSON_SetNumberValue(item, was);
    } else if (cJSON_IsString(item) && *item->valuestring) {
        char *last = item->valuestring + strlen(item->valuestring) - 1, was = *last;
        *last = was == '0' ? '1' : '0';
        try_recipe(root, field);
        *last = was;
    }
    for (cJSON *child = item->child; child; child = child->next) falsify(root, child, field);
}

static void falsified_recipes(void **state) {
    (void)state;
    struct lk_recipe recipe;
    assert_ok(lk_recipe_read(&recipe, made));
    write_changed(recipe.text, 1);
    assert_ok(rerun());
    cJSON *root = cJSON_Parse(recipe.text);
    falsify(root, root, "");
    printf("%d refused, %d found afterwards\n", n_refused, n_conflicts);
    assert_true(n_refused >= 15 && n_conflicts >= 15);
    /* What an older version did not record is no evidence; that it lacks is said. */
    cJSON_DeleteItemFromObject(root, "configs");
    char *text = cJSON_PrintUnformatted(root);
    write_changed(text, 1);
    cJSON_free(text);
    assert_ok(rerun());
    cJSON_Delete(root);
    lk_recipe_free(&recipe);
    remove(again);
}

/* What the first programs wrote is read as it was meant. */
static void old_recipe(void **state) {
    (void)state;
    struct lk_recipe recipe;
    change("\"exif_transpose\":true", "\"exif_transpose\":false", 1);
    assert_ok(lk_recipe_read(&recipe, changed));
    assert_false(recipe.job.run.exif_transpose);
    assert_true(lk_job_given(&recipe.job, lk_parameter_named("exif-transpose")));
    assert_false(lk_job_given(&recipe.job, lk_parameter_named("gemm")));
    assert_string_equal(recipe.job.run.gemm, "own");
    lk_recipe_free(&recipe);
}

static int setup(void **state) {
    (void)state;
    snprintf(made, sizeof made, "%s/recipe_made.png", getenv("TEST_TMPDIR"));
    snprintf(changed, sizeof changed, "%s/recipe_changed.png", getenv("TEST_TMPDIR"));
    snprintf(again, sizeof again, "%s/recipe_again.png", getenv("TEST_TMPDIR"));
    snprintf(image_path, sizeof image_path, "%s/recipe_source.png", getenv("TEST_TMPDIR"));
    struct lk_image image;
    assert_ok(lk_image_new(&image, 64, 68, 3));
    for (int i = 0; i < 64 * 68 * 3; i++) image.pixels[i] = (uint8_t)(i * 7);
    assert_ok(lk_png_write(image_path, &image, NULL, 0));
    lk_image_free(&image);
    remove(again);
    return RUN(cli_edit, "edit", "-m", MODEL, "-r", image_path, "-p", "x", "-W", "32", "-H", "32", "--steps", "1",
               "--max-sequence-length", "32", "--text-encoder-out-layers", "1,2,3", "-o", made, "-t", "2");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_recipes), cmocka_unit_test(falsified_recipes),
                                       cmocka_unit_test(old_recipe)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
