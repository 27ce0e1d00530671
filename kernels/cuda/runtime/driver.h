/* The CUDA driver API as far as the cuda device uses it, found at run time (libcuda.so.1), so that one binary starts on
 * machines with and without a driver. Types and constants are declared here, by the documented values; a test compares
 * them with cuda.h where the toolkit is installed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

typedef int lk_cu_result; /* CUresult */
typedef int lk_cu_device; /* CUdevice */
typedef uint64_t lk_cu_address;
typedef struct lk_cu_context_s *lk_cu_context;
typedef struct lk_cu_module_s *lk_cu_module;
typedef struct lk_cu_function_s *lk_cu_function;
typedef struct lk_cu_stream_s *lk_cu_stream;
typedef struct lk_cu_event_s *lk_cu_event;

enum {
    LK_CU_ERROR_OUT_OF_MEMORY = 2,
    LK_CU_ERROR_NOT_READY = 600,
    LK_CU_ERROR_PEER_ALREADY = 704,
    LK_CU_ERROR_UNKNOWN = 999,
    LK_CU_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    LK_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    LK_CU_ATTRIBUTE_COMPUTE_MAJOR = 75,
    LK_CU_ATTRIBUTE_COMPUTE_MINOR = 76,
    LK_CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    LK_CU_STREAM_NON_BLOCKING = 1,
    LK_CU_EVENT_DISABLE_TIMING = 2,
    LK_CU_ALLOCATION_PINNED = 1,
    LK_CU_LOCATION_DEVICE = 1,
};

/* CUmemAllocationProp: which memory, and where. */
struct lk_cu_allocation {
    int type, handles, location_type, location;
    void *metadata;
    unsigned char flags[8];
};

/* name, exported symbol, parameters */
#define LK_CUDA_FUNCTIONS(F)                                                                                           \
    F(init, "cuInit", (unsigned flags))                                                                                \
    F(driver_version, "cuDriverGetVersion", (int *version))                                                            \
    F(device_count, "cuDeviceGetCount", (int *n))                                                                      \
    F(device_get, "cuDeviceGet", (lk_cu_device * device, int index))                                                   \
    F(device_name, "cuDeviceGetName", (char *name, int size, lk_cu_device device))                                     \
    F(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, lk_cu_device device))                      \
    F(device_pci, "cuDeviceGetPCIBusId", (char *id, int size, lk_cu_device device))                                    \
    F(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, lk_cu_device device))                                     \
    F(device_uuid, "cuDeviceGetUuid", (unsigned char bytes[16], lk_cu_device device))                                  \
    F(context_retain, "cuDevicePrimaryCtxRetain", (lk_cu_context * context, lk_cu_device device))                      \
    F(context_release, "cuDevicePrimaryCtxRelease_v2", (lk_cu_device device))                                          \
    F(context_set, "cuCtxSetCurrent", (lk_cu_context context))                                                         \
    F(peer_can, "cuDeviceCanAccessPeer", (int *can, lk_cu_device device, lk_cu_device peer))                           \
    F(peer_enable, "cuCtxEnablePeerAccess", (lk_cu_context peer, unsigned flags))                                      \
    F(module_load, "cuModuleLoadData", (lk_cu_module * module, const void *image))                                     \
    F(module_unload, "cuModuleUnload", (lk_cu_module module))                                                          \
    F(module_function, "cuModuleGetFunction", (lk_cu_function * function, lk_cu_module module, const char *name))      \
    F(function_set, "cuFuncSetAttribute", (lk_cu_function function, int attribute, int value))                         \
    F(memory_alloc, "cuMemAlloc_v2", (lk_cu_address * address, size_t bytes))                                          \
    F(memory_free, "cuMemFree_v2", (lk_cu_address address))                                                            \
    F(memory_info, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                            \
    F(memory_grain, "cuMemGetAllocationGranularity",                                                                   \
      (size_t * bytes, const struct lk_cu_allocation *of, unsigned option))                                            \
    F(host_alloc, "cuMemHostAlloc", (void **block, size_t bytes, unsigned flags))                                      \
    F(host_free, "cuMemFreeHost", (void *block))                                                                       \
    F(host_register, "cuMemHostRegister_v2", (void *pages, size_t bytes, unsigned flags))                              \
    F(host_unregister, "cuMemHostUnregister", (void *pages))                                                           \
    F(copy_to_device, "cuMemcpyHtoDAsync_v2", (lk_cu_address to, const void *from, size_t bytes, lk_cu_stream stream)) \
    F(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *to, lk_cu_address from, size_t bytes, lk_cu_stream stream))         \
    F(copy_on_devices, "cuMemcpyDtoDAsync_v2",                                                                         \
      (lk_cu_address to, lk_cu_address from, size_t bytes, lk_cu_stream stream))                                       \
    F(set_bytes, "cuMemsetD8Async", (lk_cu_address to, unsigned char value, size_t n, lk_cu_stream stream))            \
    F(stream_create, "cuStreamCreate", (lk_cu_stream * stream, unsigned flags))                                        \
    F(stream_destroy, "cuStreamDestroy_v2", (lk_cu_stream stream))                                                     \
    F(stream_synchronize, "cuStreamSynchronize", (lk_cu_stream stream))                                                \
    F(stream_wait, "cuStreamWaitEvent", (lk_cu_stream stream, lk_cu_event event, unsigned flags))                      \
    F(launch_host, "cuLaunchHostFunc", (lk_cu_stream stream, void (*function)(void *user), void *user))                \
    F(event_create, "cuEventCreate", (lk_cu_event * event, unsigned flags))                                            \
    F(event_destroy, "cuEventDestroy_v2", (lk_cu_event event))                                                         \
    F(event_record, "cuEventRecord", (lk_cu_event event, lk_cu_stream stream))                                         \
    F(event_query, "cuEventQuery", (lk_cu_event event))                                                                \
    F(event_elapsed, "cuEventElapsedTime", (float *ms, lk_cu_event start, lk_cu_event stop))                           \
    F(event_synchronize, "cuEventSynchronize", (lk_cu_event event))                                                    \
    F(launch, "cuLaunchKernel",                                                                                        \
      (lk_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared, lk_cu_stream stream, void **parameters, void **extra))                       \
    F(error_name, "cuGetErrorName", (lk_cu_result result, const char **text))                                          \
    F(error_string, "cuGetErrorString", (lk_cu_result result, const char **text))

