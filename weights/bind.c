#include "weights/bind.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/base/text.h"
#include "engine/f16.h"
#include "engine/quantized.h"
#include "weights/lora/lora.h"
#include "weights/paths.h"
#include "weights/quant/source.h"

#define ALIGN     64
#define SHOWN     8   /* problems of a kind that are written out */
#define MOST_NAME 512 /* bytes, with NUL */

enum problem { MISSING, WRONG_SHAPE, WRONG_DTYPE, UNEXPECTED, UNREADABLE, BAD_REQUEST, N_PROBLEMS };
static const char *const titles[N_PROBLEMS] = {"missing",      "of the wrong shape",       "of the wrong dtype",
                                               "not expected", "quantised beyond reading", "impossible to ask for"};

/* A tensor that does not lie in the checkpoint as it is needed. */
struct conversion {
    struct lk_tensor *out;
    const char *name;
    const struct lk_tensor *from;  /* NULL: */
    struct lk_quant_source source; /* whose scales are needed, and for an out that is not quantised its elements */
    enum lk_quantize how;          /* out is to be quantised so */
    size_t offset, scales_offset;  /* in the owned block */
};

/* Addresses of weights that are not there: above all that processors translate, and far from the counting arena's. */
#define NOWHERE ((uintptr_t)1 << 61)

void *lk_bind_nowhere(size_t bytes) {
    static atomic_uint_least64_t next;
    uint64_t size = (bytes / ALIGN + 2) * ALIGN; /* apart from the next one */
    return (void *)(NOWHERE + (uintptr_t)(atomic_fetch_add(&next, size) % NOWHERE));
}

struct lk_bind {
    const struct lk_checkpoint *checkpoint;
    char *component, *prefix;
    enum lk_dtype compute;
    enum lk_quantize quantize;
    const char *const *kept;
    struct lk_loras *loras;
    const struct lk_rename *rules;
    size_t n_rules;
    bool *known; /* per tensor of the checkpoint: bound or ignored */
    struct conversion *conversions;
    size_t n_conversions, conversions_capacity, owned_bytes;
    struct {
        char *shown[SHOWN];
        size_t n;
    } problems[N_PROBLEMS];
    struct lk_bind_totals totals;
    bool out_of_memory;
};

static enum lk_code out_of_memory(const char *component) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory while binding weights", component);
}

static void bind_free(struct lk_bind *b) {
    for (int kind = 0; kind < N_PROBLEMS; kind++)
        for (int i = 0; i < SHOWN; i++) lk_free(b->problems[kind].shown[i]);
    lk_free(b->component);
    lk_free(b->prefix);
    lk_free(b->known);
    lk_free(b->conversions);
    lk_free(b);
}

enum lk_code lk_bind_begin(struct lk_bind **out, const struct lk_checkpoint *checkpoint, const char *component,
                           enum lk_dtype compute) {
    *out = NULL;
    if (compute != LK_F32 && compute != LK_BF16)
        return lk_fail(LK_E_INTERNAL, "%s: weights cannot be bound for %s", component, lk_dtype_name(compute));
    struct lk_bind *b = lk_calloc(1, sizeof *b);
    if (!b) return out_of_memory(component);
    b->checkpoint = checkpoint;
    b->compute = compute;
    b->component = lk_strdup(component);
    b->prefix = lk_strdup("");
    b->known = lk_calloc(checkpoint ? checkpoint->n_tensors : 0, sizeof *b->known);
    if (!b->component || !b->prefix || !b->known) {
        bind_free(b);
        return out_of_memory(component);
    }
    *out = b;
    return LK_OK;
}

static void problem(struct lk_bind *b, enum problem kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void problem(struct lk_bind *b, enum problem kind, const char *format, ...) {
    size_t i = b->problems[kind].n++;
    if (i >= SHOWN) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!(b->problems[kind].shown[i] = lk_strdup(text))) b->out_of_memory = true;
}

void lk_bind_prefix(struct lk_bind *b, const char *probe, const char *const *prefixes) {
    const char *chosen = NULL;
    for (size_t i = 0; prefixes[i] && !chosen; i++) {
        char *name = lk_format("%s%s", prefixes[i], probe);
        if (!name) b->out_of_memory = true;
        if (!b->checkpoint || (name && lk_checkpoint_find_index(b->checkpoint, name) >= 0)) chosen = prefixes[i];
        lk_free(name);
    }
    if (!chosen) {
        problem(b, MISSING, "%s (under none of the prefixes known, the first being \"%s\")", probe,
                prefixes[0] ? prefixes[0] : "");
        return;
    }
    char *copy = lk_strdup(chosen);
    if (!copy) {
        b->out_of_memory = true;
        return;
    }
    lk_free(b->prefix);
    b->prefix = copy;
}

