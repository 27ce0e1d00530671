/* The table of parameters, and its readings: text, JSON, refusals. */
#include "tests/common/test.h"

#include <cjson/cJSON.h>

#include "models/parameters.h"
#include "weights/config.h"

static const char *const models[] = {"flux2-dev", "qwen-edit-2511", "step1x-v1p2", "sd-1.5", "sdxl", "cascade"};
#define N_MODELS (sizeof models / sizeof *models)

static struct lk_pipeline *open_model(const char *name) {
    struct lk_pipeline *pipeline;
    assert_ok(lk_pipeline_open_configs(&pipeline, name, LK_BF16));
    return pipeline;
}

/* A value that is no model's default. Sigmas are as many as there are steps. */
static const char *other_value(const struct lk_parameter *p, const char *model) {
    if (!strcmp(p->name, "preset") && !strcmp(model, "qwen-edit-2511")) return "qwen-lightning-4";
    if (!strcmp(p->name, "accel")) return "region";
    if (!strcmp(p->name, "flow-shift")) return "3";
    if (!strcmp(p->name, "scheduler")) return "{\"shift\":2.5}";
    if (!strcmp(p->name, "input-sigmas")) return "1,.95,.9,.85,.8,.75,.7,.65,.6,.55,.5,.45,.4,.35,.3,.25,.2,1e-1,0.05";
    switch (p->kind) {
    case LK_PARAMETER_FLAG:
        return p->initial && !strcmp(p->initial, "on") ? "off" : "on";
    case LK_PARAMETER_INT64:
        return "9223372036854775807";
    case LK_PARAMETER_NUMBER:
        return "0.1";
    case LK_PARAMETER_INTS:
        return "3,1,2,7";
    case LK_PARAMETER_INT:
        return p->min > 19 ? "4096" : "19"; /* areas of pictures */
    case LK_PARAMETER_BYTES:
        return "3G";
    case LK_PARAMETER_CHOICE:
        return strrchr(p->choices, '|') ? strrchr(p->choices, '|') + 1 : p->choices;
    case LK_PARAMETER_TEXTS:
        return strcmp(p->name, "lora") ? "a b;reverse;scale=2.5" : "a b=c.safetensors=-0.5";
    case LK_PARAMETER_TEXT:
    case LK_PARAMETER_FILE:
        break;
    }
    return "a \"text\"\n\xc3\xa9";
}

static void table(void **state) {
    (void)state;
    char text[256];
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        snprintf(text, sizeof text, "%s", p->name);
        for (char *c = text; *c; c++)
            if (*c == '-') *c = '_';
        assert_string_equal(text, p->key);
        assert_ptr_equal(lk_parameter_named(p->name), p);
        assert_ptr_equal(lk_parameter_named(p->key), p);
        assert_true(p->offset < sizeof(struct lk_job) && p->help && p->group && p->families);
        assert_true((p->kind == LK_PARAMETER_FLAG) == (p->unit == NULL));
        assert_true((p->kind != LK_PARAMETER_CHOICE) || p->choices);
        assert_true(p->place == LK_IN_RUN || !p->initial);
        assert_true(!p->machine || p->record != LK_RECORD_USED);
        bool number = p->kind == LK_PARAMETER_INT || p->kind == LK_PARAMETER_INT64 || p->kind == LK_PARAMETER_NUMBER ||
                      p->kind == LK_PARAMETER_INTS;
        assert_true(number == (p->max > p->min));
        for (size_t j = 0; j < i; j++) assert_string_not_equal(p->name, lk_parameters[j].name);
    }
    assert_null(lk_parameter_named("sharpness"));
    lk_parameter_default(lk_parameter_named("num-inference-steps"), text, sizeof text);
    assert_string_equal(text,
                        "50 FLUX.2, 40 Qwen-Image, 50 qwen-edit, 50 qwen-image, 28 Step1X-Edit, 50 SD 1.5, 50 SDXL, "
                        "20 Stable Cascade");
    lk_parameter_default(lk_parameter_named("size-level"), text, sizeof text);
    assert_string_equal(text, "1024");
    lk_parameter_families(lk_parameter_named("true-cfg-scale"), text, sizeof text);
    assert_string_equal(text, "Qwen-Image, Step1X-Edit");
}

