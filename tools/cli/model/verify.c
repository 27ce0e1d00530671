#include <cjson/cJSON.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/quantize.h"
#include "tools/cli/cli.h"
#include "weights/checkpoint.h"
#include "weights/verify.h"

/* What a LoRA file holds, and models that are written with it. */

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

enum lk_code cli_quantize(const struct cli_arguments *a) {
    LK_TRY(lk_model_quantize(a->positional, a->output, lk_quantize_named(a->format)));
    cli_print_text(stdout, a->output);
    putchar('\n');
    return LK_OK;
}

static const char *const results[] = {[LK_VERIFY_OK] = "ok",
                                      [LK_VERIFY_DIFFERS] = "differs",
                                      [LK_VERIFY_NO_DIGEST] = "no digest",
                                      [LK_VERIFY_UNREADABLE] = "unreadable",
                                      [LK_VERIFY_SHARED] = "same blob"};

static size_t count(const struct lk_verify_report *report, enum lk_verify_result result) {
    size_t n = 0;
    for (size_t i = 0; i < report->n_files; i++) n += report->files[i].result == result;
    return n;
}

static void print_text(const struct lk_verify_report *report) {
    for (size_t i = 0; i < report->n_files; i++) {
        const struct lk_verify_file *f = &report->files[i];
        printf("%-11s", results[f->result]);
        cli_print_text(stdout, f->path);
        if (f->result == LK_VERIFY_DIFFERS) printf("  expected %s, got %s", f->expected, f->got);
        putchar('\n');
    }
    printf("%zu ok, %zu bad, %zu without a digest\n", count(report, LK_VERIFY_OK), report->n_bad,
           count(report, LK_VERIFY_NO_DIGEST));
}

static bool fill(cJSON *root, const struct lk_verify_report *report) {
    if (!cJSON_AddNumberToObject(root, "ok", (double)count(report, LK_VERIFY_OK))) return false;
    if (!cJSON_AddNumberToObject(root, "bad", (double)report->n_bad)) return false;
    cJSON *files = cJSON_AddArrayToObject(root, "files");
    for (size_t i = 0; i < report->n_files && files; i++) {
        const struct lk_verify_file *f = &report->files[i];
        cJSON *file = cJSON_CreateObject();
        if (!file || !cJSON_AddItemToArray(files, file)) {
            cJSON_Delete(file);
            return false;
        }
        bool ok = cJSON_AddStringToObject(file, "path", f->path) &&
                  cJSON_AddStringToObject(file, "result", results[f->result]) &&
                  cJSON_AddNumberToObject(file, "bytes", (double)f->bytes) &&
                  cJSON_AddStringToObject(file, "expected", f->expected) &&
                  cJSON_AddStringToObject(file, "sha256", f->got);
        if (!ok) return false;
    }
    return files != NULL;
}

static enum lk_code print_json(const struct lk_verify_report *report) {
    cJSON *root = cJSON_CreateObject();
    char *text = root && fill(root, report) ? cJSON_Print(root) : NULL;
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "verify: out of memory for the report");
}

enum lk_code cli_verify(const struct cli_arguments *arguments) {
    char *folder;
    enum lk_code rc = lk_model_find(arguments->positional, &folder);
    if (rc) return rc;
    struct lk_verify_report report;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = arguments->job.run.threads ? arguments->job.run.threads : cores > 0 && cores <= 1024 ? (int)cores : 1;
    rc = lk_verify(&report, folder, arguments->manifest, threads);
    lk_free(folder);
    if (rc) return rc;
    if (arguments->json)
        rc = print_json(&report);
    else
        print_text(&report);
    if (!rc && report.n_bad)
        rc = lk_fail(
            LK_E_CHECKSUM,
            "%s: %zu of %zu files are not what they should be, or are weights without a digest; fetch them again",
            arguments->positional, report.n_bad, report.n_files);
    lk_verify_free(&report);
    return rc;
}
