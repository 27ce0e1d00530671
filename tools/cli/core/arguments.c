#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/core/options.h"

#define MAX_LENGTH 40

static int min3(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b; large for long words. */
static int distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_LENGTH || m > MAX_LENGTH) return MAX_LENGTH;
    int d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, replace);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j]) d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

const char *cli_suggest(const char *typed, const char *const *names, size_t n_names) {
    const char *best = NULL;
    size_t length = strlen(typed);
    int limit = length < 4 ? 1 : 1 + (int)length / 4; /* a word of 8 may be 3 edits away */
    for (size_t i = 0; i < n_names; i++) {
        int d = distance(typed, names[i]);
        /* What begins a long name is an abbreviation of it. */
        if (length >= 4 && !strncmp(typed, names[i], length)) d = 1;
        if (d > limit) continue;
        limit = d - 1;
        best = names[i];
    }
    return best;
}

/* The flag as the user wrote it, for messages: "--seed" or "-s". */
struct spelling {
    char text[64];
};

static struct spelling spell_long(const char *name, size_t length) {
    struct spelling s = {"--"};
    if (length > sizeof s.text - 3) length = sizeof s.text - 3;
    memcpy(s.text + 2, name, length);
    return s;
}

/* The command's, or that of another one. */
static const struct cli_option *find_long(const struct cli_arguments *a, const char *name, size_t length) {
    const struct cli_option *o, *other = NULL;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        const bool named = strlen(o->name) == length && !memcmp(o->name, name, length);
        if (!named && !(o->alias && strlen(o->alias) == length && !memcmp(o->alias, name, length))) continue;
        if (cli_takes(a->command, a->verb, o)) return o;
        if (!other || o->commands & (1u << a->command)) other = o;
    }
    if (other) return other;
    if (length < 3 || memcmp(name, "no-", 3)) return NULL;
    o = find_long(a, name + 3, length - 3);
    return o && o->parameter && o->kind == CLI_FLAG ? o : NULL;
}

/* --no-NAME of a parameter that is on or off. */
static bool is_negated(const struct cli_option *o, const char *flag) {
    return !strncmp(flag, "--no-", 5) && !strcmp(flag + 5, o->name);
}

static const struct cli_option *find_letter(char letter) {
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++)
        if (o->letter && o->letter == letter) return o;
    return NULL;
}

/* Flags of other programs whose meaning this one has under another name, or lacks on purpose. */
static const char *advice(const char *name) {
    static const char *const known[][2] = {
        {"init-img", "give the picture with --image"},
        {"diffusion-model", "give the whole model folder with --model"},
        {"lora-scale", "the scale stands behind the file, as --lora FILE=0.8"},
        {"cache", "a step cache is --accel, as --accel fbcache,threshold=0.1"},
        {"padding-mask-crop",
         "a model that is shown a part of the picture is another treatment; cut the picture out before"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], name)) return known[i][1];
    return NULL;
}

static enum lk_code unknown_flag(const struct cli_arguments *a, const struct spelling *flag) {
    const char *name = flag->text + 2;
    const char *why = advice(name);
    if (why) return lk_fail(LK_E_USAGE, "%s: no such option: %s", flag->text, why);
    const char *names[128];
    size_t n = 0;
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)) && n + 2 <= 128; i++) {
        if (!cli_takes(a->command, a->verb, o)) continue;
        names[n++] = o->name;
        if (o->alias) names[n++] = o->alias;
    }
    const char *near = cli_suggest(name, names, n);
    if (near) return lk_fail(LK_E_USAGE, "%s: no such option; did you mean --%s?", flag->text, near);
    return lk_fail(LK_E_USAGE, "%s: no such option; 'likeness help %s' lists them", flag->text,
                   cli_full_name(a->command, a->verb, (char[64]){0}));
}

/* Who takes an option of this name: commands may have their own under one name. */
static void add_owner(char where[256], enum cli_command command, const struct cli_verb *verb, const char *name) {
    const struct cli_option *o;
    const size_t n = strlen(where);
    for (size_t i = 0; (o = cli_option(i)); i++)
        if ((!strcmp(o->name, name) || (o->alias && !strcmp(o->alias, name))) && cli_takes(command, verb, o)) {
            snprintf(where + n, 256 - n, "%s%s", n ? ", " : "", cli_full_name(command, verb, (char[64]){0}));
            return;
        }
}

static void add_owners(char where[256], const char *name) {
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        const struct cli_verb *verb = cli_verbs(c);
        if (!verb) add_owner(where, c, NULL, name);
        for (; verb && verb->name; verb++) add_owner(where, c, verb, name);
    }
}

