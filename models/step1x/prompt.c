#include "models/step1x/prompt.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

#define MAX_PROMPT_BYTES ((size_t)1 << 20)
#define IMAGE_TOKEN      "<|image_pad|>"

/* Protocol constants of the model: the chat template's frame and the edit prefix. A space stands before the third line
 * break of the prefix. */
static const char before_prompt[] =
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    "Given a reference image and a user editing instruction.\nYou need to understand the information of the reference "
    "image and the content of the editing instruction,\nand then generate a detailed description of the edited target "
    "image based on the reference image and the editing instruction. \nThe description should include the requirements "
    "in the editing instruction and try to closely match the content of the target image.\nThe editing instruction "
    "is: ";
static const char after_prompt[] =
    "Picture 1: <|vision_start|>" IMAGE_TOKEN "<|vision_end|><|im_end|>\n<|im_start|>assistant\n";

struct output {
    const struct lk_tokenizer *tokenizer;
    int64_t n_image_tokens;
    int64_t n_images; /* image tokens met in the text */
    int32_t *ids;
    bool *quoted;
    size_t n, ids_capacity, quoted_capacity;
};

static enum lk_code reserve(struct output *o, size_t n_more) {
    LK_TRY(lk_grow(&o->ids, &o->ids_capacity, o->n + n_more, sizeof *o->ids));
    return lk_grow(&o->quoted, &o->quoted_capacity, o->n + n_more, sizeof *o->quoted);
}

/* The ids of text[0..length): tokens never reach beyond a piece. */
static enum lk_code add_piece(struct output *o, const char *text, size_t length, bool quoted) {
    int32_t *ids;
    size_t n;
    LK_TRY(lk_tokenizer_encode(o->tokenizer, text, length, &ids, &n));
    enum lk_code rc = reserve(o, n);
    for (size_t i = 0; !rc && i < n; i++) {
        o->ids[o->n] = ids[i];
        o->quoted[o->n++] = quoted;
    }
    lk_free(ids);
    return rc;
}

static enum lk_code add_characters(struct output *o, const char *text, size_t length) {
    for (size_t at = 0, n; at < length; at += n) {
        uint32_t code;
        n = lk_utf8_decode(text + at, length - at, &code);
        LK_TRY(add_piece(o, text + at, n, true));
    }
    return LK_OK;
}

static const char *find(const char *text, const char *end, const char *what) {
    return memmem(text, (size_t)(end - text), what, strlen(what));
}

/* Text between added tokens. A plain piece ends with the opening mark; the closing mark begins the next one. A
 * quotation that is not closed is none. (The reference does not look for marks in as many leading characters as its
 * prefix has: none stand there.) */
static enum lk_code add_text(struct output *o, const char *text, size_t length) {
    const char *start = text, *end = text + length, *at = text;
    while (at < end) {
        const char *ascii = find(at, end, "\""), *curly = find(at, end, "“");
        bool is_curly = curly && (!ascii || curly < ascii);
        const char *open = is_curly ? curly : ascii;
        if (!open) break;
        const char *inside = open + (is_curly ? strlen("“") : 1);
        const char *close = find(inside, end, is_curly ? "”" : "\"");
        bool dropped = is_curly && open == start; /* the reference loses a curly mark with nothing before it */
        if (!close) {
            if (dropped) start = inside;
            break;
        }
        if (!dropped) LK_TRY(add_piece(o, start, (size_t)(inside - start), false));
        LK_TRY(add_characters(o, inside, (size_t)(close - inside)));
        start = close;
        at = close + (is_curly ? strlen("”") : 1);
    }
    return start < end ? add_piece(o, start, (size_t)(end - start), false) : LK_OK;
}

static enum lk_code add_image(struct output *o) {
    int32_t id = lk_tokenizer_id(o->tokenizer, IMAGE_TOKEN);
    LK_TRY(reserve(o, (size_t)o->n_image_tokens));
    for (int64_t i = 0; i < o->n_image_tokens; i++) {
        o->ids[o->n] = id;
        o->quoted[o->n++] = false;
    }
    o->n_images++;
    return LK_OK;
}

/* The whole chat string, cut at added tokens. */
static enum lk_code add_chat(struct output *o, const char *text, size_t length) {
    size_t start = 0, at = 0;
    while (at < length) {
        size_t n = lk_tokenizer_added_at(o->tokenizer, text + at, length - at);
        if (!n) {
            at++;
            continue;
        }
        LK_TRY(add_text(o, text + start, at - start));
        if (n == strlen(IMAGE_TOKEN) && !memcmp(text + at, IMAGE_TOKEN, n))
            LK_TRY(add_image(o));
        else
            LK_TRY(add_piece(o, text + at, n, false));
        start = at += n;
    }
    return add_text(o, text + start, length - start);
}

static enum lk_code check_prompt(const char *prompt, size_t length) {
    size_t valid = lk_utf8_valid_prefix(prompt, length);
    if (valid < length) /* here, so that the byte is counted in what the user wrote, not in the template */
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", valid,
                       (unsigned char)prompt[valid]);
    if (length > MAX_PROMPT_BYTES)
        return lk_fail(LK_E_PROMPT, "prompt: expected at most %zu bytes, got %zu; shorten it", MAX_PROMPT_BYTES,
                       length);
    const char *image = strstr(prompt, IMAGE_TOKEN);
    if (image) /* the reference stops there too: more image tokens than images */
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected text, got the image token %s; remove it",
                       (size_t)(image - prompt), IMAGE_TOKEN);
    return LK_OK;
}

/* What the tokens must be for the text encoder: one image, and no video, at which the reference stops. */
static enum lk_code check_ids(const struct output *o) {
    if (o->n_images != 1)
        return lk_fail(LK_E_TOKENIZER, "tokenizer: expected an added token %s; this is not the model's tokenizer",
                       IMAGE_TOKEN);
    int32_t start = lk_tokenizer_id(o->tokenizer, "<|vision_start|>");
    int32_t video = lk_tokenizer_id(o->tokenizer, "<|video_pad|>");
    for (size_t i = 1; i < o->n && video >= 0; i++)
        if (o->ids[i - 1] == start && o->ids[i] == video)
            return lk_fail(LK_E_PROMPT, "prompt: expected text, got <|vision_start|><|video_pad|>; remove it");
    return LK_OK;
}

enum lk_code lk_step1x_tokenize(const struct lk_tokenizer *tokenizer, const char *prompt, int64_t n_image_tokens,
                                int32_t **ids, bool **quoted, int64_t *n) {
    size_t length = strlen(prompt);
    struct output o = {.tokenizer = tokenizer, .n_image_tokens = n_image_tokens};
    *ids = NULL;
    *quoted = NULL;
    *n = 0;
    LK_TRY(check_prompt(prompt, length));
    if (n_image_tokens < 0 || n_image_tokens > INT32_MAX)
        return lk_fail(LK_E_INTERNAL, "prompt: expected 0 to %d image tokens, got %lld", INT32_MAX,
                       (long long)n_image_tokens);
    char *text = lk_malloc(sizeof before_prompt + length + sizeof after_prompt);
    if (!text) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    size_t n_text = (size_t)(stpcpy(stpcpy(stpcpy(text, before_prompt), prompt), after_prompt) - text);
    enum lk_code rc = add_chat(&o, text, n_text);
    lk_free(text);
    if (!rc) rc = check_ids(&o);
    if (rc) {
        lk_free(o.ids);
        lk_free(o.quoted);
        return rc;
    }
    *ids = o.ids;
    *quoted = o.quoted;
    *n = (int64_t)o.n;
    return LK_OK;
}
