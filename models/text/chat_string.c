/* The chat templates of both families' processors, written out: the template files are not interpreted. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "models/text/chat_internal.h"

/* Never the template's own default where that holds a date: an answer must not depend on the day. */
#define SYSTEM "You are a helpful assistant."

static const char *const roles[] = {"system", "user", "assistant"};

enum lk_code lk_chat_check_roles(const struct lk_chat_message *messages, int n) {
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < sizeof roles / sizeof *roles && strcmp(messages[i].role, roles[k])) k++;
        if (k == sizeof roles / sizeof *roles)
            return lk_fail(LK_E_USAGE, "message %d: expected role system, user or assistant, got \"%.32s\"", i + 1,
                           messages[i].role);
    }
    return LK_OK;
}

static enum lk_code take(struct lk_text *text, char **out) {
    if (text->rc)
        lk_free(text->bytes);
    else
        *out = text->bytes;
    return text->rc;
}

static void put_qwen(struct lk_text *out, const struct lk_chat_message *m, bool number_images, int *n_images) {
    lk_text_add(out, "<|im_start|>%s\n", m->role);
    for (int i = 0; i < m->n_parts; i++) {
        if (m->parts[i].text) lk_text_add(out, "%s", m->parts[i].text);
        if (!m->parts[i].image) continue;
        ++*n_images;
        if (number_images) lk_text_add(out, "Picture %d: ", *n_images);
        lk_text_add(out, "<|vision_start|><|image_pad|><|vision_end|>");
    }
    lk_text_add(out, "<|im_end|>\n");
}

enum lk_code lk_chat_string_qwen(const struct lk_chat_message *messages, int n_messages, bool number_images,
                                 char **out) {
    static const struct lk_chat_part part = {.text = SYSTEM};
    static const struct lk_chat_message standard = {.role = "system", .parts = &part, .n_parts = 1};
    struct lk_text text = {0};
    int n_images = 0;
    *out = NULL;
    LK_TRY(lk_chat_check_roles(messages, n_messages));
    if (n_messages && strcmp(messages[0].role, "system")) put_qwen(&text, &standard, false, &n_images);
    for (int i = 0; i < n_messages; i++) put_qwen(&text, &messages[i], number_images, &n_images);
    lk_text_add(&text, "<|im_start|>assistant\n");
    return take(&text, out);
}

static void put_mistral(struct lk_text *out, const struct lk_chat_message *m) {
    static const char *const before[] = {"[SYSTEM_PROMPT]", "[INST]", ""};
    static const char *const after[] = {"[/SYSTEM_PROMPT]", "[/INST]", "</s>"};
    int role = !strcmp(m->role, roles[0]) ? 0 : !strcmp(m->role, roles[1]) ? 1 : 2;
    lk_text_add(out, "%s", before[role]);
    for (int i = 0; i < m->n_parts; i++) lk_text_add(out, "%s", m->parts[i].image ? "[IMG]" : m->parts[i].text);
    lk_text_add(out, "%s", after[role]);
}

enum lk_code lk_chat_string_mistral(const struct lk_chat_message *messages, int n_messages, bool number_images,
                                    char **out) {
    struct lk_text text = {0};
    *out = NULL;
    if (number_images) return lk_fail(LK_E_USAGE, "message: Mistral's template does not number pictures");
    LK_TRY(lk_chat_check_roles(messages, n_messages));
    lk_text_add(&text, "<s>");
    if (n_messages && strcmp(messages[0].role, "system"))
        lk_text_add(&text, "[SYSTEM_PROMPT]" SYSTEM "[/SYSTEM_PROMPT]");
    for (int i = 0; i < n_messages; i++) put_mistral(&text, &messages[i]);
    return take(&text, out);
}