static enum lk_code wrong_command(const struct cli_arguments *a, const struct cli_option *option, const char *flag) {
    char where[256] = "";
    add_owners(where, option->name);
    return lk_fail(LK_E_USAGE, "%s: not an option of '%s'; it belongs to: %s", flag,
                   cli_full_name(a->command, a->verb, (char[64]){0}), where);
}

static enum lk_code read_int(const struct cli_option *o, const char *flag, const char *text, size_t length,
                             int64_t *out) {
    return lk_read_int(flag, text, length, (int64_t)o->min, o->max >= 0x1p63 ? INT64_MAX : (int64_t)o->max, out);
}

static enum lk_code read_size(struct lk_job *job, const struct cli_option *o, const char *flag, const char *text) {
    const char *x = strpbrk(text, "xX");
    if (!x) return lk_fail(LK_E_USAGE, "%s: expected WIDTHxHEIGHT as 1024x768, got \"%.64s\"", flag, text);
    char width[32];
    int64_t read;
    LK_TRY(read_int(o, flag, text, (size_t)(x - text), &read));
    LK_TRY(read_int(o, flag, x + 1, strlen(x + 1), &read));
    snprintf(width, sizeof width, "%.*s", (int)(x - text), text);
    LK_TRY(lk_parameter_parse(lk_parameter_named("width"), job, flag, width));
    return lk_parameter_parse(lk_parameter_named("height"), job, flag, x + 1);
}

/* "1-4": the first, and how many in all. */
static enum lk_code read_seeds(struct cli_arguments *a, const struct cli_option *o, const char *flag,
                               const char *text) {
    const char *dash = strchr(text, '-');
    char first[32];
    int64_t from, to;
    LK_TRY(lk_read_int(flag, text, (size_t)(dash - text), 0, INT64_MAX, &from));
    const int64_t most = from > INT64_MAX - CLI_MAX_SEEDS ? INT64_MAX : from + CLI_MAX_SEEDS - 1;
    LK_TRY(lk_read_int(flag, dash + 1, strlen(dash + 1), from, most, &to));
    snprintf(first, sizeof first, "%" PRId64, from);
    a->n_seeds = to - from + 1;
    return lk_parameter_parse(o->parameter, &a->job, flag, first);
}

/* "auto" is no value of a job, which has the same bits on every device. */
static enum lk_code set_parameter(struct cli_arguments *a, const struct cli_option *o, const char *flag,
                                  const char *text) {
    const bool chooses = !strcmp(o->name, "quantize") && (a->command == CLI_EDIT || a->command == CLI_PLAN);
    if (!strcmp(o->name, "seed")) a->n_seeds = 0;
    const size_t digits = strspn(text, "0123456789");
    if (!strcmp(o->name, "seed") && a->command == CLI_EDIT && digits && text[digits] == '-')
        return read_seeds(a, o, flag, text);
    if (chooses) a->auto_quantize = !strcmp(text, "auto");
    return lk_parameter_parse(o->parameter, &a->job, flag, chooses && a->auto_quantize ? "none" : text);
}

static enum lk_code set(struct cli_arguments *a, const struct cli_option *o, const char *flag, const char *text) {
    void *field = (char *)a + o->offset;
    if (o->parameter) return set_parameter(a, o, flag, text);
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return LK_OK;
    case CLI_INT:
        return read_int(o, flag, text, strlen(text), field);
    case CLI_NUMBER:
        return lk_read_number(flag, text, o->min, o->max, field);
    case CLI_SIZE:
        return read_size(&a->job, o, flag, text);
    case CLI_BYTES:
        return lk_read_bytes(flag, text, field);
    case CLI_CHOICE:
        return lk_read_choice(flag, text, o->choices, field);
    case CLI_FILES:
        if (a->n_images == CLI_MAX_IMAGES)
            return lk_fail(LK_E_USAGE, "%s: at most %d images, \"%.64s\" is one more", flag, CLI_MAX_IMAGES, text);
        if (!*text) return lk_fail(LK_E_USAGE, "%s: expected a path, got an empty string", flag);
        a->images[a->n_images++] = text;
        return LK_OK;
    case CLI_LIST: {
        struct cli_list *list = field;
        if (list->n == CLI_MAX_LIST)
            return lk_fail(LK_E_USAGE, "%s: at most %d files, \"%.64s\" is one more", flag, CLI_MAX_LIST, text);
        if (!*text) return lk_fail(LK_E_USAGE, "%s: expected a path, got an empty string", flag);
        list->values[list->n++] = text;
        return LK_OK;
    }
    case CLI_FILE:
    case CLI_FOLDER:
        if (!*text) return lk_fail(LK_E_USAGE, "%s: expected a path, got an empty string", flag);
        if (o->once && *(const char **)field && strcmp(*(const char **)field, text) != 0)
            return lk_fail(LK_E_USAGE, "%s: expected one path, got \"%.64s\" and \"%.64s\"", flag,
                           *(const char **)field, text);
        *(const char **)field = text;
        return LK_OK;
    case CLI_TEXT:
        *(const char **)field = text;
        return LK_OK;
    case CLI_INTS:
        break;
    }
    return lk_fail(LK_E_INTERNAL, "%s: option of unknown kind", flag);
}

