#include "eval/study/pairs500.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"

enum { LINE_MAX_BYTES = 80 };

void lk_pairs500_fives(uint64_t seed, int32_t out[LK_N_FIVE_PAIR_CELLS]) {
    struct lk_stream stream;
    int32_t ages[] = {0, 1, 2, 5}, genders[] = {0, 0, 1, 1};
    const int races[] = {1, 3, 4, 5};
    lk_stream_named(&stream, seed, "pairs500/fives");
    lk_stream_shuffle(&stream, ages, 4);
    lk_stream_shuffle(&stream, genders, 4);
    for (int i = 0; i < LK_N_FIVE_PAIR_CELLS; i++) out[i] = lk_source(races[i], genders[i], ages[i]);
}

void lk_pairs500_arrange(const int32_t sources[84], const int32_t prompts[20], const int32_t five[LK_N_FIVE_PAIR_CELLS],
                         struct lk_pair out[LK_N_PAIRS]) {
    int k = 0;
    for (int cell = 0; cell < LK_N_SOURCES; cell++) {
        int n = 6;
        for (int i = 0; i < LK_N_FIVE_PAIR_CELLS; i++)
            if (sources[cell] == five[i]) n = 5;
        for (int i = 0; i < n; i++, k++)
            out[k] = (struct lk_pair){.source = (int16_t)sources[cell],
                                      .prompt = (int8_t)prompts[k % LK_N_EDIT_PROMPTS],
                                      .model = (int8_t)((k / LK_N_EDIT_PROMPTS + k % LK_N_EDIT_PROMPTS) % LK_N_MODELS)};
    }
}

void lk_pairs500(uint64_t seed, struct lk_pair out[LK_N_PAIRS]) {
    struct lk_stream stream;
    int32_t sources[LK_N_SOURCES], o[10], v[10], prompts[LK_N_EDIT_PROMPTS], five[LK_N_FIVE_PAIR_CELLS];
    for (int i = 0; i < LK_N_SOURCES; i++) sources[i] = i;
    lk_stream_named(&stream, seed, "pairs500/cells");
    lk_stream_shuffle(&stream, sources, LK_N_SOURCES);
    for (int i = 0; i < 10; i++) {
        o[i] = i;
        v[i] = 10 + i;
    }
    lk_stream_named(&stream, seed, "pairs500/prompts");
    lk_stream_shuffle(&stream, o, 10);
    lk_stream_shuffle(&stream, v, 10);
    for (int i = 0; i < 10; i++) {
        prompts[2 * i] = o[i];
        prompts[2 * i + 1] = v[i];
    }
    lk_pairs500_fives(seed, five);
    lk_pairs500_arrange(sources, prompts, five, out);
}

/* race,gender,age,prompt_id,model and a line feed. */
static size_t line_of(const struct lk_pair *pair, char out[LINE_MAX_BYTES]) {
    int race, gender, age;
    lk_source_factors(pair->source, &race, &gender, &age);
    return (size_t)snprintf(out, LINE_MAX_BYTES, "%s,%s,%s,%s,%s\n", lk_factor_key(LK_FACTOR_RACE, race),
                            lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_AGE, age),
                            lk_prompt_id(pair->prompt), lk_factor_key(LK_FACTOR_MODEL, pair->model));
}

enum lk_code lk_pairs500_csv(const struct lk_pair pairs[LK_N_PAIRS], char **out, size_t *n) {
    static const char header[] = "pair_id,race,gender,age,prompt_id,model\n";
    char *text = lk_malloc(sizeof header + LK_N_PAIRS * (LINE_MAX_BYTES + 5));
    if (!text) return lk_fail(LK_E_NOMEM, "out of memory for pairs500.csv");
    memcpy(text, header, sizeof header);
    size_t used = sizeof header - 1;
    for (int i = 0; i < LK_N_PAIRS; i++) {
        char line[LINE_MAX_BYTES];
        line_of(&pairs[i], line);
        used += (size_t)snprintf(text + used, LINE_MAX_BYTES + 5, "P%03d,%s", i + 1, line);
    }
    *out = text;
    *n = used;
    return LK_OK;
}

enum lk_code lk_pairs500_sha256(const struct lk_pair pairs[LK_N_PAIRS], char out[65]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n_digest = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context) return lk_fail(LK_E_NOMEM, "out of memory for a SHA-256");
    bool ok = EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (int i = 0; ok && i < LK_N_PAIRS; i++) {
        char line[LINE_MAX_BYTES];
        ok = EVP_DigestUpdate(context, line, line_of(&pairs[i], line));
    }
    ok = ok && EVP_DigestFinal_ex(context, digest, &n_digest) && n_digest == 32;
    EVP_MD_CTX_free(context);
    if (!ok) return lk_fail(LK_E_INTERNAL, "cannot compute a SHA-256");
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return LK_OK;
}
