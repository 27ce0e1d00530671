/* The chat template of Qwen2.5-VL's processor, written out: the template file is not interpreted. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/chat.h"

#define IMAGE        "<|vision_start|><|image_pad|><|vision_end|>"
#define IMAGE_BYTES  (sizeof "Picture 2147483647: " + sizeof IMAGE)
#define FRAME_BYTES  (sizeof "<|im_start|>\n<|im_end|>\n")
#define DEFAULT_TEXT "You are a helpful assistant."

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

static char *put_message(char *at, const struct lk_chat_message *m, bool number_images, int *n_images) {
    at += sprintf(at, "<|im_start|>%s\n", m->role);
    if (m->text && m->text_first) at = stpcpy(at, m->text);
    for (int i = 0; i < m->n_images; i++) {
        ++*n_images;
        if (number_images) at += sprintf(at, "Picture %d: ", *n_images);
        at = stpcpy(at, IMAGE);
    }
    if (m->text && !m->text_first) at = stpcpy(at, m->text);
    return stpcpy(at, "<|im_end|>\n");
}

enum lk_code lk_chat_string(const struct lk_chat_message *messages, int n_messages, bool number_images, char **out) {
    static const struct lk_chat_message standard = {.role = "system", .text = DEFAULT_TEXT};
    size_t n = FRAME_BYTES + sizeof "system" + sizeof DEFAULT_TEXT + sizeof "<|im_start|>assistant\n";
    int n_images = 0;
    *out = NULL;
    LK_TRY(check_roles(messages, n_messages));
    for (int i = 0; i < n_messages; i++)
        n += FRAME_BYTES + strlen(messages[i].role) + (size_t)messages[i].n_images * IMAGE_BYTES +
             (messages[i].text ? strlen(messages[i].text) : 0);
    char *at = *out = lk_malloc(n);
    if (!at) return lk_fail(LK_E_NOMEM, "chat: no memory for %zu bytes", n);
    if (n_messages && strcmp(messages[0].role, "system")) at = put_message(at, &standard, false, &n_images);
    for (int i = 0; i < n_messages; i++) at = put_message(at, &messages[i], number_images, &n_images);
    strcpy(at, "<|im_start|>assistant\n");
    return LK_OK;
}
