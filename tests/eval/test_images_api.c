/* The images API without a model: what requests become, what is refused and how, and a server that stays up whatever is
 * sent to it. The clock is ours, and the test takes the requests from the line. */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"
#include "tools/cli/images/api.h"

#define TOKEN "0123456789abcdef-secret"
#define JSON  "Content-Type: application/json\r\n"
#define FORM  "Content-Type: multipart/form-data; boundary=\"b 1\"\r\n"
#define PART  "--b 1\r\nContent-Disposition: form-data; name=\""

struct api {
    struct lk_job job;
    struct images_model model;
    struct images_settings settings;
    struct images_listener *listener;
    int port;
    int64_t now;
};

static int64_t clock_of(void *context) { return __atomic_load_n((int64_t *)context, __ATOMIC_SEQ_CST); }

static void api_model(struct api *a) {
    *a = (struct api){.now = 1000};
    lk_job_init(&a->job);
    assert_ok(lk_parameter_parse(lk_parameter_named("num-inference-steps"), &a->job, "", "28"));
    a->model = (struct images_model){
        .id = "tiny", .path = "models/tiny", .family = "flux2-dev", .takes_images = true, .job = &a->job};
}

static void api_open(struct api *a, const char *token, int queue) {
    api_model(a);
    a->settings = (struct images_settings){.model = &a->model,
                                           .address = "127.0.0.1",
                                           .token = token,
                                           .queue = queue,
                                           .body_bytes = 100000,
                                           .request_ms = 5000,
                                           .now = clock_of,
                                           .clock = &a->now};
    assert_ok(images_listen(&a->listener, &a->settings));
    a->port = images_port(a->listener);
}

static void api_close(struct api *a) {
    images_stop(a->listener);
    lk_job_free(&a->job);
}

static char *request_of(const char *method, const char *path, const char *headers, const char *body, size_t n,
                        size_t *n_out) {
    struct lk_text text = {0};
    lk_text_add(&text, "%s %s HTTP/1.1\r\n%sConnection: close\r\n%s", method, path,
                strstr(headers, "Host:") ? "" : "Host: localhost:1\r\n", headers);
    if (body) lk_text_add(&text, "Content-Length: %zu\r\n", n);
    lk_text_add(&text, "\r\n");
    if (body) lk_text_bytes(&text, body, n);
    assert_int_equal(text.rc, LK_OK);
    *n_out = text.n;
    return text.bytes;
}

/* The reply of a request that is answered at once. */
static void expect(const struct api *a, const char *method, const char *path, const char *headers, const char *body,
                   int status, const char *part) {
    size_t n;
    char *request = request_of(method, path, headers, body, body ? strlen(body) : 0, &n);
    char *reply = test_http(a->port, request, n);
    if (strncmp(reply, "HTTP/1.1 ", 9) || atoi(reply + 9) != status || !strstr(reply, part))
        fail_msg("%s %s %s: expected %d and \"%s\", got %.900s", method, path, headers, status, part, reply);
    if (status >= 400) {
        cJSON *root = cJSON_Parse(strstr(reply, "\r\n\r\n")), *error = cJSON_GetObjectItem(root, "error");
        assert_true(cJSON_IsString(cJSON_GetObjectItem(error, "message")));
        assert_true(cJSON_IsString(cJSON_GetObjectItem(error, "type")));
        assert_true(cJSON_IsString(cJSON_GetObjectItem(error, "code")));
        assert_true(cJSON_HasObjectItem(error, "param"));
        cJSON_Delete(root);
    }
    free(reply);
    lk_free(request);
}

static void routes(void **state) {
    static struct api a; /* outlives a test that fails */
    (void)state;
    api_open(&a, NULL, 1);
    expect(&a, "GET", "/health", "", NULL, 200, "{\"status\":\"ok\"}");
    expect(&a, "GET", "/v1/models", "", NULL, 200, "[{\"id\":\"tiny\",\"object\":\"model\"");
    expect(&a, "GET", "/v1/models", "Host: 127.0.0.1\r\n", NULL, 200, "Cache-Control: no-store");
    expect(&a, "GET", "/", "", NULL, 404, "\"code\":\"not_found\"");
    expect(&a, "GET", "/v1/images/%2e%2e/models", "", NULL, 404, "");
    expect(&a, "GET", "/v1/images/edits", "", NULL, 405, "expected POST, got GET");
    expect(&a, "POST", "/health", JSON, "{}", 405, "expected GET, got POST");
    /* pages that a browser shows, of elsewhere or by a name that leads here */
    expect(&a, "POST", "/v1/images/generations", JSON "Origin: http://evil.example\r\n", "{\"prompt\":\"p\"}", 421, "");
    expect(&a, "GET", "/v1/models", "Host: evil.example:80\r\n", NULL, 421, "expected this server's address");
    api_close(&a);
}