void lk_bind_ignore(struct lk_bind *b, const char *prefix) {
    size_t n = strlen(prefix);
    for (size_t i = 0; b->checkpoint && i < b->checkpoint->n_tensors; i++)
        if (!strncmp(b->checkpoint->tensors[i].tensor->name, prefix, n)) b->known[i] = true;
}

/* False when the shape is none, or its bytes do not fit. A plan may ask for absurd sizes: configs come from outside. */
static bool shape_fits(int n_dims, const int64_t *shape) {
    int64_t product = 8;
    if (n_dims < 0 || n_dims > LK_MAX_DIMS) return false;
    for (int i = 0; i < n_dims; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(product, shape[i] ? shape[i] : 1, &product)) return false;
    return true;
}

/* The dtype a checkpoint's tensor gets in memory; LK_DTYPE_COUNT when it cannot be used. */
static enum lk_dtype stored_dtype(enum lk_dtype have, enum lk_dtype compute) {
    if (have == LK_BF16 || have == compute) return have;
    return have == LK_F32 || have == LK_F16 ? compute : LK_DTYPE_COUNT;
}

/* Room for so many bytes in the owned block. */
static size_t own(struct lk_bind *b, size_t bytes) {
    const size_t offset = b->owned_bytes;
    b->owned_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return offset;
}

static void convert_later(struct lk_bind *b, const struct conversion *c) {
    if (lk_grow(&b->conversions, &b->conversions_capacity, b->n_conversions + 1, sizeof *b->conversions)) {
        b->out_of_memory = true;
        return;
    }
    b->conversions[b->n_conversions++] = *c;
}

void lk_bind_quantize(struct lk_bind *b, enum lk_quantize how, const char *const *kept) {
    b->quantize = how;
    b->kept = kept;
}

void lk_bind_loras(struct lk_bind *b, struct lk_loras *loras, const struct lk_rename *rules, size_t n_rules) {
    b->loras = loras;
    b->rules = rules;
    b->n_rules = n_rules;
}

void lk_bind_adapter(struct lk_bind *b, const char *module, int64_t rows, int64_t columns, struct lk_tensor *down,
                     struct lk_tensor *up) {
    if (b->loras && !b->loras->whole && lk_loras_layer(b->loras, module, rows, columns, down, up))
        b->out_of_memory = true;
}

bool lk_bind_keeps(const char *name, const char *const *kept) {
    const size_t length = strlen(name),
                 module = length > 7 && !strcmp(name + length - 7, ".weight") ? length - 7 : length;
    for (; *kept; kept++) {
        const size_t n = strlen(*kept);
        for (size_t at = 0; at + n <= module; at++) {
            if (strncmp(name + at, *kept, n) != 0) continue;
            if (at + n == module ? !at || name[at - 1] == '.' : name[at + n] == '.') return true;
        }
    }
    return false;
}

/* Bytes of the scales of a weight that we quantise. */
static size_t scales_bytes(const struct lk_tensor *t) {
    return (size_t)((lk_tensor_numel(t) + LK_QUANTIZE_BLOCK - 1) / LK_QUANTIZE_BLOCK) * sizeof(uint16_t);
}

/* out gets the dtype that it will be quantised to, if it will be; its data are still to come. */
static bool quantizes(const struct lk_bind *b, struct lk_tensor *out, bool linear, const char *name) {
    if (!b->quantize || !linear || lk_bind_keeps(name, b->kept)) return false;
    out->dtype = lk_quantize_dtype(b->quantize);
    out->scales = (struct lk_scales){lk_bind_nowhere(scales_bytes(out)), LK_BF16, LK_QUANTIZE_BLOCK};
    return true;
}

