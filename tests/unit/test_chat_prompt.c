/* A conversation with Mistral-Small-3 as ids: template, tokens of pictures, order of parts; and what a folder that
 * lacks something says. The model is FLUX.2's tiny text encoder. */
#include "tests/common/test.h"

#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/flux2/flux2.h"
#include "models/text/chat_internal.h"

static char folder[1024];

static int make_model(void **state) {
    (void)state;
    char command[2600];
    const char *build = getenv("BUILD_DIR");
    snprintf(folder, sizeof folder, "%s", test_path("chat_prompt"));
    snprintf(command, sizeof command,
             "rm -rf '%s' && '%s/make_checkpoint' --family flux2 --preset tiny --shard-bytes 720000 '%s'", folder,
             build ? build : "../build", folder);
    return system(command);
}

static void expect_rendered(const struct lk_chat_message *messages, int n, const char *expected) {
    char *text;
    assert_ok(lk_chat_string_mistral(messages, n, false, &text));
    assert_string_equal(text, expected);
    lk_free(text);
}

static void the_template_never_asks_for_the_date(void **state) {
    (void)state;
    const struct lk_image photo = {0};
    const struct lk_chat_part system = {.text = "Judge."}, answer = {.text = "Yes"}, again = {.text = "Why?"};
    const struct lk_chat_part parts[] = {
        {.text = "SOURCE IMAGE:"}, {.image = &photo}, {.text = "EDITED IMAGE:"}, {.image = &photo}, {.text = "Same?"}};
    const struct lk_chat_message talk[] = {
        {"system", &system, 1}, {"user", parts, 5}, {"assistant", &answer, 1}, {"user", &again, 1}};
    expect_rendered(talk + 1, 1,
                    "<s>[SYSTEM_PROMPT]You are a helpful assistant.[/SYSTEM_PROMPT]"
                    "[INST]SOURCE IMAGE:[IMG]EDITED IMAGE:[IMG]Same?[/INST]");
    expect_rendered(talk, 4,
                    "<s>[SYSTEM_PROMPT]Judge.[/SYSTEM_PROMPT][INST]SOURCE IMAGE:[IMG]EDITED IMAGE:[IMG]Same?[/INST]"
                    "Yes</s>[INST]Why?[/INST]");
}

/* Two rows of three, and one patch more each way that rounds up. */
static void pictures_are_rows_that_end(void **state) {
    (void)state;
    struct lk_chat *chat;
    struct lk_image wide = {0}, thin = {0};
    struct chat_prompt prompt;
    assert_ok(lk_chat_open(&chat, folder, LK_F32));
    assert_string_equal(lk_chat_family(chat), "mistral3");
    assert_ok(lk_image_new(&wide, 84, 56, 3));
    assert_ok(lk_image_new(&thin, 20, 57, 4));
    memset(wide.pixels, 1, 84 * 56 * 3);
    memset(thin.pixels, 1, 20 * 57 * 4);
    const struct lk_chat_part parts[] = {{.image = &wide}, {.text = "a"}, {.image = &thin}};
    const struct lk_chat_message ask = {"user", parts, 3};
    struct lk_chat_request request;
    lk_chat_request_init(&request, chat);
    assert_int_equal(request.generation.stop_ids[0], 2);
    request.messages = &ask;
    request.n_messages = 1;
    assert_ok(lk_chat_prompt_make(&prompt, chat, &request));
    const int32_t expected[] = {10, 10, 10, 12, 10, 10, 10, 13};
    const int32_t second[] = {10, 12, 10, 12, 10, 13, 4};
    assert_int_equal(prompt.n_images, 2);
    assert_int_equal(prompt.n_image_tokens, 9);
    assert_memory_equal(prompt.ids + prompt.after_image[0] - 8, expected, sizeof expected);
    assert_memory_equal(prompt.ids + prompt.after_image[1] - 6, second, sizeof second);
    assert_int_equal(prompt.n_ids, prompt.after_image[1] + 1);
    assert_int_equal(prompt.ids[0], 1);
    assert_int_equal(prompt.ids[1], 17);
    lk_chat_prompt_free(&prompt);
    lk_image_free(&wide);
    lk_image_free(&thin);
    lk_chat_close(chat);
}

static void without_the_last_shards_one_edits_but_does_not_judge(void **state) {
    (void)state;
    static const int out_layers[] = {10, 20, 30};
    struct lk_chat *chat;
    struct lk_pipeline *pipeline;
    struct lk_request request;
    char path[1100], aside[1100];
    snprintf(path, sizeof path, "%s/text_encoder/model-00002-of-00002.safetensors", folder);
    snprintf(aside, sizeof aside, "%s/aside", folder);
    assert_int_equal(rename(path, aside), 0);
    assert_fails(lk_chat_open(&chat, folder, LK_F32), LK_E_SHARD,
                 "model-00002-of-00002.safetensors; they hold the last layers and the output head");
    assert_non_null(strstr(lk_error_text(), "editing with FLUX.2 does not need them"));
    assert_ok(lk_pipeline_open(&pipeline, folder, LK_F32));
    lk_request_init(&request, pipeline);
    memcpy(request.text_encoder_out_layers, out_layers, sizeof out_layers);
    request.n_text_encoder_out_layers = 3;
    assert_ok(lk_flux2_bind_text(pipeline, &request, false));
    request.text_encoder_out_layers[2] = 31;
    assert_fails(lk_flux2_bind_text(pipeline, &request, false), LK_E_SHARD, "shards are missing");
    lk_pipeline_close(pipeline);
    assert_int_equal(rename(aside, path), 0);
}

