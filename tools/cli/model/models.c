#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/isa.h"
#include "engine/device.h"
#include "eval/data/data.h"
#include "kernels/cuda/runtime/rivals.h"
#include "kernels/selftest/selftest.h"
#include "models/pipeline.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

static void print_result(const char *op, const struct lk_selftest_result *r) {
    printf("%-17s %5d  %9.1e  %9.1e  %11lld of %-11lld %s\n", op, r->n_cases, r->worst_f32, r->worst_bf16,
           (long long)r->n_different, (long long)r->n_values, r->n_failed ? "FAILED" : "ok");
    if (r->n_failed) printf("    %d cases failed; %s\n", r->n_failed, r->message);
    fflush(stdout); /* an op may take a while */
}

static bool add_result(cJSON *list, const char *op, const struct lk_selftest_result *r) {
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
            print_result(lk_selftest_ops[op], &result);
        else if (!add_result(list, lk_selftest_ops[op], &result))
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

static enum lk_code print_results(const cJSON *root) {
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
        enum lk_code printed = print_results(root);
        rc = rc ? lk_error_set(&error) : printed;
    }
    cJSON_Delete(root);
    lk_device_free(cpu);
    lk_device_free(dev);
    return rc;
}

/* The processor's name as the kernel gives it; "" where it gives none. */
static void cpu_model(char *out, size_t size) {
    char line[512];
    out[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (f) fclose(f);
}

static bool add_cpu(cJSON *list, const struct lk_device *cpu, const char *model, uint64_t memory) {
    cJSON *entry = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, entry) && cJSON_AddStringToObject(entry, "name", "cpu") &&
           cJSON_AddStringToObject(entry, "model", model) &&
           cJSON_AddStringToObject(entry, "isa", lk_cpu_isa_name(lk_cpu_isa())) &&
           cJSON_AddNumberToObject(entry, "threads", cpu->n_threads) &&
           cJSON_AddNumberToObject(entry, "memory_bytes", (double)memory);
}

static bool add_cuda(cJSON *list, int index) {
    struct lk_cuda_info info;
    int n;
    char name[32], capability[32];
    if (lk_cuda_info(index, &n, &info)) return true; /* gone since it was counted */
    snprintf(name, sizeof name, "cuda:%d", index);
    snprintf(capability, sizeof capability, "sm_%d%d", info.compute_major, info.compute_minor);
    const bool usable = !lk_cuda_usable(index, &info);
    cJSON *entry = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, entry) && cJSON_AddStringToObject(entry, "name", name) &&
           cJSON_AddStringToObject(entry, "model", info.name) && cJSON_AddStringToObject(entry, "isa", capability) &&
           cJSON_AddNumberToObject(entry, "driver", info.driver_version) &&
           cJSON_AddNumberToObject(entry, "memory_bytes", (double)info.memory_bytes) &&
           cJSON_AddNumberToObject(entry, "block_shared_bytes", info.block_bytes) &&
           cJSON_AddBoolToObject(entry, "usable", usable) &&
           (usable || cJSON_AddStringToObject(entry, "why_not", lk_error_text()));
}

static enum lk_code print_devices(const struct lk_device *cpu, const char *model, uint64_t memory, int n_cuda) {
    cJSON *root = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    bool ok = list && add_cpu(list, cpu, model, memory);
    for (int i = 0; i < n_cuda; i++) ok = ok && add_cuda(list, i);
    char *text = ok ? cJSON_Print(root) : NULL;
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "devices: out of memory");
}

static void print_cuda(int n_cuda, const char *why_none) {
    if (!n_cuda) printf("cuda  none: %s\n", why_none);
    for (int i = 0; i < n_cuda; i++) {
        struct lk_cuda_info info;
        int n;
        char memory[32];
        if (lk_cuda_info(i, &n, &info)) continue;
        printf("cuda:%d  %s\n      sm_%d%d, %s memory, driver of CUDA %d.%d\n", i, info.name, info.compute_major,
               info.compute_minor, cli_bytes(info.memory_bytes, memory), info.driver_version / 1000,
               info.driver_version % 1000 / 10);
        if (info.compute_major == 9) puts("      --gemm cublaslt is the faster here: 1.4 times, measured on an H200");
        if (lk_cuda_usable(i, &info)) printf("      cannot be used: %s\n", lk_error_text());
    }
}

