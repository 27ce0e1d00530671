/* What requests to our images API become, and how bad ones are refused. */
#include "engine/base/alloc.h"
#include "tests/common/test.h"
#include "tools/cli/images/api.h"

#define PART "--b 1\r\nContent-Disposition: form-data; name=\""

struct api {
    struct lk_job job;
    struct images_model model;
};

static void api_model(struct api *a) {
    *a = (struct api){.model.id = ""};
    lk_job_init(&a->job);
    assert_ok(lk_parameter_parse(lk_parameter_named("num-inference-steps"), &a->job, "", "28"));
    a->model = (struct images_model){
        .id = "tiny", .path = "models/tiny", .family = "flux2-dev", .takes_images = true, .job = &a->job};
}

struct read {
    struct images_fields fields;
    struct images_ask ask;
    struct images_answer answer;
    char *body;
};

static enum lk_code read_request(struct read *r, const struct api *a, bool edit, const char *body, size_t n) {
    *r = (struct read){.body = lk_malloc(n + 1)};
    memcpy(r->body, body, n);
    r->body[n] = '\0';
    enum lk_code rc =
        edit ? images_form_read("multipart/form-data; x=\"; boundary=y\"; boundary=\"b 1\"", r->body, n, &r->fields)
             : images_json_read(r->body, n, &r->fields);
    if (!rc) images_ask_read(&a->model, edit, &r->fields, &r->ask, &r->answer);
    return rc;
}

static void read_free(struct read *r) {
    images_ask_free(&r->ask);
    lk_text_free(&r->answer.body);
    lk_free(r->fields.block);
    lk_free(r->body);
}

static void json_becomes_a_job(void **state) {
    static const char body[] =
        " {\"model\": \"models/tiny\", \"prompt\": \"a \\u00e9 \\\"x\\\"\", \"n\": 3, \"size\": \"64x48\", \"seed\": "
        "9007199254740993, \"steps\": 4, \"guidance_scale\": 2.5, \"user\": \"me\", \"stream\": false, \"quality\": "
        "\"auto\", \"response_format\": \"b64_json\", \"output_format\": \"png\", \"background\": null, "
        "\"text_encoder_out_layers\": [1, 2, 30]}";
    struct api a;
    struct read r;
    (void)state;
    api_model(&a);
    assert_ok(read_request(&r, &a, false, body, sizeof body - 1));
    if (r.answer.status) fail_msg("%s", r.answer.body.bytes);
    const struct lk_request *q = &r.ask.job.request;
    assert_string_equal(q->prompt, "a \xc3\xa9 \"x\"");
    assert_int_equal(r.ask.n, 3);
    assert_int_equal(q->width, 64);
    assert_int_equal(q->height, 48);
    assert_true(q->seed == 9007199254740993);
    assert_int_equal(q->num_inference_steps, 4);
    assert_true(q->guidance_scale == 2.5);
    assert_int_equal(q->n_text_encoder_out_layers, 3);
    assert_int_equal(q->text_encoder_out_layers[2], 30);
    read_free(&r);
    /* the server's own steps, a seed that is drawn, a size that is the model's */
    assert_ok(read_request(&r, &a, false, "{\"prompt\":\"p\",\"size\":\"auto\"}", 28));
    assert_int_equal(r.answer.status, 0);
    const uint64_t seed = r.ask.job.request.seed;
    assert_int_equal(r.ask.job.request.num_inference_steps, 28);
    assert_int_equal(r.ask.job.request.width, 0);
    assert_int_equal(r.ask.n, 1);
    assert_true(seed < (uint64_t)1 << 31);
    read_free(&r);
    assert_ok(read_request(&r, &a, false, "{\"prompt\":\"p\",\"size\":\"auto\"}", 28));
    assert_true(r.ask.job.request.seed != seed);
    read_free(&r);
    lk_job_free(&a.job);
}

