/* The manifest of sources and the records of features. What is accepted is in range and counted. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/scores/feature_prompts.h"
#include "eval/scores/source_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void read_manifest(const char *text, size_t size) {
    struct lk_source_manifest m;
    if (lk_source_manifest_read(&m, text, size, "input")) {
        check(*lk_error_text());
        return;
    }
    int n = 0, of_pool[LK_N_POOLS] = {0};
    for (int s = 0; s < LK_N_SOURCES; s++) {
        check(m.pool[s] >= 0 && m.pool[s] <= LK_N_POOLS);
        n += m.pool[s] > 0;
        if (m.pool[s]) of_pool[m.pool[s] - 1]++;
    }
    check(n && n == m.n && !memcmp(of_pool, m.count, sizeof of_pool));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_feature_prompts f;
    int n = 0, n_none = 0, n_leaks = 0;
    read_manifest((const char *)data, size);
    if (lk_feature_prompts_read(&f, (const char *)data, size, "input", &lk_portrait_ids)) {
        check(*lk_error_text());
    } else {
        for (int s = 0; s < LK_N_SOURCES; s++) {
            check(!f.of[s].identity || (!f.of[s].none && lk_count_sentences(f.of[s].identity) <= 2));
            n += f.of[s].identity != NULL;
            n_none += f.of[s].none;
            n_leaks += f.of[s].leak;
        }
        check(n == f.n && n_none == f.n_none && n_leaks == f.n_leaks && n + n_none > 0);
    }
    lk_feature_prompts_free(&f);
    check(lk_alloc_live() == 0);
    return 0;
}
