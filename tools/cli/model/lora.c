/* What a LoRA file holds, and models that are written with it. */
#include <stdio.h>

#include "models/quantize.h"
#include "tools/cli/cli.h"

#define MOST_KINDS 32 /* of ranks and scales that are told apart */

/* "rank 64, s 0.125: 720 modules" for each kind there is. */
static void print_kinds(const struct lk_lora *l) {
    struct {
        int64_t rank;
        float s;
        size_t n;
    } kinds[MOST_KINDS] = {{0}};
    size_t n_kinds = 0;
    struct lk_lora_info info;
    for (size_t i = 0; lk_lora_module_at(l, i, &info); i++) {
        size_t k = 0;
        while (k < n_kinds && (kinds[k].rank != info.rank || kinds[k].s != info.s)) k++;
        if (k == MOST_KINDS) k--; /* counted with the last */
        if (k == n_kinds) n_kinds++, kinds[k].rank = info.rank, kinds[k].s = info.s;
        kinds[k].n++;
    }
    for (size_t k = 0; k < n_kinds; k++)
        printf("%-10srank %lld, s %g: %zu modules\n", k ? "" : "adapters", (long long)kinds[k].rank, (double)kinds[k].s,
               kinds[k].n);
}

static void print_file(const struct lk_lora *l) {
    printf("%-10s", "file");
    cli_print_text(stdout, l->name);
    printf("\n%-10s%s\n%-10s", "sha256", l->sha256, "layout");
    cli_print_text(stdout, l->layout);
    printf("\n%-10s%zu\n", "modules", l->n_modules);
    print_kinds(l);
}

/* Layer by layer: how much of it the adapter is. */
static void print_layers(const struct lk_pipeline *pipeline) {
    const struct lk_loras *loras = lk_pipeline_loras(pipeline);
    struct lk_lora_info info;
    printf("%-10s%s\n\n%-56s %13s %5s %10s %9s\n", "model", lk_pipeline_family(pipeline), "layer", "size", "rank", "s",
           "|sBA|/|W|");
    for (size_t i = 0; i < loras->n_layers; i++) {
        char size[32], share[32] = "-";
        if (!lk_lora_info(loras, i, 0, &info)) continue;
        const double whole = lk_pipeline_weight_norm(pipeline, info.layer);
        snprintf(size, sizeof size, "%lldx%lld", (long long)info.rows, (long long)info.columns);
        if (whole > 0) snprintf(share, sizeof share, "%.4f", info.norm / whole);
        printf("%-56s %13s %5lld %10g %9s\n", info.layer, size, (long long)info.rank, (double)info.s, share);
    }
}

enum lk_code cli_lora(const struct cli_arguments *a) {
    struct lk_loras *loras;
    struct lk_pipeline *pipeline;
    LK_TRY(lk_loras_open_whole(&loras, &a->more[0], 1, true));
    print_file(&loras->list[0]);
    lk_loras_close(loras);
    if (!a->model) return LK_OK;
    const struct lk_pipeline_options options = {.compute = LK_BF16, .loras = &a->more[0], .n_loras = 1};
    LK_TRY(lk_pipeline_open_with(&pipeline, a->model, &options));
    print_layers(pipeline);
    lk_pipeline_close(pipeline);
    return LK_OK;
}

enum lk_code cli_lora_merge(const struct cli_arguments *a) {
    LK_TRY(lk_model_merge(a->more[0], a->output, a->job.run.loras, a->job.run.n_loras));
    cli_print_text(stdout, a->output);
    putchar('\n');
    return LK_OK;
}