/* Bytes of device memory from an address on. */
struct lk_cu_range {
    uint64_t start, bytes;
};

struct lk_cuda_driver {
    /* The simulated GPU wants to know which memory the kernels launched from now on may use; none: all. NULL: a GPU. */
    void (*tensors)(const struct lk_cu_range *ranges, size_t n);
#define LK_CUDA_FUNCTION(name, symbol, parameters) lk_cu_result(*name) parameters;
    LK_CUDA_FUNCTIONS(LK_CUDA_FUNCTION)
#undef LK_CUDA_FUNCTION
};

/* Loads and initialises the driver once per process. LK_E_DEVICE with what is missing. */
enum lk_code lk_cuda_driver_open(void);
/* After lk_cuda_driver_open. */
const struct lk_cuda_driver *lk_cuda(void);

/* The driver's names: lk_cuda_symbols.launch is "cuLaunchKernel". */
struct lk_cuda_symbols {
#define LK_CUDA_SYMBOL(name, symbol, parameters) const char *name;
    LK_CUDA_FUNCTIONS(LK_CUDA_SYMBOL)
#undef LK_CUDA_SYMBOL
};
extern const struct lk_cuda_symbols lk_cuda_symbols;

/* The error of a call: LK_OK for 0; memory is LK_E_FIT, all else LK_E_DEVICE: "cuda: WHAT: cuMemAlloc_v2 failed with 2,
 * error name: what it means". */
enum lk_code lk_cuda_check(lk_cu_result result, const char *symbol, const char *what_format, ...)
    __attribute__((format(printf, 3, 4)));

/* LK_CU(memory_alloc, (&address, bytes), "weights: %zu bytes", bytes): a driver call, counted, with its status. */
#define LK_CU(name, arguments, ...)                                                                                    \
    lk_cuda_check(lk_cuda_due() ? LK_CU_ERROR_UNKNOWN : lk_cuda()->name arguments, lk_cuda_symbols.name, __VA_ARGS__)

/* Test hooks: the n-th driver call from now (1 = the next) that can be made to fail does, once; 0 turns it off. Calls
 * that give something back are not counted. */
void lk_cuda_fail_at(int64_t n);
int64_t lk_cuda_calls(void);
bool lk_cuda_due(void); /* for LK_CU */
