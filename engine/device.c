#include "engine/device.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine/base/alloc.h"

static atomic_uint_least64_t weights_epoch;

void lk_weights_released(void) { atomic_fetch_add(&weights_epoch, 1); }
uint64_t lk_weights_epoch(void) { return atomic_load(&weights_epoch); }

bool lk_device_keeps_arena(const struct lk_device *dev, size_t arena_bytes) {
    return dev->arena_block && dev->arena_block_bytes >= arena_bytes && dev->arena.used == 0;
}

static enum lk_code prepare_arena(struct lk_device *dev, size_t arena_bytes) {
    if (lk_device_keeps_arena(dev, arena_bytes)) {
        lk_arena_init(&dev->arena, dev->arena_block, dev->arena_block_bytes, dev->kind == LK_DEVICE_CPU);
        return LK_OK;
    }
    if (dev->arena_block) {
        lk_arena_release(&dev->arena, 0);
        dev->memory->free(dev, dev->arena_block);
        dev->arena_block = NULL;
    }
    lk_arena_init(&dev->arena, NULL, 0, false);
    enum lk_code rc = dev->memory->alloc(dev, arena_bytes, &dev->arena_block);
    if (rc) return lk_fail_prefix(rc, "activation memory of %zu bytes", arena_bytes);
    dev->arena_block_bytes = arena_bytes;
    lk_arena_init(&dev->arena, dev->arena_block, arena_bytes, dev->kind == LK_DEVICE_CPU);
    return LK_OK;
}

enum lk_code lk_device_prepare(struct lk_device *dev, size_t arena_bytes) {
    if (dev->kind == LK_DEVICE_PLAN) {
        lk_arena_init_counting(&dev->arena);
        return LK_OK;
    }
    if (dev->memory->place) LK_TRY(dev->memory->place(dev, NULL));
    if (dev->memory->check_fit) LK_TRY(dev->memory->check_fit(dev, arena_bytes));
    LK_TRY(prepare_arena(dev, arena_bytes));
    return dev->memory->load_weights ? dev->memory->load_weights(dev) : LK_OK;
}

enum lk_code lk_device_prepare_placed(struct lk_device *dev, struct lk_placement *placement) {
    if (placement->whole) return lk_device_prepare(dev, placement->arena_bytes);
    return dev->memory->place(dev, placement);
}

enum lk_code lk_device_stage(struct lk_device *dev, const char *name) {
    return dev->memory->stage ? dev->memory->stage(dev, name) : LK_OK;
}

void lk_device_rest(struct lk_device *dev) {
    if (dev->memory->rest) dev->memory->rest(dev);
}

void lk_device_free(struct lk_device *dev) {
    if (!dev) return;
    if (dev->arena_block) {
        lk_arena_release(&dev->arena, 0);
        dev->memory->free(dev, dev->arena_block);
    }
    if (dev->memory->destroy) dev->memory->destroy(dev);
    lk_free(dev);
}

enum lk_code lk_upload(struct lk_device *dev, const struct lk_tensor *dst, const void *host) {
    if (!lk_tensor_is_dense(dst)) return lk_fail(LK_E_INTERNAL, "upload into a window");
    return dev->memory->upload(dev, dst->data, host, lk_tensor_bytes(dst));
}

enum lk_code lk_download(struct lk_device *dev, void *host, const struct lk_tensor *src) {
    if (!lk_tensor_is_dense(src)) return lk_fail(LK_E_INTERNAL, "download of a window");
    return dev->memory->download(dev, host, src->data, lk_tensor_bytes(src));
}

enum lk_code lk_trace(struct lk_device *dev, const struct lk_tensor *value, const char *name_format, ...) {
    if (!dev->trace) return LK_OK;
    char name[128];
    va_list args;
    va_start(args, name_format);
    vsnprintf(name, sizeof name, name_format, args);
    va_end(args);
    return dev->trace(dev->trace_context, dev, name, value);
}
