/* The input is the text of a config. Values that come out must obey what was asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/alloc.h"
#include "weights/config.h"
#include "engine/base/json.h"

/* Asks for a field of every kind; keys are short, so that a fuzzer finds them. */
static void ask(struct lk_config *c) {
    int64_t n = 5, list[4] = {0};
    double x = 0.5;
    bool flag = false;
    const char *text = NULL, *texts[4];
    size_t n_list = 0, n_texts = 0;
    lk_config_int(c, "i", &n, 1, 1000);
    if (n < 1 || n > 1000) abort();
    lk_config_int_or(c, "I", &n, 7, -9007199254740991, 9007199254740991);
    lk_config_number(c, "x", &x, 0, 1e300);
    if (!(x >= 0 && x <= 1e300)) abort();
    lk_config_number_or(c, "X", &x, 1, -INFINITY, INFINITY);
    if (!isfinite(x)) abort();
    lk_config_bool(c, "b", &flag);
    lk_config_bool_or(c, "B", &flag, true);
    lk_config_string(c, "s", &text);
    if (text && !lk_utf8_valid(text, strlen(text))) abort();
    lk_config_string_or(c, "S", &text, "otherwise");
    lk_config_ints(c, "l", list, 4, &n_list);
    lk_config_strings(c, "t", texts, 4, &n_texts);
    if (n_list > 4 || n_texts > 4) abort();
    for (size_t i = 0; i < n_texts; i++)
        if (!lk_utf8_valid(texts[i], strlen(texts[i]))) abort();
    lk_config_expect_string(c, "es", "v");
    lk_config_expect_bool(c, "eb", true);
    lk_config_expect_int(c, "ei", 3);
    lk_config_expect_null(c, "en");
    lk_config_ignore(c, "g");
    lk_config_has(c, "i");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_config *c;
    int64_t live = lk_alloc_live();
    enum lk_code rc = lk_config_parse(&c, (const char *)data, size, "fuzz");
    if (rc == LK_E_NOMEM) abort(); /* cJSON refused what the strict reader let pass */
    if (!rc) {
        ask(c);
        ask(lk_config_object(c, "o", true));
        ask(lk_config_object(lk_config_object(c, "o", false), "p", false));
        rc = lk_config_close(c);
        if (rc == LK_E_NOMEM || rc == LK_E_INTERNAL) abort();
    }
    if (lk_alloc_live() != live) abort();
    return 0;
}
