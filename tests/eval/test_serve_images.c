/* serve images with a real model, tiny: its pictures are edit's to the byte, our own client and it understand each
 * other, and what cannot be made is an answer. */
#include <cjson/cJSON.h>
#include <openssl/evp.h>
#include <signal.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/hosted/images.h"
#include "tests/common/served.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"
#include "tools/cli/images/api.h"

#define MODEL   "golden/data/flux2/rich/checkpoint"
#define OPTIONS "--steps", "2", "--max-sequence-length", "40", "--text-encoder-out-layers", "1,2,3", "-t", "1", "-q"
#define TOKEN   "0123456789abcdef"

static pid_t server;
static int port;
static char url[64];

static int begin(void **state) {
    static const char *const argv[] = {"likeness", "serve", "images", "-m", MODEL, "--port", "0", OPTIONS, NULL};
    char line[200];
    (void)state;
    setenv("LIKENESS_IMAGES_TOKEN", TOKEN, 1);
    server = served_start(argv, line);
    assert_int_equal(sscanf(line, "http://127.0.0.1:%d/v1\n", &port), 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", port);
    return 0;
}

static int end(void **state) {
    (void)state;
    kill(server, SIGTERM);
    assert_int_equal(served_end(server), 0);
    return 0;
}

/* What edit makes. more: further arguments, up to a NULL. */
static char *edited(const char *prompt, const char *seed, const char *const *more, size_t *n) {
    const char *argv[40] = {"likeness", "edit", "-m", MODEL, "-p", prompt, "--seed", seed, OPTIONS};
    char line[200], path[1000];
    int argc = 0;
    snprintf(path, sizeof path, "%s", test_path("serve-edited.png"));
    while (argv[argc]) argc++;
    argv[argc++] = "-o";
    argv[argc++] = path;
    while (more && *more) argv[argc++] = *more++;
    assert_int_equal(served_end(served_start(argv, line)), 0);
    return test_read(path, n);
}

static char *post(const char *path, const char *type, const struct lk_text *body) {
    struct lk_text text = {0};
    lk_text_add(&text,
                "POST /v1/images/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " TOKEN
                "\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                path, type, body->n);
    lk_text_bytes(&text, body->bytes, body->n);
    char *reply = test_http(port, text.bytes, text.n);
    lk_text_free(&text);
    return reply;
}

static char *generate(const char *json) {
    struct lk_text body = {.bytes = (char *)(uintptr_t)json, .n = strlen(json)};
    return post("generations", "application/json", &body);
}

/* Picture i of a reply, which has n, is this one, of this seed. */
static void expect_picture(const char *reply, int i, int n, double seed, const char *png, size_t n_png) {
    if (strncmp(reply, "HTTP/1.1 200", 12)) fail_msg("%.900s", reply);
    cJSON *root = cJSON_Parse(strstr(reply, "\r\n\r\n")), *data = cJSON_GetObjectItem(root, "data"),
          *one = cJSON_GetArrayItem(data, i);
    assert_int_equal(cJSON_GetArraySize(data), n);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "created")) > 1.7e9);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "model")), "checkpoint");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(one, "seed")) == seed);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(one, "b64_json"));
    assert_non_null(text);
    unsigned char *bytes = malloc(strlen(text));
    const int length = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)strlen(text));
    assert_true(length >= (int)n_png && length < (int)n_png + 3);
    assert_memory_equal(bytes, png, n_png);
    free(bytes);
    cJSON_Delete(root);
}

static void pictures_are_those_of_edit(void **state) {
    static const char *const size[] = {"-W", "32", "-H", "48", NULL};
    size_t n[2];
    char *first = edited("a red scarf", "7", size, &n[0]), *second = edited("a red scarf", "8", size, &n[1]);
    char *reply =
        generate("{\"prompt\":\"a red scarf\",\"n\":2,\"size\":\"32x48\",\"seed\":7,\"model\":\"checkpoint\"}");
    (void)state;
    expect_picture(reply, 0, 2, 7, first, n[0]);
    expect_picture(reply, 1, 2, 8, second, n[1]);
    free(reply);
    free(first);
    static const char *const more[] = {"-W", "32", "-H", "48", "--steps", "3", "--guidance-scale", "2.5", NULL};
    first = edited("a red scarf", "7", more, &n[0]);
    reply = generate("{\"prompt\":\"a red scarf\",\"size\":\"32x48\",\"seed\":7,\"steps\":3,\"guidance_scale\":2.5}");
    expect_picture(reply, 0, 1, 7, first, n[0]);
    free(reply);
    free(first);
    free(second);
}

