/* A model behind the images API: what is sent, what each kind of answer counts as, what is asked again and what never
 * is. The server is a thread with a script. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/hosted/images.h"
#include "tests/common/scripted_server.h"
#include "tests/common/test.h"

#define BAD "HTTP/1.1 400 Bad Request\r\nx-request-id: req_7\r\n"
#define KEY "sk-s3cret-key"
#define REFUSED                                                                                                        \
    "{\"error\":{\"code\":\"moderation_blocked\",\"type\":\"image_generation_user_error\",\"message\":\"no\"}}"

enum { SIDE = 6 };

static struct lk_image picture(int value, int step) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, SIDE, SIDE, 3));
    for (int i = 0; i < SIDE * SIDE * 3; i++) image.pixels[i] = (uint8_t)(value + step * i);
    return image;
}

/* A reply with a picture and more members of its first datum. */
static char *reply_with(int value, int step, const char *more) {
    struct lk_image image = picture(value, step);
    struct lk_text text = {0};
    void *png;
    size_t n;
    assert_ok(lk_png_encode("picture", &image, &png, &n));
    lk_text_add(&text, "{\"created\":1,\"model\":\"model-of-june\",\"data\":[{%s\"b64_json\":\"", more);
    lk_text_base64(&text, png, n);
    lk_text_add(&text, "\"}]}");
    lk_free(png);
    lk_image_free(&image);
    assert_int_equal(text.rc, LK_OK);
    return text.bytes;
}

static struct lk_images_settings settings_for(const char *url) {
    return (struct lk_images_settings){
        .url = url, .option = "--images-url", .model = "gpt-image-1", .key = KEY, .pause_ms = 1, .answer_ms = 20000};
}

/* Asks one after another; the answers are the caller's. */
static void ask(const struct lk_images_settings *s, const struct lk_image_question *questions, int n,
                struct lk_image_answer *answers) {
    struct lk_images_server *server_of_images;
    assert_ok(lk_images_open(&server_of_images, s));
    for (int i = 0; i < n; i++) assert_ok(lk_images_ask(server_of_images, &questions[i], 1, 1, NULL, &answers[i]));
    lk_images_close(server_of_images);
}

static void ask_script(const struct step *steps, int n_steps, int n, struct lk_image_answer *answers) {
    static const struct lk_image_question questions[5] = {
        {.prompt = "a"}, {.prompt = "b"}, {.prompt = "c"}, {.prompt = "d"}, {.prompt = "e"}};
    struct lk_images_settings s = settings_for(scripted_start(steps, n_steps));
    ask(&s, questions, n, answers);
    scripted_stop();
}

static const char *cell(const struct lk_image_answer *a, enum lk_asked_cell c) {
    return a->asked.cells[c] ? a->asked.cells[c] : "";
}

static void a_picture_from_text(void **state) {
    (void)state;
    static const struct lk_images_option set[] = {{"quality", "high", true}, {"output_compression", "90", false}};
    char *body = reply_with(9, 1, "\"revised_prompt\":\"a white man\",");
    const struct step steps[] = {{.head = OK "x-request-id: req_1\r\n", .body = body}};
    struct lk_images_settings s = settings_for(scripted_start(steps, 1));
    struct lk_image_answer a;
    s.set = set, s.n_set = 2;
    ask(&s, &(struct lk_image_question){.prompt = "a \"man\"\n", .seed = 5}, 1, &a);
    assert_int_equal(a.asked.outcome, LK_OUTCOME_MADE);
    assert_int_equal(a.image.width, SIDE);
    assert_int_equal(a.image.pixels[7], 16);
    assert_string_equal(cell(&a, LK_ASKED_REVISED_PROMPT), "a white man");
    assert_string_equal(cell(&a, LK_ASKED_REQUEST_ID), "req_1");
    assert_string_equal(cell(&a, LK_ASKED_N_SENT), "1");
    assert_string_equal(cell(&a, LK_ASKED_HTTP_STATUS), "200");
    assert_string_equal(cell(&a, LK_ASKED_API_MODEL), "model-of-june");
    assert_int_equal(strlen(cell(&a, LK_ASKED_AT)), 20);
    assert_null(strstr(a.body.bytes, "iVBOR")); /* the body is kept without the picture */
    const char *request = server.seen[0];
    assert_int_equal(strncmp(request, "POST /v1/images/generations HTTP/1.1\r\n", 38), 0);
    assert_non_null(strstr(request, "\r\nAuthorization: Bearer " KEY "\r\n"));
    cJSON *root = cJSON_Parse(strstr(request, "\r\n\r\n") + 4);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "prompt")), "a \"man\"\n");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "quality")), "high");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "output_format")), "png");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "output_compression")) == 90);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "n")) == 1);
    assert_null(cJSON_GetObjectItem(root, "response_format")); /* GPT image refuses it */
    assert_null(cJSON_GetObjectItem(root, "seed"));            /* the API has none */
    cJSON_Delete(root);
    lk_image_answer_free(&a);
    scripted_stop();
    lk_free(body);
}

