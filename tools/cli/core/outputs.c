#include "tools/cli/core/outputs.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

static bool same(const char *path, const struct stat *output) {
    struct stat st;
    return !stat(path, &st) && st.st_dev == output->st_dev && st.st_ino == output->st_ino;
}

/* Whether a report into `folder` would write the file anew: all of its tables, the page and the configuration. */
static bool is_written(const char *file, const char *folder, const struct stat *folder_stat) {
    struct stat st;
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    char *copy = lk_strdup(file), *tables = lk_format("%s/tables", folder);
    const char *place = copy ? dirname(copy) : "";
    bool result = tables && !stat(tables, &st) && same(place, &st);
    if (!strcmp(name, "report.html") || !strcmp(name, "configuration.json")) result |= same(place, folder_stat);
    lk_free(copy);
    lk_free(tables);
    return result;
}

static enum lk_code check(const char *output, const struct stat *st, const char *option, const char *input) {
    struct stat of;
    if (!input || stat(input, &of) || !S_ISREG(of.st_mode)) return LK_OK;
    if (S_ISDIR(st->st_mode) ? !is_written(input, output, st) : !same(input, st)) return LK_OK;
    return lk_fail(LK_E_USAGE, "--output: %s: would replace %s, which %s reads; name another %s", output, input, option,
                   S_ISDIR(st->st_mode) ? "folder" : "file");
}

static enum lk_code check_option(const struct cli_arguments *a, const struct stat *st, const struct cli_option *o) {
    const char *base = (const char *)a + o->offset;
    char name[64];
    snprintf(name, sizeof name, "--%s", o->name);
    if (o->kind == CLI_FILE) return check(a->output, st, name, *(const char *const *)(const void *)base);
    if (o->kind == CLI_LIST) {
        const struct cli_list *list = (const void *)base;
        for (int i = 0; i < list->n; i++) LK_TRY(check(a->output, st, name, list->values[i]));
    }
    return LK_OK;
}

enum lk_code cli_outputs_check(const struct cli_arguments *a) {
    struct stat st;
    const struct cli_option *o;
    if (!a->output || stat(a->output, &st)) return LK_OK;
    for (size_t i = 0; (o = cli_option(i)); i++)
        if (!o->parameter && strcmp(o->name, "output") && (o->commands >> a->command & 1))
            LK_TRY(check_option(a, &st, o));
    for (int i = 0; i < CLI_MAX_MORE && a->more[i]; i++) LK_TRY(check(a->output, &st, "the command", a->more[i]));
    return LK_OK;
}
