/* The chat template of Qwen2.5-VL's processor, written out: the template file is not interpreted. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "models/text/chat.h"

#define IMAGE "<|vision_start|><|image_pad|><|vision_end|>"

static const char *const roles[] = {"system", "user", "assistant"};

static enum lk_code check_roles(const struct lk_chat_message *messages, int n) {
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < sizeof roles / sizeof *roles && strcmp(messages[i].role, roles[k])) k++;
        if (k == sizeof roles / sizeof *roles)
            return lk_fail(LK_E_USAGE, "message %d: expected role system, user or assistant, got \"%.32s\"", i + 1,
                           messages[i].role);
    }
    return LK_OK;
}

static void put_message(struct lk_text *out, const struct lk_chat_message *m, bool number_images, int *n_images) {
    lk_text_add(out, "<|im_start|>%s\n", m->role);
    if (m->text && m->text_first) lk_text_add(out, "%s", m->text);
    for (int i = 0; i < m->n_images; i++) {
        ++*n_images;
        if (number_images) lk_text_add(out, "Picture %d: ", *n_images);
        lk_text_add(out, IMAGE);
    }
    if (m->text && !m->text_first) lk_text_add(out, "%s", m->text);
    lk_text_add(out, "<|im_end|>\n");
}

enum lk_code lk_chat_string(const struct lk_chat_message *messages, int n_messages, bool number_images, char **out) {
    static const struct lk_chat_message standard = {.role = "system", .text = "You are a helpful assistant."};
    struct lk_text text = {0};
    int n_images = 0;
    *out = NULL;
    LK_TRY(check_roles(messages, n_messages));
    if (n_messages && strcmp(messages[0].role, "system")) put_message(&text, &standard, false, &n_images);
    for (int i = 0; i < n_messages; i++) put_message(&text, &messages[i], number_images, &n_images);
    lk_text_add(&text, "<|im_start|>assistant\n");
    if (text.rc)
        lk_free(text.bytes);
    else
        *out = text.bytes;
    return text.rc;
}
