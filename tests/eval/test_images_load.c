/* serve images under load and under attack, with a tiny model: 200 clients at once, bodies that would fill the memory,
 * requests that are damaged in every way that tools/attack and we know. With LIKENESS_TEST_FULL every client comes
 * again until it has its picture, and there are 10,000 of the others. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/image/image.h"
#include "tests/common/clients.h"
#include "tests/common/served.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/survey.h"
#include "tools/attack/campaign.h"

#define MODEL   "golden/data/flux2/rich/checkpoint"
#define OPTIONS "--steps", "1", "--max-sequence-length", "40", "--text-encoder-out-layers", "1,2,3", "-t", "1", "-q"
#define HOST    "Host: localhost\r\n"
#define ASKED   "{\"prompt\":\"a red scarf\",\"size\":\"32x32\",\"seed\":7}"

enum { CLIENTS = 200, PLACES = 9, AT_ONCE = 9, PATIENCE_MS = 120000, HARM_MS = 500 };

static pid_t server;
static int port;
static char folder[1100];

/* --- the server seen from outside --- */

/* A line of /proc/PID/status in KiB; after it was told to begin anew, the peak is that of what follows. */
static long memory_kb(const char *name) {
    char path[60], line[200];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)server);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("the server is gone");
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) kb = atol(line + strlen(name) + 1);
    fclose(f);
    return kb;
}

static int n_descriptors(void) {
    char path[60];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server);
    DIR *d = opendir(path);
    if (!d) fail_msg("the server is gone");
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Sum over all files below a folder of name, size and time of change. */
static uint64_t files_sum;
static int add_file(const char *path, const struct stat *st, int type, struct FTW *at) {
    uint64_t h = 0xcbf29ce484222325u;
    (void)at;
    if (type == FTW_F) h ^= (uint64_t)st->st_size ^ (uint64_t)st->st_mtim.tv_nsec << 20; /* folders come and go */
    for (; *path; path++) h = (h ^ (unsigned char)*path) * 0x100000001b3u;
    files_sum += h;
    return 0;
}
static uint64_t files_of(const char *path) {
    files_sum = 0;
    nftw(path, add_file, 16, FTW_PHYS);
    return files_sum;
}

static int begin(void **state) {
    static const char *const argv[] = {"likeness", "serve", "images", "-m", MODEL, "--port", "0", OPTIONS, NULL};
    char line[200];
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_fresh("served"));
    setenv("TMPDIR", folder, 1);
    unsetenv("LIKENESS_IMAGES_TOKEN");
    const int own = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO); /* it tells of every refusal */
    server = served_start(argv, line);
    dup2(own, STDERR_FILENO);
    close(own);
    close(null);
    assert_int_equal(sscanf(line, "http://127.0.0.1:%d/v1\n", &port), 1);
    return 0;
}

static int end(void **state) {
    (void)state;
    kill(server, SIGTERM);
    assert_int_equal(served_end(server), 0);
    return 0;
}

/* --- clients --- */

