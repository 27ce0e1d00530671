#include "gpusim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gpusim_settings settings;

static uint64_t number(const char *name, uint64_t otherwise, uint64_t low, uint64_t high) {
    const char *text = getenv(name);
    if (!text || !*text) return otherwise;
    char *end;
    uint64_t value = strtoull(text, &end, 0), unit = 1;
    if (*end == 'K' || *end == 'k')
        unit = 1 << 10, end++;
    else if (*end == 'M' || *end == 'm')
        unit = 1 << 20, end++;
    else if (*end == 'G' || *end == 'g')
        unit = 1 << 30, end++;
    value *= unit;
    if (*end || value < low || value > high) {
        gpusim_say("%s: expected a number from %llu to %llu, got \"%s\"; using %llu", name, (unsigned long long)low,
                   (unsigned long long)high, text, (unsigned long long)otherwise);
        return otherwise;
    }
    return value;
}

static enum gpusim_checks checks(void) {
    const char *text = getenv("GPUSIM_CHECKS");
    if (!text || !*text) return settings.sample ? GPUSIM_CHECKS_NONE : GPUSIM_CHECKS_ALL;
    if (!strcmp(text, "all")) return GPUSIM_CHECKS_ALL;
    if (!strcmp(text, "memory")) return GPUSIM_CHECKS_MEMORY;
    if (!strcmp(text, "none")) return GPUSIM_CHECKS_NONE;
    if (!strcmp(text, "global")) {
        settings.shared_unwritten = true;
        return GPUSIM_CHECKS_ALL;
    }
    gpusim_say("GPUSIM_CHECKS: expected none, memory, global or all, got \"%s\"; using all", text);
    return GPUSIM_CHECKS_ALL;
}

static enum gpusim_lazy lazy(void) {
    const char *text = getenv("GPUSIM_LAZY");
    if (!text || !*text) return GPUSIM_LAZY_NEVER;
    if (!strcmp(text, "own")) return GPUSIM_LAZY_OWN;
    if (strcmp(text, "all")) gpusim_say("GPUSIM_LAZY: expected own or all, got \"%s\"; using all", text);
    return GPUSIM_LAZY_ALL;
}

static void read_report(void) {
    settings.report_kernels = getenv("GPUSIM_REPORT_KERNELS");
    const char *by = getenv("GPUSIM_REPORT_BY"), *report = getenv("GPUSIM_REPORT");
    settings.report_by_shape = by && !strcmp(by, "shape");
    if (by && *by && !settings.report_by_shape && strcmp(by, "kernel"))
        gpusim_say("GPUSIM_REPORT_BY: expected \"kernel\" or \"shape\", got \"%s\"; using kernel", by);
    bool known = report && (!strncmp(report, "text", 4) || !strncmp(report, "json", 4)) &&
                 (!report[4] || (report[4] == ':' && report[5]));
    if (report && *report && !known)
        gpusim_say("GPUSIM_REPORT: expected text, json, text:FILE or json:FILE, got \"%s\"; nothing is counted",
                   report);
    settings.report = known ? report : NULL;
}

static void read_settings(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    settings.seed = number("GPUSIM_SEED", 1, 0, UINT64_MAX);
    settings.memory_bytes = number("GPUSIM_MEMORY", 85899345920ull - 419430400ull, 1 << 16, 1ull << 40);
    settings.pages = number("GPUSIM_PAGES", 512, 512, 1u << 30);
    settings.n_devices = (int)number("GPUSIM_DEVICES", 1, 0, GPUSIM_MAX_DEVICES);
    settings.n_threads = (int)number("GPUSIM_THREADS", cores < 1 ? 1 : cores > 32 ? 32 : (uint64_t)cores, 1, 64);
    settings.isa = getenv("GPUSIM_ISA");
    settings.mufu = number("GPUSIM_MUFU", 0, 0, UINT64_MAX);
    settings.sample = number("GPUSIM_SAMPLE", 0, 0, UINT32_MAX);
    settings.checks = checks();
    settings.watchdog = number("GPUSIM_WATCHDOG", 100000000, 0, UINT64_MAX);
    settings.driver_version = (int)number("GPUSIM_DRIVER", 13000, 1000, 99990);
    settings.shared_optin =
        (int)number("GPUSIM_SHARED", GPUSIM_SHARED_PER_BLOCK_OPTIN, 48 << 10, GPUSIM_SHARED_PER_BLOCK_OPTIN);
    settings.lazy = lazy();
    settings.exit_code = (int)number("GPUSIM_EXIT_CODE", 0, 0, 255);
    read_report();
}

const struct gpusim_settings *gpusim_settings(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &settings;
}

void gpusim_say(const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "gpusim: %s\n", text);
}

void gpusim_set(struct gpusim_message *message, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message->text, sizeof message->text, format, args);
    va_end(args);
}