/* Every parameter on its own, for every family: taken exactly where the table says so. */
static void refusals(void **state) {
    (void)state;
    static const unsigned bits[] = {LK_FOR_FLUX2, LK_FOR_QWEN, LK_FOR_STEP1X, LK_FOR_SD, LK_FOR_SDXL, LK_FOR_CASCADE};
    for (size_t m = 0; m < N_MODELS; m++) {
        struct lk_pipeline *pipeline = open_model(models[m]);
        assert_int_equal(lk_family_bit_of(models[m]), bits[m]);
        for (size_t i = 0; i < lk_n_parameters; i++) {
            const struct lk_parameter *p = &lk_parameters[i];
            struct lk_job job;
            char says[256];
            lk_job_init(&job);
            assert_ok(lk_parameter_parse(p, &job, "--it", other_value(p, models[m])));
            if (p->families & bits[m]) {
                assert_ok(lk_job_complete(&job, pipeline, NULL));
                assert_true(lk_job_given(&job, p));
                lk_job_free(&job);
                continue;
            }
            snprintf(says, sizeof says, "--%s: %s has no such parameter; leave it out", p->name, models[m]);
            assert_fails(lk_job_complete(&job, pipeline, NULL), LK_E_USAGE, says);
            if (p->record == LK_RECORD_ALWAYS) {
                assert_ok(lk_job_complete(&job, pipeline, "a.png")); /* recipes carry it along */
                continue;
            }
            snprintf(says, sizeof says, "a.png: field \"%s\" of the recipe: %s has no such", p->key, models[m]);
            assert_fails(lk_job_complete(&job, pipeline, "a.png"), LK_E_METADATA, says);
        }
        lk_pipeline_close(pipeline);
    }
}

/* What a library's caller sets by hand is held to the same table. */
static void requests(void **state) {
    (void)state;
    struct lk_plan plan;
    struct lk_device *cpu;
    struct lk_image image = {.width = 64, .height = 64, .channels = 3};
    assert_ok(lk_device_cpu_create(1, &cpu));
    for (int m = 0; m < 3; m++) {
        struct lk_pipeline *pipeline = open_model(models[m]);
        struct lk_request init, r;
        lk_request_init(&init, pipeline);
        init.images = &image;
        init.n_images = 1;
#define REFUSED(field, value, message)                                                                                 \
    r = init;                                                                                                          \
    r.field = value;                                                                                                   \
    assert_fails(lk_pipeline_plan(pipeline, cpu, &r, &plan), LK_E_USAGE, message)
        REFUSED(num_inference_steps, 0, "num_inference_steps: expected 1 to 1000, got 0");
        REFUSED(num_inference_steps, 1001, "num_inference_steps: expected 1 to 1000, got 1001");
        REFUSED(max_sequence_length, 32769, "max_sequence_length: expected 1 to 32768, got 32769");
        REFUSED(width, 65536, "width: expected 1 to 65535, got 65536");
        REFUSED(height, -1, "height: expected 1 to 65535, got -1");
        REFUSED(n_images, 11, "reference images: expected 0 to 10, got 11");
        if (m == 1) {
            REFUSED(vae_area, 1023, "vae_image_size: expected 1024 to 67108864, got 1023");
            REFUSED(condition_area, -1, "condition_image_size: expected 1024");
        }
        if (m == 2) {
            REFUSED(width, 65, "Step1X-Edit gives an edit its source's size, 64x64, got 65x0");
            REFUSED(height, 72, "its source's size, 64x64, got 0x72");
        }
        REFUSED(true_cfg_scale, 1001,
                m ? "true_cfg_scale: expected 0 to 1000"
                  : "true_cfg_scale: flux2-dev has no such parameter; leave it out");
        if (m != 1) {
            REFUSED(vae_tiling, true, "vae_tiling: ");
        }
        if (m != 2) {
            REFUSED(size_level, 512, "size_level: ");
        }
        lk_pipeline_close(pipeline);
    }
    lk_device_free(cpu);
}

/* A job in which everything that the model has is given, through JSON and back; but for what excludes something else: a
 * shift (the scheduler's), a preset (accel). */