static void forms_become_jobs(void **state) {
    static const char body[] =
        PART "prompt\"\r\n\r\nred\r\n-hair\r\n" PART "image[]\"; filename=\"C:\\x\\a.png\"\r\nContent-Type: "
             "image/png\r\n\r\n\0\r\n--b\0x\r\n" PART "seed\"\r\n\r\n7\r\n" PART
             "image[]\"; filename=\"b;\\\".png\"\r\n\r\n\r\n" PART "mask\"; filename=\"../m.png\"\r\n\r\nM\r\n" PART
             "stream\"\r\n\r\nfalse\r\n--b 1--\r\n";
    struct api a;
    struct read r;
    (void)state;
    api_model(&a);
    assert_ok(read_request(&r, &a, true, body, sizeof body - 1));
    if (r.answer.status) fail_msg("%s", r.answer.body.bytes);
    assert_string_equal(r.ask.job.request.prompt, "red\r\n-hair");
    assert_true(r.ask.job.request.seed == 7);
    assert_int_equal(r.ask.n_images, 2);
    assert_string_equal(r.ask.images[0].name, "a.png");
    assert_int_equal(r.ask.images[0].n, 8);
    assert_memory_equal(r.ask.images[0].bytes, "\0\r\n--b\0x", 8);
    assert_string_equal(r.ask.images[1].name, "b;\".png");
    assert_int_equal(r.ask.images[1].n, 0);
    assert_string_equal(r.ask.mask.name, "m.png");
    assert_int_equal(r.ask.mask.n, 1);
    read_free(&r);
    /* Cut off anywhere, it is no form. */
    for (size_t n = 0; n + 6 < sizeof body; n++) {
        assert_int_equal(read_request(&r, &a, true, body, n), LK_E_INPUT);
        read_free(&r);
    }
    lk_job_free(&a.job);
}