static void open_servers_take_a_seed(void **state) {
    (void)state;
    char *body = reply_with(9, 1, "");
    const struct step steps[] = {{.head = OK, .body = body}};
    struct lk_images_settings s = settings_for(scripted_start(steps, 1));
    struct lk_image_answer a;
    s.model = "qwen-image", s.seed_field = true, s.key = NULL;
    ask(&s, &(struct lk_image_question){.prompt = "p", .seed = 41}, 1, &a);
    cJSON *root = cJSON_Parse(strstr(server.seen[0], "\r\n\r\n") + 4);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "seed")) == 41);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "response_format")), "b64_json");
    assert_null(cJSON_GetObjectItem(root, "output_format"));
    assert_null(strstr(server.seen[0], "Authorization"));
    cJSON_Delete(root);
    lk_image_answer_free(&a);
    scripted_stop();
    lk_free(body);
}

/* Where needle begins in request i; the body is binary. */
static const char *find(int i, const char *needle) {
    return memmem(server.seen[i], server.n_seen_bytes[i], needle, strlen(needle));
}

static void edits_send_pixels(void **state) {
    (void)state;
    char *body = reply_with(9, 1, "");
    const struct step steps[] = {{.head = OK, .body = body}, {.head = OK, .body = body}};
    struct lk_images_settings s = settings_for(scripted_start(steps, 2));
    struct lk_image_answer a[2];
    struct lk_image images[2] = {picture(40, 1), picture(60, 1)}, sent;
    const struct lk_image_question questions[] = {{.prompt = "red hair", .images = images, .n_images = 1},
                                                  {.prompt = "a couple", .images = images, .n_images = 2}};
    ask(&s, questions, 2, a);
    assert_int_equal(strncmp(server.seen[0], "POST /v1/images/edits HTTP/1.1\r\n", 32), 0);
    assert_non_null(find(0, "name=\"prompt\"\r\n\r\nred hair\r\n--likeness-"));
    assert_non_null(find(0, "name=\"image\"; filename=\"image.png\"\r\nContent-Type: image/png\r\n\r\n"));
    assert_null(find(0, "likeness-0000000000"));
    const char *type = find(0, "boundary=likeness-");
    char boundary[60];
    snprintf(boundary, sizeof boundary, "--%.49s--\r\n", type + 9);
    assert_memory_equal(server.seen[0] + server.n_seen_bytes[0] - strlen(boundary), boundary, strlen(boundary));
    const char *png = find(0, "image/png\r\n\r\n") + 13;
    const size_t n = (size_t)(server.seen[0] + server.n_seen_bytes[0] - png) - strlen(boundary) - 2;
    assert_ok(lk_image_decode(&sent, png, n, "what was sent", 0, 0));
    assert_memory_equal(sent.pixels, images[0].pixels, SIDE * SIDE * 3);
    lk_image_free(&sent);
    assert_non_null(find(1, "name=\"image[]\""));
    assert_null(find(1, "name=\"image\""));
    for (int i = 0; i < 2; i++) {
        lk_image_answer_free(&a[i]);
        lk_image_free(&images[i]);
    }
    scripted_stop();
    lk_free(body);
}