static void tokens(void **state) {
    static struct api a;
    (void)state;
    api_open(&a, TOKEN, 1);
    expect(&a, "GET", "/health", "", NULL, 200, "");
    expect(&a, "GET", "/v1/models", "", NULL, 401, "WWW-Authenticate: Bearer");
    expect(&a, "GET", "/v1/models", "Authorization: Bearer " TOKEN "\r\n", NULL, 200, "");
    expect(&a, "GET", "/v1/models", "Authorization: Bearer " TOKEN "x\r\n", NULL, 401, "invalid_api_key");
    expect(&a, "GET", "/v1/models", "Authorization: Bearer 0123456789abcdef-secreT\r\n", NULL, 401, "");
    expect(&a, "GET", "/v1/models", "Authorization: " TOKEN "\r\n", NULL, 401, "");
    expect(&a, "GET", "/v1/models", "Authorization: Bearer \r\n", NULL, 401, "");
    expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"p\"}", 401, "");
    api_close(&a);
}

/* --- what requests become --- */

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
    static struct api a;
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
    static struct api a;
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
    static struct api a;
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

static void bodies_that_are_none(void **state) {
    static const char deep[] = "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    static const char *const json[] = {"",
                                       "x",
                                       "[]",
                                       "{",
                                       "{\"prompt\":\"p\"",
                                       "{\"prompt\":\"p\"}x",
                                       "{\"prompt\":\"p\",\"prompt\":\"q\"}",
                                       "{\"prompt\":\"\\u0000\"}",
                                       "{\"prompt\":\"\xff\"}",
                                       "{\"prompt\":{}}",
                                       "{\"n\":[[1]]}",
                                       deep,
                                       "{\"seed\":1e999999999999999999999999999999999999999999999999999999999999999}"};
    static struct api a;
    struct read r;
    (void)state;
    api_open(&a, NULL, 1);
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        assert_true(read_request(&r, &a, false, json[i], strlen(json[i])) != LK_OK);
        read_free(&r);
        if (*json[i]) expect(&a, "POST", "/v1/images/generations", JSON, json[i], 400, "\"param\":null");
    }
    struct lk_text many = {0};
    for (int i = 0; i <= IMAGES_MAX_FIELDS; i++) lk_text_add(&many, "%s\"k%d\":1", i ? "," : "{", i);
    lk_text_add(&many, "}");
    expect(&a, "POST", "/v1/images/generations", JSON, many.bytes, 400, "expected at most 96 fields");
    lk_text_free(&many);
    expect(&a, "POST", "/v1/images/generations", "Content-Type: text/plain\r\n", "{\"prompt\":\"p\"}", 400,
           "expected application/json, got \\\"text/plain\\\"");
    expect(&a, "POST", "/v1/images/generations", "", "{\"prompt\":\"p\"}", 400, "expected application/json");
    expect(&a, "POST", "/v1/images/edits", JSON, "{\"prompt\":\"p\"}", 400, "expected multipart/form-data");
    expect(&a, "POST", "/v1/images/edits", "Content-Type: multipart/form-data\r\n", "x", 400, "with a boundary");
    expect(&a, "POST", "/v1/images/edits", FORM, "--b 2--\r\n", 400, "begin with the boundary");
    expect(&a, "POST", "/v1/images/edits", FORM, "--b 1--\r\n", 400, "prompt: expected a text");
    expect(&a, "POST", "/v1/images/edits", FORM, "--b 1\r\nX: y\r\n\r\nv\r\n--b 1--\r\n", 400, "with a name");
    api_close(&a);
}

/* --- the line --- */

/* What must come, sooner or later: mutants wait in vain. */
static void be_patient(time_t began) {
    const char *seconds = getenv("TEST_PATIENCE_S");
    if (time(NULL) - began > (seconds ? atoi(seconds) : 600)) fail_msg("waited in vain");
}

static struct images_request *next(struct api *a) {
    struct images_request *r;
    for (time_t began = time(NULL); !(r = images_next(a->listener, 50));) be_patient(began);
    return r;
}

/* Asks for nothing until it is sent away with this status: whether there is a place. The reply. */
static char *ask_until(const struct api *a, int status) {
    const time_t began = time(NULL);
    size_t n;
    char *request = request_of("POST", "/v1/images/generations", JSON, "{\"prompt\":\"\"}", 13, &n), *reply;
    while (reply = test_http(a->port, request, n), strncmp(reply, "HTTP/1.1 ", 9) || atoi(reply + 9) != status) {
        be_patient(began);
        free(reply);
    }
    lk_free(request);
    return reply;
}

