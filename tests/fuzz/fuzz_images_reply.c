/* A reply of the images API, of any status: an outcome with printable cells, a body within its bound, and the key
 * nowhere. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "eval/hosted/images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const long statuses[] = {200, 400, 403, 429, 500};
    const struct lk_http_secrets secrets = {{"s3cret-key", NULL}};
    struct lk_image_answer answer = {0};
    struct lk_images_reply parts;
    char why[LK_HTTP_WHY_BYTES] = "";
    struct lk_text text = {0};
    lk_text_bytes(&text, size ? (const char *)data + 1 : "", size ? size - 1 : 0);
    const struct lk_http_reply reply = {.status = statuses[size ? data[0] % 5 : 0],
                                        .bytes = text.bytes ? text.bytes : "",
                                        .n = text.n,
                                        .request_id = "req s3cret-key",
                                        .should_retry = size > 1 ? data[1] % 3 - 1 : 0,
                                        .address = "http://h/v1/images/edits"};
    const enum lk_http_verdict verdict = lk_images_classify(&reply, &secrets, &answer, &parts, why);
    const bool refused = answer.asked.outcome == LK_OUTCOME_REFUSED, picture = *parts.b64 || *parts.url;
    check(verdict != LK_HTTP_TAKEN || refused != picture);
    check(!refused || (verdict == LK_HTTP_TAKEN && *answer.asked.cells[LK_ASKED_CODE]));
    check(verdict == LK_HTTP_TAKEN || *why);
    check(answer.body.n <= LK_IMAGES_BODY_BYTES && !strstr(why, "s3cret-key"));
    check(!answer.body.n || !strstr(answer.body.bytes, "s3cret-key"));
    for (int i = 0; i < LK_N_ASKED_CELLS; i++) {
        const char *cell = answer.asked.cells[i] ? answer.asked.cells[i] : "";
        check(!strstr(cell, "s3cret-key"));
        for (; *cell; cell++) check((unsigned char)*cell >= 0x20 && *cell != 0x7f);
    }
    cJSON_Delete(parts.root);
    lk_image_answer_free(&answer);
    lk_text_free(&text);
    return 0;
}