/* The ten shards of the release, of which the last two are missing. */
static void all_missing_shards_are_named(void **state) {
    (void)state;
    char command[2600], path[1024];
    struct lk_config *json;
    struct lk_mistral3_config config;
    struct lk_mistral3 m;
    struct lk_checkpoint checkpoint;
    snprintf(path, sizeof path, "%s", test_path("ten_shards"));
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r golden/data/mistral3/silu/checkpoint '%s'", path, path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "rm '%s'/model-00009-* '%s'/model-00010-*", path, path);
    assert_int_equal(system(command), 0);
    assert_fails(lk_checkpoint_open(&checkpoint, path, "model"), LK_E_SHARD, "model-00009-of-00010");
    assert_ok(lk_checkpoint_open_present(&checkpoint, path, "model"));
    assert_string_equal(checkpoint.missing.bytes, "model-00009-of-00010.safetensors, model-00010-of-00010.safetensors");
    assert_ok(lk_config_open(&json, "golden/data/mistral3/silu/checkpoint/config.json"));
    assert_ok(lk_mistral3_config_read(&config, json));
    assert_fails(lk_mistral3_bind(&m, &config, &checkpoint, LK_F32), LK_E_SHARD, "model-00010-of-00010");
    struct lk_mistral text;
    assert_ok(lk_mistral_bind(&text, &config.text, 1, &checkpoint, LK_F32));
    lk_mistral_free(&text);
    lk_checkpoint_close(&checkpoint);
}

/* What would compute another network is refused, not ignored. */
static void other_networks_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *key;
    } cases[] = {
        {"\"spatial_merge_size\": 2", "\"spatial_merge_size\": 4", "spatial_merge_size"},
        {"\"vision_feature_layer\": -1", "\"vision_feature_layer\": -2", "vision_feature_layer"},
        {"\"projector_hidden_act\": \"gelu\"", "\"projector_hidden_act\": \"relu\"", "projector_hidden_act"},
        {"\"hidden_act\": \"silu\",\n    \"hidden_size\": 32", "\"hidden_act\": \"relu\",\n    \"hidden_size\": 32",
         "hidden_act"},
        {"\"rope_type\": \"axial\"", "\"rope_type\": \"yarn\"", "rope_type"},
        {"\"model_type\": \"pixtral\"", "\"model_type\": \"siglip\"", "model_type"},
        {"\"num_channels\": 3", "\"num_channels\": 1", "num_channels"},
        {"\"head_dim\": 16", "\"head_dim\": 8", "head_dim"},
    };
    size_t n;
    char *original = test_read("golden/data/mistral3/silu/checkpoint/config.json", &n);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_config *json;
        struct lk_mistral3_config config;
        char text[4096];
        const char *at = strstr(original, cases[i].from);
        if (!at) fail_msg("%s is not in the config", cases[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - original), original, cases[i].to,
                 at + strlen(cases[i].from));
        assert_ok(lk_config_parse(&json, text, strlen(text), "config.json"));
        enum lk_code rc = lk_mistral3_config_read(&config, json);
        if (rc != LK_E_CONFIG_VALUE || !strstr(lk_error_text(), cases[i].key))
            fail_msg("%s: %d %s", cases[i].to, (int)rc, rc ? lk_error_text() : "");
    }
    free(original);
}

/* The released model, of which there is the config here: 585 tensors, 24,011,361,280 values. */
static void the_released_model_has_its_size(void **state) {
    (void)state;
    struct lk_config *json;
    struct lk_mistral3_config config;
    struct lk_mistral3 m;
    assert_ok(lk_config_open(&json, "data/mistral_small_3_2_config.json"));
    assert_ok(lk_mistral3_config_read(&config, json));
    assert_int_equal(config.vision.hidden_act, LK_ACT_SILU);
    assert_int_equal(config.text.head_dim, 128);
    assert_ok(lk_mistral3_bind(&m, &config, NULL, LK_BF16));
    assert_int_equal(m.totals.n_tensors, 585);
    assert_true(m.totals.parameters == 24011361280u);
    assert_true(m.totals.weight_bytes == 2 * m.totals.parameters);
    lk_mistral3_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_template_never_asks_for_the_date),
        cmocka_unit_test(pictures_are_rows_that_end),
        cmocka_unit_test(without_the_last_shards_one_edits_but_does_not_judge),
        cmocka_unit_test(all_missing_shards_are_named),
        cmocka_unit_test(other_networks_are_refused),
        cmocka_unit_test(the_released_model_has_its_size),
    };
    return cmocka_run_group_tests(tests, make_model, NULL);
}
