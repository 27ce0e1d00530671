#include "tools/portrait/study.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/study/factors.h"

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

enum lk_code portrait_study(const char *folder, const bool *chosen, int size, uint64_t seed, double strength,
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
