/* Every option of every verb is read by what the verb runs: one that a verb takes and nobody looks at would be passed
 * over in silence. The sources of the command line say which function names which other, and which fields it reads. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "tests/common/test.h"
#include "tools/cli/core/options.h"

enum { MAX_FILES = 400, MAX_CHUNKS = 4000, MAX_OPTIONS = 512 };

/* A function or a table at the outermost level of a file. */
struct chunk {
    int file;
    char name[64];
    const char *text;
    size_t n;
    bool is_static, seen;
    uint64_t reads[MAX_OPTIONS / 64]; /* bit i: the field of option i */
};

static struct chunk chunks[MAX_CHUNKS];
static char *texts[MAX_FILES], names[MAX_FILES][300];
static int n_chunks, n_files;

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* What a definition defines stands before "(", "[" or "=". */
static void name_chunk(struct chunk *c) {
    const char *end = c->text + strcspn(c->text, "([={;"), *start;
    while (end > c->text && !in_name(end[-1])) end--;
    for (start = end; start > c->text && in_name(start[-1]);) start--;
    snprintf(c->name, sizeof c->name, "%.*s", (int)(end - start), start);
    c->is_static = !strncmp(c->text, "static ", 7);
}

/* As clang-format leaves them: a definition begins in the first column; a function ends with "}" there, all else with a
 * semicolon at the end of a line. */
static void split(int file) {
    const char *start = NULL;
    for (const char *line = texts[file], *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        const char last = end > line ? end[-1] : 0;
        end += *end == '\n';
        if (!start && in_name(*line)) start = line;
        if (!start) continue;
        const size_t head = strcspn(start, "={;");
        const bool function = start[head] == '{' && start + head < end,
                   one = start == line && (last == '}' || last == ';');
        if (function ? *line != '}' && !one : last != ';') continue;
        assert_true(n_chunks < MAX_CHUNKS);
        chunks[n_chunks] = (struct chunk){.file = file, .text = start, .n = (size_t)(end - start)};
        name_chunk(&chunks[n_chunks]);
        const bool type = !strncmp(start, "typedef ", 8) || start[strcspn(start, "({=;")] == '{';
        n_chunks += !type;
        start = NULL;
    }
}

static void read_folder(const char *folder) {
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[600];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot) read_folder(path);
        if (!dot || strcmp(dot, ".c") != 0) continue;
        assert_true(n_files < MAX_FILES);
        assert_ok(lk_read_file(path, 1 << 20, &texts[n_files], &size));
        snprintf(names[n_files], sizeof names[0], "%.299s", path);
        split(n_files++);
    }
    closedir(dir);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct chunk *)a)->name, ((const struct chunk *)b)->name);
}

static struct chunk *find_chunk(const char *name, size_t n, int file) {
    struct chunk key, *found;
    if (n >= sizeof key.name) return NULL;
    snprintf(key.name, sizeof key.name, "%.*s", (int)n, name);
    found = bsearch(&key, chunks, (size_t)n_chunks, sizeof *chunks, by_name);
    while (found && found > chunks && !by_name(found - 1, &key)) found--;
    for (; found && found < chunks + n_chunks && !by_name(found, &key); found++)
        if (!found->is_static || found->file == file) return found;
    return NULL;
}

/* Behind a comment, a string or a character that begins at p; p: none does. */
static const char *pass(const char *p, const char *end) {
    const char quote = *p;
    if (!strncmp(p, "/*", 2)) {
        const char *close = strstr(p + 2, "*/");
        return close ? close + 2 : end;
    }
    if (quote != '"' && quote != '\'') return p;
    for (p++; p < end && *p != quote; p++) p += *p == '\\';
    return p + 1;
}

/* The next identifier of a text's code, and whether it is a member. NULL: there is none. */
static const char *next_identifier(const char **at, const char *end, size_t *n, bool *member) {
    for (const char *p = *at, *next; p < end; p = next + (next == p)) {
        if ((next = pass(p, end)) != p || !(isalpha((unsigned char)*p) || *p == '_')) continue;
        const char *start = p;
        while (p < end && in_name(*p)) p++;
        *n = (size_t)(p - start);
        *at = p;
        *member = start[-1] == '.' || (start[-1] == '>' && start[-2] == '-');
        return start;
    }
    return NULL;
}

