/* The fatbin container: a header, then entries of kind PTX (1) or ELF (2), each with a header of its own. */
#include "exec/module.h"

#include <string.h>

enum { KIND_PTX = 1, KIND_ELF = 2, COMPRESSED_LZ4 = 0x2000, COMPRESSED_ZSTD = 0x8000 };
static const uint32_t wrapper_magic = 0x466243b1, magic = 0xba55ed50;

struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *unused;
};
struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of all entries */
};
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t arch, name, name_bytes;
    uint64_t flags, unused, plain_bytes;
};

static const char *search(const uint8_t *at, const uint8_t *end, size_t *n, struct gpusim_message *message) {
    const char *best = NULL;
    uint32_t best_arch = 0, n_entries = 0, seen[8];
    while (at + sizeof(struct entry) <= end) {
        struct entry e;
        memcpy(&e, at, sizeof e);
        if (e.header_bytes < sizeof e - 8 || e.bytes > (uint64_t)(end - at) ||
            e.header_bytes > (uint64_t)(end - at) - e.bytes)
            break;
        if (n_entries < 8) seen[n_entries] = e.arch;
        n_entries++;
        if (e.kind == KIND_PTX && e.arch <= 80 && e.arch > best_arch) {
            if (e.flags & (COMPRESSED_LZ4 | COMPRESSED_ZSTD)) {
                gpusim_set(message, "fatbin: the PTX for compute_%u is compressed; build with nvcc --no-compress",
                           e.arch);
                return NULL;
            }
            best = (const char *)at + e.header_bytes;
            best_arch = e.arch;
            *n = strnlen(best, e.bytes);
        }
        at += e.header_bytes + e.bytes;
    }
    if (!best)
        gpusim_set(
            message,
            "fatbin: %u entries (the first for sm_%u), none is PTX for compute_80 or below; build with nvcc -gencode "
            "arch=compute_80,code=compute_80",
            n_entries, n_entries ? seen[0] : 0);
    else
        message->text[0] = 0;
    return best;
}

const char *gpusim_find_ptx(const void *image, size_t *n, struct gpusim_message *message) {
    struct wrapper w;
    struct header h;
    uint32_t first;
    message->text[0] = 0;
    memcpy(&first, image, 4);
    if (first == wrapper_magic) {
        memcpy(&w, image, sizeof w);
        image = w.data;
        memcpy(&first, image, 4);
    }
    if (first == magic) {
        memcpy(&h, image, sizeof h);
        const uint8_t *start = (const uint8_t *)image + h.header_bytes;
        return search(start, start + h.bytes, n, message);
    }
    if (!memcmp(image, "\177ELF", 4)) {
        gpusim_set(
            message,
            "cubin: machine code cannot be run; gpusim needs PTX (nvcc -gencode arch=compute_80,code=compute_80)");
        return NULL;
    }
    *n = strlen(image);
    if (strstr(image, ".version")) return image;
    gpusim_set(message, "module image: expected a fatbin or PTX text");
    return NULL;
}

bool gpusim_image_entry(const void *image, uint32_t index, struct gpusim_image_entry *out) {
    struct wrapper w;
    struct header h;
    struct entry e;
    uint32_t first;
    memcpy(&first, image, 4);
    if (first == wrapper_magic) {
        memcpy(&w, image, sizeof w);
        image = w.data;
        memcpy(&first, image, 4);
    }
    if (first != magic) return false;
    memcpy(&h, image, sizeof h);
    const uint8_t *at = (const uint8_t *)image + h.header_bytes, *end = at + h.bytes;
    for (; at + sizeof e <= end; at += e.header_bytes + e.bytes) {
        memcpy(&e, at, sizeof e);
        if (e.header_bytes < sizeof e - 8 || e.bytes > (uint64_t)(end - at) ||
            e.header_bytes > (uint64_t)(end - at) - e.bytes)
            return false;
        if (index--) continue;
        *out = (struct gpusim_image_entry){.bytes = at + e.header_bytes,
                                           .n = e.bytes,
                                           .arch = e.arch,
                                           .machine_code = e.kind == KIND_ELF,
                                           .compressed = e.flags & (COMPRESSED_LZ4 | COMPRESSED_ZSTD)};
        return true;
    }
    return false;
}
