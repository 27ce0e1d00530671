#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "models/recipe.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

static void line(const char *key, const char *text) {
    printf("%-11s ", key);
    cli_print_text(stdout, text);
    putchar('\n');
}

/* What the recipe has of the request or of the run, where the family reads it and the table has a label for it. */
static void parameters(const struct lk_recipe *r, enum lk_parameter_place place) {
    unsigned family = lk_family_bit_of(r->family);
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        char value[4096];
        if (p->place != place || !p->label || !lk_job_given(&r->job, p) || !(p->families & family)) continue;
        lk_parameter_print(p, &r->job, value, sizeof value);
        line(p->label, value);
    }
}

static void print_configs(const struct lk_recipe *r) {
    cJSON *configs = r->configs ? cJSON_Parse(r->configs) : NULL;
    const cJSON *item;
    int i = 0;
    cJSON_ArrayForEach(item, configs) {
        printf("%-12s", i++ ? "" : "configs");
        cli_print_text(stdout, item->string);
        printf(" ");
        cli_print_text(stdout, cJSON_IsString(item) ? item->valuestring : "");
        putchar('\n');
    }
    if (!i) line("configs", "not recorded");
    cJSON_Delete(configs);
}

/* What the prompt was made of, by what. */
static void print_rewrite(const char *text) {
    cJSON *r = text ? cJSON_Parse(text) : NULL;
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(r, "model");
    const char *values[] = {cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r, "original")),
                            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r, "style")),
                            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "name")),
                            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "weights"))};
    if (values[0] && values[1] && values[2] && values[3]) {
        line("original", values[0]);
        printf("%-12s", "rewritten");
        cli_print_text(stdout, values[1]);
        printf(" by ");
        cli_print_text(stdout, values[2]);
        printf(", weights ");
        cli_print_text(stdout, values[3]);
        putchar('\n');
    }
    cJSON_Delete(r);
}

static void print_recipe(const struct lk_recipe *r) {
    line("prompt", r->job.request.prompt);
    print_rewrite(r->rewrite);
    if (r->n_cut_ids) printf("%-12s%" PRId64 " tokens at the end, which the model did not read\n", "cut", r->n_cut_ids);
    printf("%-12s%dx%d\n", "size", r->job.request.width, r->job.request.height);
    printf("%-12s%" PRIu64 " (", "seed", r->job.request.seed);
    cli_print_text(stdout, r->job.run.rng);
    puts(")");
    line("noise", r->noise_sha256);
    parameters(r, LK_IN_REQUEST);
    printf("%-12s", "sigmas");
    for (int i = 0; i < r->n_sigmas; i++) {
        bool shown = i < 4 || i >= r->n_sigmas - 2;
        if (shown) printf("%s%.6g", i ? " " : "", r->sigmas[i]);
        if (i == 4 && !shown) printf(" ...");
    }
    putchar('\n');
    for (int i = 0; i < r->n_cached; i++) {
        const bool gated = *r->cache_gates[i];
        const int n_branches = gated ? r->n_cached / 2 : r->n_cached, branch = gated ? i / 2 : i;
        printf("%-12s%d of %d steps", i ? "" : "computed", r->n_computed[i], r->n_sigmas - 1);
        if (gated) printf(" in %s-stream blocks", r->cache_gates[i]);
        puts(n_branches < 2 ? "" : branch ? " without the prompt" : " with the prompt");
    }
    for (int i = 0; i < r->n_images; i++) {
        printf("%-12s", i ? "" : "images");
        cli_print_text(stdout, r->images[i].file);
        printf(" %dx%d", r->images[i].source_width, r->images[i].source_height);
        if (r->images[i].converted_from) {
            printf(" from ");
            cli_print_text(stdout, r->images[i].converted_from);
        }
        printf(", used %dx%d+%d+%d, sha256 ", r->images[i].width, r->images[i].height, r->images[i].crop_left,
               r->images[i].crop_top);
        cli_print_text(stdout, r->images[i].sha256);
        putchar('\n');
    }
    if (!r->n_images) line("images", "none");
    if (r->mask.file) {
        printf("%-12s", "mask");
        cli_print_text(stdout, r->mask.file);
        const char *paste = r->job.request.mask_paste;
        printf(" lets %.4g of the first image change, the rest %s, digest ", r->mask.edited,
               paste && !strcmp(paste, "off") ? "has passed through its latents" : "has its bytes");
        cli_print_text(stdout, r->mask.sha256);
        putchar('\n');
    }
    printf("%-12s", "model");
    cli_print_text(stdout, r->model);
    printf(" (");
    cli_print_text(stdout, r->family);
    puts(")");
    line("weights", r->weights_identity);
    print_configs(r);
    for (int i = 0; i < r->n_loras; i++) {
        printf("%-12s", i ? "" : "loras");
        cli_print_text(stdout, r->loras[i].file);
        printf(" at %g, sha256 ", r->loras[i].scale);
        cli_print_text(stdout, r->loras[i].sha256);
        putchar('\n');
    }
    if (r->quantization) line("quantised", r->quantization);
    line("dtype", r->job.run.dtype);
    printf("%-12s", "device");
    cli_print_text(stdout, r->job.run.device);
    printf(" (");
    cli_print_text(stdout, r->isa);
    puts(")");
    if (r->text_encoder_isa) line("encoded on", r->text_encoder_isa);
    parameters(r, LK_IN_RUN);
    if (r->packed.as)
        printf("%-12s%s, quality %d\n", "written as", !strcmp(r->packed.as, "jpeg") ? "JPEG" : "WebP",
               r->packed.quality);
    printf("%-12slikeness ", "made by");
    cli_print_text(stdout, r->version);
    printf(", numerics %" PRId64 "\n", r->numerics_version);
}

