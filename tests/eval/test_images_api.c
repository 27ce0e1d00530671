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

static void bodies_that_are_none(void **state) {
    static const char deep[] = "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    static const char *const json[] = {"x",
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
    (void)state;
    api_open(&a, NULL, 1);
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        expect(&a, "POST", "/v1/images/generations", JSON, json[i], 400, "\"param\":null");
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
                                       cmocka_unit_test(bodies_that_are_none),
                                       cmocka_unit_test(one_after_another),
                                       cmocka_unit_test(who_hangs_up_is_dropped),
                                       cmocka_unit_test(who_waits_at_the_end_is_told),
                                       cmocka_unit_test(slow_clients_are_dropped),
                                       cmocka_unit_test(requests_that_mean_harm),
                                       cmocka_unit_test(addresses)};
    lk_log_open(true, false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