/* report.query is read where a member query is. */
static const char *leaf_of(const struct cli_option *o) {
    const char *dot = strrchr(o->field, '.');
    return dot ? dot + 1 : o->field;
}

static void note_reads(struct chunk *c) {
    const struct cli_option *o;
    const char *at = c->text + 1, *name;
    size_t n;
    bool member;
    while ((name = next_identifier(&at, c->text + c->n, &n, &member)))
        for (size_t i = 0; member && (o = cli_option(i)); i++) /* .query = of an initializer reads nothing */
            if (o->field && strlen(leaf_of(o)) == n && !memcmp(name, leaf_of(o), n) &&
                !(strchr(" {(,", name[-2]) && !strncmp(at, " = ", 3)))
                c->reads[i / 64] |= (uint64_t)1 << i % 64;
}

/* Marks what the chunk can reach. */
static void reach(struct chunk *c) {
    const char *at = c->text + 1, *name;
    size_t n;
    bool member;
    if (c->seen) return;
    c->seen = true;
    while ((name = next_identifier(&at, c->text + c->n, &n, &member))) {
        struct chunk *other = member ? NULL : find_chunk(name, n, c->file);
        if (other) reach(other);
    }
}

/* What a row of a table runs: VERB("name", run, ...), STUDY_VERB or COMMAND. NULL: nothing of its own. */
static struct chunk *runner_of(const char *table, const char *name) {
    static const char *const heads[] = {"VERB(\"%s\", ", "COMMAND(\"%s\", "};
    const struct chunk *c = find_chunk(table, strlen(table), -1);
    for (int i = 0; i < 2 && c; i++) {
        char row[100];
        const int n = snprintf(row, sizeof row, heads[i], name);
        const char *at = strstr(c->text, row);
        if (at && at < c->text + c->n) return find_chunk(at + n, strcspn(at + n, ","), c->file);
    }
    return NULL;
}

/* main.c reads these before anything runs, and outputs.c --overwrite of those that write a page. */
static bool is_read_first(int command, const struct cli_verb *v, const struct cli_option *o) {
    static const char *const fields[] = {"help", "version", "quiet", "verbose", "follow_links", "report.rejects"};
    static const char *const pages[] = {"metrics", "export", "rewrite"};
    bool page = command == CLI_REPORT;
    for (size_t i = 0; v && i < sizeof pages / sizeof *pages; i++) page |= !strcmp(v->name, pages[i]);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strcmp(o->field, fields[i])) return true;
    return page && !strcmp(o->field, "overwrite");
}

static int check_verb(int command, const struct cli_verb *v) {
    const char *const name = cli_commands[command].name;
    char table[64];
    const struct cli_option *o;
    int n = 0;
    snprintf(table, sizeof table, "cli_%s_verbs", name);
    struct chunk *of_command = runner_of("cli_commands", name), *run = v ? runner_of(table, v->name) : NULL;
    if (command == CLI_STATS) run = find_chunk("cli_stats", 9, -1);
    if (!run && (v || !of_command)) fail_msg("%s %s: what it runs is not found", name, v ? v->name : "");
    for (int i = 0; i < n_chunks; i++) chunks[i].seen = false;
    if (run) reach(run);
    if (of_command) reach(of_command);
    for (size_t i = 0; (o = cli_option(i)); i++) {
        bool read = false;
        if (!cli_takes((enum cli_command)command, v, o) || !o->field || is_read_first(command, v, o)) continue;
        for (int k = 0; k < n_chunks && !read; k++) read = chunks[k].seen && chunks[k].reads[i / 64] >> i % 64 & 1;
        if (!read) fail_msg("%s %s: takes --%s, and reads %s nowhere", name, v ? v->name : "", o->name, o->field);
        n++;
    }
    return n;
}

static void options_are_read(void **state) {
    (void)state;
    char folder[400];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/tools/cli", getenv("SOURCE_DIR"));
    assert_null(cli_option(MAX_OPTIONS));
    read_folder(folder);
    qsort(chunks, (size_t)n_chunks, sizeof *chunks, by_name);
    for (int i = 0; i < n_chunks; i++) note_reads(&chunks[i]);
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        const struct cli_verb *v = cli_verbs((enum cli_command)c);
        if (!v) n += check_verb(c, NULL);
        for (; v && v->name; v++) n += check_verb(c, v);
    }
    assert_true(n > 500);
    for (int i = 0; i < n_files; i++) lk_free(texts[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
