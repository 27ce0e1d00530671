#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/device.h"
#include "kernels/cpu/isa.h"
#include "tools/cli/cli.h"
#include "tools/cli/print.h"

/* The processor's name as the kernel gives it; "" where it gives none. */
static void cpu_model(char *out, size_t size) {
    char line[512];
    out[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (f) fclose(f);
}

static enum lk_code print_json(const struct lk_device *cpu, const char *model, uint64_t memory) {
    cJSON *root = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    cJSON *entry = cJSON_CreateObject();
    bool ok = list && entry && cJSON_AddItemToArray(list, entry) && cJSON_AddStringToObject(entry, "name", "cpu") &&
              cJSON_AddStringToObject(entry, "model", model) &&
              cJSON_AddStringToObject(entry, "isa", lk_cpu_isa_name(lk_cpu_isa())) &&
              cJSON_AddNumberToObject(entry, "threads", cpu->n_threads) &&
              cJSON_AddNumberToObject(entry, "memory_bytes", (double)memory);
    char *text = ok ? cJSON_Print(root) : NULL;
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "devices: out of memory");
}

enum lk_code cli_devices(const struct cli_arguments *arguments) {
    struct lk_device *cpu;
    enum lk_code rc = lk_device_cpu_create(0, &cpu);
    if (rc) return rc;
    char model[256], memory_text[32];
    cpu_model(model, sizeof model);
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (arguments->json) {
        rc = print_json(cpu, model, memory);
    } else {
        printf("cpu   %s\n      instructions %s, %d threads, %s memory\n", model, lk_cpu_isa_name(lk_cpu_isa()),
               cpu->n_threads, cli_bytes(memory, memory_text));
        puts("cuda  none: this build has no CUDA device");
    }
    lk_device_free(cpu);
    return rc;
}