static void json_and_back(void **state) {
    (void)state;
    for (int m = 0; m < 3; m++) {
        struct lk_pipeline *pipeline = open_model(models[m]);
        struct lk_job job, back;
        struct lk_config *config;
        cJSON *object = cJSON_CreateObject();
        lk_job_init(&job);
        lk_job_init(&back);
        for (size_t i = 0; i < lk_n_parameters; i++)
            if (lk_parameters[i].families & lk_family_bit_of(models[m]) &&
                strcmp(lk_parameters[i].name, "flow-shift") && strcmp(lk_parameters[i].name, "preset"))
                assert_ok(lk_parameter_parse(&lk_parameters[i], &job, "", other_value(&lk_parameters[i], models[m])));
        assert_ok(lk_job_complete(&job, pipeline, NULL));
        if (m) job.request.true_cfg_scale = 0; /* which is not the default and not nothing */
        for (size_t i = 0; i < lk_n_parameters; i++)
            if (lk_parameter_recorded(&lk_parameters[i], &job, pipeline))
                assert_true(lk_parameter_write(&lk_parameters[i], &job, object));
        char *text = cJSON_PrintUnformatted(object);
        assert_non_null(strstr(text, "\"seed\":9223372036854775807"));
        assert_int_equal(strstr(text, "\"max_try_cnt\":19") != NULL, m == 2);
        assert_non_null(strstr(text, "\"accel\":\"region\""));
        assert_int_equal(strstr(text, "\"true_cfg_scale\":0,") != NULL, m > 0);
        assert_null(strstr(text, "threads"));
        assert_null(strstr(text, "prompts_file"));
        assert_ok(lk_config_parse(&config, text, strlen(text), "recipe"));
        lk_job_read(&back, config, text, true);
        assert_ok(lk_config_close(config));
        assert_ok(lk_job_complete(&back, pipeline, "recipe"));
        for (size_t i = 0; i < lk_n_parameters; i++)
            if (lk_parameter_recorded(&lk_parameters[i], &job, pipeline)) {
                assert_true(lk_parameter_equal(&lk_parameters[i], &job, &back));
                assert_true(lk_job_given(&back, &lk_parameters[i]));
            }
        lk_job_free(&back);
        lk_job_free(&job);
        cJSON_free(text);
        cJSON_Delete(object);
        lk_pipeline_close(pipeline);
    }
}

/* A list of adapters: as given, through JSON, and what is refused. */
static void loras(void **state) {
    (void)state;
    const struct lk_parameter *p = lk_parameter_named("lora");
    static const char *const bad[] = {"",        "=1",      "f=",     "f=0",   "f=nan", "f=inf",
                                      "f=1e999", "f=0x1p1", "f=10.5", "f=1=x", "f= 1"};
    struct lk_job job, back;
    struct lk_config *config;
    char text[64];
    lk_job_init(&job);
    lk_job_init(&back);
    assert_ok(lk_parameter_parse(p, &job, "--lora", "a=b.safetensors=0.5"));
    assert_ok(lk_parameter_parse(p, &job, "--lora", "c"));
    lk_parameter_print(p, &job, text, sizeof text);
    assert_string_equal(text, "a=b.safetensors=0.5, c");
    cJSON *object = cJSON_CreateObject();
    assert_true(lk_parameter_write(p, &job, object));
    char *json = cJSON_PrintUnformatted(object);
    assert_string_equal(json, "{\"lora\":[\"a=b.safetensors=0.5\",\"c\"]}");
    assert_ok(lk_config_parse(&config, json, strlen(json), "line 1"));
    lk_job_read(&back, config, json, false);
    assert_ok(lk_config_close(config));
    assert_true(lk_parameter_equal(p, &job, &back));
    assert_ok(lk_parameter_parse(p, &job, "--lora", "c"));
    assert_false(lk_parameter_equal(p, &job, &back));
    lk_job_free(&back);
    cJSON_free(json);
    cJSON_Delete(object);
    for (int i = 3; i < LK_MAX_LORAS; i++) assert_ok(lk_parameter_parse(p, &job, "--lora", "c"));
    assert_fails(lk_parameter_parse(p, &job, "--lora", "d"), LK_E_USAGE,
                 "--lora: expected at most 8 values, \"d\" is one");
    lk_job_init(&job);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(lk_parameter_parse(p, &job, "--lora", bad[i]), LK_E_USAGE, "--lora: ");
}

