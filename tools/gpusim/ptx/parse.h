/* How PTX text becomes ops. One pass: a statement is read, decoded to an op over virtual registers, and when its
 * function ends the registers get their places in the frame (finish.c). Inside ptx/ only.
 *
 * Errors: functions return false and leave parser->message set with the line. */
#pragma once

#include "exec/codes.h"
#include "exec/module.h"
#include "numerics/mma_any.h"

enum ptx_token { PTX_END, PTX_WORD, PTX_NUMBER, PTX_STRING, PTX_PUNCTUATION };

enum ptx_symbol_kind { PTX_REGISTER, PTX_REGISTER_RANGE, PTX_VARIABLE, PTX_FUNCTION, PTX_TABLE, PTX_PROTOTYPE };

struct ptx_symbol {
    char *name;
    enum ptx_symbol_kind kind;
    uint8_t type;     /* registers: enum gpusim_type; variables: element type */
    uint8_t vec;      /* registers: 1, or 2 and 4 for vector registers, which take as many numbers */
    uint32_t reg;     /* virtual register (the first of a range) */
    uint32_t count;   /* of a range */
    uint8_t space;    /* variables: enum gpusim_space (PARAM: kernel parameter) */
    uint8_t base;     /* enum gpusim_base of the address */
    uint64_t address; /* variables */
    uint64_t bytes;
    struct gpusim_function *function;
    uint32_t table_label, n_table; /* .branchtargets: first label reference */
    uint32_t scope;
    struct ptx_symbol *next; /* in its bucket */
};

/* Labels belong to scopes; references are resolved when the function ends. */
struct ptx_label {
    char *name;
    uint32_t scope, pc;
};
struct ptx_reference {
    char *name;
    uint32_t scope, op, line;
    int32_t list_index; /* -1: op->imm */
};

/* A virtual register. 0 is always true, 1 the carry flags. */
struct ptx_register {
    uint8_t lane_words; /* 0: predicate, 1: 32-bit lanes, 2: 64-bit lanes */
    uint8_t type;
    bool constant;
    uint64_t value;                               /* of a constant */
    uint32_t first, last;                         /* ops that mention it */
    uint32_t word;                                /* where it lies in the frame */
    uint32_t next_constant, next_start, next_end; /* lists */
};

enum ptx_operand_kind {
    PTX_OPERAND_REGISTER,
    PTX_OPERAND_IMMEDIATE,
    PTX_OPERAND_ADDRESS,  /* [register or variable + offset] */
    PTX_OPERAND_VARIABLE, /* its address */
    PTX_OPERAND_FUNCTION,
    PTX_OPERAND_VECTOR,
    PTX_OPERAND_SPECIAL, /* %tid.x ... */
    PTX_OPERAND_SINK,    /* _ */
    PTX_OPERAND_NAME,    /* a label, or a name not known */
    PTX_OPERAND_LIST,    /* ( ... ) of calls */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    bool negated;  /* !p */
    bool has_pair; /* p|q */
    bool is_float; /* immediate */
    uint8_t type;  /* registers */
    uint32_t reg, pair;
    uint64_t bits; /* immediate: integer, or the bits of `real` */
    double real;
    int64_t offset;
    int special;
    struct ptx_symbol *symbol;
    char *name;
    uint32_t first, n; /* vector or list: in instruction->elements */
};

enum { PTX_MAX_OPERANDS = 12, PTX_MAX_ELEMENTS = 96, PTX_MAX_MODS = 16 };

struct ptx_instruction {
    char text[160];                 /* the opcode with its modifiers, cut at the dots */
    char full[160];                 /* the same, uncut */
    const char *mods[PTX_MAX_MODS]; /* without the name; NULL where taken */
    uint32_t n_mods;
    struct ptx_operand operands[PTX_MAX_OPERANDS];
    uint32_t n_operands;
    struct ptx_operand elements[PTX_MAX_ELEMENTS];
    uint32_t n_elements;
    uint32_t guard, guard_xor, line;
};

