#include "tools/cli/core/help.h"

#include <string.h>

static bool applies(const struct cli_option *o, int command) { return o->commands & (1u << command); }
static bool is_path(const struct cli_option *o) {
    return o->kind == CLI_FILE || o->kind == CLI_FILES || o->kind == CLI_LIST || o->kind == CLI_FOLDER;
}

/* On unless told otherwise: what is worth offering is its opposite. */
static bool is_on(const struct cli_option *o) {
    return o->kind == CLI_FLAG && o->parameter && o->parameter->initial && !strcmp(o->parameter->initial, "on");
}

/* "bf16 f32" from "bf16|f32". */
static void words(FILE *out, const char *choices) {
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Text between single quotes of a shell; zsh also gives [ ] and : a meaning in these places. */
static void quoted(FILE *out, const char *text, bool zsh) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else {
            if (zsh && strchr("[]:", *text)) fputc('\\', out);
            fputc(*text, out);
        }
    }
}

static void bash(FILE *out) {
    fputs(
        "# bash completion for likeness; made by: likeness completions bash\n"
        "_likeness() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
        "    COMPREPLY=()\n"
        "    if ((COMP_CWORD == 1)); then\n"
        "        COMPREPLY=($(compgen -W \"",
        out);
    for (int c = 0; c < CLI_N_COMMANDS; c++) fprintf(out, "%s ", cli_commands[c].name);
    fputs("--help --version\" -- \"$current\"))\n        return\n    fi\n    case $previous in\n", out);
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        if (o->kind == CLI_FLAG) continue;
        fprintf(out, "    --%s", o->name);
        if (o->alias) fprintf(out, " | --%s", o->alias);
        if (o->letter) fprintf(out, " | -%c", o->letter);
        fputs(") ", out);
        if (o->choices) {
            fputs("COMPREPLY=($(compgen -W \"", out);
            words(out, o->choices);
            fputs("\" -- \"$current\"))", out);
        } else if (is_path(o)) {
            fprintf(out, "COMPREPLY=($(compgen -%c -- \"$current\"))", o->kind == CLI_FOLDER ? 'd' : 'f');
        }
        fputs("\n        return ;;\n", out);
    }
    fputs("    esac\n    case $command in\n", out);
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        fprintf(out, "    %s) COMPREPLY=($(compgen -W \"", cli_commands[c].name);
        const struct cli_option *o;
        for (size_t i = 0; (o = cli_option(i)); i++)
            if (applies(o, c)) fprintf(out, "--%s%s ", is_on(o) ? "no-" : "", o->name);
        if (c == CLI_COMPLETIONS) fputs("bash zsh fish ", out);
        for (int d = 0; c == CLI_HELP && d < CLI_N_COMMANDS; d++) fprintf(out, "%s ", cli_commands[d].name);
        fputs("\" -- \"$current\"))", out);
        bool takes_path =
            c == CLI_VERIFY || c == CLI_QUANTIZE || c == CLI_LORA || c == CLI_SHOW || c == CLI_RERUN || c == CLI_STATS;
        if (takes_path) fputs("\n        COMPREPLY+=($(compgen -f -- \"$current\"))", out);
        fputs(" ;;\n", out);
    }
    fputs("    esac\n}\ncomplete -o filenames -F _likeness likeness\n", out);
}

static void zsh_option(FILE *out, const struct cli_option *o) {
    char names[3][64];
    int n = 0;
    snprintf(names[n++], sizeof names[0], "--%s%s", is_on(o) ? "no-" : "", o->name);
    if (o->alias) snprintf(names[n++], sizeof names[0], "--%s", o->alias);
    if (o->letter) snprintf(names[n++], sizeof names[0], "-%c", o->letter);
    for (int i = 0; i < n; i++) {
        fprintf(out, "            '%s%s[", o->kind == CLI_FILES || o->kind == CLI_LIST ? "*" : "", names[i]);
        quoted(out, o->help, true);
        fputc(']', out);
        if (o->kind != CLI_FLAG) {
            fputc(':', out);
            quoted(out, o->value, true);
            fputc(':', out);
        }
        if (o->choices) {
            fputc('(', out);
            words(out, o->choices);
            fputc(')', out);
        } else if (is_path(o)) {
            fputs(o->kind == CLI_FOLDER ? "_files -/" : "_files", out);
        }
        fputs("' \\\n", out);
    }
}