static void bind_plain(struct lk_bind *b, struct lk_tensor *out, bool linear, const char *name,
                       const struct lk_tensor *from) {
    char want[96], have[96];
    if (!lk_tensor_same_shape(from, out)) {
        problem(b, WRONG_SHAPE, "%s: expected %s, got %s", name, lk_tensor_describe(out, want),
                lk_tensor_describe(from, have));
        return;
    }
    enum lk_dtype stored = stored_dtype(from->dtype, b->compute);
    if (stored == LK_DTYPE_COUNT) {
        problem(b, WRONG_DTYPE, "%s: expected f32, bf16 or f16, got %s", name, lk_tensor_describe(from, have));
        return;
    }
    if (quantizes(b, out, linear, name)) {
        const size_t codes = lk_tensor_bytes(out) - scales_bytes(out);
        struct conversion c = {.out = out, .name = name, .from = from, .how = b->quantize, .offset = own(b, codes)};
        c.scales_offset = own(b, scales_bytes(out));
        convert_later(b, &c);
        return;
    }
    out->dtype = stored;
    /* older writers did not pad headers, so that data may begin at any byte */
    bool aligned = (uintptr_t)from->data % lk_dtype_size(from->dtype) == 0;
    if (stored == from->dtype && aligned)
        out->data = from->data;
    else
        convert_later(b, &(struct conversion){.out = out, .from = from, .offset = own(b, lk_tensor_bytes(out))});
}

/* Reads what lies beside the weight. */
static enum lk_code read_source(struct lk_bind *b, struct lk_quant_source *out, const struct lk_st_tensor *from) {
    size_t first, n = lk_quant_companions(b->checkpoint, from->name, &first);
    for (size_t i = first; i < first + n; i++) b->known[i] = true;
    if (n) return lk_bnb_read(out, from, b->checkpoint, first, n);
    return lk_f8_read(out, from, b->checkpoint, b->known);
}

/* The weight of a linear layer stays as it is packed; others are turned into the dtype of activations. */
static void bind_quantized(struct lk_bind *b, struct lk_tensor *out, bool stays, const struct lk_st_tensor *from) {
    struct conversion c = {.out = out};
    char want[96], have[96];
    enum lk_code rc = read_source(b, &c.source, from);
    if (!rc) rc = lk_quant_source_scale_dtype(&c.source, from->name);
    if (rc == LK_E_NOMEM) b->out_of_memory = true;
    if (rc) {
        problem(b, UNREADABLE, "%s", lk_error_text());
        return;
    }
    if (!lk_tensor_same_shape(&c.source.tensor, out)) {
        problem(b, WRONG_SHAPE, "%s: expected %s, got %s", from->name, lk_tensor_describe(out, want),
                lk_tensor_describe(&c.source.tensor, have));
        return;
    }
    const size_t scales_bytes = (size_t)c.source.n_scales * lk_dtype_size(c.source.tensor.scales.dtype);
    c.scales_offset = own(b, scales_bytes);
    if (stays) {
        *out = c.source.tensor;
        if (!c.source.n_scales) return;
        out->scales.data = lk_bind_nowhere(scales_bytes); /* they count already */
    } else {
        out->dtype = LK_BF16;
        c.offset = own(b, lk_tensor_bytes(out));
    }
    convert_later(b, &c);
}

static void bind_from_checkpoint(struct lk_bind *b, struct lk_tensor *out, bool linear, const char *name) {
    size_t first;
    ptrdiff_t i = lk_checkpoint_find_index(b->checkpoint, name);
    if (i < 0) {
        if (linear && lk_quant_refuse_missing(name, b->checkpoint))
            problem(b, UNREADABLE, "%s", lk_error_text());
        else
            problem(b, MISSING, "%s", name);
        return;
    }
    b->known[i] = true;
    const struct lk_st_tensor *from = b->checkpoint->tensors[i].tensor;
    if (lk_tensor_is_quantized(&from->tensor) || lk_quant_companions(b->checkpoint, name, &first))
        bind_quantized(b, out, linear, from);
    else if (lk_quant_refuse(from, b->checkpoint))
        problem(b, UNREADABLE, "%s", lk_error_text());
    else
        bind_plain(b, out, linear, from->name, &from->tensor);
}

/* A weight that adapters may be put into: "down_blocks.0.resnets.0.conv1.weight". */
static void take_adapter(struct lk_bind *b, struct lk_tensor *out, const char *text, const char *full) {
    static const char ending[] = ".weight";
    const size_t n = strlen(text), m = sizeof ending - 1;
    const ptrdiff_t i = b->checkpoint ? lk_checkpoint_find_index(b->checkpoint, full) : -1;
    char module[MOST_NAME];
    if (n <= m || strcmp(text + n - m, ending) != 0 || (b->checkpoint && i < 0)) return;
    snprintf(module, sizeof module, "%.*s", (int)(n - m), text);
    const struct lk_tensor *from = i < 0 ? NULL : &b->checkpoint->tensors[i].tensor->tensor;
    if (from && lk_tensor_is_quantized(from)) return; /* no adapter finds it */
    if (lk_loras_weight(b->loras, b->component, module, out, from)) b->out_of_memory = true;
}

