/* A judge that sees, in this process: a vision-language model is asked about outputs and its answers are read as
 * strictly as any other judge's. What is said of an item depends on the item, the model and the mode alone, not on the
 * others or on how many are asked at once.
 *
 *     struct lk_seeing_judge judge = {.chat = chat, .dev = dev, .mode = LK_JUDGE_FREE, .n_slots = 8};
 *     LK_TRY(lk_seeing_judge_open(&judge));
 *     rc = lk_judge_see(&judge, items, n, verdicts);
 *     ... verdicts[i].answer, .attempts ...
 *     lk_seen_free(&verdicts[i]);
 *     lk_seeing_judge_close(&judge); */
#pragma once

#include "eval/judge/answers.h"
#include "eval/judge/prompt.h"
#include "eval/judge/server.h"
#include "models/text/chat_batch.h"

enum { LK_JUDGE_ATTEMPTS = 3, LK_JUDGE_NEW_TOKENS = 1500, LK_JUDGE_STRING_TOKENS = 240 };

enum lk_judge_mode {
    LK_JUDGE_FREE,   /* the model writes what it likes; up to three attempts */
    LK_JUDGE_FORCED, /* it fills in the answer's form: valid at once; other scores than free ones, so never mixed */
    LK_JUDGE_DIRECT, /* scores alone, each read after the same words, without observations */
};

struct lk_seeing_judge {
    const struct lk_chat *chat;
    struct lk_device *dev;
    struct lk_judge_server *server; /* asked in place of chat, LK_JUDGE_FREE only; NULL: none */
    enum lk_judge_mode mode;
    int n_slots;                /* answers at a time */
    int64_t max_new_tokens;     /* of a free answer; 0: LK_JUDGE_NEW_TOKENS */
    enum lk_code (*tick)(void); /* before each token; NULL: none */
    uint64_t seed;              /* of the first attempt, less 2 */
    int64_t max_string_tokens;  /* of each string of a form; 0: LK_JUDGE_STRING_TOKENS */
    struct lk_token_bytes tokens;
    struct lk_form form; /* of a whole answer */
};
/* LK_E_TOKENIZER when scores cannot be read from this model's tokens. */
enum lk_code lk_seeing_judge_open(struct lk_seeing_judge *judge);
void lk_seeing_judge_close(struct lk_seeing_judge *judge);

/* One message as judges are asked it: temperature 0.1, no other limit of what may be drawn. max_new_tokens: where the
 * judge has none. The message is borrowed. */
void lk_seeing_judge_request(const struct lk_seeing_judge *judge, const struct lk_chat_message *message, uint64_t seed,
                             int64_t max_new_tokens, struct lk_chat_request *out);

/* Asks the model, here or on its server. Codes and answers [n] as lk_chat_ask and lk_judge_server_ask. */
enum lk_code lk_seeing_judge_ask(const struct lk_seeing_judge *judge, const struct lk_chat_question *questions, int n,
                                 struct lk_chat_answer *answers);

struct lk_judge_item {
    const char *item_id;
    const struct lk_judge_message *message;
    bool legacy;
    struct lk_image images[LK_N_JUDGE_IMAGES]; /* those that the message shows */
    char edited_sha256[65];                    /* of the file that is judged; "" */
    uint64_t source_key; /* of neighbours with this key the first picture is the same; 0: not known */
};

struct lk_seen {
    struct lk_attempt {
        uint64_t seed;
        char *raw;       /* lk_malloc'ed */
        char error[256]; /* why the answer is not valid, "" when it is */
    } attempts[LK_JUDGE_ATTEMPTS];
    int n_attempts;
    enum lk_code code; /* the item could not be asked; `error` says why */
    char error[512];
    bool valid, refused;           /* refused: the last attempt's words are a refusal */
    struct lk_judge_answer answer; /* evidence: in `texts` */
    struct lk_store texts;
    /* Of each score what the model thought of 1 to 5 where it wrote the digit; n_words 0: not found. Of legacy
     * questions of each word. */
    struct lk_form_choice thought[LK_N_AXES];
};

/* Asks about n items; what went wrong with one is in its verdict. Other codes end it all. Free each of verdicts [n] in
 * any case. */
enum lk_code lk_judge_see(const struct lk_seeing_judge *judge, const struct lk_judge_item *items, int n,
                          struct lk_seen *verdicts);
void lk_seen_free(struct lk_seen *verdict);

/* Sum of level times probability, and the entropy in nats. */
double lk_thought_expected(const struct lk_form_choice *thought);
double lk_thought_entropy(const struct lk_form_choice *thought);
/* Places in `choices` of the digits that stand as scores behind the axes' keys in a valid answer; n_words 0 where none
 * does. */
void lk_thoughts_of_text(const char *text, const struct lk_judge_answer *answer, const struct lk_form_choice *choices,
                         int n_choices, struct lk_form_choice thought[LK_N_AXES]);