/* Each kind of refusal is an answer, is asked once, and says where. */
static void refusals_are_asked_once(void **state) {
    (void)state;
    char *filtered = reply_with(9, 1, "\"finish_reason\":\"CONTENT_FILTERED\",");
    const struct {
        const char *head, *body, *stage, *code;
    } cases[] = {
        {BAD, "{\"error\":{\"code\":\"content_policy_violation\",\"message\":\"Your request was rejected\"}}", "input",
         "content_policy_violation"},
        {BAD, REFUSED, "input", "moderation_blocked"},
        {BAD, "{\"error\":{\"code\":\"image_content_policy_violation\",\"message\":\"no\"}}", "input",
         "image_content_policy_violation"},
        {BAD, "{\"error\":{\"code\":null,\"message\":\"Your request was rejected as a result of our safety system.\"}}",
         "input", "in_words"},
        {BAD, "{\"error\":{\"code\":\"x\",\"message\":\"safety_violations=[sexual]\"}}", "input", "x"},
        /* as LiteLLM's proxy 1.108.7 hands on what OpenAI says */
        {BAD,
         "{\"error\":{\"message\":\"litellm.BadRequestError: OpenAIException - Your request was rejected as a result "
         "of "
         "our safety system. Your prompt may contain text that is not allowed by our safety system.\\n\\nLiteLLM: "
         "model "
         "group 'strict' failed with the error above.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":"
         "\"400\"}}",
         "input", "in_words"},
        {BAD, "{\"error\":{\"code\":\"contentFilter\",\"message\":\"filtered\"}}", "input", "contentFilter"},
        {"HTTP/1.1 403 Forbidden\r\n", REFUSED, "input", "moderation_blocked"},
        {"HTTP/1.1 451 Unavailable\r\n", "{\"detail\":\"against the content policy\"}", "input", "in_words"},
        {OK, "{\"created\":1,\"data\":[]}", "output", "no_picture"},
        {OK, "{\"data\":[{\"filteredReason\":\"people\"}]}", "output", "people"},
        {OK, filtered, "output", "CONTENT_FILTERED"},
        {OK, "{\"status\":\"Request Moderated\"}", "input", "Request Moderated"},
        {OK, "{\"status\":\"Content Moderated\"}", "output", "Content Moderated"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_image_answer a;
        ask_script(&(struct step){.head = cases[i].head, .body = cases[i].body}, 1, 1, &a);
        if (a.asked.outcome != LK_OUTCOME_REFUSED) fail_msg("case %zu: %s", i, a.error);
        assert_int_equal(a.code, LK_OK);
        assert_null(a.image.pixels);
        assert_string_equal(cell(&a, LK_ASKED_STAGE), cases[i].stage);
        assert_string_equal(cell(&a, LK_ASKED_CODE), cases[i].code);
        assert_string_equal(cell(&a, LK_ASKED_N_SENT), "1");
        assert_true(a.body.n > 0);
        lk_image_answer_free(&a);
    }
    lk_free(filtered);
}

/* A busy or broken server says nothing of the model; each request that was sent is counted. */
static void busy_servers_are_asked_again(void **state) {
    (void)state;
    char *body = reply_with(9, 1, "");
    const struct step steps[] = {
        {.head = "HTTP/1.1 429 Too Many\r\nRetry-After: 0.01\r\n",
         .body = "{\"error\":{\"message\":\"rejected as a result of our safety system of rates\"}}"},
        {.head = BUSY},
        {.head = "HTTP/1.1 500 Oops\r\n", .body = REFUSED},
        {.head = "HTTP/1.1 409 Conflict\r\nretry-after-ms: 5\r\n"},
        {.head = OK, .body = body},
        {.head = NULL}, /* the connection is cut after the request */
        {.head = OK, .body = body},
        {.head = "HTTP/1.1 500 Oops\r\nx-should-retry: false\r\n", .body = "{\"error\":{\"message\":\"gone\"}}"},
    };
    struct lk_image_answer a[3];
    ask_script(steps, 8, 3, a);
    assert_int_equal(a[0].asked.outcome, LK_OUTCOME_MADE);
    assert_string_equal(cell(&a[0], LK_ASKED_N_SENT), "5");
    assert_int_equal(a[1].asked.outcome, LK_OUTCOME_MADE);
    assert_string_equal(cell(&a[1], LK_ASKED_N_SENT), "2");
    assert_int_equal(a[2].asked.outcome, LK_OUTCOME_FAULT);
    assert_int_equal(a[2].code, LK_E_INPUT);
    for (int i = 0; i < 3; i++) lk_image_answer_free(&a[i]);
    lk_free(body);
}

/* What every further request would meet too. */
static void what_concerns_all_stops(void **state) {
    (void)state;
    static const struct {
        const char *head, *body, *says;
    } cases[] = {
        {"HTTP/1.1 401 Unauthorized\r\n", "{\"error\":{\"message\":\"Incorrect key " KEY "\"}}", "OPENAI_API_KEY"},
        {"HTTP/1.1 402 Pay\r\n", "", "credit"},
        {"HTTP/1.1 404 None\r\n", "{\"error\":{\"code\":\"model_not_found\",\"message\":\"no dall-e-3\"}}",
         "no dall-e-3"},
        {"HTTP/1.1 429 Too Many\r\n", "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}", "pay"},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n", "", "status 302"},
        {BAD, "{\"error\":{\"param\":\"size\",\"message\":\"Invalid value\"}}", "field \"size\": Invalid value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_image_answer a[3];
        ask_script(&(struct step){.head = cases[i].head, .body = cases[i].body}, 1, 3, a);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(a[k].asked.outcome, LK_OUTCOME_FAULT);
            assert_int_equal(a[k].code, LK_E_IO);
            if (!strstr(a[k].error, cases[i].says)) fail_msg("case %zu: %s", i, a[k].error);
            assert_null(strstr(a[k].error, KEY));
            lk_image_answer_free(&a[k]);
        }
    }
}

/* A request of its own that the server cannot read, when others were answered. */
static void one_bad_request_fails_alone(void **state) {
    (void)state;
    const struct step steps[] = {{.head = BAD, .body = REFUSED},
                                 {.head = BAD, .body = "{\"error\":{\"message\":\"prompt too long\"}}"},
                                 {.head = BAD, .body = REFUSED}};
    struct lk_image_answer a[3];
    ask_script(steps, 3, 3, a);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].asked.outcome, i == 1 ? LK_OUTCOME_FAULT : LK_OUTCOME_REFUSED);
        lk_image_answer_free(&a[i]);
    }
}

