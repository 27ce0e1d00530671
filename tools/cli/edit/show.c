#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "models/recipe.h"

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
