/* A model behind the OpenAI images API: asked for pictures from a prompt (/images/generations), or for edits of
 * pictures (/images/edits). A refusal is an answer, and is never asked again by itself; a request that was sent is
 * counted, because each may be billed.
 *
 *     struct lk_images_server *server;
 *     LK_TRY(lk_images_open(&server, &(struct lk_images_settings){.url = "https://api.openai.com/v1",
 *                                                                 .model = "gpt-image-1", .key = key}));
 *     rc = lk_images_ask(server, questions, n, 4, tick, answers);
 *     for (int i = 0; i < n; i++) lk_image_answer_free(&answers[i]);
 *     lk_images_close(server); */
#pragma once

#include "engine/image/image.h"
#include "eval/hosted/asked.h"
#include "eval/net/http.h"

struct lk_images_server;

/* A member of each request beside model, prompt, n and pictures: "quality", high. */
struct lk_images_option {
    const char *key, *value;
    bool text; /* a string; otherwise a number, true or false as JSON has it */
};

struct lk_images_settings {
    const char *url;    /* what /images/generations is put behind */
    const char *option; /* where it was written, for messages: "--images-url" */
    const char *model, *key;
    const struct lk_images_option *set;
    int n_set;
    bool seed_field;             /* "seed" is sent: only open servers know it */
    bool fetch_urls;             /* pictures at addresses of other hosts are fetched; without the key */
    double requests_per_minute;  /* 0: no limit */
    int64_t answer_ms, pause_ms; /* 0: ten minutes; half a second before the second try */
    void (*waiting)(const char *why);
};
enum { LK_IMAGES_ANSWER_BYTES = 64 << 20, LK_IMAGES_BODY_BYTES = 16 << 10, LK_IMAGES_MAX_PICTURES = 16 };

struct lk_image_question {
    const char *prompt;
    const struct lk_image *images; /* sent as PNG without any text of their files; n_images 0: from text alone */
    int n_images;
    uint64_t seed; /* sent with seed_field */
};

struct lk_image_answer {
    struct lk_asked asked; /* cells lie in `texts` */
    struct lk_image image; /* made, or a placeholder */
    enum lk_code code;     /* of a fault: LK_E_INPUT; LK_E_IO: nothing more can be asked (lk_images_state) */
    char error[512];       /* of a fault or refusal, in a sentence */
    struct lk_text body;   /* the answer without pictures, cut at LK_IMAGES_BODY_BYTES */
    char *texts[LK_N_ASKED_CELLS];
};

/* Sends nothing. LK_E_USAGE: url, LK_E_IO: no libcurl, LK_E_NOMEM. */
enum lk_code lk_images_open(struct lk_images_server **out, const struct lk_images_settings *settings);
void lk_images_close(struct lk_images_server *server);
/* n questions, n_slots at a time. What comes of each is in its answer; free each in any case. tick: ten times a second;
 * another code than LK_OK ends it all. */
enum lk_code lk_images_ask(struct lk_images_server *server, const struct lk_image_question *questions, int n,
                           int n_slots, enum lk_code (*tick)(void), struct lk_image_answer *answers);
/* The same. answered: told of the i-th answer as soon as there is one and while others are waited for, so that it can
 * be kept whatever comes; it may take the answer over, leaving zeros. Not told of faults. */
enum lk_code lk_images_ask_each(struct lk_images_server *server, const struct lk_image_question *questions, int n,
                                int n_slots, enum lk_code (*tick)(void), void (*answered)(void *context, int i),
                                void *context, struct lk_image_answer *answers);
void lk_image_answer_free(struct lk_image_answer *answer);
enum lk_code lk_images_state(const struct lk_images_server *server);

/* What a reply of the images API means: sets the answer's outcome, cells and body, and what picture there is as text
 * (*b64) or as an address (*url), both in `root`, which the caller frees with cJSON_Delete. */
struct lk_images_reply {
    cJSON *root;
    const char *b64, *url;
};
enum lk_http_verdict lk_images_classify(const struct lk_http_reply *reply, const struct lk_http_secrets *secrets,
                                        struct lk_image_answer *out, struct lk_images_reply *parts,
                                        char why[LK_HTTP_WHY_BYTES]);
/* A copy for a cell, printable and masked; it replaces what is there. */
enum lk_code lk_image_answer_set(struct lk_image_answer *answer, enum lk_asked_cell cell, const char *text,
                                 const struct lk_http_secrets *secrets);

/* Pictures that a safety filter puts in place of one: black, of one colour, or the same for different prompts. */

/* In the order in which they are looked for. */
enum lk_placeholder {
    LK_NO_PLACEHOLDER,
    LK_PLACEHOLDER_BLACK,    /* every value at most 2, as the diffusers' safety checker leaves it */
    LK_PLACEHOLDER_BLANK,    /* the largest less the smallest value of each channel is at most 4 */
    LK_PLACEHOLDER_REPEATED, /* the same pixels for another prompt of the same model */
    LK_N_PLACEHOLDERS
};
const char *lk_placeholder_key(int placeholder); /* "black"; "" of none */

/* What is seen of a picture alone. */
struct lk_picture_signs {
    enum lk_placeholder placeholder;
    bool blurred;     /* only suspected: a person looks at it (likeness review) */
    char sha256[65];  /* of width, height and pixels */
    double sharpness; /* variance of the four-neighbour Laplacian of luma */
    const char *model, *prompt;
    uint64_t asked; /* a hash of what was asked for, all but the seed; 0: its repeats are not looked at */
};
/* Alpha is not looked at. The caller sets model, prompt and asked. LK_E_NOMEM. */
enum lk_code lk_picture_signs_of(const struct lk_image *image, struct lk_picture_signs *out);
/* What is seen beside the other pictures of the same model: those repeated, and those whose sharpness is below 2% of
 * the median of the pictures that are no placeholders. LK_E_NOMEM. */
enum lk_code lk_picture_signs_compare(struct lk_picture_signs *list, size_t n);
/* The list is not kept. Warns of each model that answered whatever was asked of it several times with one picture: it
 * takes no seed, and its repeats are no draws. Placeholders are left out. How many such models. */
size_t lk_picture_signs_repeats(struct lk_picture_signs *list, size_t n);
