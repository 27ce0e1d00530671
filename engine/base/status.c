#include "engine/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[LK_ERROR_TEXT_MAX];

/* ": more" after text, cut at the buffer's end. */
static void append(char text[LK_ERROR_TEXT_MAX], const char *more) {
    size_t n = strlen(text);
    const char *parts[] = {": ", more};
    for (int i = 0; i < 2; i++)
        for (const char *p = parts[i]; *p && n + 1 < LK_ERROR_TEXT_MAX; p++) text[n++] = *p;
    text[n] = 0;
}

enum lk_code lk_fail(enum lk_code code, const char *format, ...) {
    char text[LK_ERROR_TEXT_MAX]; /* arguments may point into message */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(message, text, sizeof message);
    return code;
}

enum lk_code lk_fail_prefix(enum lk_code code, const char *format, ...) {
    char text[LK_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append(text, message);
    memcpy(message, text, sizeof message);
    return code;
}

enum lk_code lk_fail_errno(int errno_value, const char *format, ...) {
    char text[LK_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append(text, strerror(errno_value));
    memcpy(message, text, sizeof message);
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
        return LK_E_DISK_FULL;
    case ENOENT:
        return LK_E_NOT_FOUND;
    case ENOMEM:
        return LK_E_NOMEM;
    default:
        return LK_E_IO;
    }
}

const char *lk_error_text(void) { return message; }

void lk_error_get(struct lk_error *out, enum lk_code code) {
    out->code = code;
    memcpy(out->text, message, sizeof out->text);
}

enum lk_code lk_error_set(const struct lk_error *error) {
    memcpy(message, error->text, sizeof message);
    return error->code;
}

int lk_exit_code(enum lk_code code) { return code == LK_E_INTERRUPTED ? 130 : (int)code / 100; }
