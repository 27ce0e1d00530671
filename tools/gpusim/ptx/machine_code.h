/* Reading ELF files of machine code; shared by machine_code.c and machine_lines.c. Nothing outside the file is read,
 * whatever it says. */
#pragma once

#include "exec/module.h"

#include <elf.h>
#include <string.h>

struct machine_file {
    const uint8_t *bytes;
    uint64_t n;
};

/* The part [at, at + n), or NULL. */
static inline const uint8_t *machine_part(const struct machine_file *elf, uint64_t at, uint64_t n) {
    return at <= elf->n && n <= elf->n - at ? elf->bytes + at : NULL;
}

bool machine_section(const struct machine_file *elf, uint32_t index, Elf64_Shdr *out);
/* Symbol `index` of the table in section `symbols`, with its name. */
bool machine_symbol(const struct machine_file *elf, const Elf64_Shdr *symbols, uint64_t index, Elf64_Sym *out,
                    const char **name);
struct gpusim_function *machine_kernel(struct gpusim_module *module, const char *name);

/* Fills the kernels' machine ops from section .nv_debug_line_sass (number `index`) and the code. */
void machine_read_lines(const struct machine_file *elf, uint32_t index, struct gpusim_module *module);