/* The first bad field is named, with what was expected and got. */
static void bad_fields_are_named(void **state) {
    static const struct {
        const char *json;
        int status;
        const char *param, *part;
    } cases[] = {
        {"{}", 400, "\"prompt\"", "prompt: expected a text, got none"},
        {"{\"prompt\":\"\"}", 400, "\"prompt\"", "expected a text"},
        {"{\"prompt\":7,\"n\":0}", 400, "\"n\"", "n: expected a whole number from 1 to 10, got \\\"0\\\""},
        {"{\"prompt\":\"p\",\"n\":11}", 400, "\"n\"", "got \\\"11\\\""},
        {"{\"prompt\":\"p\",\"n\":\"two\"}", 400, "\"n\"", "got \\\"two\\\""},
        {"{\"prompt\":\"p\",\"size\":\"64\"}", 400, "\"size\"", "expected WIDTHxHEIGHT"},
        {"{\"prompt\":\"p\",\"size\":\"64x\"}", 400, "\"size\"", "got \\\"64x\\\""},
        {"{\"prompt\":\"p\",\"size\":\"-1x5\"}", 400, "\"size\"", ""},
        {"{\"prompt\":\"p\",\"size\":\"99999x5\"}", 400, "\"size\"", ""},
        {"{\"prompt\":\"p\",\"size\":\"8192x8208\"}", 400, "\"size\"", "at most 67108864 pixels, got 8192x8208"},
        {"{\"prompt\":\"p\",\"model\":\"other\"}", 404, "\"model\"", "model_not_found"},
        {"{\"prompt\":\"p\",\"response_format\":\"url\"}", 400, "\"response_format\"", "expected b64_json"},
        {"{\"prompt\":\"p\",\"output_format\":\"webp\"}", 400, "\"output_format\"", "expected png"},
        {"{\"prompt\":\"p\",\"quality\":\"high\"}", 400, "\"quality\"", "expected auto"},
        {"{\"prompt\":\"p\",\"stream\":true}", 400, "\"stream\"", ""},
        {"{\"prompt\":\"p\",\"seed\":-1}", 400, "\"seed\"", "seed: expected a whole number"},
        {"{\"prompt\":\"p\",\"seed\":9223372036854775807}", 400, "\"seed\"", "so that 1 seeds follow"},
        {"{\"prompt\":\"p\",\"steps\":0}", 400, "\"steps\"", "steps: expected a whole number from 1 to 1000"},
        {"{\"prompt\":\"p\",\"guidance_scale\":1e9}", 400, "\"guidance_scale\"", "expected a number from 0 to 1000"},
        {"{\"prompt\":\"p\",\"true_cfg_scale\":4}", 400, "\"true_cfg_scale\"", "tiny has no such parameter"},
        {"{\"prompt\":\"p\",\"sprompt\":4}", 400, "\"sprompt\"", "is no field that this server knows"},
        {"{\"prompt\":\"p\",\"image\":\"aGk=\"}", 400, "\"image\"", "expected a file, in a form"},
        /* files of the server's machine, and what is the server's to say */
        {"{\"prompt\":\"p\",\"prompt_embeds\":\"/etc/passwd\"}", 400, "\"prompt_embeds\"", "the server's alone"},
        {"{\"prompt\":\"p\",\"lora\":\"/etc/passwd\"}", 400, "\"lora\"", "the server's alone"},
        {"{\"prompt\":\"p\",\"scheduler\":\"/etc/passwd\"}", 400, "\"scheduler\"", "or its config as text"},
        {"{\"prompt\":\"p\",\"device\":\"cuda\"}", 400, "\"device\"", "the server's alone"},
        {"{\"prompt\":\"p\",\"threads\":64}", 400, "\"threads\"", "the server's alone"},
    };
    struct api a;
    struct read r;
    (void)state;
    api_model(&a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char param[60];
        assert_ok(read_request(&r, &a, false, cases[i].json, strlen(cases[i].json)));
        snprintf(param, sizeof param, "\"param\":%s,", cases[i].param);
        if (r.answer.status != cases[i].status || !strstr(r.answer.body.bytes, param) ||
            !strstr(r.answer.body.bytes, cases[i].part))
            fail_msg("%s: got %d %s", cases[i].json, r.answer.status, r.answer.body.bytes);
        read_free(&r);
    }
    static const struct {
        const char *form, *part;
    } forms[] = {
        {PART "prompt\"\r\n\r\np\r\n--b 1--\r\n", "image: expected a picture to edit"},
        {PART "prompt\"; filename=\"x\"\r\n\r\np\r\n--b 1--\r\n", "prompt: expected a text, got a file"},
        {PART "image\"\r\n\r\np\r\n--b 1--\r\n", "image: expected a file"},
        {PART "prompt\"\r\n\r\np\r\n" PART "prompt\"\r\n\r\nq\r\n--b 1--\r\n", "prompt: is given twice"},
        {PART "prompt\"\r\n\r\n\xff\r\n--b 1--\r\n", "expected UTF-8 without NUL"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_ok(read_request(&r, &a, true, forms[i].form, strlen(forms[i].form)));
        if (r.answer.status != 400 || !strstr(r.answer.body.bytes, forms[i].part))
            fail_msg("form %zu: got %d %s", i, r.answer.status, r.answer.body.bytes);
        read_free(&r);
    }
    a.model.takes_images = false;
    const char *edit = PART "prompt\"\r\n\r\np\r\n" PART "image\"; filename=\"x\"\r\n\r\np\r\n--b 1--\r\n";
    assert_ok(read_request(&r, &a, true, edit, strlen(edit)));
    assert_non_null(strstr(r.answer.body.bytes, "tiny makes pictures from text alone"));
    read_free(&r);
    lk_job_free(&a.job);
}

static void what_does_not_fit(void **state) {
    const struct lk_plan plan = {.width = 64, .height = 32, .arena_bytes = (uint64_t)5 << 20};
    (void)state;
    assert_ok(images_check_room(&plan, (uint64_t)5 << 20));
    assert_ok(images_check_room(&plan, 0)); /* not known */
    assert_fails(images_check_room(&plan, ((uint64_t)5 << 20) - 1), LK_E_FIT, "size: 64x32 needs 5 MiB, this machine");
    assert_int_equal(images_status_of(LK_E_FIT), 400);
    assert_int_equal(images_status_of(LK_E_IMAGE), 400);
    assert_int_equal(images_status_of(LK_E_NOMEM), 500);
    assert_int_equal(images_status_of(LK_E_NONFINITE), 500);
    assert_int_equal(images_status_of(LK_E_INTERRUPTED), 503);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(json_becomes_a_job), cmocka_unit_test(forms_become_jobs),
                                       cmocka_unit_test(bad_fields_are_named), cmocka_unit_test(what_does_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
