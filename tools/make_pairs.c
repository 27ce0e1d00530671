/* Draws pairs of pictures, before and after an edit, to train small editors on: portraits of nobody.
 *
 *     make_pairs [--size PIXELS] [--seed N] [--first I] [--count N] [--held-out] [--bias FAMILY] [--prompt ID]
 *                [--faults SHARE] -o FILE
 *     make_pairs --words | --prompts
 *     make_pairs --study DIR [--prompt ID]... [--strength SHARE] [--slips SHARE]
 *
 * FILE gets count x 2 x size x size x 3 bytes, before and after, RGB; FILE.jsonl a line for each pair: its prompt, the
 * fields of both portraits, what was planted. --held-out: only word combinations that are otherwise left out. --bias:
 * the after pictures of a family's biased editor (tools/portrait/portrait.h). --faults: that share of pairs has
 * something wrong, and each line the scores that are due. Pair I depends on the seed and I alone.
 * --study: what the three biased editors make of the 84 sources of make_portraits by the study's prompts (all, or those
 * named), as DIR/run/ITEM.png and DIR/images.jsonl: an audit's outputs without a model.
 * --words lists every word of every prompt, --prompts every prompt, held-out ones marked with '*'. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/study/factors.h"
#include "tools/portrait/portrait.h"

/* A study of drawn editors, as files: what a run of models would leave, without models. */

struct study {
    const char *folder;
    int size;
    uint64_t seed;
    double strength, slips;
    struct lk_text images;
};

/* flux_20s_male_black_O-01 */
static void item_id(int model, int source, int prompt, char out[64]) {
    int race, gender, age;
    lk_source_factors(source, &race, &gender, &age);
    snprintf(out, 64, "%s_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model), lk_factor_key(LK_FACTOR_AGE, age),
             lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt));
    for (char *c = out; *c && *c != '-'; c++)
        if (c[1] != '-' && *c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
}

static enum lk_code output(struct study *study, int model, int source, int prompt) {
    static const enum editor_family families[LK_N_MODELS] = {EDITOR_FLUX2, EDITOR_STEP1X, EDITOR_QWEN_EDIT};
    const struct editor editor = {families[model], study->strength, study->slips};
    const struct edit edit = {.instruction = prompt};
    struct portrait before, after;
    struct lk_stream stream;
    struct lk_image image = {0};
    char id[64], source_id[48];
    item_id(model, source, prompt, id);
    lk_source_id(source, source_id);
    lk_stream_named(&stream, study->seed, id);
    portrait_source(&before, source, NULL);
    editor_edit(&editor, &edit, &before, &stream, &after);
    char *path = lk_format("%s/run/%s.png", study->folder, id);
    enum lk_code rc = path ? portrait_draw(&image, &after, study->size) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = lk_png_write(path, &image, NULL, 0);
    lk_image_free(&image);
    lk_free(path);
    lk_text_add(&study->images, "{\"item_id\":\"%s\",\"source\":\"sources/%s.png\",\"edited\":\"run/%s.png\"}\n", id,
                source_id, id);
    return rc;
}

static enum lk_code make_folder(const char *folder) {
    return mkdir(folder, 0777) && errno != EEXIST ? lk_fail_errno(errno, "%s", folder) : LK_OK;
}

/* Writes into folder (which is made when it is missing) run/ITEM.png for each of the 84 sources, each chosen prompt of
 * the study and each family, by the family's editor, and images.jsonl, which names sources/SOURCE.png as make_portraits
 * writes them. chosen [EDITS_N_STUDY]. The seed decides strength and slips. */
static enum lk_code portrait_study(const char *folder, const bool *chosen, int size, uint64_t seed, double strength,
                                   double slips) {
    struct study study = {folder, size, seed, strength, slips, {0}};
    char *run = lk_format("%s/run", folder), *images = lk_format("%s/images.jsonl", folder);
    enum lk_code rc = run && images ? make_folder(folder) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = make_folder(run);
    for (int i = 0; i < LK_N_MODELS * LK_N_SOURCES * EDITS_N_STUDY && !rc; i++)
        if (chosen[i % EDITS_N_STUDY])
            rc = output(&study, i / EDITS_N_STUDY / LK_N_SOURCES, i / EDITS_N_STUDY % LK_N_SOURCES, i % EDITS_N_STUDY);
    if (!rc) rc = study.images.rc;
    if (!rc) rc = lk_atomic_write_file(images, study.images.bytes, study.images.n);
    lk_text_free(&study.images);
    lk_free(images);
    lk_free(run);
    return rc;
}

struct options {
    int size, prompt;
    long long seed, first, count;
    bool held_out, words, prompts, chosen[EDITS_N_STUDY], any_chosen;
    double strength, slips, faults;
    enum editor_family bias;
    const char *path, *study;
};

static void list_words(struct lk_text *out, char *text) {
    for (char *word = strtok(text, " .,\n"); word; word = strtok(NULL, " .,\n")) {
        char *key = lk_format("\n%s\n", word);
        if (!key) {
            out->rc = lk_fail(LK_E_NOMEM, "out of memory");
        } else if (!strstr(out->bytes, key)) {
            lk_text_add(out, "%s\n", word);
        }
        lk_free(key);
    }
}

