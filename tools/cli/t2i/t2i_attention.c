/* t2i attention: how much a model attends to words of demographic groups while it makes a sample of its pictures. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/t2i/attention.h"
#include "eval/t2i/tokens.h"
#include "models/attended.h"
#include "tools/cli/t2i/t2i_maps.h"
#include "tools/cli/t2i/t2i_replay.h"
#include "tools/cli/core/outputs.h"

/* Where the words stand in a prompt: spans (lk_free), of which there may be none. */
static enum lk_code find_spans(const struct lk_t2i_tokens *words, const char *prompt, struct lk_span **spans, int *n) {
    size_t capacity = 0;
    *spans = NULL;
    *n = 0;
    for (size_t k = 0; k < words->n_tokens; k++)
        for (const char *at = prompt; (at = lk_t2i_find_words(prompt, at, words->tokens[k])); at++) {
            LK_TRY(lk_grow(spans, &capacity, (size_t)*n + 1, sizeof **spans));
            (*spans)[(*n)++] = (struct lk_span){(size_t)(at - prompt), strlen(words->tokens[k]), (int)k};
        }
    return LK_OK;
}

static const char *prompt_text(const struct lk_t2i_prompts *prompts, size_t i) {
    return prompts->list[i].cells[LK_T2I_NATURAL_PROMPT];
}

static enum lk_code look_at(struct cli_replay *r, size_t i, const struct lk_t2i_tokens *words,
                            struct lk_t2i_attention *t, struct cli_maps *maps) {
    const struct lk_t2i_prompts *prompts = words->prompts;
    const char *id = r->log.log[r->chosen[i]].prompt_id;
    const size_t prompt = (size_t)lk_names_find(&prompts->ids, id, strlen(id));
    struct lk_attended attended = {.n_words = maps->folder ? (int)words->n_tokens : 0};
    struct lk_result result = {0};
    struct lk_span *spans;
    LK_TRY(cli_replay_job(r, i));
    if (strcmp(r->job.request.prompt, prompt_text(prompts, prompt)))
        return lk_fail(LK_E_INPUT, "%s: prompt %s is another one in the table: name the one that was used with --csv",
                       r->log.logged.list[r->chosen[i]], id);
    enum lk_code rc = find_spans(words, r->job.request.prompt, &spans, &attended.n_spans);
    attended.spans = spans;
    if (!rc) rc = lk_attended_edit(r->pipeline, r->device, &r->job.request, &attended, &result);
    if (!rc) rc = cli_replay_compare(r, i, &result.image);
    const struct lk_t2i_seen seen = {attended.n_tokens, attended.n_layers, (const char(*)[LK_T2I_LAYER])attended.layers,
                                     attended.first,    attended.weights,  attended.shares};
    if (!rc) rc = lk_t2i_attention_add(t, prompt, &seen);
    if (!rc && maps->folder)
        rc = cli_maps_add(maps, r->log.logged.list[r->chosen[i]], words->tokens, &attended, &result.image);
    lk_attended_free(&attended);
    lk_result_free(&result);
    lk_free(spans);
    return rc;
}

/* wanted [prompts->n]: the prompts that have any of the words. */
static enum lk_code probe(const struct cli_arguments *a, const struct lk_t2i_tokens *words, bool *wanted,
                          struct lk_t2i_attention *t) {
    const struct lk_t2i_prompts *prompts = words->prompts;
    struct cli_replay r;
    struct cli_maps maps;
    LK_TRY(cli_maps_begin(&maps, a));
    for (size_t i = 0; i < prompts->n; i++)
        for (size_t k = 0; k < words->n_tokens; k++)
            wanted[i] |= lk_t2i_find_words(prompt_text(prompts, i), prompt_text(prompts, i), words->tokens[k]) != NULL;
    enum lk_code rc = cli_replay_open(&r, a, prompts, wanted);
    for (size_t i = 0; i < r.n && !rc; i++) rc = look_at(&r, i, words, t, &maps);
    if (!rc && r.n_other)
        lk_log(LK_LOG_WARNING, "%zu of %zu pictures were made on other hardware and have other pixels here", r.n_other,
               r.n);
    cli_replay_close(&r);
    return cli_maps_end(&maps, rc);
}

enum lk_code cli_t2i_attention(const struct cli_arguments *a) {
    const struct cli_list *given = &a->t2i.tokens;
    struct lk_t2i_prompts prompts = {0};
    struct lk_t2i_tokens words = {0};
    struct lk_t2i_attention t = {0};
    struct lk_text text = {0};
    bool *wanted = NULL;
    if (!a->t2i.log || !a->output)
        return lk_fail(LK_E_USAGE, "t2i attention: expected --in DIR, --model and --out FILE.csv");
    LK_TRY(cli_t2i_output_free(a));
    enum lk_code rc = cli_t2i_prompts(&a->t2i, &prompts);
    if (!rc) rc = lk_t2i_tokens_count(&words, &prompts, given->n ? given->values : NULL, (size_t)given->n);
    if (!rc) rc = lk_t2i_attention_init(&t, &prompts);
    if (!rc) rc = cli_t2i_outcomes(a, &t.outcomes);
    if (!rc && !(wanted = lk_calloc(prompts.n, sizeof *wanted))) rc = lk_fail(LK_E_NOMEM, "t2i: out of memory");
    if (!rc) rc = probe(a, &words, wanted, &t);
    if (!rc) rc = lk_t2i_attention_csv(&t, &text);
    if (!rc) rc = cli_output_write(a, &text);
    if (!rc) lk_log(LK_LOG_INFO, "%d layers with %d heads; " LK_T2I_CORRELATIONAL, t.n_layers, t.n_heads);
    if (!rc && !a->t2i.metrics) lk_log(LK_LOG_INFO, "no correlations: no results were given; name them with --metrics");
    lk_free(wanted);
    lk_t2i_attention_free(&t);
    lk_t2i_tokens_free(&words);
    lk_t2i_prompts_free(&prompts);
    lk_text_free(&text);
    return rc;
}