enum lk_code cli_show(const struct cli_arguments *arguments) {
    struct lk_recipe recipe;
    enum lk_code rc = lk_recipe_read(&recipe, arguments->positional);
    if (rc) return rc;
    if (arguments->json)
        puts(recipe.text);
    else
        print_recipe(&recipe);
    lk_recipe_free(&recipe);
    return LK_OK;
}

/* Whether this build can be expected to give the recorded bits at all. */
static enum lk_code check(const struct lk_recipe *r, const struct cli_arguments *a) {
    if (r->numerics_version != LK_NUMERICS_VERSION)
        lk_log(LK_LOG_WARNING, "made with numerics version %lld, this is %d: the bits may differ",
               (long long)r->numerics_version, LK_NUMERICS_VERSION);
    if (!r->configs)
        lk_log(
            LK_LOG_WARNING,
            "made by version %s, which did not record the model's configs: a scheduler or tokenizer that was changed "
            "since shows only in the values below, or in the pixels",
            r->version);
    if (r->text_encoder_isa && !a->job.request.prompt_embeds)
        lk_log(LK_LOG_WARNING,
               "its prompts were encoded on %s, by `embed`: without that file (--prompt-embeds) the bits "
               "will differ",
               r->text_encoder_isa);
    if (r->n_images != a->n_images)
        return lk_fail(LK_E_USAGE, "--image: expected the recipe's images, %d of them in its order (see: show), got %d",
                       r->n_images, a->n_images);
    if (!r->mask.file != !a->job.request.mask)
        return lk_fail(LK_E_USAGE, "--mask: expected %s, got %s",
                       r->mask.file ? "the recipe's (see: show)" : "none, as in the recipe",
                       a->job.request.mask ? a->job.request.mask : "none");
    if (a->replay_cache && !r->n_cached)
        return lk_fail(LK_E_USAGE, "--replay-cache: the recipe has no step cache; leave it out");
    return LK_OK;
}

/* What computed then, where it can again: NVIDIA's libraries need a cuda device. */
static void choose_library(const char **library, const struct lk_recipe *r, const struct lk_job *given) {
    if (!strcmp(*library, "own") || !strncmp(given->run.device, "cuda", 4)) return;
    lk_log(LK_LOG_WARNING, "made on %s with %s, this is %s: the bits will differ", r->job.run.device, *library,
           given->run.device);
    *library = "own";
}

void cli_rerun_job(struct lk_job *job, const struct lk_recipe *r, const struct lk_job *given) {
    *job = *given;
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (!lk_parameters[i].machine) lk_parameter_copy(&lk_parameters[i], job, &r->job);
    choose_library(&job->run.gemm, r, given);
    choose_library(&job->run.conv, r, given);
}

