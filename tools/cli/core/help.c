
#include <stdio.h>
#include <string.h>

#include "eval/design/study.h"
#include "eval/survey/study.h"
#include "tools/cli/cli.h"

enum lk_code cli_complete(const struct cli_arguments *a) { return cli_completions(stdout, a->positional); }

/* troff text: a backslash is \e, a dash \-, and a line that begins with a dot or quote gets a zero-width mark. */
static void text(FILE *out, const char *s) {
    if (*s == '.' || *s == '\'') fputs("\\&", out);
    for (; *s; s++) {
        if (*s == '\\')
            fputs("\\e", out);
        else if (*s == '-')
            fputs("\\-", out);
        else
            fputc(*s, out);
    }
}

static void option(FILE *out, const struct cli_option *o) {
    fputs(".TP\n", out);
    if (o->letter) fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs(o->parameter && o->kind == CLI_FLAG ? "\\fB\\-\\-[no\\-]" : "\\fB\\-\\-", out);
    text(out, o->name);
    fputs("\\fR", out);
    if (o->alias) {
        fputs(", \\fB\\-\\-", out);
        text(out, o->alias);
        fputs("\\fR", out);
    }
    if (o->value) {
        fputs(" \\fI", out);
        text(out, o->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    text(out, o->help);
    if (o->choices) {
        fputs(": ", out);
        text(out, o->choices);
    }
    if (o->otherwise) {
        fputs(". Default: ", out);
        text(out, o->otherwise);
    }
    fputs(".\n", out);
}

/* A command, or a verb of one. */
static void section(FILE *out, enum cli_command c, const struct cli_verb *verb) {
    const struct cli_command_info *info = &cli_commands[c];
    const char *const *examples = verb ? verb->examples : info->examples, *words = verb ? verb->text : info->text;
    struct lk_text usage = {0};
    char name[64];
    cli_usage(c, verb, &usage);
    fprintf(out, ".SS %s\n", cli_full_name(c, verb, name));
    fprintf(out, "\\fBlikeness %s\\fR ", info->name);
    text(out, usage.rc ? "" : usage.bytes);
    lk_text_free(&usage);
    fputs("\n.PP\n", out);
    text(out, verb ? verb->summary : words);
    if (verb && words) {
        fputs(".\n", out);
        text(out, words);
    }
    fputc('\n', out);
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        if (!cli_takes(c, verb, o) || !strcmp(o->group, "Other")) continue;
        const struct cli_option own = cli_option_of_verb(verb, o);
        option(out, &own);
    }
    if (!examples) return;
    fputs(".PP\nExamples:\n.PP\n.nf\n", out);
    for (const char *const *e = examples; *e; e += 2) {
        fputs("# ", out);
        text(out, e[0]);
        fputc('\n', out);
        text(out, e[1]);
        fputc('\n', out);
    }
    fputs(".fi\n", out);
}

static void command(FILE *out, enum cli_command c) {
    const struct cli_verb *verb = cli_verbs(c);
    if (!verb) {
        section(out, c, NULL);
        return;
    }
    for (; verb->name; verb++) section(out, c, verb);
}

static void cli_man(FILE *out) {
    fputs(".TH LIKENESS 1 \"\" \"likeness " LIKENESS_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nlikeness \\- edit pictures by instruction with diffusion transformers\n"
          ".SH SYNOPSIS\n\\fBlikeness\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\nResults go to standard output, everything else to standard error. Nothing touches the "
          "network.\n.SH COMMANDS\n",
          out);
    for (int c = 0; c < CLI_N_COMMANDS; c++) command(out, c);
    fputs(".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\ninternal error\n.TP\n2\nusage\n.TP\n3\nbad input or weights\n.TP\n4\n"
          "does not fit in memory\n.TP\n5\ndevice error\n.TP\n6\nsome jobs failed: of several, or NaN or Inf "
          "met\n.TP\n7\ndisk or I/O\n.TP\n130, 143\n"
          "interrupted\n"
          ".SH ENVIRONMENT\n.TP\nHF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME\nwhere the Hugging Face "
          "cache is; it is only read\n.TP\n"
          "OMP_NUM_THREADS\nhost threads when \\-\\-threads is not given\n.TP\nNO_COLOR\nno colour on a terminal\n.TP\n"
          "LIKENESS_CPU_ISA\nportable, avx2, avx512, avx512_bf16 or amx: use fewer instructions than the machine has\n",
          out);
}

#define WIDTH 100

/* Words of `text` wrapped at WIDTH, every line but the first indented; the cursor stands at `column` to begin with. */
static void wrap(FILE *out, const char *text, int column, int indent) {
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (word != text) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, word);
        column += length;
        word += length;
        word += strspn(word, " ");
    }
    fputc('\n', out);
}

