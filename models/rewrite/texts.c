#include "models/rewrite/texts.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "weights/config.h"

static const char placeholder[] = "{prompt}", json_reply[] = "json:", custom[] = "custom:";

/* How the released texts begin in SHA-256. */
static const struct style {
    const char *name, *system, *system_pictures, *user, *reply;
} styles[] = {{"qwen-edit-2511", "1cc2583d78c380db", NULL, "f28c7895c479ad7c", "json:Rewritten"},
              {"qwen-edit-2509", "1cc2583d78c380db", NULL, "925b9e334f9acbd3", "json:Rewritten"},
              {"flux2", "0ad9a42c565716b0", "1233bb94dcc251f8", "95d585479f95b713", "text"}};
enum { N_STYLES = sizeof styles / sizeof *styles };

/* *out: the text that is there, kept; the problem is recorded. */
static void keep(struct lk_config *json, const char *key, char **out) {
    const char *text = NULL;
    lk_config_string(json, key, &text);
    if (text && !(*out = lk_strdup(text))) lk_config_problem(json, key, LK_E_NOMEM, "out of memory");
}

static void check(struct lk_config *json, const char *key, const char *text, const char *expected) {
    char digest[65];
    if (!text || !expected) return;
    lk_sha256(text, strlen(text), digest);
    if (strncmp(digest, expected, 16))
        lk_config_problem(json, key, LK_E_CHECKSUM,
                          "expected the authors' text, whose SHA-256 begins with %s, got %.16s; make the file anew "
                          "with tests/golden/generate_rewrite_prompts.py, or name the style \"custom:NAME\"",
                          expected, digest);
}

static void check_user(struct lk_config *json, const char *text) {
    int n = 0;
    for (const char *at = text; at && (at = strstr(at, placeholder)); at++) n++;
    if (text && n != 1)
        lk_config_problem(json, "user", LK_E_CHECKSUM, "expected %s once, got it %d times", placeholder, n);
}

static void read_reply(struct lk_config *json, struct lk_rewrite_texts *out, const struct style *style) {
    const char *reply = NULL;
    lk_config_string(json, "reply", &reply);
    if (!reply) return;
    const bool is_json = !strncmp(reply, json_reply, sizeof json_reply - 1) && reply[sizeof json_reply - 1];
    if ((!is_json && strcmp(reply, "text")) || (style && strcmp(reply, style->reply)))
        lk_config_problem(json, "reply", LK_E_CONFIG_VALUE, "expected \"%s\", got \"%.60s\"",
                          style ? style->reply : "text\" or \"json:KEY", reply);
    else if (is_json && !(out->key = lk_strdup(reply + sizeof json_reply - 1)))
        lk_config_problem(json, "reply", LK_E_NOMEM, "out of memory");
}

static void read_texts(struct lk_config *json, struct lk_rewrite_texts *out) {
    const struct style *style = NULL;
    keep(json, "style", &out->style);
    keep(json, "source", &out->source);
    for (int i = 0; out->style && i < N_STYLES; i++)
        if (!strcmp(out->style, styles[i].name)) style = &styles[i];
    if (out->style && !style && (strncmp(out->style, custom, sizeof custom - 1) || !out->style[sizeof custom - 1]))
        lk_config_problem(json, "style", LK_E_CONFIG_VALUE,
                          "expected qwen-edit-2511, qwen-edit-2509, flux2 or custom:NAME, got \"%.60s\"", out->style);
    const bool two = style ? style->system_pictures != NULL : lk_config_has(json, "system_i2i");
    keep(json, two ? "system_t2i" : "system", &out->system);
    if (two) keep(json, "system_i2i", &out->system_pictures);
    keep(json, "user", &out->user);
    check_user(json, out->user);
    read_reply(json, out, style);
    if (!style) return;
    check(json, two ? "system_t2i" : "system", out->system, style->system);
    check(json, "system_i2i", out->system_pictures, style->system_pictures);
    check(json, "user", out->user, style->user);
}

/* Of the texts and how they are used: spaces and the order of keys in the file say nothing. */
static enum lk_code digest(struct lk_rewrite_texts *t) {
    struct lk_text all = {0};
    const char *const texts[] = {t->style, t->system, t->system_pictures, t->user, t->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lk_text_json(&all, texts[i] ? texts[i] : "");
        lk_text_add(&all, "\n");
    }
    if (!all.rc) lk_sha256(all.bytes, all.n, t->sha256);
    return lk_text_free(&all);
}

enum lk_code lk_rewrite_texts_read(struct lk_rewrite_texts *out, const char *path) {
    struct lk_config *json;
    *out = (struct lk_rewrite_texts){0};
    LK_TRY(lk_config_open(&json, path));
    read_texts(json, out);
    LK_TRY(lk_config_close(json));
    return digest(out);
}

void lk_rewrite_texts_free(struct lk_rewrite_texts *t) {
    char *const texts[] = {t->style, t->source, t->system, t->system_pictures, t->user, t->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) lk_free(texts[i]);
    *t = (struct lk_rewrite_texts){0};
}
