#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "eval/data/data.h"
#include "kernels/cuda/runtime/rivals.h"
#include "kernels/selftest/selftest.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

static void print_line(const char *op, const struct lk_selftest_result *r) {
    printf("%-17s %5d  %9.1e  %9.1e  %11lld of %-11lld %s\n", op, r->n_cases, r->worst_f32, r->worst_bf16,
           (long long)r->n_different, (long long)r->n_values, r->n_failed ? "FAILED" : "ok");
    if (r->n_failed) printf("    %d cases failed; %s\n", r->n_failed, r->message);
    fflush(stdout); /* an op may take a while */
}

static bool add_entry(cJSON *list, const char *op, const struct lk_selftest_result *r) {
    cJSON *o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(list, o)) {
        cJSON_Delete(o);
        return false;
    }
    return cJSON_AddStringToObject(o, "op", op) && cJSON_AddNumberToObject(o, "cases", r->n_cases) &&
           cJSON_AddNumberToObject(o, "failed", r->n_failed) && cJSON_AddNumberToObject(o, "nmse_f32", r->worst_f32) &&
           cJSON_AddNumberToObject(o, "nmse_bf16", r->worst_bf16) &&
           cJSON_AddNumberToObject(o, "values", (double)r->n_values) &&
           cJSON_AddNumberToObject(o, "different", (double)r->n_different) &&
           cJSON_AddStringToObject(o, "message", r->message);
}

static bool is_op(const char *name) {
    for (int op = 0; op < lk_selftest_n_ops; op++)
        if (!strcmp(name, lk_selftest_ops[op])) return true;
    return false;
}

static void print_counts(const char *library, struct lk_cuda_rival_counts counts) {
    if (strcmp(library, "own"))
        printf("%s took %lld calls, %lld went to our kernels\n", library, (long long)counts.taken,
               (long long)counts.declined);
}

static enum lk_code run(const struct cli_arguments *a, struct lk_device *dev, struct lk_device *cpu, cJSON *list) {
    const struct lk_selftest_options options = {.n_cases = (int)a->cases,
                                                .large = a->large,
                                                .seed = 1,
                                                .libraries =
                                                    strcmp(a->job.run.gemm, "own") || strcmp(a->job.run.conv, "own")};
    int n = 0, n_failed = 0;
    if (!list)
        printf("%s against %s\n%-17s %5s  %9s  %9s  %26s\n", dev->name, cpu->name, "op", "cases", "NMSE f32",
               "NMSE bf16", "values with other bits");
    for (int op = 0; op < lk_selftest_n_ops; op++) {
        struct lk_selftest_result result;
        if (a->positional && strcmp(a->positional, lk_selftest_ops[op])) continue;
        LK_TRY(lk_selftest_op(dev, cpu, op, &options, &result));
        if (!list)
            print_line(lk_selftest_ops[op], &result);
        else if (!add_entry(list, lk_selftest_ops[op], &result))
            return lk_fail(LK_E_NOMEM, "selftest: out of memory");
        n++;
        n_failed += result.n_failed > 0;
    }
    if (!list) {
        print_counts(a->job.run.gemm, lk_cuda_cublaslt_counts(dev));
        print_counts(a->job.run.conv, lk_cuda_cudnn_counts(dev));
    }
    if (n_failed)
        return lk_fail(LK_E_DEVICE, "%s: %d of %d ops do not compute what they should", dev->name, n_failed, n);
    return LK_OK;
}

static enum lk_code print_json(const cJSON *root) {
    char *text = cJSON_Print(root);
    if (text) puts(text);
    cJSON_free(text);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "selftest: out of memory");
}

/* The study's files, which are part of the program. */
static enum lk_code check_data(void) {
    struct lk_text text = {0};
    enum lk_code rc = lk_data_check(&text);
    if (!rc) fwrite(text.bytes, 1, text.n, stdout);
    lk_text_free(&text);
    return rc;
}

enum lk_code cli_selftest(const struct cli_arguments *a) {
    struct lk_device *dev, *cpu = NULL;
    if (a->positional && !strcmp(a->positional, "data")) return check_data();
    if (a->positional && !is_op(a->positional))
        return lk_fail(LK_E_USAGE,
                       "selftest: expected data, or an op that the table of `likeness selftest` has, got %.64s",
                       a->positional);
    LK_TRY(cli_device_open(&a->job.run, &dev));
    cJSON *root = a->json ? cJSON_CreateObject() : NULL, *list = NULL;
    enum lk_code rc = lk_device_cpu_create(a->job.run.threads, &cpu);
    if (!rc && a->json &&
        !(cJSON_AddStringToObject(root, "device", dev->name) && (list = cJSON_AddArrayToObject(root, "ops"))))
        rc = lk_fail(LK_E_NOMEM, "selftest: out of memory");
    if (!rc) rc = run(a, dev, cpu, list);
    if (list && (!rc || rc == LK_E_DEVICE)) {
        struct lk_error error;
        lk_error_get(&error, rc);
        enum lk_code printed = print_json(root);
        rc = rc ? lk_error_set(&error) : printed;
    }
    cJSON_Delete(root);
    lk_device_free(cpu);
    lk_device_free(dev);
    return rc;
}