static void zsh(FILE *out) {
    fputs("#compdef likeness\n# zsh completion for likeness; made by: likeness completions zsh\n"
          "_likeness() {\n    if ((CURRENT == 2)); then\n        local -a commands\n        commands=(\n",
          out);
    for (int c = 0; c < CLI_N_COMMANDS; c++)
        fprintf(out, "            '%s:%s'\n", cli_commands[c].name, cli_commands[c].summary);
    fputs("        )\n        _describe command commands\n        return\n    fi\n    local command=$words[2]\n"
          "    shift words\n    ((CURRENT--))\n    case $command in\n",
          out);
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        fprintf(out, "    %s)\n        _arguments \\\n", cli_commands[c].name);
        const struct cli_option *o;
        for (size_t i = 0; (o = cli_option(i)); i++)
            if (applies(o, c)) zsh_option(out, o);
        if (c == CLI_COMPLETIONS) fputs("            '1:shell:(bash zsh fish)'\n", out);
        if (c == CLI_HELP) {
            fputs("            '1:command:(", out);
            for (int d = 0; d < CLI_N_COMMANDS; d++) fprintf(out, "%s%s", d ? " " : "", cli_commands[d].name);
            fputs(")'\n", out);
        }
        if (c == CLI_STATS) fputs("            '1:test:' \\\n            '2:file:_files'\n", out);
        bool takes_path = c == CLI_VERIFY || c == CLI_QUANTIZE || c == CLI_LORA || c == CLI_SHOW || c == CLI_RERUN;
        if (takes_path) fputs("            '1:file:_files'\n", out);
        if (!cli_commands[c].positional) fputs("            '*:: :'\n", out);
        fputs("        ;;\n", out);
    }
    fputs("    esac\n}\n_likeness \"$@\"\n", out);
}

static void fish(FILE *out) {
    fputs("# fish completion for likeness; made by: likeness completions fish\n", out);
    for (int c = 0; c < CLI_N_COMMANDS; c++)
        fprintf(out, "complete -c likeness -n __fish_use_subcommand -f -a %s -d '%s'\n", cli_commands[c].name,
                cli_commands[c].summary);
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        fputs("complete -c likeness -n '__fish_seen_subcommand_from", out);
        for (int c = 0; c < CLI_N_COMMANDS; c++)
            if (applies(o, c)) fprintf(out, " %s", cli_commands[c].name);
        fprintf(out, "' -l %s%s", is_on(o) ? "no-" : "", o->name);
        if (o->alias) fprintf(out, " -l %s", o->alias);
        if (o->letter) fprintf(out, " -s %c", o->letter);
        if (o->kind != CLI_FLAG) fputs(is_path(o) ? " -r -F" : " -x", out);
        if (o->choices) {
            fputs(" -a '", out);
            words(out, o->choices);
            fputs("'", out);
        }
        fputs(" -d '", out);
        quoted(out, o->help, false);
        fputs("'\n", out);
    }
    fputs("complete -c likeness -n '__fish_seen_subcommand_from completions' -f -a 'bash zsh fish'\n", out);
}

enum lk_code cli_completions(FILE *out, const char *shell) {
    if (!strcmp(shell, "bash"))
        bash(out);
    else if (!strcmp(shell, "zsh"))
        zsh(out);
    else if (!strcmp(shell, "fish"))
        fish(out);
    else
        return lk_fail(LK_E_USAGE, "completions: expected bash, zsh or fish, got \"%.64s\"", shell);
    return LK_OK;
}
