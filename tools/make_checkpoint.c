/* Writes a checkpoint with random weights in the layout of a released one: for the tests, the demo and the benchmarks.
 *
 *     make_checkpoint --family flux2 --preset tiny|small|wide [--released-vae] [--seed N] DIR
 *
 * The same arguments give the same bytes. DIR must be new or empty. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/atomic_file.h"
#include "tools/make/flux2.h"

static enum lk_code make_folder(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
    if (mkdir(path, 0777) == 0) return LK_OK;
    if (errno != EEXIST || *name) return lk_fail_errno(errno, "%s", path);
    DIR *dir = opendir(path);
    if (!dir) return lk_fail_errno(errno, "%s", path);
    int n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n <= 2 ? LK_OK : lk_fail(LK_E_USAGE, "%s: expected a new or empty folder", path);
}

/* Takes over `json`. */
static enum lk_code write_json(const char *folder, const char *name, cJSON *json) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = json ? cJSON_Print(json) : NULL;
    enum lk_code rc =
        text ? lk_atomic_write_file(path, text, strlen(text)) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    cJSON_free(text);
    cJSON_Delete(json);
    return rc;
}

typedef void list_fn(struct make_list *list, const struct make_flux2 *f);

static enum lk_code write_weights(const char *folder, const char *component, const char *stem, list_fn *tensors,
                                  const struct make_flux2 *f, uint64_t seed) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, component);
    struct make_list list = {0};
    tensors(&list, f);
    enum lk_code rc = make_write(&list, path, stem, seed, f->max_shard_bytes);
    make_list_free(&list);
    return rc;
}

static enum lk_code make(const char *folder, const struct make_flux2 *f, uint64_t seed) {
    static const char *const components[] = {"", "scheduler", "transformer", "vae", "text_encoder", "tokenizer"};
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < sizeof components / sizeof *components && !rc; i++) rc = make_folder(folder, components[i]);
    if (!rc) rc = write_json(folder, "model_index.json", make_flux2_model_index());
    if (!rc) rc = write_json(folder, "scheduler/scheduler_config.json", make_flux2_scheduler());
    if (!rc) rc = write_json(folder, "transformer/config.json", make_flux2_transformer_config(f));
    if (!rc) rc = write_json(folder, "vae/config.json", make_flux2_vae_config(f));
    if (!rc) rc = write_json(folder, "text_encoder/config.json", make_flux2_text_config(f));
    if (!rc) rc = write_json(folder, "text_encoder/generation_config.json", make_flux2_generation_config());
    if (!rc) rc = write_json(folder, "tokenizer/tokenizer_config.json", make_flux2_tokenizer_config());
    if (!rc) rc = write_json(folder, "tokenizer/tokenizer.json", make_flux2_tokenizer(f->vocab));
    if (!rc) rc = write_weights(folder, "transformer", "diffusion_pytorch_model", make_flux2_transformer, f, seed);
    if (!rc) rc = write_weights(folder, "vae", "diffusion_pytorch_model", make_flux2_vae, f, seed);
    if (!rc) rc = write_weights(folder, "text_encoder", "model", make_flux2_text_encoder, f, seed);
    return rc;
}

static enum lk_code run(int argc, char **argv) {
    const char *folder = NULL, *preset = "tiny", *family = "flux2";
    uint64_t seed = 0;
    bool released_vae = false;
    for (int i = 1; i < argc; i++) {
        bool valued = i + 1 < argc;
        if (!strcmp(argv[i], "--released-vae")) {
            released_vae = true;
        } else if (!strcmp(argv[i], "--preset") && valued) {
            preset = argv[++i];
        } else if (!strcmp(argv[i], "--family") && valued) {
            family = argv[++i];
        } else if (!strcmp(argv[i], "--seed") && valued) {
            char *end;
            seed = strtoull(argv[++i], &end, 10);
            if (*end || end == argv[i]) return lk_fail(LK_E_USAGE, "--seed: expected a number, got \"%s\"", argv[i]);
        } else if (argv[i][0] != '-' && !folder) {
            folder = argv[i];
        } else {
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
        }
    }
    if (!folder)
        return lk_fail(LK_E_USAGE, "usage: make_checkpoint [--family flux2] [--preset tiny|small|wide] [--released-vae]"
                                   " [--seed N] DIR");
    if (strcmp(family, "flux2")) return lk_fail(LK_E_USAGE, "--family: expected flux2, got \"%.64s\"", family);
    struct make_flux2 f;
    enum lk_code rc = make_flux2_preset(&f, preset, released_vae);
    if (!rc) rc = make(folder, &f, seed);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_checkpoint: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