/* The recipe's adapters among the files given, in its order and with its scales; `texts` holds what the job is told. */
static enum lk_code match_loras(const struct lk_recipe *r, struct lk_job *job, char *texts[LK_MAX_LORAS]) {
    const struct lk_job_run given = job->run;
    char digests[LK_MAX_LORAS][65];
    if (given.n_loras != r->n_loras)
        return lk_fail(LK_E_USAGE, "--lora: expected the recipe's files, %d of them (see: show), got %d", r->n_loras,
                       given.n_loras);
    for (int i = 0; i < given.n_loras; i++) {
        struct lk_loras *one;
        LK_TRY(lk_loras_open_whole(&one, &given.loras[i], 1, true));
        memcpy(digests[i], one->list[0].sha256, sizeof digests[i]);
        lk_loras_close(one);
    }
    for (int i = 0; i < r->n_loras; i++) {
        size_t length;
        double scale;
        int k = 0, other = -1;
        for (; k < given.n_loras; k++) {
            if (strcmp(digests[k], r->loras[i].sha256) != 0) continue;
            LK_TRY(lk_lora_split(given.loras[k], &length, &scale));
            if (!given.loras[k][length] || scale == r->loras[i].scale) break;
            other = k;
        }
        if (k == given.n_loras && other >= 0)
            return lk_fail(LK_E_USAGE,
                           "--lora: %s: the recipe has this file at %g; leave the scale out, or make "
                           "another picture with edit",
                           given.loras[other], r->loras[i].scale);
        if (k == given.n_loras)
            return lk_fail(LK_E_CHANGED, "--lora: none of the files given is the recipe's %s with SHA-256 %s",
                           r->loras[i].file, r->loras[i].sha256);
        texts[i] = lk_format("%.*s=%.17g", (int)length, given.loras[k], r->loras[i].scale);
        if (!texts[i]) return lk_fail(LK_E_NOMEM, "--lora: out of memory");
        job->run.loras[i] = texts[i];
    }
    return LK_OK;
}

enum lk_code cli_rerun(const struct cli_arguments *a) {
    struct lk_recipe r;
    enum lk_code rc = lk_recipe_read(&r, a->positional);
    if (rc) return rc;
    rc = check(&r, a);
    if (!rc) {
        struct cli_job job = {.n_images = a->n_images, .output = a->output, .quality = (int)a->quality};
        struct cli_jobs jobs = {.list = &job,
                                .n = 1,
                                .model = a->model,
                                .jobs_per_visit = 1,
                                .preview = {a->preview, (int)a->preview_every, false},
                                .overwrite = a->overwrite,
                                .recipe = a->positional,
                                .weights_identity = r.weights_identity,
                                .configs = r.configs,
                                .allow_other = a->allow_other};
        char *loras[LK_MAX_LORAS] = {NULL};
        cli_rerun_job(&job.job, &r, &a->job);
        job.job.request.mask_sha256 = r.mask.sha256;
        job.job.request.replay_cache = a->replay_cache ? &r.cache : NULL;
        job.rewrite.record = r.rewrite;
        rc = a->rewrite.prompts ? cli_rewrite_again(a, &r) : LK_OK;
        if (!rc) rc = match_loras(&r, &job.job, loras);
        for (int i = 0; i < a->n_images; i++) {
            job.images[i] = a->images[i];
            job.image_sha256[i] = r.images[i].sha256;
            job.as_stored[i] = !r.images[i].converted_from;
        }
        if (!rc) rc = cli_jobs_run(&jobs);
        if (!rc) rc = lk_recipe_compare(&r, a->positional, a->output);
        if (rc == LK_E_CONFLICT && a->allow_other) rc = LK_OK;
        for (int i = 0; i < r.n_loras; i++) lk_free(loras[i]);
    }
    lk_recipe_free(&r);
    return rc;
}

/* FILE_s7.png of FILE.png. */
static char *name_seed(const char *output, uint64_t seed) {
    const char *slash = strrchr(output, '/'), *dot = strrchr(slash ? slash : output, '.');
    const size_t n = dot ? (size_t)(dot - output) : strlen(output);
    return lk_format("%.*s_s%" PRIu64 "%s", (int)n, output, seed, output + n);
}