enum lk_code cli_devices(const struct cli_arguments *arguments) {
    struct lk_device *cpu;
    LK_TRY(lk_device_cpu_create(0, &cpu));
    char model[256], memory_text[32];
    int n_cuda;
    cpu_model(model, sizeof model);
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    enum lk_code none = lk_cuda_info(-1, &n_cuda, NULL), rc = LK_OK;
    if (arguments->json) {
        rc = print_devices(cpu, model, memory, n_cuda);
    } else {
        printf("cpu   %s\n      instructions %s, %d threads, %s memory\n", model, lk_cpu_isa_name(lk_cpu_isa()),
               cpu->n_threads, cli_bytes(memory, memory_text));
        print_cuda(n_cuda, none ? lk_error_text() : "the driver has no device");
    }
    lk_device_free(cpu);
    return rc;
}

static enum lk_code defaults_of(const char *name, struct lk_request *request) {
    struct lk_pipeline *pipeline;
    LK_TRY(lk_pipeline_open_configs(&pipeline, name, LK_BF16));
    lk_request_init(request, pipeline);
    lk_pipeline_close(pipeline);
    return LK_OK;
}

/* A parameter that the model does not have stands at 0. */
static const char *number_or_dash(double value, char out[32]) {
    snprintf(out, 32, value != 0 ? "%.1f" : "-", value);
    return out;
}

static void print_line(const struct lk_model_info *m, const struct lk_request *r) {
    char guidance[32], true_cfg[32];
    printf("%-15s %5d %8s %8s %5lld  %-5s %-4s  %s%s\n", m->name, r->num_inference_steps,
           number_or_dash(r->guidance_scale, guidance), number_or_dash(r->true_cfg_scale, true_cfg), (long long)r->seed,
           "bf16", m->studied ? "yes" : "", m->repository ? m->repository : "-",
           m->only_planned ? " (plan only: edits are refused)" : "");
}

static bool add_entry(cJSON *list, const struct lk_model_info *m, const struct lk_request *r) {
    cJSON *o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(list, o)) {
        cJSON_Delete(o);
        return false;
    }
    bool ok = cJSON_AddStringToObject(o, "name", m->name) && cJSON_AddBoolToObject(o, "studied", m->studied) &&
              cJSON_AddBoolToObject(o, "only_planned", m->only_planned);
    ok = ok && (m->repository ? cJSON_AddStringToObject(o, "repository", m->repository)
                              : cJSON_AddNullToObject(o, "repository"));
    ok = ok && cJSON_AddNumberToObject(o, "num_inference_steps", r->num_inference_steps);
    ok = ok && (r->guidance_scale != 0 ? cJSON_AddNumberToObject(o, "guidance_scale", r->guidance_scale)
                                       : cJSON_AddNullToObject(o, "guidance_scale"));
    ok = ok && (r->true_cfg_scale != 0 ? cJSON_AddNumberToObject(o, "true_cfg_scale", r->true_cfg_scale)
                                       : cJSON_AddNullToObject(o, "true_cfg_scale"));
    ok = ok && (r->negative_prompt ? cJSON_AddStringToObject(o, "negative_prompt", r->negative_prompt)
                                   : cJSON_AddNullToObject(o, "negative_prompt"));
    return ok && cJSON_AddNumberToObject(o, "seed", (double)r->seed) && cJSON_AddStringToObject(o, "dtype", "bf16");
}

enum lk_code cli_models(const struct cli_arguments *arguments) {
    struct lk_model_info m;
    struct lk_request request;
    cJSON *list = arguments->json ? cJSON_CreateArray() : NULL;
    bool ok = list || !arguments->json;
    if (!arguments->json)
        printf("%-15s %5s %8s %8s %5s  %-5s %-5s %s\n", "model", "steps", "guidance", "true CFG", "seed", "dtype",
               "study", "repository");
    for (int i = 0; lk_model_info(i, &m) && ok; i++) {
        enum lk_code rc = defaults_of(m.name, &request);
        if (rc) {
            cJSON_Delete(list);
            return rc;
        }
        if (arguments->json)
            ok = add_entry(list, &m, &request);
        else
            print_line(&m, &request);
    }
    char *text = arguments->json && ok ? cJSON_Print(list) : NULL;
    if (text) puts(text);
    ok = ok && (text || !arguments->json);
    cJSON_free(text);
    cJSON_Delete(list);
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "models: out of memory");
}