static void placeholders_and_what_is_no_picture(void **state) {
    (void)state;
    char *black = reply_with(1, 0, ""), *blank = reply_with(200, 0, "");
    static const char gif[] =
        "{\"data\":[{\"b64_json\":\"R0lGODlhAQABAIAAAAAAAP///yH5BAAAAAAALAAAAAABAAEAAAIBRAA7\"}]}";
    const struct step steps[] = {{.head = OK, .body = black},
                                 {.head = OK, .body = blank},
                                 {.head = OK, .body = "<html>not JSON</html>"},
                                 {.head = OK, .body = gif}};
    struct lk_image_answer a[4];
    ask_script(steps, 4, 4, a);
    assert_int_equal(a[0].asked.outcome, LK_OUTCOME_PLACEHOLDER);
    assert_string_equal(cell(&a[0], LK_ASKED_CODE), "black");
    assert_int_equal(a[1].asked.outcome, LK_OUTCOME_PLACEHOLDER);
    assert_string_equal(cell(&a[1], LK_ASKED_CODE), "blank");
    for (int i = 2; i < 4; i++) { /* nobody pays for these twice */
        assert_int_equal(a[i].asked.outcome, LK_OUTCOME_FAULT);
        assert_string_equal(cell(&a[i], LK_ASKED_N_SENT), "1");
    }
    assert_non_null(strstr(a[3].error, "JPEG, PNG, WebP, TIFF or BMP"));
    for (int i = 0; i < 4; i++) lk_image_answer_free(&a[i]);
    lk_free(black);
    lk_free(blank);
}

