#include "tools/cli/core/help.h"

#include <string.h>

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

void cli_man(FILE *out) {
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
