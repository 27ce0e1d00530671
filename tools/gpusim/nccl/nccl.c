/* A look-alike of libnccl.so.2 over the simulated devices: the calls that likeness makes, of one process that has all
 * ranks. Values are those of nccl.h. */
#include <stdlib.h>

#include "gpusim.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument
} ncclResult_t;
enum { N_TYPES = 10 };
typedef struct gpusim_comm {
    struct gpusim_ranks *group;
    int rank;
} * ncclComm_t;

EXPORT ncclResult_t ncclGetVersion(int *version);
EXPORT const char *ncclGetErrorString(int result);
EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices);
EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm);
EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm);
EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, int *error);
EXPORT ncclResult_t ncclGroupStart(void);
EXPORT ncclResult_t ncclGroupEnd(void);
EXPORT ncclResult_t ncclAllGather(const void *from, void *to, size_t n, int type, ncclComm_t comm, void *stream);

ncclResult_t ncclGetVersion(int *version) {
    *version = 22809;
    return ncclSuccess;
}

const char *ncclGetErrorString(int result) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process error"};
    return result >= 0 && result < (int)(sizeof texts / sizeof *texts) ? texts[result] : "unknown result code";
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
    struct gpusim_ranks *group;
    bool seen[GPUSIM_MAX_DEVICES] = {false};
    if (n < 1 || n > GPUSIM_MAX_DEVICES) return ncclInvalidArgument;
    for (int i = 0; i < n; i++) {
        const int device = devices ? devices[i] : i;
        if (device < 0 || device >= GPUSIM_MAX_DEVICES || seen[device]) return ncclInvalidArgument;
        seen[device] = true;
    }
    const int result = gpusim_ranks_new(n, &group);
    if (result) return (ncclResult_t)result;
    for (int i = 0; i < n; i++) {
        if (!(comms[i] = malloc(sizeof **comms))) abort();
        *comms[i] = (struct gpusim_comm){group, i};
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    gpusim_ranks_leave(comm->group, comm->rank);
    free(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, int *error) {
    (void)comm;
    *error = gpusim_ranks_error();
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, int type, ncclComm_t comm, void *stream) {
    static const size_t bytes[N_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    if (type < 0 || type >= N_TYPES) return ncclInvalidArgument;
    return (ncclResult_t)gpusim_all_gather(comm->group, comm->rank, from, to, n * bytes[type], stream);
}