static void add_request(struct lk_text *out, const char *path, const char *type, const void *body, size_t n) {
    lk_text_add(out, "POST %s HTTP/1.1\r\n" HOST "Connection: close\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                path, type, n);
    lk_text_bytes(out, body, n);
}

static void ask_for_a_picture(struct client *c) {
    *c = (struct client){.socket = -1};
    add_request(&c->request, "/v1/images/generations", "application/json", ASKED, strlen(ASKED));
    client_open(c, port);
}

static void two_hundred_at_once(void **state) {
    static struct client list[CLIENTS];
    const bool full = test_is_full();
    int n_made = 0, n_away = 0, n_waves = 0;
    long first_kb = 0;
    (void)state;
    for (int i = 0; i < CLIENTS; i++) ask_for_a_picture(&list[i]);
    for (int left = CLIENTS; left; n_waves++) {
        left = 0;
        clients_run(list, CLIENTS, PATIENCE_MS);
        for (int i = 0; i < CLIENTS; i++) {
            struct client *c = &list[i];
            if (c->status == 429) {
                assert_non_null(strstr(c->reply, "\r\nRetry-After: "));
                assert_true(atoi(strstr(c->reply, "\r\nRetry-After: ") + 15) >= 1);
                n_away++;
                client_free(c);
                if (!full) continue;
                ask_for_a_picture(c);
                left++;
            } else if (c->n) {
                if (c->status != 200) fail_msg("client %d: %.600s", i, c->reply);
                assert_non_null(strstr(c->reply, "\"b64_json\":\""));
                n_made++;
                client_free(c);
            }
        }
        if (!n_waves) first_kb = memory_kb("VmHWM:");
        if (left) usleep(200000);
        assert_true(n_waves < 2000);
    }
    print_message("%d pictures, %d times 429, in %d waves; %ld MiB after the first wave, %ld at the end\n", n_made,
                  n_away, n_waves, first_kb >> 10, memory_kb("VmHWM:") >> 10);
    assert_true(n_made >= PLACES && (full ? n_made == CLIENTS : n_made + n_away == CLIENTS));
    assert_true(memory_kb("VmHWM:") < first_kb + (64 << 10));
}

/* Each of 200 clients sends 4 MiB; a body is kept of those alone who have a place. */
static void bodies_do_not_fill_the_memory(void **state) {
    static struct client list[CLIENTS];
    struct lk_text body = {0};
    (void)state;
    lk_text_add(&body, "--B\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\np\r\n--B\r\nContent-Disposition: "
                       "form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n");
    for (int i = 0; i < 4 << 10; i++) lk_text_add(&body, "%1023d\n", i);
    lk_text_add(&body, "\r\n--B--\r\n");
    const long before_kb = memory_kb("VmHWM:");
    for (int i = 0; i < CLIENTS; i++) {
        list[i] = (struct client){.socket = -1};
        add_request(&list[i].request, "/v1/images/edits", "multipart/form-data; boundary=B", body.bytes, body.n);
        client_open(&list[i], port);
    }
    clients_run(list, CLIENTS, PATIENCE_MS);
    for (int i = 0; i < CLIENTS; i++) {
        if (list[i].status != 400 && list[i].status != 429) fail_msg("%.600s", list[i].reply ? list[i].reply : "none");
        client_free(&list[i]);
    }
    const long more_kb = memory_kb("VmHWM:") - before_kb;
    print_message("%ld MiB more for %d bodies of 4 MiB\n", more_kb >> 10, CLIENTS);
    assert_true(more_kb < PLACES * 6 * 4 * 1024); /* of a body its form, decoded too, in pieces that grow */
    lk_text_free(&body);
}

/* --- harm --- */

static uint64_t dice;
static uint32_t roll(uint32_t n) { return (uint32_t)(attack_random(&dice) % n); }

static void picture_of(int width, int height, struct lk_text *out) {
    struct lk_image image;
    void *png;
    size_t n;
    assert_ok(lk_image_new(&image, width, height, 3));
    for (int i = 0; i < width * height * 3; i++) image.pixels[i] = (uint8_t)(i * 7 >> 2);
    assert_ok(lk_png_encode("p.png", &image, &png, &n));
    lk_text_bytes(out, png, n);
    lk_free(png);
    lk_image_free(&image);
}

static void put_be(uint8_t *at, uint32_t x) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(x >> (24 - 8 * i));
}

/* A PNG whose header says another size, with a checksum that fits. */
static void lie_about_size(struct lk_text *png) {
    static const uint32_t sizes[] = {0, 1, 33, 4096, 65535, 1u << 20, 0x7fffffff, 0xffffffff};
    uint8_t *ihdr = (uint8_t *)png->bytes + 12;
    put_be(ihdr + 4, sizes[roll(8)]);
    put_be(ihdr + 8, sizes[roll(8)]);
    put_be(ihdr + 17, (uint32_t)crc32(crc32(0, NULL, 0), ihdr, 17));
}

