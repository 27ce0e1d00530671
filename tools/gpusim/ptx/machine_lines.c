/* Which line of the PTX each machine instruction comes from. Section .nv_debug_line_sass, which nvcc -lineinfo leaves,
 * is a line-number program of DWARF 2: units of a header and opcodes that run a small machine (address, line). The
 * address that starts a sequence is 0 in the file; a relocation at its place names the function. An instruction of
 * sm_80 is 16 bytes, its operation the low 12 bits of the first 8. */
#include "ptx/machine_code.h"

enum { INSTRUCTION = 16 };
enum { COPY = 1, ADVANCE_PC = 2, ADVANCE_LINE = 3, CONST_ADD_PC = 8, FIXED_ADVANCE_PC = 9 };
enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };

struct reader {
    const uint8_t *at, *end;
    bool failed;
};

static uint64_t take(struct reader *r, uint32_t n) {
    uint64_t value = 0;
    if ((uint64_t)(r->end - r->at) < n) {
        r->failed = true;
        return 0;
    }
    memcpy(&value, r->at, n);
    r->at += n;
    return value;
}
static uint64_t take_leb(struct reader *r, bool is_signed) {
    uint64_t value = 0, byte = 0x80;
    uint32_t shift = 0;
    while (byte & 0x80 && shift < 64 && !r->failed) {
        byte = take(r, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
    }
    if (is_signed && byte & 0x40 && shift < 64) value |= ~0ull << shift;
    return value;
}

/* A function's code, and how far its instructions have been given lines. */
struct sequence {
    struct gpusim_function *function;
    const uint8_t *code;
    uint64_t bytes, given;
    uint64_t address; /* of the machine */
    uint32_t line, row_line;
};

static void give_lines(struct sequence *s) {
    uint64_t until = s->address < s->bytes ? s->address : s->bytes;
    for (; s->function && s->given + INSTRUCTION <= until; s->given += INSTRUCTION) {
        uint64_t word;
        memcpy(&word, s->code + s->given, sizeof word);
        s->function->machine_ops[s->function->n_machine_ops++] =
            (struct gpusim_machine_op){.line = s->row_line, .operation = (uint16_t)(word & 0xfff)};
    }
    s->row_line = s->line;
}

/* The kernel's own code: subroutines that the assembler adds behind it (division in double ...) are cut off. */
static void start_sequence(struct sequence *s, const struct machine_file *elf, const Elf64_Shdr *symbols,
                           uint64_t index, struct gpusim_module *module) {
    Elf64_Sym symbol, other;
    Elf64_Shdr text;
    const char *name;
    *s = (struct sequence){.line = 1, .row_line = 1};
    if (!machine_symbol(elf, symbols, index, &symbol, &name)) return;
    struct gpusim_function *f = machine_kernel(module, name);
    if (!f || f->machine_ops || symbol.st_value || !machine_section(elf, symbol.st_shndx, &text)) return;
    s->bytes = symbol.st_size < text.sh_size ? symbol.st_size : text.sh_size;
    for (uint64_t k = 0; k < symbols->sh_size / sizeof other; k++)
        if (machine_symbol(elf, symbols, k, &other, &name) && other.st_shndx == symbol.st_shndx &&
            ELF64_ST_TYPE(other.st_info) == STT_FUNC && other.st_value && other.st_value < s->bytes)
            s->bytes = other.st_value;
    s->code = machine_part(elf, text.sh_offset, s->bytes);
    if (!s->code) return;
    f->machine_ops = gpusim_module_alloc(module, (s->bytes / INSTRUCTION + 1) * sizeof *f->machine_ops);
    if (f->machine_ops) s->function = f;
}

/* The symbol that the relocation at `offset` of section `target` names. */
static bool relocation(const struct machine_file *elf, uint32_t target, uint64_t offset, Elf64_Shdr *symbols,
                       uint64_t *symbol) {
    Elf64_Shdr section;
    for (uint32_t s = 1; machine_section(elf, s, &section); s++) {
        uint64_t size = section.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        if ((section.sh_type != SHT_RELA && section.sh_type != SHT_REL) || section.sh_info != target) continue;
        const uint8_t *at = machine_part(elf, section.sh_offset, section.sh_size);
        for (uint64_t k = 0; at && k < section.sh_size / size; k++) {
            Elf64_Rel r;
            memcpy(&r, at + k * size, sizeof r);
            if (r.r_offset != offset) continue;
            *symbol = ELF64_R_SYM(r.r_info);
            return machine_section(elf, section.sh_link, symbols);
        }
    }
    return false;
}

struct unit {
    const struct machine_file *elf;
    struct gpusim_module *module;
    uint32_t section;
    const uint8_t *section_start;
    uint8_t min_bytes, line_range, opcode_base, lengths[256];
    int8_t line_base;
};

static bool read_header(struct reader *r, struct unit *u) {
    take(r, 2); /* version */
    uint64_t header = take(r, 4);
    if (r->failed || header > (uint64_t)(r->end - r->at)) return false;
    const uint8_t *program = r->at + header;
    u->min_bytes = (uint8_t)take(r, 1);
    take(r, 1);
    u->line_base = (int8_t)take(r, 1);
    u->line_range = (uint8_t)take(r, 1);
    u->opcode_base = (uint8_t)take(r, 1);
    for (int k = 1; k < u->opcode_base; k++) u->lengths[k] = (uint8_t)take(r, 1);
    if (r->failed || !u->line_range || !u->opcode_base || program < r->at) return false;
    r->at = program;
    return true;
}

static bool extended(struct reader *r, struct sequence *s, const struct unit *u) {
    uint64_t n = take_leb(r, false), symbol;
    Elf64_Shdr symbols;
    if (r->failed || !n || n > (uint64_t)(r->end - r->at)) return false;
    if (*r->at == SET_ADDRESS &&
        relocation(u->elf, u->section, (uint64_t)(r->at + 1 - u->section_start), &symbols, &symbol))
        start_sequence(s, u->elf, &symbols, symbol, u->module);
    if (*r->at == END_SEQUENCE) {
        give_lines(s);
        *s = (struct sequence){.line = 1, .row_line = 1};
    }
    r->at += n;
    return true;
}

static void run_program(struct reader *r, const struct unit *u) {
    struct sequence s = {.line = 1, .row_line = 1};
    while (r->at < r->end && !r->failed) {
        uint8_t code = (uint8_t)take(r, 1);
        if (code >= u->opcode_base) {
            code = (uint8_t)(code - u->opcode_base);
            s.address += (uint64_t)(code / u->line_range) * u->min_bytes;
            s.line += (uint32_t)(u->line_base + code % u->line_range);
            give_lines(&s);
        } else if (code == 0) {
            if (!extended(r, &s, u)) return;
        } else if (code == COPY) {
            give_lines(&s);
        } else if (code == ADVANCE_PC) {
            s.address += take_leb(r, false) * u->min_bytes;
        } else if (code == ADVANCE_LINE) {
            s.line += (uint32_t)take_leb(r, true);
        } else if (code == CONST_ADD_PC) {
            s.address += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->min_bytes;
        } else if (code == FIXED_ADVANCE_PC) {
            s.address += take(r, 2);
        } else {
            for (int k = 0; k < u->lengths[code]; k++) take_leb(r, false);
        }
    }
}

void machine_read_lines(const struct machine_file *elf, uint32_t index, struct gpusim_module *module) {
    Elf64_Shdr section;
    if (!machine_section(elf, index, &section)) return;
    const uint8_t *bytes = machine_part(elf, section.sh_offset, section.sh_size), *end = bytes + section.sh_size;
    for (const uint8_t *at = bytes; at && end - at > 4;) {
        uint32_t n;
        memcpy(&n, at, sizeof n);
        if (n > (uint64_t)(end - at) - 4) return;
        struct unit unit = {.elf = elf, .module = module, .section = index, .section_start = bytes};
        struct reader r = {at + 4, at + 4 + n, false};
        if (read_header(&r, &unit)) run_program(&r, &unit);
        at += 4 + n;
    }
}
