/* t2i attention: how much a model attends to words of demographic groups while it makes a sample of its pictures. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "eval/t2i/attention.h"
#include "eval/t2i/tokens.h"
#include "models/attended.h"
#include "models/attended_maps.h"
#include "tools/cli/core/options.h"
#include "tools/cli/cli.h"
#include "tools/cli/t2i/t2i.h"
#include "weights/safetensors.h"

/* t2i attention --maps DIR: where in a picture its words are looked for. */

struct cli_maps {
    const char *folder;   /* NULL: none are asked for */
    struct lk_text table; /* words.csv */
};

#define DARKEST 0.25 /* share of a pixel's light that stays where nothing looks */

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i attention: out of memory for maps"); }

/* Refuses a folder that has another run's table. */
static enum lk_code maps_begin(struct cli_maps *maps, const struct cli_arguments *a) {
    struct stat st;
    *maps = (struct cli_maps){.folder = a->t2i.maps};
    if (!maps->folder) return LK_OK;
    char *table = lk_format("%s/words.csv", maps->folder);
    if (!table) return out_of_memory();
    const bool there = !stat(table, &st);
    lk_free(table);
    if (there && !a->overwrite)
        return lk_fail(LK_E_USAGE,
                       "--maps: %s: has maps already; name another folder, or replace them with --overwrite",
                       maps->folder);
    lk_text_add(&maps->table, "file_path,word,layer,head,weight\r\n");
    return lk_document_folder(maps->folder);
}

static void table_lines(struct cli_maps *maps, const char *file_path, const char *word, int i_word,
                        const struct lk_attended *a) {
    for (int layer = 0; layer < a->n_layers; layer++)
        for (int i = a->first[layer]; i < a->first[layer + 1]; i++) {
            lk_print_csv_field(&maps->table, file_path, "");
            lk_text_add(&maps->table, ",");
            lk_print_csv_field(&maps->table, word, "");
            lk_text_add(&maps->table, ",%s,%d,%.9g\r\n", a->layers[layer], i - a->first[layer],
                        a->word_weights[i * a->n_words + i_word]);
        }
}

/* light [height, width] of the picture, from the map's least to its most. */
static enum lk_code draw(const char *path, const float *map, const struct lk_attended *a,
                         const struct lk_image *picture) {
    const size_t n = (size_t)picture->width * (size_t)picture->height, n_map = (size_t)(a->map_width * a->map_height);
    double *light = lk_malloc((n + n_map) * sizeof *light), *small = light ? light + n : NULL, most = 0;
    struct lk_image out;
    if (!light) return out_of_memory();
    for (size_t i = 0; i < n_map; i++) small[i] = (double)map[i];
    for (size_t i = 0; i < n_map; i++) most = fmax(most, small[i]);
    lk_bicubic(small, a->map_height, a->map_width, light, picture->height, picture->width);
    enum lk_code rc = lk_image_new(&out, picture->width, picture->height, 3);
    for (size_t i = 0; i < 3 * n && !rc; i++) {
        const double share = most > 0 ? fmin(fmax(light[i / 3] / most, 0), 1) : 0;
        out.pixels[i] = (uint8_t)lrint(picture->pixels[i] * (DARKEST + (1 - DARKEST) * share));
    }
    if (!rc) rc = lk_png_write(path, &out, NULL, 0);
    lk_image_free(&out);
    lk_free(light);
    return rc;
}

/* DIR/NAME, of a path's last part without its ending. */
static char *place(const struct cli_maps *maps, const char *file_path) {
    const char *slash = strrchr(file_path, '/'), *name = slash ? slash + 1 : file_path, *dot = strrchr(name, '.');
    return lk_format("%s/%.*s", maps->folder, (int)(dot ? dot - name : (long)strlen(name)), name);
}

static enum lk_code draw_word(const char *stem, const char *word, const float *map, const struct lk_attended *a,
                              const struct lk_image *picture) {
    char *path = lk_format("%s_%s.png", stem, word);
    if (!path) return out_of_memory();
    for (char *c = path + strlen(stem) + 1; c[4]; c++)
        if (!isalnum((unsigned char)*c) && (unsigned char)*c < 128) *c = '-';
    enum lk_code rc = draw(path, map, a, picture);
    lk_free(path);
    return rc;
}

/* A picture's files: NAME.safetensors with the map of each of its words [height, width], and NAME_WORD.png, the picture
 * darker where the word's map is lower. words [attended->n_words]. */
static enum lk_code maps_add(struct cli_maps *maps, const char *file_path, const char *const *words,
                             const struct lk_attended *a, const struct lk_image *picture) {
    const size_t n = (size_t)(a->map_width * a->map_height);
    struct lk_st_named *named = lk_calloc((size_t)a->n_words + 1, sizeof *named);
    char *stem = place(maps, file_path), *all = stem ? lk_format("%s.safetensors", stem) : NULL;
    size_t n_named = 0;
    enum lk_code rc = named && all ? LK_OK : out_of_memory();
    for (int i = 0; i < a->n_words && !rc; i++) {
        float *map = a->maps + (size_t)i * n;
        bool there = false;
        for (int k = 0; k < a->n_spans; k++) there |= a->spans[k].word == i;
        if (!there) continue;
        named[n_named].name = words[i];
        named[n_named++].tensor = LK_TENSOR(map, LK_F32, a->map_height, a->map_width);
        table_lines(maps, file_path, words[i], i, a);
        rc = draw_word(stem, words[i], map, a, picture);
    }
    if (!rc) rc = lk_safetensors_write(all, named, n_named, NULL);
    lk_free(named);
    lk_free(stem);
    lk_free(all);
    return rc ? rc : maps->table.rc;
}

/* Writes words.csv unless rc is a failure, and frees. Gives rc or its own. */
static enum lk_code maps_end(struct cli_maps *maps, enum lk_code rc) {
    if (maps->folder && !rc) return lk_document_file(maps->folder, "words", ".csv", &maps->table);
    lk_text_free(&maps->table);
    return rc;
}

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
        rc = maps_add(maps, r->log.logged.list[r->chosen[i]], words->tokens, &attended, &result.image);
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
    LK_TRY(maps_begin(&maps, a));
    for (size_t i = 0; i < prompts->n; i++)
        for (size_t k = 0; k < words->n_tokens; k++)
            wanted[i] |= lk_t2i_find_words(prompt_text(prompts, i), prompt_text(prompts, i), words->tokens[k]) != NULL;
    enum lk_code rc = cli_replay_open(&r, a, prompts, wanted);
    for (size_t i = 0; i < r.n && !rc; i++) rc = look_at(&r, i, words, t, &maps);
    if (!rc && r.n_other)
        lk_log(LK_LOG_WARNING, "%zu of %zu pictures were made on other hardware and have other pixels here", r.n_other,
               r.n);
    cli_replay_close(&r);
    return maps_end(&maps, rc);
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
    LK_TRY(cli_output_free(a));
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
