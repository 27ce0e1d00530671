#include "tools/cli/core/options_table.h"

#include <string.h>

#include "tools/cli/cli.h"

const struct cli_verb *cli_verbs(enum cli_command command) {
    return command == CLI_STATS ? cli_stats_verbs() : cli_commands[command].verbs;
}

const struct cli_verb *cli_verb_named(enum cli_command command, const char *name) {
    for (const struct cli_verb *v = cli_verbs(command); v && v->name; v++)
        if (!strcmp(v->name, name)) return v;
    return NULL;
}

/* The next name in a verb's list of options, from *list, which moves behind it; its length, 0 at the end. */
static size_t next_name(const char **list, const char **name, bool *required) {
    *name = *list + strspn(*list, " ");
    const size_t n = strcspn(*name, " ");
    *list = *name + n;
    *required = n && (*name)[n - 1] == '!';
    return n - *required;
}

static bool is_listed(const struct cli_verb *verb, const struct cli_option *o, bool *required) {
    static const char request[] = "@request";
    const char *name;
    size_t n;
    for (const char *list = verb->options ? verb->options : ""; (n = next_name(&list, &name, required));) {
        if (n == strlen(o->name) && !memcmp(name, o->name, n)) return true;
        if (n == sizeof request - 1 && !memcmp(name, request, n) && o->parameter &&
            o->parameter->place == LK_IN_REQUEST)
            return true;
    }
    return false;
}

/* What every verb obeys. */
static bool is_common(const struct cli_option *o) {
    return o->offset == FIELD(help) || o->offset == FIELD(version) || o->offset == FIELD(quiet) ||
           o->offset == FIELD(verbose);
}

bool cli_takes(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option) {
    bool required;
    if (!(option->commands & ON(command))) return false;
    return !cli_verbs(command) || is_common(option) || (verb && is_listed(verb, option, &required));
}

bool cli_requires(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option) {
    bool required = false;
    if (!verb) return option->required & ON(command);
    return is_listed(verb, option, &required) && required;
}

struct cli_option cli_option_of_verb(const struct cli_verb *verb, const struct cli_option *option) {
    struct cli_option o = *option;
    for (const struct cli_says *says = verb ? verb->says : NULL; says && says->option; says++) {
        if (strcmp(says->option, o.name)) continue;
        if (says->value) o.value = says->value;
        o.help = says->help;
        if (strstr(o.help, "[default: ")) o.otherwise = NULL;
    }
    return o;
}

void cli_operands(const struct cli_verb *verb, int *least, int *most) {
    *least = *most = 0;
    for (const char *at = verb->operands ? verb->operands : ""; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        *least += *at != '[';
        *most = n > 3 && !memcmp(at + n - 3, "...", 3) ? CLI_MAX_MORE : *most + 1;
        at += n;
    }
}
