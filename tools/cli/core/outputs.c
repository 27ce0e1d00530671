#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/document/table.h"
#include "eval/study/random.h"
#include "tools/cli/cli.h"

static enum lk_code read_sample(const char *text, size_t n, size_t *out) {
    char *end;
    double value = strtod(text, &end);
    bool percent = *end == '%';
    if (end == text || end[percent] || !(value > 0) || (percent && value > 100) || (!percent && value != floor(value)))
        return lk_fail(LK_E_USAGE, "--sample: expected a share as 1%% or a number, got \"%s\"", text);
    value = ceil(percent ? value * (double)n / 100 : value);
    if (value > (double)n) lk_log(LK_LOG_WARNING, "--sample %s: there are %zu in all: each is taken", text, n);
    *out = value < (double)n ? (size_t)value : n;
    return LK_OK;
}

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

enum lk_code cli_draw(const char *text, size_t n, const char *stream, int32_t **chosen, size_t *n_chosen) {
    struct lk_stream random;
    *chosen = NULL;
    LK_TRY(read_sample(text, n, n_chosen));
    int32_t *order = lk_malloc((n + 1) * sizeof *order);
    if (!order) return lk_fail(LK_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    lk_stream_named(&random, 42, stream);
    lk_stream_shuffle(&random, order, n);
    qsort(order, *n_chosen, sizeof *order, by_value);
    *chosen = order;
    return LK_OK;
}

void cli_print_text(FILE *out, const char *text) { lk_log_text(out, text, false); }

enum lk_code cli_print_table(const struct lk_table *table, bool json) {
    struct lk_text text = {0};
    (json ? lk_table_json : lk_table_markdown)(table, &text);
    if (!text.rc) fwrite(text.bytes, 1, text.n, stdout);
    return lk_text_free(&text);
}

const char *cli_bytes(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    snprintf(out, 32, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

const char *cli_count(uint64_t count, char out[32]) {
    static const char *const units[] = {"", " K", " M", " G", " T"};
    double value = (double)count;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++) value /= 1000;
    snprintf(out, 32, unit ? "%.2f%s" : "%.0f%s", value, units[unit]);
    return out;
}

static bool same(const char *path, const struct stat *output) {
    struct stat st;
    return !stat(path, &st) && st.st_dev == output->st_dev && st.st_ino == output->st_ino;
}

/* Whether a report, an export or a final set into `folder` would write the file anew: all of its tables and those. */
static bool is_written(const char *file, const char *folder, const struct stat *folder_stat) {
    static const char *const names[] = {"report.html",
                                        "findings.txt",
                                        "outcomes.csv",
                                        "configuration.json",
                                        "items.csv",
                                        "figure_5.csv",
                                        "pictures.csv",
                                        "survey.json",
                                        "participants.jsonl",
                                        "abandoned.jsonl",
                                        "evaluations_exp1.jsonl",
                                        "evaluations_exp2.jsonl",
                                        "evaluations_exp3.jsonl",
                                        "source_manifest.json",
                                        "latent_umap.csv",
                                        "latent_silhouette.csv"};
    struct stat st;
    char *whole = realpath(file, NULL), *tables = lk_format("%s/tables", folder);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    const char *name = slash ? slash + 1 : file, *place = slash > whole ? whole : "/";
    if (slash) *slash = 0;
    bool result = tables && !stat(tables, &st) && same(place, &st);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) result |= same(place, folder_stat);
    free(whole);
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

enum lk_code cli_output_name_check(const char *path) {
    struct stat st;
    if (!strcmp(path, "-"))
        return lk_fail(LK_E_USAGE,
                       "--output: expected a name; \"-\" is none, and standard output is not written to by it");
    if (!lstat(path, &st) || errno != ENAMETOOLONG) return LK_OK;
    return lk_fail(LK_E_IO, "--output: %.64s...: the name is too long for its folder (%zu bytes); name it shorter",
                   path, strlen(path));
}

static bool writes_page(const struct cli_arguments *a) {
    const char *verb = a->verb ? a->verb->name : "";
    return a->command == CLI_REPORT || (a->command == CLI_STUDY && !strcmp(verb, "rewrite")) ||
           (a->command == CLI_T2I && (!strcmp(verb, "metrics") || !strcmp(verb, "export")));
}

/* Somebody else's page. */
static enum lk_code check_page(const struct cli_arguments *a) {
    static const char mark[] = "<meta name=\"generator\" content=\"likeness ";
    char head[2048], *page = lk_format("%s/report.html", a->output);
    if (!page) return lk_fail(LK_E_NOMEM, "--output: out of memory");
    FILE *file = a->overwrite ? NULL : fopen(page, "rb");
    size_t n = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    lk_free(page);
    if (!n || memmem(head, n, mark, sizeof mark - 1)) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "--output: %s: has a report.html that is no result of likeness; name another folder, or replace it "
                   "with --overwrite",
                   a->output);
}

enum lk_code cli_output_free(const struct cli_arguments *a) {
    struct stat st;
    if (a->overwrite || !a->output || stat(a->output, &st) || !st.st_size) return LK_OK;
    return lk_fail(LK_E_USAGE, "--output: %s: is there; name another file, or replace it with --overwrite", a->output);
}

enum lk_code cli_output_write(const struct cli_arguments *a, const struct lk_text *text) {
    char *there = NULL;
    size_t n = 0;
    struct stat st;
    if (text->rc) return text->rc;
    if (!a->output) {
        fwrite(text->bytes, 1, text->n, stdout);
        return LK_OK;
    }
    if (!a->overwrite && !stat(a->output, &st) && S_ISREG(st.st_mode) && st.st_size) {
        bool equal =
            !lk_read_file(a->output, text->n + 1, &there, &n) && n == text->n && !memcmp(there, text->bytes, n);
        lk_free(there);
        return equal ? LK_OK
                     : lk_fail(LK_E_USAGE,
                               "--output: %s: is there with another content; name another file, or "
                               "replace it with --overwrite",
                               a->output);
    }
    return lk_atomic_write_file(a->output, text->bytes, text->n);
}

enum lk_code cli_outputs_check(const struct cli_arguments *a) {
    struct stat st;
    const struct cli_option *o;
    if (!a->output) return LK_OK;
    LK_TRY(cli_output_name_check(a->output));
    if (writes_page(a)) LK_TRY(check_page(a));
    if (stat(a->output, &st)) return LK_OK;
    for (size_t i = 0; (o = cli_option(i)); i++)
        if (!o->parameter && strcmp(o->name, "output") && cli_takes(a->command, a->verb, o))
            LK_TRY(check_option(a, &st, o));
    for (int i = 0; i < CLI_MAX_MORE && a->more[i]; i++) {
        if (S_ISDIR(st.st_mode) && same(a->more[i], &st))
            return lk_fail(LK_E_USAGE, "--output: %s: is the folder %s, which the command reads; name another folder",
                           a->output, a->more[i]);
        LK_TRY(check(a->output, &st, "the command", a->more[i]));
    }
    return LK_OK;
}

enum lk_code cli_findings_print(const char *folder) {
    char *path = lk_format("%s/findings.txt", folder), *text = NULL;
    size_t n = 0;
    enum lk_code rc = path ? lk_read_file(path, 1 << 20, &text, &n) : lk_fail(LK_E_NOMEM, "report: out of memory");
    for (char *line = text, *end; !rc && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        cli_print_text(stdout, line);
        puts("\n");
    }
    lk_free(text);
    lk_free(path);
    return rc;
}
