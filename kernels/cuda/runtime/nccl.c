#include "kernels/cuda/runtime/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct lk_nccl nccl;
static struct lk_error failure; /* of the one attempt to open it */

const struct lk_nccl *lk_nccl(void) { return &nccl; }

enum lk_code lk_nccl_check(lk_nccl_result result, const char *symbol, const char *what) {
    if (!result) return LK_OK;
    return lk_fail(LK_E_DEVICE, "%s: %s failed with %d, %s (NCCL_DEBUG=INFO says more)", what, symbol, result,
                   nccl.error_string(result));
}

static enum lk_code open_library(void) {
    /* Connections are made when a group is, not by a first collective that waits for ranks which may have failed. */
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return lk_fail(LK_E_DEVICE,
                       "several GPUs that hold the weights together need NVIDIA's NCCL, libnccl.so.2 (%s); install the "
                       "package libnccl2, or put "
                       "the folder that has the library into LD_LIBRARY_PATH, or leave --weights out",
                       dlerror());
    const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define ENTRY(name, symbol, result, parameters) {symbol, offsetof(struct lk_nccl, name)},
        LK_NCCL_FUNCTIONS(ENTRY)};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address) {
            enum lk_code rc = lk_fail(LK_E_DEVICE, "libnccl.so.2 has no function %s; NCCL 2.18 or newer is needed",
                                      functions[i].symbol);
            dlclose(library);
            return rc;
        }
        memcpy((char *)&nccl + functions[i].offset, &address, sizeof address);
    }
    return LK_OK; /* loaded until the program ends */
}

static void open_once(void) { lk_error_get(&failure, open_library()); }

enum lk_code lk_nccl_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return failure.code ? lk_error_set(&failure) : LK_OK;
}