/* A PNG with a chunk of text that unpacks to so many MiB of zeros. */
static void add_bomb(struct lk_text *png, int mib) {
    const uLong n = (uLong)mib << 20;
    uLongf packed = compressBound(n);
    uint8_t *zeros = calloc(1, n), *chunk = malloc(packed + 30);
    assert_true(zeros && chunk);
    memcpy(chunk + 4, "zTXtparameters\0\0", 16);
    assert_int_equal(compress2(chunk + 20, &packed, zeros, n, 9), Z_OK);
    put_be(chunk, (uint32_t)(12 + packed));
    put_be(chunk + 20 + packed, (uint32_t)crc32(crc32(0, NULL, 0), chunk + 4, (uInt)(16 + packed)));
    struct lk_text out = {0};
    lk_text_bytes(&out, png->bytes, 33); /* signature and header */
    lk_text_bytes(&out, (char *)chunk, packed + 24);
    lk_text_bytes(&out, png->bytes + 33, png->n - 33);
    free(zeros);
    free(chunk);
    lk_text_free(png);
    *png = out;
}

static void add_part(struct lk_text *form, const char *name, const char *file, const void *value, size_t n) {
    lk_text_add(form, "--B\r\nContent-Disposition: form-data; name=\"%s\"", name);
    if (file) lk_text_add(form, "; filename=\"%s\"\r\nContent-Type: image/png", file);
    lk_text_add(form, "\r\n\r\n");
    lk_text_bytes(form, value, n);
    lk_text_add(form, "\r\n");
}

static void form_of(const struct lk_text *png, const char *file, struct lk_text *out) {
    static const char *const names[] = {"image", "image[]", "mask", "image"};
    const char *name = names[roll(4)];
    add_part(out, "prompt", NULL, "red hair", 8);
    add_part(out, "size", NULL, "32x32", 5);
    if (!strcmp(name, "mask")) add_part(out, "image", "a.png", png->bytes, png->n);
    add_part(out, name, file, png->bytes, png->n);
    lk_text_add(out, "--B--\r\n");
}

static void damage(struct lk_text *text, enum attack_form form) {
    struct attack_bytes bytes = {malloc(text->n + 1), text->n};
    assert_non_null(bytes.data);
    memcpy(bytes.data, text->bytes, text->n);
    bytes.data[text->n] = 0;
    attack_mutate(&bytes, form, &dice);
    lk_text_free(text);
    *text = (struct lk_text){0};
    lk_text_bytes(text, (char *)bytes.data, bytes.n);
    free(bytes.data);
}

static void whole_request(bool edit, struct lk_text *out) {
    struct lk_text png = {0}, form = {0};
    picture_of(64, 64, &png);
    form_of(&png, "a.png", &form);
    if (edit)
        add_request(out, "/v1/images/edits", "multipart/form-data; boundary=B", form.bytes, form.n);
    else
        add_request(out, "/v1/images/generations", "application/json", ASKED, strlen(ASKED));
    lk_text_free(&png);
    lk_text_free(&form);
}

/* --- one function for each kind of harm --- */

static void damaged_request(struct client *c) {
    whole_request(roll(2), &c->request);
    damage(&c->request, roll(2) ? ATTACK_BINARY : ATTACK_TABLE);
}

static void headers(struct client *c) {
    lk_text_add(&c->request, "%s /v1/images/generations%s HTTP/1.1\r\n" HOST, roll(2) ? "POST" : "\x80\xff",
                roll(2) ? "" : "?a=%zz");
    const uint32_t n = 1u << roll(16);
    switch (roll(4)) {
    case 0:
        lk_text_add(&c->request, "X: %*d\r\n", (int)n * 16, 1);
        break;
    case 1:
        for (uint32_t i = 0; i < n / 4; i++) lk_text_add(&c->request, "A%u: b\r\n", i);
        break;
    case 2:
        lk_text_add(&c->request, "%*d", (int)n, 1); /* a name that never ends */
        break;
    default:
        lk_text_add(&c->request, "Content-Length: 5\r\nContent-Length: %u\r\nTransfer-Encoding: chunked\r\n", n);
    }
    lk_text_add(&c->request, "\r\n\r\n0\r\n\r\n");
}

static void wrong_length(struct client *c) {
    static const char *const lengths[] = {
        "0",     "1",        "-1", "18446744073709551615", "99999999999999999999", "0x20", "1e3", "+ 40",
        "40 40", "67108865", "500"};
    lk_text_add(&c->request,
                "POST /v1/images/generations HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: "
                "%s\r\n\r\n" ASKED,
                lengths[roll(sizeof lengths / sizeof *lengths)]);
    c->half = c->request.n; /* nothing more comes */
}

