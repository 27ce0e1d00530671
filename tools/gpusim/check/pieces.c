/* Which granules an instruction touches, and what its lanes write. */
#include "check/state.h"

#include <string.h>

static inline uint32_t byte_mask(uint64_t at, uint32_t bytes) {
    return (uint32_t)(((1ull << bytes) - 1) << (at & 15)) & 0xffff;
}

uint32_t check_pieces(const struct gpusim_memory_event *event, uint32_t lanes, uint64_t base,
                      struct piece out[GPUSIM_WARP]) {
    uint32_t n = 0, bytes = event->bytes, granule = UINT32_MAX, mask = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint64_t at = event->address[__builtin_ctz(rest)] - base;
        if ((uint32_t)(at >> 4) != granule) {
            if (mask) out[n++] = (struct piece){granule, mask};
            granule = (uint32_t)(at >> 4);
            mask = 0;
        }
        mask |= byte_mask(at, bytes);
    }
    if (mask) out[n++] = (struct piece){granule, mask};
    return n;
}

int check_lane_of(const struct gpusim_memory_event *event, uint64_t base, struct piece piece) {
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t at = event->address[lane] - base;
        if ((uint32_t)(at >> 4) == piece.granule && byte_mask(at, event->bytes) & piece.bytes) return lane;
    }
    return __builtin_ctz(event->mask);
}

void check_stored(const struct gpusim_warp *warp, const struct gpusim_op *op, int lane, uint8_t out[32]) {
    uint32_t words = op->flags & GPUSIM_REG64 ? 2 : 1;
    for (uint32_t k = 0; k < op->vec && (k + 1) * op->size <= 32; k++) {
        const uint32_t *reg = warp->regs + (op->vec > 1 ? op->list[k] : op->b) + (uint32_t)lane * words;
        memcpy(out + k * op->size, reg, op->size);
    }
}

bool check_same_value(const struct gpusim_warp *warp, const struct gpusim_op *op,
                      const struct gpusim_memory_event *event, uint64_t base, struct piece piece) {
    if (op->cls != GPUSIM_CLASS_STORE || event->access != GPUSIM_ACCESS_STORE) return false;
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t at = event->address[lane] - base;
        uint8_t value[32];
        if ((uint32_t)(at >> 4) != piece.granule || !(byte_mask(at, event->bytes) & piece.bytes)) continue;
        check_stored(warp, op, lane, value);
        if (memcmp(value, (const void *)event->host[lane], event->bytes)) return false;
    }
    return true;
}

static bool agree(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                  int first, int second) {
    uint8_t a[32], b[32];
    uint64_t x = event->address[first], y = event->address[second];
    uint64_t low = x > y ? x : y, high = (x < y ? x : y) + event->bytes;
    check_stored(warp, op, first, a);
    check_stored(warp, op, second, b);
    if (!memcmp(a + (low - x), b + (low - y), high - low)) return true;
    struct gpusim_place place = {GPUSIM_REPORT_RACE_WARP, event->space, low, event->record};
    gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, second, &place,
                    "write of %u bytes, lane %d of the same instruction writes another value there", event->bytes,
                    first);
    return false;
}

bool check_lanes_agree(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    if (event->access != GPUSIM_ACCESS_STORE || op->cls != GPUSIM_CLASS_STORE) return true;
    uint64_t last = 0;
    bool apart = true, any = false;
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        uint64_t at = event->address[__builtin_ctz(rest)];
        apart &= !any || at >= last + event->bytes;
        last = at, any = true;
    }
    if (apart) return true;
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        for (uint32_t others = rest & (rest - 1); others; others &= others - 1) {
            int j = __builtin_ctz(others);
            uint64_t x = event->address[i], y = event->address[j];
            if ((x > y ? x - y : y - x) < event->bytes && !agree(warp, op, event, i, j)) return false;
        }
    }
    return true;
}