/* One option at argv[*i]; moves *i over its value. `attached` is the value after "=" or after a letter, or NULL. */
static enum lk_code take(struct cli_arguments *a, const struct cli_option *o, const char *flag, const char *attached,
                         int argc, const char *const *argv, int *i) {
    if (!cli_takes(a->command, a->verb, o)) return wrong_command(a, o, flag);
    if (o->kind == CLI_FLAG) {
        if (attached) return lk_fail(LK_E_USAGE, "%s: takes no value, got \"%.64s\"", flag, attached);
        return set(a, o, flag, is_negated(o, flag) ? "off" : "on");
    }
    if (attached) return set(a, o, flag, attached);
    if (*i + 1 >= argc) return lk_fail(LK_E_USAGE, "%s: needs a value: %s %s", flag, flag, o->value);
    const char *next = argv[*i + 1];
    bool looks_like_flag = next[0] == '-' && (next[1] == '-' || (isalpha((unsigned char)next[1]) && !next[2]));
    if (looks_like_flag)
        return lk_fail(LK_E_USAGE, "%s: needs a value, but \"%.64s\" follows; write --%s=VALUE if that is the value",
                       flag, next, o->name);
    ++*i;
    return set(a, o, flag, next);
}

static enum lk_code parse_option(struct cli_arguments *a, int argc, const char *const *argv, int *i) {
    const char *text = argv[*i];
    if (text[1] == '-') {
        const char *equals = strchr(text, '=');
        size_t length = equals ? (size_t)(equals - text) - 2 : strlen(text) - 2;
        struct spelling flag = spell_long(text + 2, length);
        const struct cli_option *o = find_long(a, text + 2, length);
        if (!o) return unknown_flag(a, &flag);
        return take(a, o, flag.text, equals ? equals + 1 : NULL, argc, argv, i);
    }
    const struct cli_option *o = find_letter(text[1]);
    if (!o) return lk_fail(LK_E_USAGE, "%.64s: no such option; long options begin with two dashes", text);
    char flag[3] = {'-', text[1], 0};
    const char *attached = text[2] ? text + 2 + (text[2] == '=') : NULL;
    return take(a, o, flag, attached, argc, argv, i);
}

static enum lk_code parse_command(struct cli_arguments *a, const char *word) {
    const char *names[CLI_N_COMMANDS];
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        names[c] = cli_commands[c].name;
        if (strcmp(word, names[c])) continue;
        a->command = (enum cli_command)c;
        return LK_OK;
    }
    char where[256] = ""; /* commands whose verb or option the word is */
    for (int c = 0; c < CLI_N_COMMANDS && *word; c++) {
        const size_t n = strlen(where);
        if (cli_verb_named(c, word)) snprintf(where + n, sizeof where - n, "%s%s %s", n ? ", " : "", names[c], word);
    }
    if (*where) return lk_fail(LK_E_USAGE, "%.64s: no such command; there is: %s", word, where);
    add_owners(where, word);
    if (*where)
        return lk_fail(LK_E_USAGE, "%.64s: no such command, but --%.64s is an option of: %s", word, word, where);
    const char *near = cli_suggest(word, names, CLI_N_COMMANDS);
    if (near) return lk_fail(LK_E_USAGE, "%.64s: no such command; did you mean '%s'?", word, near);
    return lk_fail(LK_E_USAGE, "%.64s: no such command; 'likeness help' lists them", word);
}

/* The verb at argv[*i], or the command without one, which may have operands. */
static enum lk_code parse_verb(struct cli_arguments *a, int argc, const char *const *argv, int *i) {
    const struct cli_verb *verbs = cli_verbs(a->command);
    const char *word = *i < argc ? argv[*i] : NULL, *names[64];
    const bool is_word = word && word[0] != '-';
    if (is_word && *word && (a->verb = cli_verb_named(a->command, word))) {
        ++*i;
        return LK_OK;
    }
    if (word && (!strcmp(word, "--help") || !strcmp(word, "-h"))) return LK_OK;
    a->verb = cli_verb_named(a->command, "");
    int least = 0, most = 0;
    if (a->verb) cli_operands(a->verb, &least, &most);
    if (a->verb && (!is_word || most > 0)) return LK_OK;
    a->verb = NULL;
    char known[256] = "";
    size_t n_names = 0, n = 0;
    for (const struct cli_verb *v = verbs; v->name && n_names < 64; v++) {
        if (!*v->name) continue;
        if (n < sizeof known) n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", v->name);
        names[n_names++] = v->name;
    }
    const char *near = is_word ? cli_suggest(word, names, n_names) : NULL;
    if (near)
        return lk_fail(LK_E_USAGE, "%s %.64s: no such command; did you mean '%s %s'?", cli_commands[a->command].name,
                       word, cli_commands[a->command].name, near);
    return lk_fail(LK_E_USAGE, "%s: expected one of %s, got %s%.64s%s", cli_commands[a->command].name, known,
                   word ? "\"" : "", word ? word : "nothing", word ? "\"" : "");
}

