#include "engine/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PLAIN_INTERVAL_S 30.0

static struct {
    bool quiet, verbose, terminal, colour;
    bool line_open;     /* a progress line without its newline is on the screen */
    double started_s;   /* when step 0 of the stage was reported */
    double last_line_s; /* when a plain progress line was last due or printed; 0: never */
} state;

void lk_log_open(bool quiet, bool verbose) {
    static char lines[1 << 16];
    const char *no_color = getenv("NO_COLOR");
    setvbuf(stderr, lines, _IOLBF, sizeof lines); /* a line is one write: workers' lines do not mix */
    state.quiet = quiet;
    state.verbose = verbose;
    state.terminal = isatty(STDERR_FILENO);
    state.colour = state.terminal && !(no_color && *no_color);
}

void lk_log_progress_end(void) {
    if (state.line_open) fputc('\n', stderr);
    state.line_open = false;
}

/* A character that changes the order or the lines of what is shown behind it: U+202A to U+202E, U+2066 to U+2069, and
 * the separators U+2028 and U+2029. */
static bool is_format(const unsigned char *c) {
    if (c[0] != 0xe2 || (c[1] != 0x80 && c[1] != 0x81)) return false;
    return c[1] == 0x80 ? c[2] >= 0xa8 && c[2] <= 0xae : c[2] >= 0xa6 && c[2] <= 0xa9;
}

void lk_log_text(FILE *out, const char *text, bool keep_newlines) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        /* U+0080 to U+009F are control characters too; in UTF-8 they begin with 0xc2. */
        bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        bool control = (*c < 0x20 && !(*c == '\n' && keep_newlines)) || *c == 0x7f || c1;
        if (is_format(c)) {
            fprintf(out, "\\u20%02x", (c[1] & 1) << 6 | (c[2] & 0x3f));
            c += 2;
        } else if (*c == '\n' && control) {
            fputs("\\n", out);
        } else if (*c == '\t') {
            fputs("\\t", out);
        } else if (*c == '\r') {
            fputs("\\r", out);
        } else if (control) {
            fprintf(out, "\\x%02x", c1 ? *++c : *c);
        } else {
            fputc(*c, out);
        }
    }
}

void lk_log(enum lk_log_level level, const char *format, ...) {
    static const char *const names[] = {"", "warning: ", "error: ", ""};
    static const char *const colours[] = {"", "\x1b[33m", "\x1b[31m", ""};
    if ((state.quiet && level != LK_LOG_ERROR) || (level == LK_LOG_DETAIL && !state.verbose)) return;
    lk_log_progress_end();
    bool colour = state.colour && *names[level];
    fprintf(stderr, "%s%s%s", colour ? colours[level] : "", names[level], colour ? "\x1b[0m" : "");
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lk_log_text(stderr, text, false); /* a name with a newline in it must not look like two messages */
    fputc('\n', stderr);
}

void lk_log_duration(double seconds, char out[32]) {
    long s = seconds < 0 ? 0 : seconds > 1e9 ? 1000000000L : (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
}

double lk_log_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lk_log_status(const char *line, double now_s) {
    if (state.quiet) return;
    if (state.last_line_s == 0) state.last_line_s = now_s;
    if (!state.terminal && now_s - state.last_line_s < PLAIN_INTERVAL_S) return;
    state.last_line_s = now_s;
    if (!state.terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    fprintf(stderr, "\r%s\x1b[K", line);
    state.line_open = true;
    fflush(stderr);
}

void lk_log_progress(const char *stage, int step, int n_steps, double now_s) {
    if (step == 0) state.started_s = now_s;
    char line[160], eta[32];
    double per_step = step > 0 ? (now_s - state.started_s) / step : 0;
    lk_log_duration(per_step * (n_steps - step), eta);
    if (step > 0)
        snprintf(line, sizeof line, "%s %d/%d  %.2f s/it  ETA %s", stage, step, n_steps, per_step, eta);
    else
        snprintf(line, sizeof line, "%s", stage);
    lk_log_status(line, now_s);
}
