/* The command line: the input is cut at NUL bytes into arguments. Whatever is accepted must be in range. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/core/options.h"

#define MAX_ARGUMENTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 1 << 16) return 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const char *argv[MAX_ARGUMENTS + 1] = {"likeness"};
    int argc = 1;
    for (size_t at = 0; at <= size && argc < MAX_ARGUMENTS; at += strlen(text + at) + 1) argv[argc++] = text + at;
    struct cli_arguments a;
    enum lk_code rc = cli_arguments_parse(&a, argc, argv);
    require(rc == LK_OK || (rc == LK_E_USAGE && *lk_error_text()));
    if (rc == LK_OK) {
        require(a.command >= 0 && a.command < CLI_N_COMMANDS);
        require(a.n_images >= 0 && a.n_images <= CLI_MAX_IMAGES);
        const struct lk_request *r = &a.job.request;
        require(r->seed <= INT64_MAX && r->num_inference_steps >= 0 && r->num_inference_steps <= 1000);
        require(r->width >= 0 && r->width <= 65535 && r->height >= 0 && r->height <= 65535);
        require(r->guidance_scale >= 0 && r->guidance_scale <= 1000);
        require(r->true_cfg_scale >= 0 && r->true_cfg_scale <= 1000);
        require(!strcmp(a.job.run.dtype, "bf16") || !strcmp(a.job.run.dtype, "f32"));
        require(a.help || a.version || a.command != CLI_EDIT || (a.model && r->prompt && a.output));
    }
    free(text);
    return 0;
}