static enum lk_code missing(const struct cli_arguments *a, const char *what) {
    struct lk_text usage = {0};
    cli_usage(a->command, a->verb, &usage);
    enum lk_code rc =
        usage.rc ? usage.rc
                 : lk_fail(LK_E_USAGE, "%s; usage: likeness %s %s", what, cli_commands[a->command].name, usage.bytes);
    lk_text_free(&usage);
    return rc;
}

/* What must be there and is not. */
static enum lk_code check_required(const struct cli_arguments *a) {
    const struct cli_command_info *command = &cli_commands[a->command];
    char what[160], name[64];
    int least = 0, most = 0, n_more = 0;
    cli_full_name(a->command, a->verb, name);
    if (a->verb) cli_operands(a->verb, &least, &most);
    while (n_more < CLI_MAX_MORE && a->more[n_more]) n_more++;
    if (n_more < least || (command->positional_required && !a->positional)) {
        snprintf(what, sizeof what, "%s: expected %s", name, a->verb ? a->verb->operands : command->positional);
        return missing(a, what);
    }
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        if (!(o->commands & (1u << a->command)) || !cli_requires(a->command, a->verb, o)) continue;
        if (a->jobs && (o->parameter || (a->command == CLI_EDIT && !strcmp(o->name, "output")))) continue;
        if (*(const char *const *)((const char *)a + o->offset)) continue;
        snprintf(what, sizeof what, "--%s: missing", o->name);
        return missing(a, what);
    }
    if (!a->rewrite.prompts && (a->rewrite.model || a->rewrite.temperature != 0))
        return lk_fail(LK_E_USAGE, "--rewrite-%s: no prompts are rewritten without --rewrite-prompts",
                       a->rewrite.model ? "model" : "temperature");
    return LK_OK;
}

/* A word that is no option: what a verb, or a command without verbs, works on. */
static enum lk_code take_word(struct cli_arguments *a, const char *word) {
    const struct cli_command_info *command = &cli_commands[a->command];
    char name[64];
    cli_full_name(a->command, a->verb, name);
    if (a->verb) {
        int least, most, n = 0;
        cli_operands(a->verb, &least, &most);
        while (n < CLI_MAX_MORE && a->more[n]) n++;
        if (!most) return lk_fail(LK_E_USAGE, "%s: does not take \"%.64s\"; every input has a flag", name, word);
        if (n >= most)
            return lk_fail(LK_E_USAGE, "%s: expected no more than %s, got \"%.64s\" as well", name, a->verb->operands,
                           word);
        a->more[n] = word;
        return LK_OK;
    }
    if (a->command == CLI_HELP && a->positional && !a->more[0]) { /* help study run */
        a->more[0] = word;
        return LK_OK;
    }
    if (!command->positional)
        return lk_fail(LK_E_USAGE, "%s: does not take \"%.64s\"; every input has a flag", name, word);
    if (a->positional)
        return lk_fail(LK_E_USAGE, "%s: expected one %s, got \"%.64s\" and \"%.64s\"", name, command->positional,
                       a->positional, word);
    a->positional = word;
    return LK_OK;
}

enum lk_code cli_arguments_parse(struct cli_arguments *arguments, int argc, const char *const *argv) {
    struct cli_arguments *a = arguments;
    cli_arguments_init(a);
    if (argc < 2) return lk_fail(LK_E_USAGE, "expected a command; 'likeness help' lists them");
    int i = 1;
    enum lk_code rc;
    if (argv[1][0] != '-') {
        if ((rc = parse_command(a, argv[1]))) return rc;
        i = 2;
        if (cli_verbs(a->command) && (rc = parse_verb(a, argc, argv, &i))) return rc;
    }
    bool options_over = false;
    for (; i < argc; i++) {
        if (!options_over && !strcmp(argv[i], "--")) {
            options_over = true;
        } else if (!options_over && argv[i][0] == '-' && argv[i][1]) {
            if ((rc = parse_option(a, argc, argv, &i))) return rc;
        } else if ((rc = take_word(a, argv[i]))) {
            return rc;
        }
    }
    if (a->help || a->version) return LK_OK;
    return check_required(a);
}
