/* What the assembler's output says of kernels. The machine code itself is not run. A fatbin entry of kind 2 is an ELF
 * file whose section .nv.info lists attributes of kernels by symbol: REGCOUNT (0x2f) and FRAME_SIZE (0x11). */
#include "exec/module.h"

#include <elf.h>
#include <string.h>

enum { ATTRIBUTE_SIZED = 4, REGCOUNT = 0x2f, FRAME_SIZE = 0x11, SM = 80 };

struct image {
    const uint8_t *bytes;
    uint64_t n;
};

/* The part [at, at + n) of an image, or NULL. */
static const void *part(const struct image *image, uint64_t at, uint64_t n) {
    return at <= image->n && n <= image->n - at ? image->bytes + at : NULL;
}

static bool section(const struct image *elf, uint32_t index, Elf64_Shdr *out) {
    Elf64_Ehdr header;
    memcpy(&header, elf->bytes, sizeof header);
    if (index >= header.e_shnum) return false;
    const void *at = part(elf, header.e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    if (at) memcpy(out, at, sizeof *out);
    return at;
}

/* A string of the string table in section `index`; NULL if it does not end within it. */
static const char *string(const struct image *elf, uint32_t index, uint64_t offset) {
    Elf64_Shdr table;
    if (!section(elf, index, &table) || offset >= table.sh_size) return NULL;
    const char *text = part(elf, table.sh_offset, table.sh_size);
    return text && memchr(text + offset, 0, table.sh_size - offset) ? text + offset : NULL;
}

static struct gpusim_function *function_of(const struct image *elf, const Elf64_Shdr *symbols, uint32_t symbol,
                                           struct gpusim_module *module) {
    Elf64_Sym entry;
    if ((uint64_t)symbol * sizeof entry + sizeof entry > symbols->sh_size) return NULL;
    const void *at = part(elf, symbols->sh_offset + (uint64_t)symbol * sizeof entry, sizeof entry);
    if (!at) return NULL;
    memcpy(&entry, at, sizeof entry);
    const char *name = string(elf, symbols->sh_link, entry.st_name);
    for (uint32_t f = 0; name && f < module->n_functions; f++)
        if (module->functions[f]->kernel && !strcmp(module->functions[f]->name, name)) return module->functions[f];
    return NULL;
}

static void read_attributes(const struct image *elf, const Elf64_Shdr *info, struct gpusim_module *module) {
    Elf64_Shdr symbols;
    const uint8_t *at = part(elf, info->sh_offset, info->sh_size), *end = at ? at + info->sh_size : NULL;
    if (!at || !section(elf, info->sh_link, &symbols)) return;
    while (end - at >= 4) {
        uint8_t format = at[0], attribute = at[1];
        uint16_t bytes;
        uint32_t words[2];
        memcpy(&bytes, at + 2, 2);
        at += 4;
        if (format != ATTRIBUTE_SIZED) continue; /* the value is in the two bytes */
        if (end - at < bytes) return;
        if (bytes >= 8 && (attribute == REGCOUNT || attribute == FRAME_SIZE)) {
            memcpy(words, at, sizeof words);
            struct gpusim_function *f = function_of(elf, &symbols, words[0], module);
            if (f && attribute == REGCOUNT && words[1] && words[1] <= 255)
                f->registers = words[1], f->registers_exact = true;
            if (f && attribute == FRAME_SIZE) f->frame_bytes = words[1];
        }
        at += bytes;
    }
}

static void read_elf(const struct image *elf, struct gpusim_module *module) {
    Elf64_Ehdr header;
    if (elf->n < sizeof header) return;
    memcpy(&header, elf->bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64) return;
    for (uint32_t s = 0; s < header.e_shnum; s++) {
        Elf64_Shdr info;
        if (!section(elf, s, &info)) return;
        const char *name = string(elf, header.e_shstrndx, info.sh_name);
        if (name && !strcmp(name, ".nv.info")) read_attributes(elf, &info, module);
    }
}

void gpusim_read_machine_code(const void *image, struct gpusim_module *module) {
    struct gpusim_image_entry entry;
    for (uint32_t i = 0; gpusim_image_entry(image, i, &entry); i++)
        if (entry.machine_code && entry.arch == SM && !entry.compressed)
            read_elf(&(struct image){entry.bytes, entry.n}, module);
}