/* A picture's file, whose pixels differ by `step`; its bytes. */
static void write_picture(const char *name, int width, int channels, int step, struct lk_text *out) {
    struct lk_image image;
    void *png;
    size_t n;
    assert_ok(lk_image_new(&image, width, 64, channels));
    for (int i = 0; i < width * 64 * channels; i++) image.pixels[i] = (uint8_t)(i * step >> 3);
    for (int i = 0; i < width * 64 && channels == 4; i++) image.pixels[4 * i + 3] = i % 64 < 32 ? 255 : 0;
    for (int i = 0; i < width * 64 && channels == 1; i++) image.pixels[i] = i % 64 < 32 ? 0 : 255;
    assert_ok(lk_png_encode(name, &image, &png, &n));
    test_write(test_path(name), png, n);
    lk_text_free(out);
    *out = (struct lk_text){0};
    lk_text_bytes(out, png, n);
    lk_free(png);
    lk_image_free(&image);
}

static void add_part(struct lk_text *form, const char *name, const char *file, const struct lk_text *value) {
    lk_text_add(form, "--BOUND\r\nContent-Disposition: form-data; name=\"%s\"", name);
    if (file) lk_text_add(form, "; filename=\"%s\"\r\nContent-Type: image/png", file);
    lk_text_add(form, "\r\n\r\n");
    lk_text_bytes(form, value->bytes, value->n);
    lk_text_add(form, "\r\n");
}

static void add_text(struct lk_text *form, const char *name, const char *value) {
    add_part(form, name, NULL, &(struct lk_text){.bytes = (char *)(uintptr_t)value, .n = strlen(value)});
}

static char *edit(struct lk_text *form) {
    lk_text_add(form, "--BOUND--\r\n");
    char *reply = post("edits", "multipart/form-data; boundary=BOUND", form);
    lk_text_free(form);
    *form = (struct lk_text){0};
    return reply;
}

static void edits_are_those_of_edit(void **state) {
    char a[1000], b[1000], m[1000];
    struct lk_text picture = {0}, mask = {0}, form = {0};
    size_t n;
    (void)state;
    snprintf(a, sizeof a, "%s", test_path("a.png"));
    snprintf(b, sizeof b, "%s", test_path("b.png"));
    snprintf(m, sizeof m, "%s", test_path("m.png"));
    add_text(&form, "prompt", "red hair");
    add_text(&form, "seed", "3");
    add_text(&form, "size", "32x48");
    write_picture("a.png", 64, 3, 3, &picture);
    add_part(&form, "image[]", "a.png", &picture);
    write_picture("b.png", 80, 3, 5, &picture);
    add_part(&form, "image[]", "b.png", &picture);
    char *reply = edit(&form);
    char *png = edited("red hair", "3", (const char *const[]){"-r", a, "-r", b, "-W", "32", "-H", "48", NULL}, &n);
    expect_picture(reply, 0, 1, 3, png, n);
    free(reply);
    free(png);
    /* A mask as --mask takes it, and the same as the API's clients make it: what is transparent is edited. */
    write_picture("a.png", 64, 3, 3, &picture);
    write_picture("m.png", 64, 1, 0, &mask);
    png = edited("red hair", "4", (const char *const[]){"-r", a, "--mask", m, NULL}, &n);
    for (int alpha = 0; alpha < 2; alpha++) {
        if (alpha) write_picture("alpha.png", 64, 4, 1, &mask);
        add_part(&form, "mask", "m.png", &mask);
        add_part(&form, "image", "a.png", &picture);
        add_text(&form, "seed", "4");
        add_text(&form, "prompt", "red hair");
        reply = edit(&form);
        expect_picture(reply, 0, 1, 4, png, n);
        free(reply);
    }
    free(png);
    lk_text_free(&picture);
    lk_text_free(&mask);
}

static void expect_refused(char *reply, int status, const char *param, const char *part) {
    char field[60];
    snprintf(field, sizeof field, "\"param\":%s,", param);
    if (atoi(reply + 9) != status || !strstr(reply, field) || !strstr(reply, part))
        fail_msg("expected %d, %s and \"%s\", got %.900s", status, field, part, reply);
    assert_null(strstr(reply, "/tmp")); /* nor where things lie on this machine */
    free(reply);
}