static void answer(struct api *a, struct images_request *r, const char *text) {
    struct images_answer made = {.status = 200};
    lk_text_add(&made.body, "%s", text);
    images_answer(a->listener, r, &made, 3.5);
}

/* A connection that stays, with a request of which a part is sent. */
static int connect_and_send(const struct api *a, const char *request, size_t n) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s, (struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(send(s, request, n, MSG_NOSIGNAL), n);
    return s;
}

/* The same up to the body, when the request has its place, as the server says by asking for more. */
static int connect_with_place(const struct api *a) {
    static const char head[] = "POST /v1/images/generations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" JSON
                               "Content-Length: 50\r\nExpect: 100-continue\r\n\r\n";
    char more[100] = "";
    int s = connect_and_send(a, head, sizeof head - 1);
    for (size_t n = 0; !strstr(more, "\r\n\r\n"); n++) assert_int_equal(recv(s, more + n, n + 1 < sizeof more, 0), 1);
    assert_int_equal(strncmp(more, "HTTP/1.1 100 ", 13), 0);
    return s;
}

static int connect_and_ask(const struct api *a, const char *prompt) {
    char body[51];
    int s = connect_with_place(a);
    const int n = snprintf(body, sizeof body, "{\"prompt\":\"%s\"}", prompt);
    assert_int_equal(send(s, body, (size_t)n, MSG_NOSIGNAL), n);
    assert_int_equal(send(s, &"                                                  "[n], (size_t)(50 - n), MSG_NOSIGNAL),
                     50 - n);
    return s;
}

/* The reply, up to the end of the connection. */
static void expect_reply(int s, const char *begins, const char *part) {
    char reply[2000] = "";
    ssize_t k;
    for (size_t n = 0; (k = recv(s, reply + n, sizeof reply - 1 - n, 0)) > 0; n += (size_t)k) {
    }
    close(s);
    if (strncmp(reply, begins, strlen(begins)) || !strstr(reply, part))
        fail_msg("expected \"%s\" and \"%s\", got %s", begins, part, reply);
}

static void one_after_another(void **state) {
    static struct api a;
    (void)state;
    api_open(&a, NULL, 1);
    int first = connect_and_ask(&a, "first");
    struct images_request *r = next(&a);
    assert_string_equal(images_ask_of(r)->job.request.prompt, "first");
    int second = connect_and_ask(&a, "second");
    expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"third\"}", 429, "Retry-After: 1\r\n");
    expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"third\"}", 429, "\"code\":\"queue_full\"");
    answer(&a, r, "1st\n");
    expect_reply(first, "HTTP/1.1 200", "1st\n");
    r = next(&a);
    assert_string_equal(images_ask_of(r)->job.request.prompt, "second");
    int third = connect_and_ask(&a, "third"); /* in the place that is free now */
    expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"p\"}", 429, "Retry-After: 3\r\n");
    answer(&a, r, "2nd\n");
    expect_reply(second, "HTTP/1.1 200", "2nd\n");
    answer(&a, next(&a), "3rd\n");
    expect_reply(third, "HTTP/1.1 200", "3rd\n");
    /* Both places are free again. */
    for (int i = 0; i < 3; i++) expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"\"}", 400, "");
    api_close(&a);
}

static void who_hangs_up_is_dropped(void **state) {
    static struct api a;
    (void)state;
    api_open(&a, NULL, 1);
    int first = connect_and_ask(&a, "first");
    struct images_request *r = next(&a);
    int second = connect_and_ask(&a, "second");
    assert_false(images_gone(r));
    close(second);
    /* Its place becomes free, and nobody makes its picture. */
    free(ask_until(&a, 400));
    close(first);
    for (time_t began = time(NULL); !images_gone(r); usleep(1000)) be_patient(began);
    answer(&a, r, "too late\n");
    int third = connect_and_ask(&a, "third");
    answer(&a, next(&a), "3rd\n");
    expect_reply(third, "HTTP/1.1 200", "3rd\n");
    api_close(&a);
}

static void who_waits_at_the_end_is_told(void **state) {
    static struct api a;
    (void)state;
    api_open(&a, NULL, 4);
    int first = connect_and_ask(&a, "first"), second, half;
    struct images_request *r = next(&a);
    second = connect_and_ask(&a, "second");
    half = connect_with_place(&a);
    struct images_answer stopped = {0};
    images_refuse(&stopped, 503, NULL, "stopped");
    images_answer(a.listener, r, &stopped, 0);
    api_close(&a); /* replies are sent before the end */
    expect_reply(first, "HTTP/1.1 503", "\"message\":\"stopped\"");
    expect_reply(second, "", "");
    close(half);
}

/* --- harm --- */