static void half_closed(struct client *c) {
    whole_request(roll(2), &c->request);
    c->half = 1 + roll((uint32_t)c->request.n);
}

static void damaged_form(struct client *c) {
    struct lk_text png = {0}, form = {0};
    static const char *const types[] = {"multipart/form-data; boundary=B", "multipart/form-data; boundary=\"B\"",
                                        "multipart/form-data; boundary=", "multipart/form-data; boundary=B--",
                                        "multipart/mixed; boundary=B"};
    picture_of(64, 64, &png);
    form_of(&png, "a.png", &form);
    damage(&form, roll(2) ? ATTACK_BINARY : ATTACK_TABLE);
    add_request(&c->request, "/v1/images/edits", types[roll(3) ? 0 : roll(5)], form.bytes, form.n);
    lk_text_free(&png);
    lk_text_free(&form);
}

static void damaged_json(struct client *c) {
    struct lk_text json = {0};
    lk_text_add(
        &json, "%s",
        "{\"prompt\":\"a\",\"n\":1,\"size\":\"32x32\",\"seed\":7,\"steps\":1,\"guidance_scale\":2.5,\"model\":"
        "\"checkpoint\",\"quality\":\"auto\",\"user\":\"u\",\"negative_prompt\":\"\",\"output_format\":\"png\"}");
    damage(&json, ATTACK_JSON);
    add_request(&c->request, "/v1/images/generations", "application/json", json.bytes, json.n);
    lk_text_free(&json);
}

/* A picture within JSON, which this server takes in forms alone: a bomb as base64, or a number of brackets. */
static void bomb_in_json(struct client *c) {
    struct lk_text png = {0}, json = {0};
    picture_of(32, 32, &png);
    if (roll(2)) add_bomb(&png, 8);
    lk_text_add(&json, "{\"prompt\":\"p\",\"size\":\"32x32\",\"%s\":\"data:image/png;base64,",
                roll(2) ? "image" : "images");
    lk_text_base64(&json, png.bytes, png.n);
    lk_text_add(&json, "\"}");
    if (!roll(4)) {
        json.n = 0;
        for (uint32_t i = 0, n = 1u << roll(16); i < n; i++) lk_text_add(&json, "%s", roll(2) ? "[" : "{\"a\":");
    }
    add_request(&c->request, "/v1/images/generations", "application/json", json.bytes, json.n);
    lk_text_free(&png);
    lk_text_free(&json);
}

static void lying_picture(struct client *c) {
    struct lk_text png = {0}, form = {0};
    picture_of(64, 64, &png);
    switch (roll(4)) {
    case 0:
        lie_about_size(&png);
        break;
    case 1:
        add_bomb(&png, 1 << roll(6));
        break;
    default:
        damage(&png, ATTACK_PNG);
    }
    form_of(&png, "a.png", &form);
    add_request(&c->request, "/v1/images/edits", "multipart/form-data; boundary=B", form.bytes, form.n);
    lk_text_free(&png);
    lk_text_free(&form);
}

/* Names of files that are not the client's to name. */
static void names_outside(struct client *c) {
    static const char *const names[] = {
        "../../../../etc/passwd", "/etc/passwd", "..\\..\\x", "a\\\"b.png", "%2e%2e%2fx", "/dev/zero", "~/.ssh/id",
        "file:///etc/passwd"};
    static const char *const fields[] = {"scheduler", "model", "mask", "lora", "prompt_embeds", "transformer", "size"};
    const char *name = names[roll(8)];
    struct lk_text body = {0}, png = {0};
    if (roll(2)) {
        picture_of(64, 64, &png);
        form_of(&png, name, &body);
        add_request(&c->request, "/v1/images/edits", "multipart/form-data; boundary=B", body.bytes, body.n);
    } else if (roll(2)) {
        lk_text_add(&body, "{\"prompt\":\"p\",\"size\":\"32x32\",\"%s\":", fields[roll(7)]);
        lk_text_json(&body, name);
        lk_text_add(&body, "}");
        add_request(&c->request, "/v1/images/generations", "application/json", body.bytes, body.n);
    } else {
        lk_text_add(&c->request, "GET /v1/%s HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", name);
    }
    lk_text_free(&body);
    lk_text_free(&png);
}