enum { PTX_BUCKETS = 1024, PTX_MAX_SCOPES_DEEP = 64 };

struct ptx_parser {
    struct gpusim_module *module;
    struct gpusim_message *message;
    const char *text, *end, *at;
    uint32_t line;
    /* Current token. */
    enum ptx_token token;
    const char *start;
    size_t length;
    char punctuation;
    uint32_t token_line;

    struct ptx_symbol *buckets[PTX_BUCKETS];
    uint32_t scopes[PTX_MAX_SCOPES_DEEP], depth, n_scopes;
    uint32_t *scope_parent;
    uint32_t n_scope_parent;

    uint32_t shared_module_bytes; /* of module-level .shared variables */
    uint32_t source;              /* current .loc */

    /* The function being read. */
    struct gpusim_function *function;
    struct gpusim_op *ops;
    uint32_t n_ops, ops_reserved;
    uint8_t *list_kinds; /* per op: enum ptx_list */
    struct ptx_register *registers;
    uint32_t n_registers, registers_reserved;
    struct ptx_label *labels;
    uint32_t n_labels, labels_reserved;
    struct ptx_reference *references;
    uint32_t n_references, references_reserved;
    uint32_t sink32, sink64, sink_pred;
    uint32_t local_bytes, shared_bytes;
    uint32_t constants[256]; /* chains of constants by hash of value */
};

enum ptx_list { PTX_LIST_REGISTERS, PTX_LIST_TARGETS, PTX_LIST_CALL };

/* lexer.c */
bool ptx_next(struct ptx_parser *p);
bool ptx_is(const struct ptx_parser *p, const char *text); /* the current token is this word or punctuation */
bool ptx_accept(struct ptx_parser *p, const char *text);   /* and goes past it */
bool ptx_expect(struct ptx_parser *p, const char *text);
char *ptx_copy(struct ptx_parser *p, const char *text, size_t n); /* lives as long as the module */
bool ptx_fail(struct ptx_parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number token: integer bits or, for 0f, 0d and decimal floats, the value. */
bool ptx_number(struct ptx_parser *p, uint64_t *bits, double *real, bool *is_float);
bool ptx_grow(struct ptx_parser *p, void **array, uint32_t n, uint32_t *reserved, size_t item);

/* symbols.c */
struct ptx_symbol *ptx_find(struct ptx_parser *p, const char *name, size_t n, uint32_t *number);
struct ptx_symbol *ptx_declare(struct ptx_parser *p, enum ptx_symbol_kind kind, const char *name, size_t n);
bool ptx_open_scope(struct ptx_parser *p);
void ptx_close_scope(struct ptx_parser *p);
uint32_t ptx_new_register(struct ptx_parser *p, uint8_t type); /* 0: out of memory */
uint32_t ptx_constant(struct ptx_parser *p, uint8_t lane_words, uint64_t value);

/* types.c */
uint8_t ptx_type(const char *name); /* "f32" -> GPUSIM_T_F32, GPUSIM_T_NONE: no type */
uint32_t ptx_type_bytes(uint8_t type);
uint8_t ptx_lane_words(uint8_t type);
const char *ptx_type_name(uint8_t type);

/* variables.c */
bool ptx_variable(struct ptx_parser *p, const char *directive, bool external);
bool ptx_registers(struct ptx_parser *p);
/* .param declarations in parentheses, up to ')' */
bool ptx_params(struct ptx_parser *p, struct gpusim_function *function, bool returns, struct gpusim_param **params,
                uint32_t *n);

/* statement.c */
bool ptx_body(struct ptx_parser *p); /* { ... } of a function */

/* operand.c */
bool ptx_operands(struct ptx_parser *p, struct ptx_instruction *ins);

/* decode.c */
bool ptx_known(struct ptx_parser *p, const struct ptx_instruction *ins); /* is there a decoder? asked before operands
                                                                            are read */
bool ptx_decode(struct ptx_parser *p, struct ptx_instruction *ins);

/* allocate.c: gives places from *word on to all registers that are no constants and no predicates. */
bool ptx_allocate(struct ptx_parser *p, uint32_t *word);

/* finish.c */
bool ptx_finish(struct ptx_parser *p);

/* What decoders use. */
bool ptx_take(struct ptx_instruction *ins, const char *mod); /* true and taken if it is among the modifiers */
int ptx_take_any(struct ptx_instruction *ins, const char *const *mods); /* index of the one taken, or -1 */
uint8_t ptx_take_type(struct ptx_instruction *ins);                     /* the first type among the modifiers, taken */
bool ptx_unsupported(struct ptx_parser *p, const struct ptx_instruction *ins, const char *why);
struct gpusim_op *ptx_op(struct ptx_parser *p, struct ptx_instruction *ins, const char *key, const char *type);
/* Registers of operands; immediates become constants. `type` gives the lane width that is expected. False: message set.
 */
bool ptx_source(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, uint32_t *reg);
bool ptx_source_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_operand *o, uint8_t type,
                   uint32_t *reg);
