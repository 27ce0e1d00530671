/* Functions that the driver provides to kernels: vprintf, __assertfail, malloc, free. */
#include "exec/access.h"
#include "exec/heap.h"

#include <stdio.h>
#include <stdlib.h>

/* Host pointer of a generic address of lane i with at least one byte behind it, or NULL; *left gets how many. */
static const uint8_t *at(struct gpusim_warp *warp, int i, uint64_t address, uint64_t *left) {
    if (address - GPUSIM_LOCAL_WINDOW < warp->local_bytes) {
        uint64_t offset = address - GPUSIM_LOCAL_WINDOW;
        *left = warp->local_bytes - offset;
        return warp->local + (size_t)i * warp->local_bytes + offset;
    }
    if (address - GPUSIM_SHARED_WINDOW < warp->block->shared_bytes) {
        uint64_t offset = address - GPUSIM_SHARED_WINDOW;
        *left = warp->block->shared_bytes - offset;
        return warp->block->shared + offset;
    }
    struct gpusim_allocation *r = gpusim_memory_find(address);
    if (!r) return NULL;
    *left = r->bytes - (address - r->base);
    return r->host + (address - r->base);
}

static void string_at(struct gpusim_warp *warp, int i, uint64_t address, char *out, size_t n) {
    uint64_t left;
    const uint8_t *text = at(warp, i, address, &left);
    if (!text)
        snprintf(out, n, "(bad string)");
    else
        snprintf(out, n, "%.*s", (int)(left < n ? left : n), (const char *)text);
}

/* An argument of the call: bytes of the caller's frame memory. */
static uint64_t argument(struct gpusim_warp *warp, const struct gpusim_op *op, int i, uint32_t k, uint32_t bytes) {
    uint64_t value = 0;
    memcpy(&value, warp->local + (size_t)i * warp->local_bytes + warp->frame->local_base + op->list[k], bytes);
    return value;
}
static void give(struct gpusim_warp *warp, const struct gpusim_op *op, int i, uint64_t value, uint32_t bytes) {
    uint32_t offset = warp->frame->local_base + op->list[0];
    memcpy(warp->local + (size_t)i * warp->local_bytes + offset, &value, bytes);
    if (warp->hooks && warp->hooks->frame_write)
        warp->hooks->frame_write(warp->hooks->context, warp, 1u << i, offset, bytes);
}

/* One conversion: `spec` is from % to its letter. Integers are 4 bytes, or 8 with l, ll, j, z, t; everything else 8. */
static const uint8_t *convert(struct gpusim_warp *warp, int i, const char *spec, const uint8_t *args,
                              const uint8_t *end, char *out, size_t n) {
    char letter = spec[strlen(spec) - 1], text[1024];
    bool wide = strpbrk(spec, "lLjzt") || strchr("eEfFgGaAsp", letter);
    size_t size = wide ? 8 : 4;
    args += (size - ((uintptr_t)args & (size - 1))) & (size - 1);
    if (args + size > end) {
        snprintf(out, n, "(no argument)");
        return end;
    }
    uint64_t value = 0;
    memcpy(&value, args, size);
    double real = as_double(value);
    /* The letter decides the type that the format is given. */
    _Pragma("GCC diagnostic push")
        _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"") if (strchr("eEfFgGaA", letter))
            snprintf(out, n, spec, real);
    else if (letter == 's') {
        string_at(warp, i, value, text, sizeof text);
        snprintf(out, n, spec, text);
    }
    else if (letter == 'p') snprintf(out, n, "0x%llx", (unsigned long long)value);
    else if (letter == 'c') snprintf(out, n, spec, (int)value);
    else if (wide) snprintf(out, n, spec, (unsigned long long)value);
    else snprintf(out, n, spec, (unsigned)value);
    _Pragma("GCC diagnostic pop") return args + size;
}

static void print(struct gpusim_warp *warp, int i, const char *format, const uint8_t *args, const uint8_t *end) {
    char line[4096], piece[1200], spec[64];
    size_t used = 0;
    for (const char *f = format; *f && used + 1 < sizeof line;) {
        if (*f != '%') {
            line[used++] = *f++;
            continue;
        }
        size_t n = 1;
        while (f[n] && !strchr("diouxXeEfFgGaAcspn%", f[n]) && n < sizeof spec - 2) n++;
        if (!f[n]) break;
        memcpy(spec, f, n + 1);
        spec[n + 1] = 0;
        f += n + 1;
        if (spec[n] == '%')
            snprintf(piece, sizeof piece, "%%");
        else if (spec[n] == 'n' || strchr(spec, '*'))
            snprintf(piece, sizeof piece, "%s", spec);
        else
            args = convert(warp, i, spec, args, end, piece, sizeof piece);
        used += (size_t)snprintf(line + used, sizeof line - used, "%s", piece);
        if (used > sizeof line - 1) used = sizeof line - 1;
    }
    fwrite(line, 1, used, stdout);
}

HANDLER(call_vprintf) {
    EACH_LANE({
        char format[2048];
        uint64_t left = 0;
        string_at(warp, i, argument(warp, op, i, 1, 8), format, sizeof format);
        const uint8_t *args = at(warp, i, argument(warp, op, i, 2, 8), &left);
        print(warp, i, format, args, args ? args + left : NULL);
        give(warp, op, i, 1, 4);
    })
    fflush(stdout);
    return GPUSIM_NEXT;
}

/* __assertfail(message, file, line, function, char_size) */
HANDLER(call_assertfail) {
    char message[256], file[256], function[256];
    int i = __builtin_ctz(mask);
    string_at(warp, i, argument(warp, op, i, 0, 8), message, sizeof message);
    string_at(warp, i, argument(warp, op, i, 1, 8), file, sizeof file);
    string_at(warp, i, argument(warp, op, i, 3, 8), function, sizeof function);
    return gpusim_fault(warp, op, GPUSIM_FAULT_ASSERT, i, "%s:%u: %.200s: Assertion `%.200s' failed", file,
                        (unsigned)argument(warp, op, i, 2, 4), function, message);
}

HANDLER(call_malloc) {
    EACH_LANE({
        struct gpusim_heap *heap = warp->launch->heap;
        give(warp, op, i, heap ? gpusim_heap_malloc(heap, argument(warp, op, i, 1, 8)) : 0, 8);
    })
    return GPUSIM_NEXT;
}
HANDLER(call_free) {
    EACH_LANE({
        struct gpusim_heap *heap = warp->launch->heap;
        uint64_t address = argument(warp, op, i, 0, 8);
        enum gpusim_heap_state state = GPUSIM_HEAP_OUTSIDE;
        if (!address) continue;
        if (heap) state = gpusim_heap_free(heap, address);
        if (state == GPUSIM_HEAP_LIVE) continue;
        bool freed = state == GPUSIM_HEAP_FREED;
        struct gpusim_place place = {freed ? GPUSIM_REPORT_USE_AFTER_FREE : GPUSIM_REPORT_OUT_OF_BOUNDS, GPUSIM_GLOBAL,
                                     address, NULL};
        return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, i, &place, "free of what %s",
                               freed ? "was freed before" : "malloc did not give");
    })
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_builtin)[] = {
    {"call.vprintf", call_vprintf},
    {"call.assertfail", call_assertfail},
    {"call.malloc", call_malloc},
    {"call.free", call_free},
    {NULL, NULL},
};