static void chunks(struct client *c) {
    static const char *const sizes[] = {"ffffffffffffffff", "7fffffffffffffff", "-1", "g", "5;x=y", "", "4000001"};
    lk_text_add(&c->request, "POST /v1/images/generations HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n");
    for (uint32_t i = 0, n = 1 + roll(40); i < n; i++)
        lk_text_add(&c->request, "%s\r\n{\"a\":\r\n", roll(2) ? "5" : sizes[roll(7)]);
    c->half = c->request.n;
}

static const struct {
    const char *name;
    void (*make)(struct client *c);
} harms[] = {{"damaged requests", damaged_request}, {"headers", headers},
             {"wrong lengths", wrong_length},       {"half closed", half_closed},
             {"damaged forms", damaged_form},       {"damaged JSON", damaged_json},
             {"bombs in JSON", bomb_in_json},       {"lying pictures", lying_picture},
             {"names outside", names_outside},      {"chunks", chunks}};
enum { N_HARMS = sizeof harms / sizeof *harms };

/* Whatever came: an answer of the API's kind, or none. */
static void judge(const struct client *c, int harm, int by_status[600]) {
    static const int known[] = {0, 200, 400, 401, 404, 405, 408, 411, 413, 414, 421, 429, 431, 501, 503, 505};
    bool good = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) good |= c->status == known[i];
    if (!good) fail_msg("%s: %.900s\n--- to ---\n%.300s", harms[harm].name, c->reply, c->request.bytes);
    if (c->n && (strstr(c->reply, "root:") || strstr(c->reply, folder)))
        fail_msg("%s: tells of this machine: %.900s", harms[harm].name, c->reply);
    by_status[c->status]++;
}

static char *picture_reply(void) {
    struct client c;
    ask_for_a_picture(&c);
    clients_run(&c, 1, PATIENCE_MS);
    if (c.status != 200) fail_msg("%.900s", c.reply ? c.reply : "none");
    char *data = strdup(strstr(c.reply, "\"data\":"));
    client_free(&c);
    return data;
}

static void hostile_requests_do_nothing(void **state) {
    static struct client list[AT_ONCE];
    static int by_status[600];
    const int n = test_is_full() ? 10000 : 400;
    int harm[AT_ONCE], n_last = 0;
    long kb = 0;
    (void)state;
    char *before = picture_reply();
    const int descriptors = n_descriptors();
    const uint64_t files[] = {files_of(folder), files_of("golden/data/flux2"), files_of("common")};
    dice = 41;
    for (int i = 0; i < n; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            list[k] = (struct client){.socket = -1};
            harm[k] = (i + k) % N_HARMS;
            harms[harm[k]].make(&list[k]);
            assert_int_equal(list[k].request.rc, LK_OK);
            client_open(&list[k], port);
        }
        clients_run(list, AT_ONCE, HARM_MS);
        for (int k = 0; k < AT_ONCE; k++) {
            judge(&list[k], harm[k], by_status);
            client_free(&list[k]);
        }
        if (i <= n / 4) kb = memory_kb("VmHWM:");
    }
    for (int k = 0; k < 600; k++)
        if (by_status[k]) print_message("%s%d: %d", n_last++ ? ", " : "answers by status: ", k, by_status[k]);
    print_message("; %ld MiB after a quarter, %ld at the end\n", kb >> 10, memory_kb("VmHWM:") >> 10);
    char *after = picture_reply();
    assert_string_equal(before, after);
    for (int64_t began = test_now_ms(); n_descriptors() > descriptors && test_now_ms() - began < PATIENCE_MS;)
        usleep(50000);
    assert_true(n_descriptors() <= descriptors);
    assert_true(files[0] == files_of(folder) && files[1] == files_of("golden/data/flux2") &&
                files[2] == files_of("common"));
    assert_true(memory_kb("VmHWM:") < kb + (128 << 10));
    free(before);
    free(after);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_hundred_at_once),
                                       cmocka_unit_test(bodies_do_not_fill_the_memory),
                                       cmocka_unit_test(hostile_requests_do_nothing)};
    return cmocka_run_group_tests(tests, begin, end);
}
