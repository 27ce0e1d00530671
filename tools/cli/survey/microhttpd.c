#include "tools/cli/survey/microhttpd.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libmicrohttpd.so.12"

struct microhttpd mhd;

enum lk_code microhttpd_open(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define ENTRY(name) {"MHD_" #name, offsetof(struct microhttpd, name)},
        MICROHTTPD_FUNCTIONS(ENTRY)};
    if (mhd.start_daemon) return LK_OK;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* until the program ends */
    if (!library)
        return lk_fail(LK_E_IO, "a server needs " LIBRARY " (%s); install the package libmicrohttpd12", dlerror());
    struct microhttpd found;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        if (!address) return lk_fail(LK_E_IO, LIBRARY " has no function %s", functions[i].symbol);
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    mhd = found;
    return LK_OK;
}