static enum lk_code list(const struct options *o, const struct lk_prompts *prompts) {
    struct lk_text out = {0};
    struct edit e = {0};
    lk_text_add(&out, "\n");
    do {
        struct lk_text text = {0};
        edit_text(&e, prompts, &text);
        if (text.rc)
            out.rc = text.rc;
        else if (o->words)
            list_words(&out, text.bytes);
        else
            lk_text_add(&out, "%s %c %s\n", edit_instruction(e.instruction)->id, edit_held_out(&e) ? '*' : ' ',
                        text.bytes);
        lk_text_free(&text);
    } while (!out.rc && edit_next(&e));
    if (!out.rc) fputs(out.bytes + 1, stdout);
    return lk_text_free(&out);
}

static void add_portrait(struct lk_text *out, const char *key, const struct portrait *p) {
    lk_text_add(out, ",\"%s\":{", key);
    for (int i = 0; i < PORTRAIT_N_FIELDS; i++)
        lk_text_add(out, "%s\"%s\":%d", i ? "," : "", portrait_field_name(i), p->level[i]);
    lk_text_add(out, "}");
}

static void describe(struct lk_text *out, const struct options *o, const struct lk_prompts *prompts, long long index,
                     const struct edit *edit, int source) {
    struct lk_text text = {0};
    char id[48];
    lk_source_id(source, id);
    edit_text(edit, prompts, &text);
    lk_text_add(out, "{\"index\":%lld,\"prompt_id\":\"%s\",\"prompt\":", index,
                edit_instruction(edit->instruction)->id);
    lk_text_json(out, text.bytes ? text.bytes : "");
    lk_text_add(out, ",\"way\":%d,\"words\":[%d,%d],\"held_out\":%s,\"preserve\":%s,\"source\":\"%s\",\"bias\":\"%s\"",
                edit->way, edit->word[0], edit->word[1], edit_held_out(edit) ? "true" : "false",
                edit->preserve ? "true" : "false", id, editor_name(o->bias));
    if (text.rc) out->rc = text.rc;
    lk_text_free(&text);
}

/* As make_measure would print them. */
static void add_scores(struct lk_text *out, const struct edit *edit, const struct portrait *before,
                       const struct portrait *after) {
    struct portrait_change change;
    uint8_t score[LK_N_AXES];
    portrait_compare(edit, before, after, 0, &change);
    portrait_scores(&change, score);
    lk_text_add(out, ",\"scores\":[");
    for (int a = 0; a < LK_N_AXES; a++) lk_text_add(out, "%s%d", a ? "," : "", score[a]);
    lk_text_add(out, "]");
}

static enum lk_code pair(struct lk_text *lines, uint8_t *pixels, const struct options *o,
                         const struct lk_prompts *prompts, long long index) {
    const struct editor editor = {.family = o->bias, .strength = 1};
    size_t bytes = (size_t)o->size * (size_t)o->size * 3;
    struct portrait before, after, asked;
    struct lk_stream stream;
    struct edit edit;
    int source;
    lk_stream_numbered(&stream, (uint64_t)o->seed, o->held_out ? "held-out pair|" : "pair|", (uint64_t)index);
    edit_draw(&stream, o->prompt, o->held_out, &edit, &source, &before);
    edit_apply(&edit, &before, &asked);
    int planted = editor_edit(&editor, &edit, &before, NULL, &after);
    if ((double)(lk_stream_u64(&stream) >> 11) * 0x1p-53 < o->faults) editor_fault(&before, &stream, &after);
    portrait_draw_into(pixels, &before, o->size);
    portrait_draw_into(pixels + bytes, &after, o->size);
    describe(lines, o, prompts, index, &edit, source);
    lk_text_add(lines, ",\"planted\":%d", planted);
    add_portrait(lines, "before", &before);
    add_portrait(lines, "asked", &asked);
    add_portrait(lines, "after", &after);
    if (o->faults > 0) add_scores(lines, &edit, &before, &after);
    lk_text_add(lines, "}\n");
    return lines->rc;
}

static enum lk_code write_pairs(const struct options *o, const struct lk_prompts *prompts) {
    size_t bytes = (size_t)o->size * (size_t)o->size * 6;
    char *name = lk_format("%s.jsonl", o->path);
    uint8_t *pixels = lk_malloc(bytes);
    FILE *pictures = fopen(o->path, "wb"), *table = name ? fopen(name, "wb") : NULL;
    enum lk_code rc = LK_OK;
    if (!name || !pixels)
        rc = lk_fail(LK_E_NOMEM, "out of memory for a pair of pictures of %d", o->size);
    else if (!pictures || !table)
        rc = lk_fail(LK_E_IO, "%s: cannot be written", pictures ? name : o->path);
    for (long long i = 0; i < o->count && !rc; i++) {
        struct lk_text line = {0};
        rc = pair(&line, pixels, o, prompts, o->first + i);
        if (!rc && (fwrite(pixels, bytes, 1, pictures) != 1 || fwrite(line.bytes, line.n, 1, table) != 1))
            rc = lk_fail(LK_E_IO, "%s: cannot be written", o->path);
        lk_text_free(&line);
    }
    if (pictures && fclose(pictures) && !rc) rc = lk_fail(LK_E_IO, "%s: cannot be written", o->path);
    if (table && fclose(table) && !rc) rc = lk_fail(LK_E_IO, "%s: cannot be written", name);
    lk_free(pixels);
    lk_free(name);
    return rc;
}

