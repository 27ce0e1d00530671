#include "engine/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[LK_ERROR_TEXT_MAX];

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
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text) snprintf(text + n, sizeof text - (size_t)n, ": %s", message);
    memcpy(message, text, sizeof message);
    return code;
}

enum lk_code lk_fail_errno(int errno_value, const char *format, ...) {
    char text[LK_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof text) snprintf(text + n, sizeof text - (size_t)n, ": %s", strerror(errno_value));
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
