/* PTX text as a program hands it to the simulated GPU: read and decoded, never run. */
#include "exec/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gpusim_message message;
    gpusim_module_free(gpusim_module_load((const char *)data, size, 0, &message));
    return 0;
}