static void complete(struct lk_job *job, const char *model, const char *const (*given)[2], enum lk_code expected,
                     const char *says) {
    struct lk_pipeline *pipeline = open_model(model);
    lk_job_init(job);
    for (; (*given)[0]; given++)
        assert_ok(lk_parameter_parse(lk_parameter_named((*given)[0]), job, "--it", (*given)[1]));
    const enum lk_code rc = lk_job_complete(job, pipeline, NULL);
    if (rc != expected || (rc && !strstr(lk_error_text(), says))) fail_msg("%d: %s", (int)rc, lk_error_text());
    lk_pipeline_close(pipeline);
}

/* What is given stands; a preset fills in the rest. */
static void schedules(void **state) {
    (void)state;
    static const char *const bad_sigmas[] = {"", "0", "1,1", "0.5,0.6", "1.1", "1,,0.5", "1,nan", "1,0x1p-1", "1, 0.5"};
    static const char *const bad_shifts[] = {"", "0", "0.009", "101", "x", "inf"};
    const struct lk_parameter *sigmas = lk_parameter_named("input-sigmas"), *shift = lk_parameter_named("flow-shift");
    const struct lk_parameter *scheduler = lk_parameter_named("scheduler");
    struct lk_job job;
    lk_job_init(&job);
    for (size_t i = 0; i < sizeof bad_sigmas / sizeof *bad_sigmas; i++)
        assert_fails(lk_parameter_parse(sigmas, &job, "--sigmas", bad_sigmas[i]), LK_E_USAGE, "--sigmas: ");
    for (size_t i = 0; i < sizeof bad_shifts / sizeof *bad_shifts; i++)
        assert_fails(lk_parameter_parse(shift, &job, "--flow-shift", bad_shifts[i]), LK_E_USAGE, "--flow-shift: ");
    assert_fails(lk_parameter_parse(scheduler, &job, "--scheduler", ""), LK_E_USAGE, "--scheduler: expected a path");
    assert_fails(lk_parameter_parse(scheduler, &job, "--scheduler", "/nowhere.json"), LK_E_NOT_FOUND, "/nowhere.json");
    assert_fails(lk_parameter_parse(scheduler, &job, "--scheduler", "{\"use_karras_sigmas\":true}"), LK_E_CONFIG_VALUE,
                 "use_karras_sigmas");
    assert_fails(lk_parameter_parse(scheduler, &job, "--scheduler", "{\"new\":1}"), LK_E_CONFIG_KEY, "new");
    assert_int_equal(job.given, 0);
    assert_ok(lk_parameter_parse(scheduler, &job, "--scheduler", "{\"shift\":2.5}"));
    assert_string_equal(job.request.scheduler,
                        "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"num_train_timesteps\":1000,"
                        "\"use_dynamic_shifting\":false,\"shift\":2.5,\"shift_terminal\":null,\"time_shift_type\":"
                        "\"exponential\",\"base_image_seq_len\":256,\"max_image_seq_len\":4096,\"base_shift\":0.5,"
                        "\"max_shift\":1.1499999999999999}");
    lk_job_free(&job);

    complete(&job, "qwen-edit-2511",
             (const char *const[][2]){{"preset", "qwen-lightning-8"}, {"num-inference-steps", "6"}, {NULL, NULL}},
             LK_OK, "");
    assert_int_equal(job.request.num_inference_steps, 6);
    assert_true(job.request.true_cfg_scale == 1 && job.request.scheduler);
    assert_int_equal(job.owned, 0);
    complete(&job, "qwen-edit-2511",
             (const char *const[][2]){
                 {"preset", "qwen-lightning-8"}, {"true-cfg-scale", "4"}, {"flow-shift", "3"}, {NULL, NULL}},
             LK_OK, "");
    assert_int_equal(job.request.num_inference_steps, 8);
    assert_true(job.request.true_cfg_scale == 4 && !job.request.scheduler);
    complete(&job, "qwen-edit-2511",
             (const char *const[][2]){{"preset", "qwen-lightning-4"}, {"input-sigmas", "1,0.5,0.25"}, {NULL, NULL}},
             LK_OK, "");
    assert_int_equal(job.request.num_inference_steps, 3);
    assert_null(job.request.scheduler);
    complete(&job, "flux2-dev",
             (const char *const[][2]){{"preset", "flux2-turbo-8"}, {"num-inference-steps", "4"}, {NULL, NULL}},
             LK_E_USAGE, "--num-inference-steps: 4, but there are 8 sigmas in preset flux2-turbo-8");
    complete(&job, "flux2-dev", (const char *const[][2]){{"preset", "qwen-lightning-4"}, {NULL, NULL}}, LK_E_USAGE,
             "--preset: qwen-lightning-4 is not for flux2-dev");
    complete(&job, "step1x-v1p2",
             (const char *const[][2]){{"input-sigmas", "1,0.5"}, {"num-inference-steps", "3"}, {NULL, NULL}},
             LK_E_USAGE, "3, but there are 2 sigmas; leave");
    complete(&job, "flux2-dev",
             (const char *const[][2]){{"flow-shift", "3"}, {"scheduler", "{\"shift\":2.5}"}, {NULL, NULL}}, LK_E_USAGE,
             "flow_shift: a scheduler with a shift");
    lk_job_free(&job);
}