static enum lk_code whole(const char *option, const char *text, long long least, long long most, long long *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || *out < least || *out > most)
        return lk_fail(LK_E_USAGE, "%s: expected %lld to %lld, got \"%s\"", option, least, most, text);
    return LK_OK;
}

static enum lk_code share(const char *option, const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0 && *out <= 1))
        return lk_fail(LK_E_USAGE, "%s: expected 0 to 1, got \"%s\"", option, text);
    return LK_OK;
}

static enum lk_code pick(const char *option, const char *text, struct options *o) {
    if (!strcmp(option, "--bias")) {
        for (int f = 0; f < EDITOR_N; f++)
            if (!strcmp(text, editor_name((enum editor_family)f))) {
                o->bias = (enum editor_family)f;
                return LK_OK;
            }
        return lk_fail(LK_E_USAGE, "--bias: expected flux2, step1x, qwen_edit or none, got \"%s\"", text);
    }
    for (o->prompt = 0; o->prompt < EDITS_N; o->prompt++)
        if (!strcmp(text, edit_instruction(o->prompt)->id)) {
            if (o->prompt < EDITS_N_STUDY) o->chosen[o->prompt] = o->any_chosen = true;
            return LK_OK;
        }
    return lk_fail(LK_E_USAGE, "--prompt: expected O-01, V-10, P-01 or the like, got \"%s\"", text);
}

static enum lk_code read_options(int argc, char **argv, struct options *o) {
    long long size = 64;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool *flag = !strcmp(name, "--held-out")  ? &o->held_out
                     : !strcmp(name, "--words")   ? &o->words
                     : !strcmp(name, "--prompts") ? &o->prompts
                                                  : NULL;
        if (flag) {
            *flag = true;
            continue;
        }
        if (!value) return lk_fail(LK_E_USAGE, "%s: not understood", name);
        i++;
        if (!strcmp(name, "--size"))
            LK_TRY(whole(name, value, 16, 4096, &size));
        else if (!strcmp(name, "--seed"))
            LK_TRY(whole(name, value, 0, INT64_MAX, &o->seed));
        else if (!strcmp(name, "--first"))
            LK_TRY(whole(name, value, 0, INT32_MAX, &o->first));
        else if (!strcmp(name, "--count"))
            LK_TRY(whole(name, value, 1, INT32_MAX, &o->count));
        else if (!strcmp(name, "-o"))
            o->path = value;
        else if (!strcmp(name, "--study"))
            o->study = value;
        else if (!strcmp(name, "--strength"))
            LK_TRY(share(name, value, &o->strength));
        else if (!strcmp(name, "--slips"))
            LK_TRY(share(name, value, &o->slips));
        else if (!strcmp(name, "--faults"))
            LK_TRY(share(name, value, &o->faults));
        else if (!strcmp(name, "--bias") || !strcmp(name, "--prompt"))
            LK_TRY(pick(name, value, o));
        else
            return lk_fail(LK_E_USAGE, "%s: not understood", name);
    }
    o->size = (int)size;
    if (!o->path && !o->words && !o->prompts && !o->study)
        return lk_fail(LK_E_USAGE, "-o FILE is missing; the head of tools/make_pairs.c has all options");
    struct edit e = {.instruction = o->prompt};
    bool any = !o->held_out || o->prompt < 0;
    while (!any && e.instruction == o->prompt) {
        any = edit_held_out(&e);
        edit_next(&e);
    }
    if (!any) return lk_fail(LK_E_USAGE, "--held-out: no wording of %s is held out", edit_instruction(o->prompt)->id);
    return LK_OK;
}

int main(int argc, char **argv) {
    struct options o = {.prompt = -1, .count = 1, .bias = EDITOR_NONE, .strength = 1};
    struct lk_prompts prompts = {0};
    enum lk_code rc = read_options(argc, argv, &o);
    if (!rc) rc = lk_prompts_load(&prompts);
    for (int i = 0; i < EDITS_N_STUDY; i++) o.chosen[i] |= !o.any_chosen;
    if (!rc)
        rc = o.words || o.prompts ? list(&o, &prompts)
             : o.study            ? portrait_study(o.study, o.chosen, o.size, (uint64_t)o.seed, o.strength, o.slips)
                                  : write_pairs(&o, &prompts);
    lk_prompts_free(&prompts);
    if (rc) fprintf(stderr, "make_pairs: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
