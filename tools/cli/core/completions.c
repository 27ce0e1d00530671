#include "tools/cli/cli.h"

#include <string.h>

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

static bool takes_path(enum cli_command c, const struct cli_verb *verb) {
    return verb ? verb->operands != NULL : c == CLI_VERIFY || c == CLI_QUANTIZE || c == CLI_SHOW || c == CLI_RERUN;
}

static void bash_options(FILE *out, enum cli_command c, const struct cli_verb *verb) {
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++)
        if (cli_takes(c, verb, o)) fprintf(out, "--%s%s ", is_on(o) ? "no-" : "", o->name);
}

static void bash_case(FILE *out, enum cli_command c, const struct cli_verb *verb) {
    fprintf(out, "    %s\\ %s) COMPREPLY=($(compgen -W \"", cli_commands[c].name, verb ? verb->name : "*");
    bash_options(out, c, verb);
    if (c == CLI_COMPLETIONS) fputs("bash zsh fish ", out);
    for (int d = 0; c == CLI_HELP && d < CLI_N_COMMANDS; d++) fprintf(out, "%s ", cli_commands[d].name);
    fputs("\" -- \"$current\"))", out);
    if (takes_path(c, verb)) fputs("\n        COMPREPLY+=($(compgen -f -- \"$current\"))", out);
    fputs(" ;;\n", out);
}

/* Behind the command itself: its verbs, and what it takes without one. */
static void bash_default(FILE *out, enum cli_command c) {
    const struct cli_verb *none = cli_verb_named(c, "");
    fprintf(out, "    %s\\ *) COMPREPLY=($(compgen -W \"", cli_commands[c].name);
    for (const struct cli_verb *v = cli_verbs(c); v->name; v++)
        if (*v->name) fprintf(out, "%s ", v->name);
    if (none)
        bash_options(out, c, none);
    else
        fputs("--help ", out);
    fputs("\" -- \"$current\"))", out);
    if (none && none->operands) fputs("\n        COMPREPLY+=($(compgen -f -- \"$current\"))", out);
    fputs(" ;;\n", out);
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
    fputs("    esac\n    case \"$command ${COMP_WORDS[2]}\" in\n", out);
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        const struct cli_verb *verb = cli_verbs(c);
        if (!verb) bash_case(out, c, NULL);
        for (; verb && verb->name; verb++)
            if (*verb->name) bash_case(out, c, verb);
        if (cli_verbs(c)) bash_default(out, c);
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

static void zsh_case(FILE *out, enum cli_command c, const struct cli_verb *verb) {
    const bool chooses = cli_verbs(c) && (!verb || !*verb->name);
    const struct cli_option *o;
    fputs("        _arguments \\\n", out);
    for (size_t i = 0; (o = cli_option(i)); i++) {
        if (!cli_takes(c, verb, o)) continue;
        const struct cli_option own = cli_option_of_verb(verb, o);
        zsh_option(out, &own);
    }
    if (c == CLI_COMPLETIONS) fputs("            '1:shell:(bash zsh fish)'\n", out);
    if (c == CLI_HELP) {
        fputs("            '1:command:(", out);
        for (int d = 0; d < CLI_N_COMMANDS; d++) fprintf(out, "%s%s", d ? " " : "", cli_commands[d].name);
        fputs(")'\n", out);
    } else if (chooses) {
        fputs("            '1:verb:(", out);
        for (const struct cli_verb *v = cli_verbs(c); v->name; v++) fprintf(out, "%s%s", *v->name ? " " : "", v->name);
        fputs(")'\n", out);
    } else if (takes_path(c, verb)) {
        fputs("            '*:file:_files'\n", out);
    } else if (c != CLI_COMPLETIONS) {
        fputs("            '*:: :'\n", out);
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
        const struct cli_verb *verbs = cli_verbs(c);
        fprintf(out, "    %s)\n", cli_commands[c].name);
        if (verbs) fputs("        case $words[2] in\n", out);
        for (const struct cli_verb *v = verbs; v && v->name; v++)
            if (*v->name) {
                fprintf(out, "        %s)\n        shift words\n        ((CURRENT--))\n", v->name);
                zsh_case(out, c, v);
                fputs("        ;;\n", out);
            }
        if (verbs) fputs("        *)\n", out);
        zsh_case(out, c, verbs ? cli_verb_named(c, "") : NULL);
        fputs(verbs ? "        ;;\n        esac\n        ;;\n" : "        ;;\n", out);
    }
    fputs("    esac\n}\n_likeness \"$@\"\n", out);
}

static void fish_options(FILE *out, enum cli_command c, const struct cli_verb *verb) {
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_option(i)); i++) {
        if (!cli_takes(c, verb, option)) continue;
        const struct cli_option o = cli_option_of_verb(verb, option);
        fprintf(out, "complete -c likeness -n '__fish_seen_subcommand_from %s", cli_commands[c].name);
        if (verb && *verb->name) fprintf(out, "; and __fish_seen_subcommand_from %s", verb->name);
        fprintf(out, "' -l %s%s", is_on(&o) ? "no-" : "", o.name);
        if (o.alias) fprintf(out, " -l %s", o.alias);
        if (o.letter) fprintf(out, " -s %c", o.letter);
        if (o.kind != CLI_FLAG) fputs(is_path(&o) ? " -r -F" : " -x", out);
        if (o.choices) {
            fputs(" -a '", out);
            words(out, o.choices);
            fputs("'", out);
        }
        fputs(" -d '", out);
        quoted(out, o.help, false);
        fputs("'\n", out);
    }
}

static void fish(FILE *out) {
    fputs("# fish completion for likeness; made by: likeness completions fish\n", out);
    for (int c = 0; c < CLI_N_COMMANDS; c++)
        fprintf(out, "complete -c likeness -n __fish_use_subcommand -f -a %s -d '%s'\n", cli_commands[c].name,
                cli_commands[c].summary);
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        const struct cli_verb *verb = cli_verbs(c);
        if (!verb) fish_options(out, c, NULL);
        for (; verb && verb->name; verb++) {
            if (*verb->name)
                fprintf(out, "complete -c likeness -n '__fish_seen_subcommand_from %s' -a %s -d '%s'\n",
                        cli_commands[c].name, verb->name, verb->summary);
            fish_options(out, c, verb);
        }
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
