/* What a loaded module is: functions with their ops, variables with their addresses. Made by ptx/, read by exec/ and
 * driver/. */
#pragma once

#include "exec/op.h"

struct gpusim_module;

struct gpusim_param {
    uint32_t offset, bytes, align; /* in the kernel's parameter buffer, or in a device function's frame memory */
    uint32_t reg;                  /* .reg parameter of a device function: its register, else 0 */
    uint8_t lane_words;            /* 1 or 2 for reg */
};

/* An instruction of the machine code, which is only counted with. */
struct gpusim_machine_op {
    uint32_t line;      /* of the PTX it comes from */
    uint16_t operation; /* low 12 bits */
};

struct gpusim_function {
    char *name;
    struct gpusim_module *module;
    bool kernel, defined, uses_calls;
    bool uses_reserved_shared; /* cooperative_groups keeps barriers of several warps there */
    bool uses_alloca;
    uint8_t builtin; /* enum gpusim_builtin of exec/builtins.c, 0: none */

    struct gpusim_op *ops;
    uint32_t n_ops;
    /* A frame is frame_words 32-bit words: the true predicate (16 words), then constants as filled lanes, then
     * registers. */
    uint32_t frame_words, n_constant_words;
    uint32_t *constants; /* [n_constant_words] what a new frame starts with */

    struct gpusim_param *params;
    uint32_t n_params, param_bytes; /* param_bytes: kernels */
    struct gpusim_param *returns;
    uint32_t n_returns;

    uint32_t local_bytes;  /* frame memory of one thread: .local variables, .param of calls */
    uint32_t shared_bytes; /* static */
    uint32_t max_ntid[3], req_ntid[3], min_nctapersm; /* from directives, 0: none */

    /* Set by the driver. */
    uint32_t max_dynamic_shared_bytes;
    uint32_t registers;   /* of the machine code if the module has it, else an estimate: the most live at once */
    bool registers_exact; /* and then frame_bytes is known: local memory that the machine code uses, spills included */
    uint32_t frame_bytes;
    struct gpusim_machine_op *machine_ops; /* NULL: unknown (no machine code, or no -lineinfo) */
    uint32_t n_machine_ops;
};

/* A module-level variable in device memory. */
struct gpusim_variable {
    char *name;
    uint64_t address, bytes;
    bool constant;
};

struct gpusim_module {
    char *text; /* the PTX */
    size_t text_bytes;
    struct gpusim_function **functions;
    uint32_t n_functions;
    struct gpusim_variable *variables;
    uint32_t n_variables;
    char **files; /* by .file number */
    uint32_t n_files;
    struct gpusim_location *locations; /* [0] unused */
    uint32_t n_locations;
    int device;
    bool uses_heap, uses_alloca; /* any of its functions */
    void **blocks;               /* everything allocated for this module, freed together */
    uint32_t n_blocks, n_blocks_reserved;
    /* Of the driver: a sum of the machine code, the next of the modules that were unloaded. */
    uint64_t machine_sum;
    struct gpusim_module *next_kept;
};

/* Zeroed memory that lives as long as the module; NULL when out of memory. */
void *gpusim_module_alloc(struct gpusim_module *module, size_t bytes);

/* Parses, places variables in `device`'s memory and decodes all functions. NULL with a message (line, instruction) on
 * failure. */
struct gpusim_module *gpusim_module_load(const char *text, size_t n, int device, struct gpusim_message *message);
void gpusim_module_free(struct gpusim_module *module);

/* Entry `index` of a fatbin; false: there is none, or the image is no fatbin. */
struct gpusim_image_entry {
    const uint8_t *bytes;
    uint64_t n;
    uint32_t arch; /* 80: compute_80 or sm_80 */
    bool machine_code, compressed;
};
bool gpusim_image_entry(const void *image, uint32_t index, struct gpusim_image_entry *out);

/* Takes registers, frame_bytes and machine ops of the kernels from the machine code for sm_80 in a module image, if
 * there is any. */
void gpusim_read_machine_code(const void *image, struct gpusim_module *module);

/* The PTX in a module image (fatbin container, its wrapper, or PTX text), or NULL and a message. *n gets its length. */
const char *gpusim_find_ptx(const void *image, size_t *n, struct gpusim_message *message);
