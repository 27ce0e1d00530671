/* Findings as text, and the last one. */
#include "gpusim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct gpusim_report last;
static uint64_t count;

const char *gpusim_report_name(enum gpusim_report_kind kind) {
    static const char *const names[] = {
#define X(name, text) text,
        GPUSIM_REPORTS(X)
#undef X
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

struct line {
    char *out;
    size_t n, used;
};
static __attribute__((format(printf, 2, 3))) void add(struct line *line, const char *format, ...) {
    va_list args;
    if (line->used >= line->n) return;
    va_start(args, format);
    int more = vsnprintf(line->out + line->used, line->n - line->used, format, args);
    va_end(args);
    line->used += more > 0 ? (size_t)more : 0;
}

void gpusim_report_text(const struct gpusim_report *r, char *out, size_t n) {
    struct line line = {out, n, 0};
    const char *comma = ": ";
    add(&line, "%s", gpusim_report_name(r->kind));
    if (r->kernel[0]) {
        add(&line, "%skernel %s", comma, r->kernel);
        comma = ", ";
    }
    if (r->ptx_line) add(&line, ", PTX line %u", r->ptx_line);
    if (r->file[0]) add(&line, " (%s:%u", r->file, r->line);
    if (r->file[0] && r->at_file[0]) add(&line, ", inlined at %s:%u", r->at_file, r->at_line);
    if (r->file[0]) add(&line, ")");
    if (r->has_block) add(&line, ", block (%u,%u,%u)", r->block[0], r->block[1], r->block[2]);
    if (r->has_thread) add(&line, ", thread (%u,%u,%u)", r->thread[0], r->thread[1], r->thread[2]);
    if (r->space[0]) {
        add(&line, "%s%s address 0x%llx", comma, r->space, (unsigned long long)r->address);
        comma = ", ";
    }
    if (r->allocation)
        add(&line, "%sallocation %llu of %llu bytes at 0x%llx", comma, (unsigned long long)r->allocation,
            (unsigned long long)r->allocation_bytes, (unsigned long long)r->allocation_base);
    add(&line, ": %s", r->what);
}

void gpusim_report_emit(const struct gpusim_report *report) {
    char text[1536];
    gpusim_report_text(report, text, sizeof text);
    gpusim_say("%s", text);
    pthread_mutex_lock(&mutex);
    last = *report;
    count++;
    pthread_mutex_unlock(&mutex);
}

uint64_t gpusim_report_count(void) {
    pthread_mutex_lock(&mutex);
    uint64_t n = count;
    pthread_mutex_unlock(&mutex);
    return n;
}

bool gpusim_report_last(struct gpusim_report *out) {
    pthread_mutex_lock(&mutex);
    bool any = count != 0;
    if (out && any) *out = last;
    pthread_mutex_unlock(&mutex);
    return any;
}