static void what_cannot_be_made_is_told(void **state) {
    struct lk_text picture = {0}, form = {0};
    (void)state;
    expect_refused(generate("{\"prompt\":\"p\",\"size\":\"33x48\"}"), 400, "\"size\"",
                   "size: width: expected a multiple of 16, got 33");
    expect_refused(generate("{\"prompt\":\"p\",\"size\":\"65520x65520\"}"), 400, "\"size\"", "at most");
    write_picture("small.png", 16, 3, 1, &picture);
    add_text(&form, "prompt", "p");
    add_part(&form, "image", "small.png", &picture);
    expect_refused(edit(&form), 400, "\"image\"", "at least 64 pixels");
    add_text(&form, "prompt", "p");
    add_text(&form, "seed", "1");
    add_part(&form, "image", "../../none.png", &(struct lk_text){.bytes = "no", .n = 2});
    expect_refused(edit(&form), 400, "\"image\"", "none.png: expected a JPEG, PNG, WebP, TIFF or BMP");
    write_picture("a.png", 64, 3, 3, &picture);
    add_text(&form, "prompt", "p");
    add_part(&form, "image", "a.png", &picture);
    write_picture("m.png", 80, 1, 0, &picture);
    add_part(&form, "mask", "m.png", &picture);
    expect_refused(edit(&form), 400, "\"mask\"", "expected a mask of the first image's size, 64x64, got 80x64");
    lk_text_free(&picture);
}

static void our_client_understands_it(void **state) {
    struct lk_images_server *client;
    struct lk_image source, expected;
    struct lk_text picture = {0};
    struct lk_image_answer a;
    static const struct lk_images_option sizes[] = {{"size", "32x48", true}, {"size", "33x48", true}};
    struct lk_images_settings s = {.url = url,
                                   .option = "--images-url",
                                   .model = "checkpoint",
                                   .key = TOKEN,
                                   .set = &sizes[0],
                                   .n_set = 1,
                                   .seed_field = true,
                                   .pause_ms = 1,
                                   .answer_ms = 600000};
    size_t n;
    char path[1000];
    (void)state;
    snprintf(path, sizeof path, "%s", test_path("c.png"));
    write_picture("c.png", 64, 3, 3, &picture);
    assert_ok(lk_image_decode(&source, picture.bytes, picture.n, "c.png", 0, 0));
    for (int n_images = 0; n_images < 2; n_images++) {
        static const char *const size[] = {"-W", "32", "-H", "48", "-r", NULL};
        const char *more[8];
        memcpy(more, size, sizeof size);
        if (n_images) more[5] = path, more[6] = NULL;
        more[n_images ? 6 : 4] = NULL;
        char *png = edited("red hair", "12", more, &n);
        assert_ok(lk_image_decode(&expected, png, n, "the CLI's picture", 0, 0));
        assert_ok(lk_images_open(&client, &s));
        const struct lk_image_question q = {.prompt = "red hair", .seed = 12, .images = &source, .n_images = n_images};
        assert_ok(lk_images_ask(client, &q, 1, 1, NULL, &a));
        if (a.asked.outcome != LK_OUTCOME_MADE) fail_msg("%s", a.error);
        assert_int_equal(a.image.width, expected.width);
        assert_memory_equal(a.image.pixels, expected.pixels, (size_t)(32 * 48 * 3));
        assert_string_equal(a.asked.cells[LK_ASKED_API_MODEL], "checkpoint");
        lk_image_answer_free(&a);
        lk_images_close(client);
        lk_image_free(&expected);
        free(png);
    }
    /* An error of ours is a fault of the request for it, not a refusal. */
    s.set = &sizes[1];
    assert_ok(lk_images_open(&client, &s));
    assert_ok(lk_images_ask(client, &(struct lk_image_question){.prompt = "p"}, 1, 1, NULL, &a));
    assert_int_equal(a.asked.outcome, LK_OUTCOME_FAULT);
    assert_non_null(strstr(a.error, "expected a multiple of 16, got 33"));
    lk_image_answer_free(&a);
    lk_images_close(client);
    s.key = "another-token-than-the-server's";
    assert_ok(lk_images_open(&client, &s));
    assert_ok(lk_images_ask(client, &(struct lk_image_question){.prompt = "p"}, 1, 1, NULL, &a));
    assert_int_equal(a.asked.outcome, LK_OUTCOME_FAULT);
    lk_image_answer_free(&a);
    lk_images_close(client);
    lk_image_free(&source);
    lk_text_free(&picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_those_of_edit), cmocka_unit_test(edits_are_those_of_edit),
        cmocka_unit_test(what_cannot_be_made_is_told), cmocka_unit_test(our_client_understands_it)};
    return cmocka_run_group_tests(tests, begin, end);
}
