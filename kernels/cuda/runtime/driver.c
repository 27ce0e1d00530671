#include "kernels/cuda/runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct lk_cuda_driver driver;
static struct lk_error failure; /* of the one attempt to open it */
static atomic_int_least64_t fail_at, n_calls;

const struct lk_cuda_symbols lk_cuda_symbols = {
#define SYMBOL(name, symbol, parameters) symbol,
    LK_CUDA_FUNCTIONS(SYMBOL)};

const struct lk_cuda_driver *lk_cuda(void) { return &driver; }

void lk_cuda_fail_at(int64_t n) { atomic_store(&fail_at, n); }
int64_t lk_cuda_calls(void) { return atomic_load(&n_calls); }
bool lk_cuda_due(void) {
    atomic_fetch_add(&n_calls, 1);
    return atomic_load(&fail_at) > 0 && atomic_fetch_sub(&fail_at, 1) == 1;
}

enum lk_code lk_cuda_check(lk_cu_result result, const char *symbol, const char *what_format, ...) {
    if (!result) return LK_OK;
    const char *name = NULL, *meaning = NULL;
    if (driver.error_name(result, &name) || !name) name = "unknown error";
    if (driver.error_string(result, &meaning) || !meaning) meaning = "the driver does not say more";
    char what[512];
    va_list args;
    va_start(args, what_format);
    vsnprintf(what, sizeof what, what_format, args);
    va_end(args);
    return lk_fail(result == LK_CU_ERROR_OUT_OF_MEMORY ? LK_E_FIT : LK_E_DEVICE, "cuda: %s: %s failed with %d, %s: %s",
                   what, symbol, result, name, meaning);
}

static enum lk_code open_library(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return lk_fail(LK_E_DEVICE, "no CUDA driver on this machine (%s); use --device cpu", dlerror());
    const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define ENTRY(name, symbol, parameters) {symbol, offsetof(struct lk_cuda_driver, name)},
        LK_CUDA_FUNCTIONS(ENTRY)};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address) {
            enum lk_code rc =
                lk_fail(LK_E_DEVICE, "cuda: the driver has no function %s; a driver of CUDA 11 or newer is needed",
                        functions[i].symbol);
            dlclose(library);
            return rc;
        }
        memcpy((char *)&driver + functions[i].offset, &address, sizeof address);
    }
    void *address = dlsym(library, "gpusim_tensors");
    memcpy(&driver.tensors, &address, sizeof address);
    return lk_cuda_check(driver.init(0), lk_cuda_symbols.init, "starting the driver"); /* loaded until the program ends
                                                                                        */
}

static void open_once(void) { lk_error_get(&failure, open_library()); }

enum lk_code lk_cuda_driver_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return failure.code ? lk_error_set(&failure) : LK_OK;
}
