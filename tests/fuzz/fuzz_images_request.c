/* A request to our images API, of an edit (a form) or of pictures from text (JSON): a job within its limits whose texts
 * are texts, or an error that is JSON. Input: a byte that says which, then the body; a form's boundary is "b". */
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "tools/cli/images/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void check_ask(const struct images_ask *ask, bool edit) {
    const struct lk_request *q = &ask->job.request;
    check(ask->n >= 1 && ask->n <= IMAGES_MAX_PICTURES);
    check(ask->n_images <= LK_MAX_REFERENCES && (ask->n_images > 0) == edit);
    check(*q->prompt && lk_utf8_valid(q->prompt, strlen(q->prompt)));
    check(!q->prompt_embeds && !q->prompts_file && !q->mask); /* no file of this machine */
    check((int64_t)q->width * q->height <= IMAGES_MAX_PIXELS && q->seed <= INT64_MAX - (uint64_t)ask->n);
    for (int i = 0; i < ask->n_images; i++) {
        check(!strpbrk(ask->images[i].name, "/\\") && *ask->images[i].name);
        check(!ask->images[i].bytes[ask->images[i].n]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct lk_job job;
    const bool edit = size && data[0] % 2;
    const size_t n = size ? size - 1 : 0;
    struct images_fields fields;
    struct images_ask ask = {.n = 0};
    struct images_answer answer = {.status = 0};
    char *body = lk_malloc(n + 1);
    if (!job.run.dtype) lk_job_init(&job);
    const struct images_model model = {
        .id = "tiny", .path = "tiny", .family = "flux2-dev", .takes_images = true, .job = &job};
    if (!body) return 0;
    memcpy(body, size ? (const char *)data + 1 : "", n);
    body[n] = '\0';
    enum lk_code rc = edit ? images_form_read("multipart/form-data; boundary=b", body, n, &fields)
                           : images_json_read(body, n, &fields);
    if (!rc) images_ask_read(&model, edit, &fields, &ask, &answer);
    if (!rc && !answer.status) check_ask(&ask, edit);
    if (answer.status) {
        cJSON *root = cJSON_Parse(answer.body.bytes);
        check(answer.status >= 400 &&
              cJSON_IsString(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "error"), "message")));
        cJSON_Delete(root);
    }
    images_ask_free(&ask);
    lk_text_free(&answer.body);
    lk_free(fields.block);
    lk_free(body);
    return 0;
}