static void free_seeds(struct cli_jobs *jobs) {
    for (int i = 0; i < jobs->n; i++) lk_free((char *)(uintptr_t)jobs->list[i].output);
    lk_free(jobs->list);
}

/* The same job with one seed after another, as a list. */
static enum lk_code make_seeds(struct cli_jobs *jobs, const struct cli_job *job, int n) {
    if (!job->output) return lk_fail(LK_E_USAGE, "--output: missing: the pictures' file");
    if (jobs->dump_steps) return lk_fail(LK_E_USAGE, "--dump-steps: is of one edit; leave it out");
    if (job->job.request.seed > (uint64_t)(INT64_MAX - n))
        return lk_fail(LK_E_USAGE, "--num-images: expected a seed that %d can follow, got %" PRIu64, n - 1,
                       job->job.request.seed);
    if (!(jobs->list = lk_calloc((size_t)n, sizeof *jobs->list))) return lk_fail(LK_E_NOMEM, "edit: out of memory");
    jobs->file = "edit";
    for (int i = 0; i < n; i++) {
        struct cli_job *to = &jobs->list[jobs->n++];
        *to = *job;
        to->job.request.seed += (uint64_t)i;
        snprintf(to->where, sizeof to->where, "seed %" PRIu64, to->job.request.seed);
        if (!(to->output = name_seed(job->output, to->job.request.seed)))
            return lk_fail(LK_E_NOMEM, "edit: out of memory");
    }
    return LK_OK;
}

static int n_seeds(const struct cli_arguments *a) { return (int)(a->n_seeds ? a->n_seeds : a->num_images); }

/* What `edit` and `embed` are told: one job, or a list of them. */
static enum lk_code run(const struct cli_arguments *a, struct cli_jobs *jobs) {
    struct cli_job job = {.job = a->job, .n_images = a->n_images, .output = a->output, .quality = (int)a->quality};
    memcpy(job.images, a->images, sizeof job.images);
    jobs->model = a->model;
    jobs->file = a->jobs;
    jobs->jobs_per_visit = (int)a->jobs_per_visit;
    jobs->auto_quantize = a->auto_quantize;
    const bool seeds = n_seeds(a) > 1;
    if (!jobs->file && !seeds) {
        jobs->list = &job;
        jobs->n = 1;
    }
    enum lk_code rc = seeds ? make_seeds(jobs, &job, n_seeds(a)) : jobs->file ? cli_jobs_read(jobs, &job) : LK_OK;
    if (!rc && a->rewrite.prompts) rc = cli_rewrite_jobs(a, jobs);
    if (!rc) rc = cli_jobs_run(jobs);
    cli_rewrite_jobs_free(jobs);
    if (seeds)
        free_seeds(jobs);
    else if (jobs->file)
        cli_jobs_free(jobs);
    return rc;
}

enum lk_code cli_edit(const struct cli_arguments *a) {
    struct cli_jobs jobs = {.dump_steps = a->dump_steps,
                            .preview = {a->preview, (int)a->preview_every, false},
                            .overwrite = a->overwrite,
                            .check_steps = !a->allow_steps};
    if (a->jobs && (a->output || a->dump_steps || a->preview))
        return lk_fail(LK_E_USAGE, "--%s: is of one edit; with --jobs %s",
                       a->output       ? "output"
                       : a->dump_steps ? "dump-steps"
                                       : "preview",
                       a->output ? "each line has its own \"output\"" : "leave it out");
    if (a->n_seeds && a->num_images)
        return lk_fail(LK_E_USAGE, "--num-images: --seed is a range already; leave one of them out");
    if (a->jobs && n_seeds(a))
        return lk_fail(LK_E_USAGE, "--%s: each line of --jobs has its own seed; leave one of them out",
                       a->n_seeds ? "seed" : "num-images");
    return run(a, &jobs);
}

enum lk_code cli_embed(const struct cli_arguments *a) {
    struct cli_jobs jobs = {.embeds = a->output};
    return run(a, &jobs);
}