bool ptx_target(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, uint32_t *reg);
bool ptx_target_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_operand *o, uint8_t type,
                   uint32_t *reg);
/* A predicate source; *flag is or-ed with `not_flag` when negated. */
bool ptx_predicate(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint32_t *reg, uint16_t *flags,
                   uint16_t not_flag);
uint32_t *ptx_list(struct ptx_parser *p, uint32_t n);
/* Address operand: register into *reg, constant part into op->imm and op->base, GPUSIM_ADDR64. */
bool ptx_address(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, struct gpusim_op *op,
                 uint32_t *reg);
/* The registers of a vector operand of n elements. */
bool ptx_vector(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, bool target,
                uint32_t *list, uint32_t n);
/* decode_mma.c: shape, layouts and types of mma and wmma, each in its order, taken off the modifiers. */
struct ptx_matrix_form {
    int m, n, k;
    int column[2], n_layouts;
    int types[4], n_types; /* enum gpusim_num_type or gpusim_num_small */
    uint8_t names[4];      /* enum gpusim_type; GPUSIM_T_NONE: small */
    enum gpusim_num_bits bits;
};
bool ptx_take_matrix_form(struct ptx_instruction *ins, struct ptx_matrix_form *form);
/* The op of a product of that form over fragments of mma.sync. */
bool ptx_mma_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_matrix_form *form, bool satfinite,
                bool sparse);
bool ptx_fast_mma(void); /* whether products are summed fast (GPUSIM_MMA=fast) or as an A100 does */
int ptx_rounding(struct ptx_instruction *ins); /* -1: none */

uint8_t ptx_class(const char *key, const char *type); /* enum gpusim_class */
int ptx_number_type(uint8_t type);                    /* enum gpusim_num_type, -1: none */
bool ptx_decode_number(struct ptx_parser *p, struct ptx_instruction *ins, uint8_t type);

/* Decoders, one per family. */
typedef bool ptx_decoder(struct ptx_parser *p, struct ptx_instruction *ins);
ptx_decoder ptx_decode_arithmetic, ptx_decode_bits, ptx_decode_setp, ptx_decode_set, ptx_decode_move,
    ptx_decode_convert, ptx_decode_load, ptx_decode_store, ptx_decode_cvta, ptx_decode_isspacep, ptx_decode_branch,
    ptx_decode_brx, ptx_decode_call, ptx_decode_return, ptx_decode_barrier, ptx_decode_fence, ptx_decode_ignore,
    ptx_decode_atomic, ptx_decode_shuffle, ptx_decode_vote, ptx_decode_match, ptx_decode_redux, ptx_decode_activemask,
    ptx_decode_elect, ptx_decode_cp, ptx_decode_mbarrier, ptx_decode_ldmatrix, ptx_decode_mma, ptx_decode_movmatrix,
    ptx_decode_wmma, ptx_decode_math, ptx_decode_select, ptx_decode_testp, ptx_decode_alloca;