static void pictures_at_an_address(void **state) {
    (void)state;
    struct lk_image image = picture(9, 1);
    void *png;
    size_t n;
    char body[3][200];
    assert_ok(lk_png_encode("picture", &image, &png, &n));
    struct step steps[] = {{.head = OK, .body = body[0]}, {.head = OK, .body = png, .n = n}};
    struct lk_images_settings s = settings_for(scripted_start(steps, 2));
    struct lk_image_answer a;
    snprintf(body[0], sizeof body[0], "{\"data\":[{\"url\":\"http://127.0.0.1:%d/there.png?sig=1\"}]}", server.port);
    ask(&s, &(struct lk_image_question){.prompt = "p"}, 1, &a);
    assert_int_equal(a.asked.outcome, LK_OUTCOME_MADE);
    assert_memory_equal(a.image.pixels, image.pixels, SIDE * SIDE * 3);
    assert_string_equal(cell(&a, LK_ASKED_N_SENT), "1"); /* fetching is not asking */
    assert_int_equal(strncmp(server.seen[1], "GET /there.png?sig=1 HTTP/1.1\r\n", 31), 0);
    assert_null(strstr(server.seen[1], KEY));
    lk_image_answer_free(&a);
    scripted_stop();

    static const char *const others[] = {"http://localhost:9/a.png", "file:///etc/passwd", "http://127.0.0.1:99@h/x"};
    for (int i = 0; i < 3; i++) {
        snprintf(body[1], sizeof body[1], "{\"data\":[{\"url\":\"%s\"}]}", others[i]);
        const struct step step = {.head = OK, .body = body[1]};
        ask_script(&step, 1, 1, &a);
        assert_int_equal(a.asked.outcome, LK_OUTCOME_FAULT);
        assert_non_null(strstr(a.error, "--fetch-urls"));
        lk_image_answer_free(&a);
    }
    lk_image_free(&image);
    lk_free(png);
}

static struct told {
    const struct lk_image_answer *answers;
    int n, number[4], n_seen[4];
    bool whole[4];
} told;

static void tell(void *context, int i) {
    struct told *t = context;
    const struct lk_image_answer *a = &t->answers[i];
    t->number[t->n] = i;
    t->n_seen[t->n] = server.n_seen;
    t->whole[t->n++] = a->asked.cells[LK_ASKED_N_SENT] && (a->asked.outcome == LK_OUTCOME_REFUSED ||
                                                           (a->asked.outcome == LK_OUTCOME_MADE && a->image.pixels));
}

/* Whoever asks many is told of each answer before the next question, of a picture at an address once it is here, of a
 * fault at the end. */
static void answers_as_they_come(void **state) {
    (void)state;
    struct lk_image image = picture(9, 1);
    struct lk_images_server *client;
    struct lk_image_answer answers[4];
    const struct lk_image_question questions[4] = {{.prompt = "a"}, {.prompt = "b"}, {.prompt = "c"}, {.prompt = "d"}};
    void *png;
    size_t n;
    char address[200], *body = reply_with(9, 1, "");
    assert_ok(lk_png_encode("picture", &image, &png, &n));
    const struct step steps[] = {{.head = OK, .body = body},
                                 {.head = OK, .body = address},
                                 {.head = BAD, .body = REFUSED},
                                 {.head = OK, .body = "no JSON"},
                                 {.head = OK, .body = png, .n = n}};
    const struct lk_images_settings s = settings_for(scripted_start(steps, 5));
    snprintf(address, sizeof address, "{\"data\":[{\"url\":\"http://127.0.0.1:%d/there.png\"}]}", server.port);
    assert_ok(lk_images_open(&client, &s));
    told = (struct told){.answers = answers};
    assert_ok(lk_images_ask_each(client, questions, 4, 1, NULL, tell, &told, answers));
    lk_images_close(client);
    static const int number[] = {0, 2, 1}, n_seen[] = {1, 3, 5};
    assert_int_equal(told.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(told.number[i], number[i]);
        assert_int_equal(told.n_seen[i], n_seen[i]);
        assert_true(told.whole[i]);
    }
    assert_int_equal(answers[3].asked.outcome, LK_OUTCOME_FAULT);
    for (int i = 0; i < 4; i++) lk_image_answer_free(&answers[i]);
    scripted_stop();
    lk_image_free(&image);
    lk_free(png);
    lk_free(body);
}

