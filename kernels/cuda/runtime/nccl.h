/* NVIDIA's NCCL as far as ranks.c uses it, found at run time (libnccl.so.2). Types and constants are declared here, by
 * the documented values, so that no header of it is needed. */
#pragma once

#include "kernels/cuda/runtime/driver.h"

typedef int lk_nccl_result; /* ncclResult_t */
typedef struct lk_nccl_comm_s *lk_nccl_comm;

enum {
    LK_NCCL_INT8 = 0,        /* ncclInt8 */
    LK_NCCL_IN_PROGRESS = 7, /* ncclInProgress */
};

/* name, exported symbol, result, parameters */
#define LK_NCCL_FUNCTIONS(F)                                                                                           \
    F(error_string, "ncclGetErrorString", const char *, (lk_nccl_result result))                                       \
    F(init_all, "ncclCommInitAll", lk_nccl_result, (lk_nccl_comm * comms, int n, const int *devices))                  \
    F(destroy, "ncclCommDestroy", lk_nccl_result, (lk_nccl_comm comm))                                                 \
    F(abort, "ncclCommAbort", lk_nccl_result, (lk_nccl_comm comm))                                                     \
    F(async_error, "ncclCommGetAsyncError", lk_nccl_result, (lk_nccl_comm comm, lk_nccl_result * error))               \
    F(group_start, "ncclGroupStart", lk_nccl_result, (void))                                                           \
    F(group_end, "ncclGroupEnd", lk_nccl_result, (void))                                                               \
    F(all_gather, "ncclAllGather", lk_nccl_result,                                                                     \
      (const void *from, void *to, size_t n, int type, lk_nccl_comm comm, lk_cu_stream stream))

struct lk_nccl {
#define LK_NCCL_FUNCTION(name, symbol, result, parameters) result(*name) parameters;
    LK_NCCL_FUNCTIONS(LK_NCCL_FUNCTION)
#undef LK_NCCL_FUNCTION
};

/* Loads the library once per process. LK_E_DEVICE with what is missing and which package has it. */
enum lk_code lk_nccl_open(void);
/* After lk_nccl_open. */
const struct lk_nccl *lk_nccl(void);

/* LK_OK for 0, else LK_E_DEVICE: "WHAT: ncclAllGather failed with 3, internal error". */
enum lk_code lk_nccl_check(lk_nccl_result result, const char *symbol, const char *what);
