/* What the assembler's output says of kernels. The machine code itself is not run. A fatbin entry of kind 2 is an ELF
 * file whose section .nv.info lists attributes of kernels by symbol: REGCOUNT (0x2f) and FRAME_SIZE (0x11). */
#include "ptx/machine_code.h"

enum { ATTRIBUTE_SIZED = 4, REGCOUNT = 0x2f, FRAME_SIZE = 0x11, SM = 80 };

bool machine_section(const struct machine_file *elf, uint32_t index, Elf64_Shdr *out) {
    Elf64_Ehdr header;
    memcpy(&header, elf->bytes, sizeof header);
    if (index >= header.e_shnum || header.e_shoff > elf->n) return false;
    const void *at = machine_part(elf, header.e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    if (at) memcpy(out, at, sizeof *out);
    return at;
}

/* A string of the string table in section `index`; NULL if it does not end within it. */
static const char *string(const struct machine_file *elf, uint32_t index, uint64_t offset) {
    Elf64_Shdr table;
    if (!machine_section(elf, index, &table) || offset >= table.sh_size) return NULL;
    const char *text = (const char *)machine_part(elf, table.sh_offset, table.sh_size);
    return text && memchr(text + offset, 0, table.sh_size - offset) ? text + offset : NULL;
}

bool machine_symbol(const struct machine_file *elf, const Elf64_Shdr *symbols, uint64_t index, Elf64_Sym *out,
                    const char **name) {
    if (index >= symbols->sh_size / sizeof *out || symbols->sh_offset > elf->n) return false;
    const void *at = machine_part(elf, symbols->sh_offset + index * sizeof *out, sizeof *out);
    if (!at) return false;
    memcpy(out, at, sizeof *out);
    *name = string(elf, symbols->sh_link, out->st_name);
    return *name;
}

struct gpusim_function *machine_kernel(struct gpusim_module *module, const char *name) {
    for (uint32_t f = 0; f < module->n_functions; f++)
        if (module->functions[f]->kernel && !strcmp(module->functions[f]->name, name)) return module->functions[f];
    return NULL;
}

static void read_attributes(const struct machine_file *elf, const Elf64_Shdr *info, struct gpusim_module *module) {
    Elf64_Shdr symbols;
    const uint8_t *at = machine_part(elf, info->sh_offset, info->sh_size), *end = at ? at + info->sh_size : NULL;
    if (!at || !machine_section(elf, info->sh_link, &symbols)) return;
    while (end - at >= 4) {
        uint8_t format = at[0], attribute = at[1];
        uint16_t bytes;
        memcpy(&bytes, at + 2, 2);
        at += 4;
        if (format != ATTRIBUTE_SIZED) continue; /* the value is in the two bytes */
        if (end - at < bytes) return;
        if (bytes >= 8 && (attribute == REGCOUNT || attribute == FRAME_SIZE)) {
            uint32_t words[2]; /* symbol, value */
            Elf64_Sym symbol;
            const char *name;
            memcpy(words, at, sizeof words);
            struct gpusim_function *f =
                machine_symbol(elf, &symbols, words[0], &symbol, &name) ? machine_kernel(module, name) : NULL;
            if (f && attribute == REGCOUNT && words[1] && words[1] <= 255)
                f->registers = words[1], f->registers_exact = true;
            if (f && attribute == FRAME_SIZE) f->frame_bytes = words[1];
        }
        at += bytes;
    }
}

static void read_elf(const struct machine_file *elf, struct gpusim_module *module) {
    Elf64_Ehdr header;
    if (elf->n < sizeof header) return;
    memcpy(&header, elf->bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64) return;
    for (uint32_t s = 0; s < header.e_shnum; s++) {
        Elf64_Shdr section;
        if (!machine_section(elf, s, &section)) return;
        const char *name = string(elf, header.e_shstrndx, section.sh_name);
        if (name && !strcmp(name, ".nv.info")) read_attributes(elf, &section, module);
        if (name && !strcmp(name, ".nv_debug_line_sass")) machine_read_lines(elf, s, module);
    }
}

void gpusim_read_machine_code(const void *image, struct gpusim_module *module) {
    struct gpusim_image_entry entry;
    for (uint32_t i = 0; gpusim_image_entry(image, i, &entry); i++)
        if (entry.machine_code && entry.arch == SM && !entry.compressed)
            read_elf(&(struct machine_file){entry.bytes, entry.n}, module);
}