const char *cli_full_name(enum cli_command command, const struct cli_verb *verb, char name[64]) {
    const bool named = verb && *verb->name;
    snprintf(name, 64, "%s%s%s", cli_commands[command].name, named ? " " : "", named ? verb->name : "");
    return name;
}

void cli_usage(enum cli_command command, const struct cli_verb *verb, struct lk_text *out) {
    if (!verb) {
        lk_text_add(out, "%s", cli_verbs(command) ? "VERB ..." : cli_commands[command].usage);
        return;
    }
    lk_text_add(out, "%s%s", *verb->name ? verb->name : "", *verb->name ? " " : "");
    if (verb->operands) lk_text_add(out, "%s ", verb->operands);
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        if (!cli_takes(command, verb, o) || !cli_requires(command, verb, o)) continue;
        const struct cli_option own = cli_option_of_verb(verb, o);
        if (o->letter)
            lk_text_add(out, "-%c %s ", o->letter, own.value);
        else
            lk_text_add(out, "--%s %s ", o->name, own.value);
    }
    lk_text_add(out, "[options]");
}

static void examples(FILE *out, const char *const *list) {
    if (!list) return;
    fputs("\nExamples:\n", out);
    for (const char *const *e = list; *e; e += 2) fprintf(out, "  # %s\n  %s\n", e[0], e[1]);
}

static void print_option(FILE *out, const struct cli_option *o) {
    char left[160];
    snprintf(left, sizeof left, "  %c%c%s --%s%s%s%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
             o->letter ? "," : " ", o->parameter && o->kind == CLI_FLAG ? "[no-]" : "", o->name, o->alias ? ", --" : "",
             o->alias ? o->alias : "", o->value ? " " : "", o->value ? o->value : "");
    fprintf(out, "%s\n%*s", left, 10, "");
    char text[512];
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", o->help, o->choices ? ": " : "", o->choices ? o->choices : "",
             o->kind == CLI_FILES || o->kind == CLI_LIST ? " (repeatable)" : "", o->otherwise ? " [default: " : "",
             o->otherwise ? o->otherwise : "", o->otherwise ? "]" : "", "");
    wrap(out, text, 10, 10);
}

static void exit_codes(FILE *out) {
    fputs("\nExit codes:\n"
          "  0 done   1 internal error   2 usage   3 bad input or weights   4 does not fit in memory\n"
          "  5 device error   6 some jobs failed or differ   7 disk or I/O   130, 143 interrupted\n",
          out);
}

void cli_help(FILE *out) {
    fputs("likeness " LIKENESS_VERSION ": edit pictures by instruction with diffusion transformers\n\n"
          "Usage: likeness COMMAND [options]\n\nCommands:\n",
          out);
    for (int c = 0; c < CLI_N_COMMANDS; c++)
        fprintf(out, "  %-12s %s\n", cli_commands[c].name, cli_commands[c].summary);
    fputs("\n'likeness help COMMAND' explains a command and lists its options.\n"
          "'likeness help study-file' and 'likeness help survey-file' explain the keys of these files.\n",
          out);
    fputs("\nExamples:\n", out);
    static const enum cli_command shown[] = {CLI_PLAN, CLI_VERIFY, CLI_EDIT, CLI_SHOW, CLI_RERUN};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const char *const *e = cli_commands[shown[i]].examples;
        fprintf(out, "  # %s\n  %s\n", e[0], e[1]);
    }
    exit_codes(out);
    fputs("\nEnvironment: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME or XDG_CACHE_HOME: where the HF cache is;\n"
          "OMP_NUM_THREADS: how many threads; NO_COLOR turns colour off;\n"
          "LIKENESS_CPU_ISA=portable|avx2|avx512|avx512_bf16|amx asks for fewer instructions.\n"
          "Results go to stdout, everything else to stderr.\n",
          out);
}

