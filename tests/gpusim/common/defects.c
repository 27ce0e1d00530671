#include "tests/gpusim/common/defects.h"

#include <ctype.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

bool defect_marked(const char *source, uint32_t line, const char *name) {
    char path[256], mark[64], text[512];
    snprintf(path, sizeof path, "gpusim/%s", source);
    snprintf(mark, sizeof mark, "@%s", name);
    FILE *file = fopen(path, "r");
    bool found = false;
    assert_non_null(file);
    for (uint32_t at = 1; fgets(text, sizeof text, file); at++) {
        const char *word = at == line ? strstr(text, mark) : NULL;
        if (word && !isalnum((unsigned char)word[strlen(mark)]) && word[strlen(mark)] != '_') found = true;
    }
    fclose(file);
    return found;
}

struct gpusim_report defect_report(enum gpusim_report_kind kind) {
    struct gpusim_report report = {.kind = GPUSIM_REPORT_NONE};
    gpusim_report_last(&report);
    if (report.kind != kind)
        fail_msg("expected a report of %s, the last one is %s: %s", gpusim_report_name(kind),
                 gpusim_report_name(report.kind), report.what);
    return report;
}

static CUresult launch(const struct defect *d, CUmodule (*load)(void), bool bad) {
    char name[96];
    snprintf(name, sizeof name, "%s_%s", d->name, bad ? "bad" : "ok");
    CUmodule module = load();
    int n = (int)(d->blocks * d->threads);
    size_t bytes = (size_t)n * 4;
    CUdeviceptr a = device_zeros(bytes), b = device_zeros(bytes), c;
    cu_ok(cuMemAlloc_v2(&c, bytes));
    if (d->frees_c) {
        cu_ok(cuMemsetD8_v2(c, 1, bytes));
        if (bad) cu_ok(cuMemFree_v2(c));
    }
    if (!strncmp(name, "tensor_", 7)) gpusim_tensors(&(struct gpusim_range){a, bytes / 2}, 1);
    CUresult result = device_run(device_function(module, name), d->blocks, d->threads, d->shared, (void *)&a,
                                 (void *)&b, (void *)&c, (void *)&n, NULL);
    gpusim_tensors(NULL, 0);
    if (result) return result;
    cu_ok(cuMemFree_v2(a));
    cu_ok(cuMemFree_v2(b));
    cu_ok(cuMemFree_v2(c));
    cu_ok(cuModuleUnload(module));
    return result;
}

void defect_check(const struct defect *d, const char *source, CUmodule (*load)(void)) {
    uint64_t before = gpusim_report_count();
    device_open();
    CUresult result = launch(d, load, false);
    device_close();
    if (result || gpusim_report_count() != before) fail_msg("%s_ok: %d, or a report", d->name, (int)result);
    device_open();
    result = launch(d, load, true);
    device_close();
    if (gpusim_report_count() == before) fail_msg("%s_bad: not found", d->name);
    struct gpusim_report report = defect_report(d->kind);
    if (result != d->error) fail_msg("%s_bad: expected result %d, got %d", d->name, (int)d->error, (int)result);
    char kernel[96];
    snprintf(kernel, sizeof kernel, "%s_bad", d->name);
    assert_string_equal(report.kernel, kernel);
    assert_true(report.ptx_line > 0 && report.has_block && report.has_thread);
    bool here = strstr(report.file, source) && defect_marked(source, report.line, d->name);
    bool inlined = strstr(report.at_file, source) && defect_marked(source, report.at_line, d->name);
    if (!here && !inlined)
        fail_msg("%s_bad: reported at %s:%u (%s:%u), which is not marked", d->name, report.file, report.line,
                 report.at_file, report.at_line);
    if (d->block >= 0 && report.block[0] != (uint32_t)d->block)
        fail_msg("%s_bad: expected block %d, got %u", d->name, d->block, report.block[0]);
    if (d->thread >= 0 && report.thread[0] != (uint32_t)d->thread)
        fail_msg("%s_bad: expected thread %d, got %u", d->name, d->thread, report.thread[0]);
}

bool defect_seeds(char **argv, int *status) {
    static char *const seeds[] = {"1", "7", "20240229"};
    *status = 0;
    if (getenv("GPUSIM_SEED")) return false;
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        pid_t child;
        int code = -1;
        setenv("GPUSIM_SEED", seeds[i], 1);
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ) || waitpid(child, &code, 0) != child ||
            code)
            *status = 1;
    }
    return true;
}
