/* One decoded PTX instruction. A function is an array of these; `pc` is an index into it. */
#pragma once

#include "gpusim.h"
#include "numerics/numerics.h"

struct gpusim_warp;
struct gpusim_op;

/* What a handler tells the run loop (exec/group.c). */
enum gpusim_next {
    GPUSIM_NEXT = 0, /* go on with pc + 1 */
    GPUSIM_JUMP,     /* all lanes of the running group go to warp->pc */
    GPUSIM_REGROUP, /* groups were split, blocked or removed: the handler has written the running group's pc and mask */
    GPUSIM_FAULT,   /* the launch has failed (launch->fault says why) */
};

/* Runs one op for the lanes in `mask` (never 0; guard already applied). */
typedef int gpusim_handler(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);

enum gpusim_space {
    GPUSIM_GENERIC,
    GPUSIM_GLOBAL, /* also .const: constants live in device memory, marked in their allocation */
    GPUSIM_SHARED,
    GPUSIM_LOCAL, /* also .param of device functions */
    GPUSIM_PARAM, /* kernel parameters, read only */
    GPUSIM_CONST,
};

/* What an address operand's constant part is relative to. */
enum gpusim_base { GPUSIM_BASE_NONE, GPUSIM_BASE_FRAME, GPUSIM_BASE_DYNAMIC_SHARED };

/* For counters: what unit of the SM an op would use. */
enum gpusim_class {
    GPUSIM_CLASS_INTEGER,
    GPUSIM_CLASS_F16,
    GPUSIM_CLASS_F32,
    GPUSIM_CLASS_F64,
    GPUSIM_CLASS_CONVERT,
    GPUSIM_CLASS_SPECIAL, /* approximations: ex2, rcp, sin ... */
    GPUSIM_CLASS_MOVE,
    GPUSIM_CLASS_CONTROL,
    GPUSIM_CLASS_BARRIER,
    GPUSIM_CLASS_LOAD,
    GPUSIM_CLASS_STORE,
    GPUSIM_CLASS_ATOMIC,
    GPUSIM_CLASS_ASYNC_COPY,
    GPUSIM_CLASS_MATRIX_LOAD,
    GPUSIM_CLASS_MMA,
    GPUSIM_CLASS_WARP, /* shfl, vote, match, redux */
    GPUSIM_N_CLASSES,
};

enum gpusim_type {
    GPUSIM_T_NONE,
    GPUSIM_T_B8,
    GPUSIM_T_U8,
    GPUSIM_T_S8,
    GPUSIM_T_B16,
    GPUSIM_T_U16,
    GPUSIM_T_S16,
    GPUSIM_T_B32,
    GPUSIM_T_U32,
    GPUSIM_T_S32,
    GPUSIM_T_B64,
    GPUSIM_T_U64,
    GPUSIM_T_S64,
    GPUSIM_T_F16,
    GPUSIM_T_F16X2,
    GPUSIM_T_BF16,
    GPUSIM_T_BF16X2,
    GPUSIM_T_F32,
    GPUSIM_T_F64,
    GPUSIM_T_TF32,
    GPUSIM_T_B128,
    GPUSIM_T_PRED,
    GPUSIM_T_U16X2,
    GPUSIM_T_S16X2,
    GPUSIM_T_E4M3X2,
    GPUSIM_T_E5M2X2,
    GPUSIM_N_TYPES,
};

enum gpusim_rounding {
    GPUSIM_RN,
    GPUSIM_RZ,
    GPUSIM_RM,
    GPUSIM_RP,
    GPUSIM_RNA, /* to float */
    GPUSIM_RNI,
    GPUSIM_RZI,
    GPUSIM_RMI,
    GPUSIM_RPI, /* to integer */
};

enum {
    GPUSIM_FTZ = 1,
    GPUSIM_SAT = 2,
    GPUSIM_NOT_C = 4, /* predicate operand c is negated */
    GPUSIM_NOT_A = 8,
    GPUSIM_NOT_B = 16,
    GPUSIM_REG64 = 32,   /* data registers of a memory op have 64-bit lanes */
    GPUSIM_SIGNED = 64,  /* a narrow load sign-extends */
    GPUSIM_ADDR64 = 128, /* the address register has 64-bit lanes */
    GPUSIM_RELU = 256,
    GPUSIM_ALIGNED = 512,
    GPUSIM_VOLATILE = 1024,
    GPUSIM_WRITE = 2048,
    GPUSIM_ORDERED = 8192,      /* acquire or release */
    GPUSIM_CACHE_GLOBAL = 4096, /* cp.async.cg, ld.cg ...: not in L1 */
};

/* A function of numerics/, chosen when the op was decoded. */
union gpusim_call {
    gpusim_num_fn *number;
    gpusim_num_compare_fn *compare;
    gpusim_num_mma_fn *mma;
};

struct gpusim_op {
    gpusim_handler *run;
    union gpusim_call call, call2; /* what a handler of numbers calls */
    uint32_t d, a, b, c;           /* registers: index of the first 32-bit word in the frame */
    uint32_t guard;                /* predicate word; word 0 is always true */
    uint32_t guard_xor;            /* ~0 for @!p */
    int64_t imm;                   /* address offset, immediate, branch target ... */
    const uint32_t *list;          /* further registers (vector elements, matrix fragments, call arguments) */
    const void *ref;               /* what else a handler needs: the callee, a branch table, a string */
    uint16_t flags;
    uint16_t n_list;
    uint8_t size;     /* bytes of one element in memory */
    uint8_t vec;      /* elements per lane */
    uint8_t space;    /* enum gpusim_space */
    uint8_t base;     /* enum gpusim_base of imm */
    uint8_t cls;      /* enum gpusim_class */
    uint8_t type;     /* enum gpusim_type */
    uint8_t from;     /* source type of conversions */
    uint8_t rounding; /* enum gpusim_rounding */
    uint8_t code;     /* handler's own switch: comparison, atomic operation, shuffle mode ... */
    uint32_t line;    /* line of the PTX text, from 1 */
    uint32_t source;  /* index into module->locations, 0: none */
};

/* Source location from .loc. */
struct gpusim_location {
    uint32_t file, line;
    uint32_t at_file, at_line; /* where that was inlined; 0: nowhere */
};
