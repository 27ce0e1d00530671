/* Step1X-Edit with thinking and reflection: the rounds played by the model itself. */
#include <math.h>

#include "engine/base/alloc.h"
#include "models/step1x/rounds.h"
#include "models/step1x/step1x.h"
#include "models/text/chat.h"

#define MAX_SIDE       1024
#define MAX_NEW_TOKENS 128
#define MIN_PIXELS     262144
#define MAX_PIXELS     802816

struct thinker {
    struct lk_pipeline *pipeline;
    struct lk_device *dev;
    const struct lk_request *request;
    struct lk_chat *chat;
    struct lk_rng rng; /* of all rounds' noise: it is not seeded anew */
    uint64_t n_calls;  /* of the language model */
    int64_t stop_id;
};

/* floor or ceil, whichever keeps the aspect ratio better, as PIL's thumbnail does; the smaller one when both do. */
static int kept_side(double side, double aspect, int other, bool is_width) {
    double low = floor(side), high = ceil(side);
    double low_error = is_width ? fabs(aspect - low / other) : low ? fabs(aspect - other / low) : 0;
    double high_error = is_width ? fabs(aspect - high / other) : high ? fabs(aspect - other / high) : 0;
    int kept = (int)(high_error < low_error ? high : low);
    return kept < 1 ? 1 : kept;
}

void lk_step1x_thumbnail_size(int width, int height, int *out_width, int *out_height) {
    double aspect = (double)width / height;
    *out_width = width;
    *out_height = height;
    if (width <= MAX_SIDE && height <= MAX_SIDE) return;
    *out_width = aspect <= 1 ? kept_side(MAX_SIDE * aspect, aspect, MAX_SIDE, true) : MAX_SIDE;
    *out_height = aspect <= 1 ? MAX_SIDE : kept_side(MAX_SIDE / aspect, aspect, MAX_SIDE, false);
}

static enum lk_code resize(struct lk_image *image, int width, int height) {
    struct lk_image resized;
    if (image->width == width && image->height == height) return LK_OK;
    LK_TRY(lk_image_resize(&resized, image, width, height, LK_RESAMPLE_BICUBIC));
    lk_image_free(image);
    *image = resized;
    return LK_OK;
}

/* At most 1024 a side, then to whole vision tokens, both by Pillow's bicubic, before the processor has its turn. (Of a
 * source of 4096 pixels and more a side Pillow's thumbnail averages blocks first; here it is resized at once.) */
static enum lk_code look_at(const struct lk_image *image, struct lk_image *out) {
    static const struct lk_qwen2_vl_processor tokens = {
        .patch_size = 14, .merge_size = 2, .min_pixels = 4 * 28 * 28, .max_pixels = 16384 * 28 * 28};
    int width, height;
    LK_TRY(lk_image_to_rgb(out, image));
    lk_step1x_thumbnail_size(out->width, out->height, &width, &height);
    LK_TRY(resize(out, width, height));
    LK_TRY(lk_qwen2_vl_size(&tokens, width, height, &width, &height));
    return resize(out, width, height);
}

/* Lets the caller stop between tokens. */
static enum lk_code on_text(void *context, const char *text, size_t n, int64_t n_tokens) {
    const struct lk_request *q = ((const struct thinker *)context)->request;
    (void)text;
    (void)n;
    (void)n_tokens;
    return q->progress ? q->progress(q->progress_context, "thinking", 0, q->num_inference_steps) : LK_OK;
}

static enum lk_code ask(void *context, const struct lk_step1x_question *question, char **reply) {
    struct thinker *t = context;
    struct lk_image images[2] = {0};
    enum lk_code rc = on_text(t, NULL, 0, 0);
    for (int i = 0; !rc && i < question->n_images; i++) rc = look_at(question->images[i], &images[i]);
    const struct lk_chat_part system = {.text = question->system};
    struct lk_chat_part parts[3];
    int n_parts = 0;
    if (question->text_first) parts[n_parts++] = (struct lk_chat_part){.text = question->user};
    for (int i = 0; i < question->n_images; i++) parts[n_parts++] = (struct lk_chat_part){.image = &images[i]};
    if (!question->text_first) parts[n_parts++] = (struct lk_chat_part){.text = question->user};
    const struct lk_chat_message messages[] = {{"system", &system, 1}, {"user", parts, n_parts}};
    struct lk_chat_request request;
    struct lk_chat_reply said = {0};
    lk_chat_request_init(&request, t->chat);
    request.messages = messages;
    request.n_messages = 2;
    request.min_pixels = MIN_PIXELS;
    request.max_pixels = MAX_PIXELS;
    request.generation.do_sample = true;
    request.generation.temperature = 0.7;
    request.generation.top_p = 0.9;
    request.generation.max_new_tokens = MAX_NEW_TOKENS;
    request.generation.stop_ids[0] = t->stop_id;
    request.generation.n_stop_ids = 1;
    request.seed = t->request->seed + t->n_calls++; /* the reference draws from a generator that nobody seeded */
    request.text = on_text;
    request.text_context = t;
    if (!rc) rc = lk_chat_reply(t->chat, t->dev, &request, &said);
    for (int i = 0; i < 2; i++) lk_image_free(&images[i]);
    if (!rc) {
        *reply = said.text ? said.text : lk_strdup("");
        said.text = NULL;
        if (!*reply) rc = lk_fail(LK_E_NOMEM, "reply: out of memory");
    }
    lk_chat_reply_free(&said);
    return rc;
}

static enum lk_code edit(void *context, const struct lk_image *source, const char *prompt, struct lk_result *result) {
    struct thinker *t = context;
    struct lk_step1x_edit once = {.source = source, .prompt = prompt, .rng = &t->rng};
    return lk_step1x_edit_once(t->pipeline, t->dev, t->request, &once, result);
}

enum lk_code lk_step1x_think_and_edit(struct lk_pipeline *pipeline, struct lk_device *dev,
                                      const struct lk_request *request,
                                      const struct lk_step1x_instructions *instructions, struct lk_result *result) {
    const struct lk_step1x *m = pipeline->model;
    struct thinker t = {.pipeline = pipeline, .dev = dev, .request = request};
    struct lk_step1x_player player = {.ask = ask, .edit = edit, .context = &t};
    lk_rng_seed(&t.rng, request->seed);
    t.stop_id = lk_tokenizer_id(m->tokenizer, "<|im_end|>");
    LK_TRY(lk_chat_open(&t.chat, pipeline->folder, pipeline->compute));
    enum lk_code rc = lk_step1x_run_rounds(request, instructions, &player, result);
    lk_chat_close(t.chat);
    return rc;
}
