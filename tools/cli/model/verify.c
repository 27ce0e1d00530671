#include <cjson/cJSON.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/quantize.h"
#include "tools/cli/cli.h"
#include "weights/checkpoint.h"
#include "weights/verify.h"

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