static void options(FILE *out, enum cli_command command, const struct cli_verb *verb) {
    static const char *const groups[] = {"Model",   "Input",    "Sampling", "Concepts", "Thinking",
                                         "Columns", "Analysis", "Server",   "Output",   "Other"};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        bool headed = false;
        const struct cli_option *o;
        for (size_t i = 0; (o = cli_option(i)); i++) {
            if (!cli_takes(command, verb, o) || strcmp(o->group, groups[g])) continue;
            if (!headed) fprintf(out, "\n%s:\n", groups[g]);
            headed = true;
            const struct cli_option own = cli_option_of_verb(verb, o);
            print_option(out, &own);
        }
    }
}

/* A line each: what to type, and what comes of it. */
static void list_verbs(FILE *out, const struct cli_command_info *info, const struct cli_verb *verbs) {
    fputs("Verbs:\n", out);
    for (const struct cli_verb *v = verbs; v->name; v++) {
        if (!*v->name) continue;
        fprintf(out, "  %-12s ", v->name);
        wrap(out, v->summary, 15, 15);
    }
    fprintf(out, "\n'likeness help %s VERB' explains one and lists its options.\n", info->name);
}

static void print_usage(FILE *out, enum cli_command command, const struct cli_verb *verb, const char *before) {
    struct lk_text usage = {0};
    cli_usage(command, verb, &usage);
    fprintf(out, "%s likeness %s %s\n", before, cli_commands[command].name, usage.rc ? "" : usage.bytes);
    lk_text_free(&usage);
}

void cli_help_command(FILE *out, enum cli_command command, const struct cli_verb *verb) {
    const struct cli_command_info *info = &cli_commands[command];
    const struct cli_verb *verbs = cli_verbs(command), *none = cli_verb_named(command, "");
    const bool alone = none && !verbs[1].name; /* the command is this verb */
    const bool whole = verbs && !alone && (!verb || verb == none);
    if (alone) verb = none;
    char name[64];
    fprintf(out, "likeness %s: %s\n\n", cli_full_name(command, verb, name), verb ? verb->summary : info->summary);
    if (!whole || none) print_usage(out, command, whole ? none : verb, "Usage:");
    if (whole) print_usage(out, command, NULL, none ? "      " : "Usage:");
    fputc('\n', out);
    if (whole && info->text) {
        wrap(out, info->text, 0, 0);
        fputc('\n', out);
    }
    if (whole) list_verbs(out, info, verbs);
    if (whole && none) fprintf(out, "\nWithout a verb: %s.\n", none->summary);
    if (whole) verb = none;
    const char *text = verb ? verb->text : verbs ? NULL : info->text;
    if (text) wrap(out, text, 0, 0);
    examples(out, verb ? verb->examples : info->examples);
    if (verb || !verbs) options(out, command, verb);
    exit_codes(out);
}

enum lk_code cli_explain(const struct cli_arguments *a) {
    if (a->man) {
        cli_man(stdout);
        return LK_OK;
    }
    if (!a->positional) {
        cli_help(stdout);
        return LK_OK;
    }
    const bool survey = !strcmp(a->positional, "survey-file");
    if (survey || !strcmp(a->positional, "study-file")) {
        struct lk_text text = {0};
        enum lk_code rc = survey ? lk_survey_explain(&text) : lk_study_explain(&text);
        if (!rc) fwrite(text.bytes, 1, text.n, stdout);
        lk_text_free(&text);
        return rc;
    }
    struct cli_arguments named;
    const char *const words[] = {"likeness", a->positional, a->more[0] ? a->more[0] : "--help", "--help"};
    enum lk_code rc = cli_arguments_parse(&named, a->more[0] ? 4 : 3, words);
    if (!rc) cli_help_command(stdout, named.command, named.verb);
    return rc;
}
