#include "tools/cli/edit/dump.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "weights/safetensors.h"

enum lk_code cli_dump_open(struct cli_dump *dump, const char *folder) {
    *dump = (struct cli_dump){.folder = folder};
    if (mkdir(folder, 0777) == 0) return LK_OK;
    if (errno != EEXIST) return lk_fail_errno(errno, "--dump-steps: %s", folder);
    DIR *dir = opendir(folder);
    if (!dir) return lk_fail_errno(errno, "--dump-steps: %s", folder);
    int n = 0;
    while (readdir(dir)) n++; /* . and .. are always there */
    closedir(dir);
    if (n > 2) return lk_fail(LK_E_USAGE, "--dump-steps: %s: expected a new or empty folder", folder);
    return LK_OK;
}

/* The elements of a window lie apart on the device: they are fetched row by row. */
static enum lk_code fetch(struct lk_device *dev, const struct lk_tensor *value, unsigned char *host) {
    if (lk_tensor_is_dense(value)) return lk_download(dev, host, value);
    size_t row_bytes = (size_t)lk_tensor_row_numel(value) * lk_dtype_size(value->dtype);
    for (int64_t i = 0; i < value->shape[0]; i++) {
        struct lk_tensor row = lk_tensor_rows(value, i, 1);
        row.ld = lk_tensor_row_numel(value);
        enum lk_code rc = lk_download(dev, host + (size_t)i * row_bytes, &row);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code write_tensor(void *context, struct lk_device *dev, const char *name,
                                 const struct lk_tensor *value) {
    struct cli_dump *dump = context;
    char safe[256], path[4096];
    snprintf(safe, sizeof safe, "%s", name);
    for (char *c = safe; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) *c = '_';
    snprintf(path, sizeof path, "%s/%s.safetensors", dump->folder, safe);
    for (int again = 2; access(path, F_OK) == 0; again++)
        snprintf(path, sizeof path, "%s/%s.%d.safetensors", dump->folder, safe, again);
    size_t bytes = lk_tensor_bytes(value);
    void *host = lk_malloc(bytes);
    if (!host) return lk_fail(LK_E_NOMEM, "%s: out of memory for %zu bytes", path, bytes);
    struct lk_st_named named = {name, lk_tensor_make(host, value->dtype, value->n_dims, value->shape)};
    enum lk_code rc = fetch(dev, value, host);
    if (!rc) rc = lk_safetensors_write(path, &named, 1, "{\"format\":\"pt\"}");
    lk_free(host);
    if (!rc) dump->n_written++;
    return rc;
}

void cli_dump_attach(struct cli_dump *dump, struct lk_device *dev) {
    dev->trace = write_tensor;
    dev->trace_context = dump;
}
