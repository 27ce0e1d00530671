#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/cli.h"
#include "tools/cli/core/print.h"
#include "tools/cli/edit/recipe.h"

static void line(const char *key, const char *text) {
    printf("%-12s", key);
    cli_print_text(stdout, text);
    putchar('\n');
}

static void print_recipe(const struct cli_recipe *r) {
    line("prompt", r->prompt);
    if (r->negative_prompt) line("negative", r->negative_prompt);
    printf("%-12s%" PRId64 "x%" PRId64 "\n", "size", r->width, r->height);
    printf("%-12s%" PRId64 " (", "seed", r->seed);
    cli_print_text(stdout, r->rng);
    puts(")");
    line("noise", r->noise_sha256);
    printf("%-12s%" PRId64 "\n", "steps", r->num_inference_steps);
    if (r->true_cfg_scale < 0)
        printf("%-12s%g\n", "guidance", r->guidance_scale);
    else
        printf("%-12s%g\n", "true CFG", r->true_cfg_scale);
    if (r->size_level) printf("%-12s%" PRId64 "\n", "size level", r->size_level);
    printf("%-12s", "sigmas");
    for (int i = 0; i < r->n_sigmas; i++) {
        bool shown = i < 4 || i >= r->n_sigmas - 2;
        if (shown) printf("%s%.6g", i ? " " : "", r->sigmas[i]);
        if (i == 4 && !shown) printf(" ...");
    }
    putchar('\n');
    for (int i = 0; i < r->n_images; i++) {
        printf("%-12s", i ? "" : "images");
        cli_print_text(stdout, r->images[i].file);
        printf(" %dx%d", r->images[i].source_width, r->images[i].source_height);
        printf(", used %dx%d+%d+%d, sha256 ", r->images[i].width, r->images[i].height, r->images[i].crop_left,
               r->images[i].crop_top);
        cli_print_text(stdout, r->images[i].sha256);
        putchar('\n');
    }
    if (!r->n_images) line("images", "none");
    printf("%-12s", "model");
    cli_print_text(stdout, r->model);
    printf(" (");
    cli_print_text(stdout, r->family);
    puts(")");
    line("weights", r->weights_identity);
    line("dtype", r->dtype);
    printf("%-12s", "device");
    cli_print_text(stdout, r->device);
    printf(" (");
    cli_print_text(stdout, r->isa);
    puts(")");
    if (r->gemm) line("gemm", r->gemm);
    if (r->conv) line("conv", r->conv);
    printf("%-12slikeness ", "made by");
    cli_print_text(stdout, r->version);
    printf(", numerics %" PRId64 "\n", r->numerics_version);
}

enum lk_code cli_show(const struct cli_arguments *arguments) {
    struct cli_recipe recipe;
    enum lk_code rc = cli_recipe_read(&recipe, arguments->positional);
    if (rc) return rc;
    if (arguments->json)
        puts(recipe.text);
    else
        print_recipe(&recipe);
    cli_recipe_free(&recipe);
    return LK_OK;
}