static void bad_json(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"lora", "[\"f=0\"]", "field \"lora\": --lora: f=0: expected a scale from -10 to 10"},
        {"seed", "-1", "field \"seed\": expected a whole number from 0 to 9223372036854775807"},
        {"seed", "9223372036854775808", "field \"seed\": expected a whole number"},
        {"seed", "\"1\"", "field \"seed\": expected a whole number"},
        {"seed", "1.5", "field \"seed\": expected a whole number"},
        {"num_inference_steps", "0", "field \"num_inference_steps\""},
        {"num_inference_steps", "1001", "field \"num_inference_steps\""},
        {"true_cfg_scale", "-0.5", "field \"true_cfg_scale\""},
        {"dtype", "\"f16\"", "field \"dtype\": expected bf16|f32, got \"f16\""},
        {"rng", "\"torch\"", "field \"rng\": expected torch-cpu, got \"torch\""},
        {"exif_transpose", "1", "field \"exif_transpose\""},
        {"text_encoder_out_layers", "[1,2000]", "field \"text_encoder_out_layers\": expected numbers from 0 to 1000"},
        {"text_encoder_out_layers", "[1,2,3,4,5,6,7,8,9]", "field \"text_encoder_out_layers\""},
        {"prompt", "null", "field \"prompt\""},
        {"sharpness", "1", "sharpness"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const rest[][2] = {{"prompt", "\"x\""},
                                              {"seed", "1"},
                                              {"rng", "\"torch-cpu\""},
                                              {"dtype", "\"f32\""},
                                              {"device", "\"cpu\""},
                                              {"num_inference_steps", "2"},
                                              {"guidance_scale", "4"},
                                              {"max_sequence_length", "9"},
                                              {"width", "16"},
                                              {"height", "16"},
                                              {"exif_transpose", "false"}};
        char text[1024];
        int n = snprintf(text, sizeof text, "{\"%s\":%s", cases[i].key, cases[i].value);
        for (size_t j = 0; j < sizeof rest / sizeof *rest; j++)
            if (strcmp(rest[j][0], cases[i].key))
                n += snprintf(text + n, sizeof text - (size_t)n, ",\"%s\":%s", rest[j][0], rest[j][1]);
        snprintf(text + n, sizeof text - (size_t)n, "}");
        struct lk_config *config;
        struct lk_job job;
        lk_job_init(&job);
        assert_ok(lk_config_parse(&config, text, strlen(text), "a.png"));
        lk_job_read(&job, config, text, true);
        enum lk_code rc = lk_config_close(config);
        assert_int_equal(lk_exit_code(rc), 3);
        assert_non_null(strstr(lk_error_text(), "a.png"));
        assert_non_null(strstr(lk_error_text(), cases[i].says));
        lk_job_free(&job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table),    cmocka_unit_test(refusals),
                                       cmocka_unit_test(requests), cmocka_unit_test(json_and_back),
                                       cmocka_unit_test(loras),    cmocka_unit_test(schedules),
                                       cmocka_unit_test(bad_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