static void bind(struct lk_bind *b, struct lk_tensor *out, bool linear, int n_dims, const int64_t *shape,
                 const char *text) {
    char full[1024];
    memset(out, 0, sizeof *out);
    int n_full = snprintf(full, sizeof full, "%s%s", b->prefix, text);
    if (strlen(text) >= MOST_NAME - 1 || (size_t)n_full >= sizeof full || !shape_fits(n_dims, shape)) {
        problem(b, BAD_REQUEST, "%.200s: name or shape too large", text);
        return;
    }
    *out = lk_tensor_make(NULL, b->compute, n_dims, shape);
    if (b->checkpoint)
        bind_from_checkpoint(b, out, linear, full);
    else {
        quantizes(b, out, linear, full);
        out->data = lk_bind_nowhere(lk_tensor_bytes(out));
    }
    uint64_t *parameters = &b->totals.parameters, *bytes = &b->totals.weight_bytes;
    if (__builtin_add_overflow(*parameters, (uint64_t)lk_tensor_numel(out), parameters) ||
        __builtin_add_overflow(*bytes, (uint64_t)lk_tensor_bytes(out), bytes))
        problem(b, BAD_REQUEST, "%.200s: all weights together are too large", text);
    if (b->loras && b->loras->whole && (linear || n_dims == 4)) take_adapter(b, out, text, full);
    b->totals.n_tensors++;
    if (lk_tensor_is_quantized(out)) b->totals.quantized |= 1u << (out->dtype - LK_FIRST_QUANTIZED);
}

void lk_bind_tensor(struct lk_bind *b, struct lk_tensor *out, int n_dims, const int64_t *shape, const char *name_format,
                    ...) {
    char text[MOST_NAME];
    va_list args;
    va_start(args, name_format);
    vsnprintf(text, sizeof text, name_format, args);
    va_end(args);
    bind(b, out, n_dims == 2, n_dims, shape, text);
}

void lk_bind_embedding(struct lk_bind *b, struct lk_tensor *out, int64_t rows, int64_t columns, const char *name) {
    bind(b, out, false, 2, (int64_t[]){rows, columns}, name);
}

static void convert_quantized(const struct conversion *c, unsigned char *block) {
    struct lk_tensor packed = c->source.tensor;
    if (c->source.n_scales) packed.scales.data = block + c->scales_offset;
    lk_quant_source_scales(&c->source, packed.scales.data);
    if (lk_tensor_is_quantized(c->out)) {
        c->out->scales.data = packed.scales.data;
    } else {
        c->out->data = block + c->offset;
        lk_dequantize(&packed, 0, lk_tensor_numel(&packed), c->out->data);
    }
}

/* Element i of an f32, f16 or bf16 tensor at any address. */
static float element(const struct lk_tensor *t, size_t i) {
    const unsigned char *at = (const unsigned char *)t->data + i * lk_dtype_size(t->dtype);
    float value;
    uint16_t half;
    if (t->dtype == LK_F32) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&half, at, sizeof half);
    return t->dtype == LK_F16 ? lk_f16_to_f32(half) : lk_bf16_to_f32(half);
}

#define PIECE 16384 /* elements, whole blocks */

static enum lk_code quantize(const struct conversion *c, unsigned char *block) {
    const int64_t n = lk_tensor_numel(c->out);
    int64_t bad = -1;
    c->out->data = block + c->offset;
    c->out->scales.data = block + c->scales_offset;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += PIECE) {
        uint16_t piece[PIECE];
        const int64_t count = n - first < PIECE ? n - first : PIECE;
        for (int64_t i = 0; i < count; i++) piece[i] = lk_f32_to_bf16(element(c->from, (size_t)(first + i)));
        unsigned char *codes = (unsigned char *)c->out->data + first / lk_dtype_block(c->out->dtype);
        const int64_t at = lk_quantize(c->how, piece, count, LK_QUANTIZE_BLOCK, codes,
                                       (uint16_t *)c->out->scales.data + first / LK_QUANTIZE_BLOCK);
        if (at < 0) continue;
#pragma omp critical
        if (bad < 0 || first + at < bad) bad = first + at;
    }
    if (bad < 0) return LK_OK;
    return lk_fail(LK_E_BIND, "%s: element %lld is NaN or Inf: it cannot be quantised; run `verify`", c->name,
                   (long long)bad);
}

