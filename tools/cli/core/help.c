#include "tools/cli/core/help.h"

#include <string.h>

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

static void examples(FILE *out, const struct cli_command_info *command) {
    fputs("\nExamples:\n", out);
    for (const char *const *e = command->examples; *e; e += 2) fprintf(out, "  # %s\n  %s\n", e[0], e[1]);
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
    fputs("\n'likeness help COMMAND' explains a command and lists its options.\n", out);
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

void cli_help_command(FILE *out, enum cli_command command) {
    const struct cli_command_info *info = &cli_commands[command];
    fprintf(out, "likeness %s: %s\n\nUsage: likeness %s %s\n\n", info->name, info->summary, info->name, info->usage);
    wrap(out, info->text, 0, 0);
    examples(out, info);
    static const char *const groups[] = {"Model",    "Input",  "Sampling", "Thinking", "Columns",
                                         "Analysis", "Server", "Output",   "Other"};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        bool headed = false;
        const struct cli_option *o;
        for (size_t i = 0; (o = cli_option(i)); i++) {
            if (!(o->commands & (1u << command)) || strcmp(o->group, groups[g])) continue;
            if (!headed) fprintf(out, "\n%s:\n", groups[g]);
            headed = true;
            print_option(out, o);
        }
    }
    exit_codes(out);
}