/* Pictures are large; what has no end is cut off. */
static void large_answers(void **state) {
    (void)state;
    char *body = reply_with(9, 1, ""), *large = lk_malloc((20 << 20) + strlen(body) + 1), block[4097];
    memset(large, ' ', 20 << 20);
    strcpy(large + (20 << 20), body);
    memset(block, 'x', 4096), block[4096] = 0;
    const struct step steps[] = {{.head = OK, .body = large},
                                 {.head = OK, .body = " ", .length = 1 << 30, .after = block}};
    struct lk_image_answer a[2];
    ask_script(steps, 2, 2, a);
    assert_int_equal(a[0].asked.outcome, LK_OUTCOME_MADE);
    assert_int_equal(a[1].asked.outcome, LK_OUTCOME_FAULT);
    assert_non_null(strstr(a[1].error, "expected at most 67108864 bytes"));
    for (int i = 0; i < 2; i++) lk_image_answer_free(&a[i]);
    lk_free(large);
    lk_free(body);
}

/* Whatever a server says of the key, it stands in nothing that is written. */
#define FIFTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" /* a field's name is cut behind 60 bytes */
static void the_key_is_masked(void **state) {
    (void)state;
    char *made = reply_with(9, 1, "\"revised_prompt\":\"say " KEY "\",");
    const struct step steps[] = {
        {.head = OK "x-request-id: " KEY "\r\n", .body = made},
        {.head = BAD, .body = "{\"error\":{\"code\":\"moderation_blocked\",\"message\":\"" KEY " is\"}}"},
        {.head = BAD, .body = "{\"error\":{\"message\":\"" KEY "\"}}"},
        {.head = BAD, .body = "{\"error\":{\"message\":\"no\",\"param\":\"" KEY "\"}}"},
        {.head = BAD, .body = "{\"error\":{\"message\":\"no\",\"param\":\"" FIFTY KEY "\"}}"}};
    enum { N = sizeof steps / sizeof *steps };
    struct lk_image_answer a[N];
    ask_script(steps, N, N, a);
    for (int i = 0; i < N; i++) {
        struct lk_text all = {0};
        lk_asked_csv(&a[i].asked, &all);
        lk_asked_json(&a[i].asked, &all);
        lk_text_add(&all, "%s%s", a[i].error, a[i].body.bytes);
        assert_non_null(strstr(all.bytes, "******"));
        assert_null(strstr(all.bytes, "s3cret"));
        lk_text_free(&all);
        lk_image_answer_free(&a[i]);
    }
    lk_free(made);
}

/* The body is cut after it is masked: no half of the key stays at its end. */
static void a_long_body_is_cut(void **state) {
    (void)state;
    char *page = lk_malloc(2 * LK_IMAGES_BODY_BYTES);
    struct lk_image_answer a;
    memset(page, 'x', 2 * LK_IMAGES_BODY_BYTES - 1);
    page[2 * LK_IMAGES_BODY_BYTES - 1] = 0;
    memcpy(page + LK_IMAGES_BODY_BYTES - 8, KEY, strlen(KEY));
    ask_script(&(struct step){.head = OK, .body = page}, 1, 1, &a);
    assert_int_equal(a.body.n, LK_IMAGES_BODY_BYTES);
    assert_string_equal(a.body.bytes + LK_IMAGES_BODY_BYTES - 9, "x********");
    lk_image_answer_free(&a);
    lk_free(page);
}

static void urls_that_are_none(void **state) {
    (void)state;
    static const char *const urls[] = {"ftp://127.0.0.1/v1", "127.0.0.1", "http://127.0.0.1/v1?key=1"};
    for (int i = 0; i < 3; i++) {
        struct lk_images_server *none;
        struct lk_images_settings s = settings_for(urls[i]);
        assert_int_equal(lk_images_open(&none, &s), LK_E_USAGE);
        assert_non_null(strstr(lk_error_text(), "--images-url"));
        assert_null(none);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_picture_from_text),
        cmocka_unit_test(open_servers_take_a_seed),
        cmocka_unit_test(edits_send_pixels),
        cmocka_unit_test(refusals_are_asked_once),
        cmocka_unit_test(busy_servers_are_asked_again),
        cmocka_unit_test(what_concerns_all_stops),
        cmocka_unit_test(one_bad_request_fails_alone),
        cmocka_unit_test(placeholders_and_what_is_no_picture),
        cmocka_unit_test(pictures_at_an_address),
        cmocka_unit_test(answers_as_they_come),
        cmocka_unit_test(large_answers),
        cmocka_unit_test(the_key_is_masked),
        cmocka_unit_test(a_long_body_is_cut),
        cmocka_unit_test(urls_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