static enum lk_code convert(const struct conversion *c, unsigned char *block) {
    if (!c->from) {
        convert_quantized(c, block);
        return LK_OK;
    }
    if (c->how) return quantize(c, block);
    const size_t n = (size_t)lk_tensor_numel(c->out);
    void *out = block + c->offset;
    c->out->data = out;
    if (c->from->dtype == c->out->dtype) {
        if (n) memcpy(out, c->from->data, n * lk_dtype_size(c->from->dtype));
        return LK_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (c->out->dtype == LK_BF16)
            ((uint16_t *)out)[i] = lk_f32_to_bf16(element(c->from, i));
        else
            ((float *)out)[i] = element(c->from, i);
    }
    return LK_OK;
}

static enum lk_code report(const struct lk_bind *b) {
    char text[LK_ERROR_TEXT_MAX];
    size_t n = 0;
    if (b->problems[MISSING].n && b->checkpoint && b->checkpoint->missing.n)
        return lk_fail(LK_E_SHARD, "%s in %s: shards are missing: %s; download them", b->component,
                       lk_checkpoint_place(b->checkpoint), b->checkpoint->missing.bytes);
    for (int kind = 0; kind < N_PROBLEMS; kind++) {
        size_t count = b->problems[kind].n;
        if (!count || n >= sizeof text) continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%zu %s: ", n ? "; " : "", count, titles[kind]);
        for (size_t i = 0; i < count && i < SHOWN && n < sizeof text; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", b->problems[kind].shown[i]);
        if (count > SHOWN && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, " and %zu more", count - SHOWN);
    }
    if (!n) return LK_OK;
    return lk_fail(LK_E_BIND, "%s%s%s: weights and config do not fit together: tensors %s", b->component,
                   b->checkpoint ? " in " : "", b->checkpoint ? lk_checkpoint_place(b->checkpoint) : "", text);
}

/* Weights that adapters change get memory of their own, with the others that are converted. */
static enum lk_code place_adapters(struct lk_bind *b) {
    const struct lk_tensor *from;
    LK_TRY(lk_loras_place(b->loras, b->component, b->rules, b->n_rules));
    for (struct lk_tensor *out = NULL; (out = lk_loras_changed(b->loras, b->component, out, &from)) && b->checkpoint;) {
        if (out->data != from->data && out->dtype == b->compute) continue; /* is converted already */
        b->totals.weight_bytes -= lk_tensor_bytes(out);
        out->dtype = b->compute; /* bf16 in place would round once more */
        b->totals.weight_bytes += lk_tensor_bytes(out);
        convert_later(b, &(struct conversion){.out = out, .from = from, .offset = own(b, lk_tensor_bytes(out))});
    }
    return b->out_of_memory ? out_of_memory(b->component) : LK_OK;
}

static enum lk_code finish(struct lk_bind *b, void **owned) {
    for (size_t i = 0; b->checkpoint && i < b->checkpoint->n_tensors; i++)
        if (!b->known[i]) problem(b, UNEXPECTED, "%s", b->checkpoint->tensors[i].tensor->name);
    if (b->out_of_memory) return out_of_memory(b->component);
    enum lk_code rc = report(b);
    const bool whole = b->loras && b->loras->whole;
    if (!rc && whole) rc = place_adapters(b);
    if (rc || !b->checkpoint) return rc;
    unsigned char *block = NULL;
    if (b->n_conversions && !(block = lk_malloc(b->owned_bytes)))
        return lk_fail(LK_E_NOMEM, "%s: out of memory: %zu bytes for converted weights", b->component, b->owned_bytes);
    for (size_t i = 0; i < b->n_conversions && !rc; i++) rc = convert(&b->conversions[i], block);
    if (rc) lk_fail_prefix(rc, "%s in %s", b->component, lk_checkpoint_place(b->checkpoint));
    if (!rc && whole) rc = lk_loras_bake(b->loras, b->component);
    if (!rc) rc = lk_checkpoint_check(b->checkpoint);
    if (rc)
        lk_free(block);
    else
        *owned = block;
    return rc;
}

enum lk_code lk_bind_finish(struct lk_bind *b, void **owned, struct lk_bind_totals *totals) {
    *owned = NULL;
    enum lk_code rc = finish(b, owned);
    if (!rc && b->loras && !b->loras->whole) {
        rc = lk_loras_bind(b->loras, b->rules, b->n_rules, b->compute, b->checkpoint);
        if (rc) lk_free(*owned);
        if (rc) *owned = NULL;
    }
    if (!rc && totals) *totals = b->totals;
    bind_free(b);
    return rc;
}