static void slow_clients_are_dropped(void **state) {
    static struct api a;
    char byte;
    (void)state;
    api_open(&a, NULL, 0);
    int in_body = connect_with_place(&a), in_header = connect_and_send(&a, "POST /v1/images", 15);
    expect(&a, "POST", "/v1/images/generations", JSON, "{\"prompt\":\"p\"}", 429, "");
    const struct timeval soon = {.tv_usec = 50000};
    const time_t began = time(NULL);
    setsockopt(in_header, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    do { /* the server may see this connection late, when our clock goes already */
        be_patient(began);
        __atomic_add_fetch(&a.now, 5001, __ATOMIC_SEQ_CST);
    } while (recv(in_header, &byte, 1, 0) < 0 && errno == EAGAIN);
    assert_true(recv(in_body, &byte, 1, 0) <= 0); /* without an answer */
    free(ask_until(&a, 400));                     /* the place is free */
    close(in_header);
    close(in_body);
    api_close(&a);
}

static void requests_that_mean_harm(void **state) {
    static struct api a;
    (void)state;
    api_open(&a, NULL, 2);
    /* a header of 10 MB, and 3,000 short ones */
    const size_t n_big = 10 << 20;
    char *big = malloc(n_big);
    memset(big, 'x', n_big);
    memcpy(big, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", 42);
    char *reply = test_http(a.port, big, n_big);
    assert_true(!*reply || atoi(reply + 9) >= 400);
    free(reply);
    for (size_t i = 0; i + 6 < 18000; i += 6) memcpy(big + 39 + i, "A: b\r\n", 6);
    reply = test_http(a.port, big, 18039);
    assert_true(!*reply || atoi(reply + 9) >= 400 || !strncmp(reply, "HTTP/1.1 200", 12));
    free(reply);
    free(big);
    /* too much, told before or found out on the way */
    expect(&a, "POST", "/v1/images/generations", JSON "Content-Length: 100001\r\n", NULL, 413, "at most 100000 bytes");
    struct lk_text chunks = {0};
    lk_text_add(&chunks, "POST /v1/images/generations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" JSON
                         "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 30; i++) lk_text_add(&chunks, "1000\r\n%4096s\r\n", "");
    lk_text_add(&chunks, "0\r\n\r\n");
    reply = test_http(a.port, chunks.bytes, chunks.n);
    assert_int_equal(atoi(reply + 9), 413);
    free(reply);
    lk_text_free(&chunks);
    /* cut off, odd, none at all */
    static const char *const odd[] = {"",
                                      "\r\n",
                                      "\0\0\0\0",
                                      "POST",
                                      "POST / HTTP/9.9\r\n\r\n",
                                      "POST /v1/images/edits HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
                                      "GET /health\r\n\r\n",
                                      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (size_t n = 0; n <= strlen(odd[i]); n++) close(connect_and_send(&a, odd[i], n));
    static const char cut[] =
        "POST /v1/images/generations HTTP/1.1\r\nHost: localhost\r\n" JSON "Content-Length: 500\r\n\r\n{\"prompt\":";
    for (int i = 0; i < 20; i++) close(connect_and_send(&a, cut, sizeof cut - 1 - (size_t)i));
    /* and it still answers: all places are free at last */
    free(ask_until(&a, 400));
    expect(&a, "GET", "/health", "", NULL, 200, "ok");
    api_close(&a);
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

static void addresses(void **state) {
    static struct api a;
    struct images_listener *l;
    (void)state;
    api_open(&a, NULL, 1);
    struct images_settings s = a.settings;
    s.address = "localhost";
    assert_fails(images_listen(&l, &s), LK_E_USAGE, "--host: expected an IPv4 address, got \"localhost\"");
    assert_null(l);
    s.address = "0.0.0.0";
    assert_fails(images_listen(&l, &s), LK_E_USAGE, "others can reach this address: expected a token");
    s.token = TOKEN;
    assert_ok(images_listen(&l, &s));
    images_stop(l);
    images_stop(NULL);
    api_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(routes),
                                       cmocka_unit_test(tokens),
                                       cmocka_unit_test(json_becomes_a_job),
                                       cmocka_unit_test(forms_become_jobs),
                                       cmocka_unit_test(bad_fields_are_named),
                                       cmocka_unit_test(bodies_that_are_none),
                                       cmocka_unit_test(one_after_another),
                                       cmocka_unit_test(who_hangs_up_is_dropped),
                                       cmocka_unit_test(who_waits_at_the_end_is_told),
                                       cmocka_unit_test(slow_clients_are_dropped),
                                       cmocka_unit_test(requests_that_mean_harm),
                                       cmocka_unit_test(what_does_not_fit),
                                       cmocka_unit_test(addresses)};
    lk_log_open(true, false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
