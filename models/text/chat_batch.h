/* Many questions to one model, several at a time. What is answered to a question depends on it, its settings and its
 * seed alone. */
#pragma once

#include "models/text/chat.h"
#include "models/text/form.h"

/* For lk_chat_ask. LK_E_NOMEM. Free with lk_token_bytes_free. */
enum lk_code lk_chat_tokens(const struct lk_chat *chat, struct lk_token_bytes *out);

struct lk_chat_question {
    struct lk_chat_request request; /* text: not called */
    const struct lk_form *form;     /* NULL: free text, of whose digits the last are looked at unless it is plain */
    bool plain;                     /* any tokenizer will do then */
    /* The conversation up to its n_shared_images-th image (0: all of it) is that of every question with this key (0:
     * none): of neighbours it is computed once. */
    uint64_t shared_key;
    int n_shared_images;
};

struct lk_chat_answer {
    enum lk_code code; /* of this question alone: it could not be asked; `error` says why */
    char error[512];
    char *text; /* UTF-8, the form's text included; n bytes and NUL */
    size_t n;
    int64_t n_prompt_tokens, n_tokens;
    bool stopped; /* by the model or the form, not by the limit */
    bool refused; /* `text` says so; by a server's model or filter */
    struct lk_form_choice choices[LK_FORM_MAX_CHOICES];
    int n_choices;
};

/* Prepares dev and asks n questions, n_slots at a time. tick: before each token; another code than LK_OK ends it all;
 * may be NULL. Free each of answers [n] with lk_chat_answer_free in any case. */
enum lk_code lk_chat_ask(const struct lk_chat *chat, struct lk_device *dev, const struct lk_token_bytes *tokens,
                         const struct lk_chat_question *questions, int n, int n_slots, enum lk_code (*tick)(void),
                         struct lk_chat_answer *answers);
/* What that takes on `target` (lk_generate_plan), of plain questions that can all be asked. */
enum lk_code lk_chat_plan(const struct lk_chat *chat, const struct lk_device *target,
                          const struct lk_chat_question *questions, int n, int n_slots, struct lk_plan *out);
void lk_chat_answer_free(struct lk_chat_answer *answer);
