/* The command line's parser: what it accepts, and each kind of refusal with the flag's name in the message. */
#include "tests/common/test.h"

#include "tools/cli/core/options.h"

#define PARSE(a, ...)                                                                                                  \
    cli_arguments_parse((a), (int)(sizeof((const char *[]){"likeness", __VA_ARGS__}) / sizeof(char *)),                \
                        (const char *const[]){"likeness", __VA_ARGS__})

static void accepts(void **state) {
    (void)state;
    struct cli_arguments a;
    assert_ok(PARSE(&a, "edit", "-m", "M", "-r", "1.png", "--ref-image=2.png", "-p", "x", "-s9", "--steps", "3",
                    "--guidance", "2.5", "-W", "64", "-H=32", "-o", "out.png", "--dtype", "f32", "-q"));
    assert_int_equal(a.command, CLI_EDIT);
    assert_string_equal(a.model, "M");
    assert_int_equal(a.n_images, 2);
    assert_string_equal(a.images[1], "2.png");
    assert_int_equal(a.job.request.seed, 9);
    assert_int_equal(a.job.request.num_inference_steps, 3);
    assert_true(a.job.request.guidance_scale == 2.5);
    assert_int_equal(a.job.request.width, 64);
    assert_int_equal(a.job.request.height, 32);
    assert_string_equal(a.job.run.dtype, "f32");
    assert_true(a.quiet);
    assert_ok(PARSE(&a, "plan", "-m", "flux2-dev", "--size", "640x480", "--vram", "16G", "--references", "0"));
    assert_int_equal(a.job.request.width, 640);
    assert_int_equal(a.job.request.height, 480);
    assert_true(a.job.run.vram == (uint64_t)16 << 30);
    assert_int_equal(a.references, 0);
    assert_ok(PARSE(&a, "show", "--", "-x.png"));
    assert_string_equal(a.positional, "-x.png");
    assert_ok(PARSE(&a, "edit", "-m", "M", "-o", "o", "--prompt=--seed", "--seed", "9223372036854775807"));
    assert_string_equal(a.job.request.prompt, "--seed");
    assert_true(a.job.request.seed == INT64_MAX);
    assert_ok(PARSE(&a, "edit", "--help"));
    assert_true(a.help);
    const struct lk_parameter *exif = lk_parameter_named("exif-transpose");
    assert_true(a.job.run.exif_transpose && !lk_job_given(&a.job, exif));
    assert_ok(PARSE(&a, "edit", "-m", "M", "-o", "o", "-p", "x", "--no-exif-transpose"));
    assert_true(!a.job.run.exif_transpose && lk_job_given(&a.job, exif));
}

static void refuses_numbers(void **state) {
    (void)state;
    static const char *const seeds[] = {"",
                                        "-1",
                                        "1.5",
                                        "0x10",
                                        "1e3",
                                        " 1",
                                        "1 ",
                                        "ten",
                                        "+1",
                                        "--1",
                                        "1_000",
                                        "9223372036854775808",
                                        "99999999999999999999999999999999999999",
                                        "\xff",
                                        "1\n"};
    struct cli_arguments a;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char flag[128];
        snprintf(flag, sizeof flag, "--seed=%s", seeds[i]);
        assert_fails(PARSE(&a, "edit", flag), LK_E_USAGE,
                     "--seed: expected a whole number from 0 to 9223372036854775807");
    }
    static const char *const scales[] = {"", "nan", "inf", "-0.5", "1001", "0x1p3", "4,0", "4.0.0", " 4", "1e999", "."};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        char flag[128];
        snprintf(flag, sizeof flag, "--guidance-scale=%s", scales[i]);
        assert_fails(PARSE(&a, "edit", flag), LK_E_USAGE, "--guidance-scale: expected a number from 0 to 1000");
    }
    static const char *const sizes[] = {"1024", "x", "64x", "x64", "64x64x64", "8x64", "64x99999", "-64x64", "64*64"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_fails(PARSE(&a, "plan", "--size", sizes[i]), LK_E_USAGE, "--size: expected");
    static const char *const memory[] = {"", "G", "0", "0G", "16GG", "16 G", "1.5G", "-1G", "99999999999999T", "16GB"};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        assert_fails(PARSE(&a, "plan", "--vram", memory[i]), LK_E_USAGE, "--vram: expected a size");
}

static void refuses_flags(void **state) {
    (void)state;
    struct cli_arguments a;
    assert_fails(cli_arguments_parse(&a, 1, (const char *const[]){"likeness"}), LK_E_USAGE, "expected a command");
    assert_fails(PARSE(&a, "edti"), LK_E_USAGE, "did you mean 'edit'");
    assert_fails(PARSE(&a, "zzzzzz"), LK_E_USAGE, "'likeness help' lists them");
    assert_fails(PARSE(&a, "edit", "--imgae", "x"), LK_E_USAGE, "did you mean --image?");
    assert_fails(PARSE(&a, "edit", "--num-steps", "3"), LK_E_USAGE, "no such option");
    assert_fails(PARSE(&a, "edit", "--init-img", "x"), LK_E_USAGE, "give the picture with --image");
    assert_fails(PARSE(&a, "edit", "--manifest", "x"), LK_E_USAGE, "belongs to: verify");
    assert_fails(PARSE(&a, "edit", "-z"), LK_E_USAGE, "-z: no such option");
    assert_fails(PARSE(&a, "edit", "--seed"), LK_E_USAGE, "--seed: needs a value");
    assert_fails(PARSE(&a, "edit", "--prompt", "--seed"), LK_E_USAGE, "--prompt=VALUE");
    assert_fails(PARSE(&a, "edit", "--quiet=1"), LK_E_USAGE, "takes no value");
    assert_fails(PARSE(&a, "edit", "--no-quiet"), LK_E_USAGE, "no such option");
    assert_fails(PARSE(&a, "edit", "--dtype", "f16"), LK_E_USAGE, "--dtype: expected bf16|f32, got \"f16\"");
    assert_fails(PARSE(&a, "edit", "--dtype", "bf16|f32"), LK_E_USAGE, "--dtype: expected");
    assert_fails(PARSE(&a, "edit", "--dtype="), LK_E_USAGE, "--dtype: expected");
    assert_fails(PARSE(&a, "edit", "in.png"), LK_E_USAGE, "every input has a flag");
    assert_fails(PARSE(&a, "edit", "-r", ""), LK_E_USAGE, "expected a path");
    assert_fails(PARSE(&a, "edit", "-m", "M", "-o", "o"), LK_E_USAGE, "--prompt: missing");
    assert_fails(PARSE(&a, "verify"), LK_E_USAGE, "verify: expected DIR");
    assert_fails(PARSE(&a, "show", "a", "b"), LK_E_USAGE, "got \"a\" and \"b\"");
    assert_fails(PARSE(&a, "edit", "-r1", "-r2", "-r3", "-r4", "-r5", "-r6", "-r7", "-r8", "-r9", "-r10", "-r11"),
                 LK_E_USAGE, "at most 10 images");
}

/* The table itself: names unique for each command, every field inside the struct, groups known to the help. */
static void table(void **state) {
    (void)state;
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option(i)); i++) {
        assert_true(o->offset < sizeof(struct cli_arguments));
        assert_true((o->kind == CLI_FLAG) == (o->value == NULL));
        assert_true(o->choices || o->kind != CLI_CHOICE);
        assert_true(!o->choices || o->kind == CLI_CHOICE || o->kind == CLI_TEXT);
        assert_non_null(
            strstr("Model Input Sampling Concepts Thinking Columns Analysis Server Output Other", o->group));
        assert_true((o->required & ~o->commands) == 0);
        for (size_t j = 0; j < i; j++) {
            if (o->commands & cli_option(j)->commands) assert_string_not_equal(o->name, cli_option(j)->name);
            if (o->letter) assert_int_not_equal(o->letter, cli_option(j)->letter);
        }
    }
}

/* Whether the character begins or ends what is quoted. */
static bool turns(char *quote, char c) {
    if (*quote ? c != *quote : c != '"' && c != '\'') return false;
    *quote = *quote ? 0 : c;
    return true;
}

/* The next word as a shell reads it, its quotes gone, to be written over `text`; NULL at the end. */
static const char *next_word(char **text) {
    char *from = *text + strspn(*text, " "), *to = from, *word = from;
    if (!*from) return NULL;
    for (char quote = 0; *from && (quote || *from != ' '); from++)
        if (!turns(&quote, *from)) *to++ = *from;
    *text = from + (*from != 0);
    *to = 0;
    return word;
}

/* Parses the commands of a list of examples, and sees whether one is the command's own. */
static void parse_examples(int command, const char *const *examples, bool *of_command) {
    for (const char *const *example = examples; example && *example; example += 2) {
        char line[512], *rest = line;
        const char *words[32], *word;
        int n = 0;
        snprintf(line, sizeof line, "%s", example[1]);
        do {
            word = next_word(&rest);
            if (word && strcmp(word, "&&") && *word != '|' && *word != '>') {
                words[n++] = word;
                continue;
            }
            struct cli_arguments a;
            if (n && !strcmp(words[0], "likeness")) {
                if (cli_arguments_parse(&a, n, words)) fail_msg("%s: %s", example[1], lk_error_text());
                *of_command |= (int)a.command == command;
            }
            n = 0;
        } while (word);
    }
}

/* What the help shows as an example is a job that the parser takes, of the command it stands at. */
static void examples_parse(void **state) {
    (void)state;
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        bool of_command = false;
        parse_examples(c, cli_commands[c].examples, &of_command);
        for (const struct cli_verb *v = cli_verbs(c); v && v->name; v++) parse_examples(c, v->examples, &of_command);
        if (!of_command) fail_msg("help of %s: no examples of its own", cli_commands[c].name);
    }
}

/* Commands of README.md and of the pages in tools/docs: lines that are indented by four and begin with likeness. */
static void documents_parse(void **state) {
    static const char *const pages[] = {"README.md",          "docs/edit.md",   "docs/study.md",
                                        "docs/judging.md",    "docs/raters.md", "docs/text-to-image.md",
                                        "docs/statistics.md", "docs/gpu.md",    "docs/library.md",
                                        "docs/files.md"};
    int n_commands = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char path[600], command[1200] = "", *line, *rest;
        snprintf(path, sizeof path, "%s/%s%s", getenv("SOURCE_DIR"), i ? "tools/" : "", pages[i]);
        char *text = test_read(path, &(size_t){0});
        for (rest = text; (line = strsep(&rest, "\n"));) {
            const bool more = *command != 0;
            if (strncmp(line, "    ", 4) || (!more && strncmp(line + 4, "likeness ", 9))) continue;
            char *comment = strstr(line, " #");
            if (comment) *comment = 0;
            const size_t n = strlen(line), used = strlen(command);
            const bool goes_on = n && line[n - 1] == '\\';
            char quote = 0;
            snprintf(command + used, sizeof command - used, "%.*s ", (int)(n - goes_on - 4), line + 4);
            for (const char *c = command; *c; c++) turns(&quote, *c);
            if (goes_on || quote) continue;
            bool of_command = false;
            const char *const example[] = {path, command, NULL};
            parse_examples(-1, example, &of_command);
            n_commands++;
            *command = 0;
        }
        assert_string_equal(command, "");
        free(text);
    }
    assert_true(n_commands > 30);
}

/* A command line of the verb with as many operands as it needs and what must be given; returns the number of words. */
static int least_words(int command, const struct cli_verb *v, const char *words[40]) {
    const struct cli_option *o;
    int n = 0, least, most;
    words[n++] = "likeness";
    words[n++] = cli_commands[command].name;
    if (*v->name) words[n++] = v->name;
    cli_operands(v, &least, &most);
    for (int k = 0; k < least; k++) words[n++] = "x";
    for (size_t i = 0; (o = cli_option(i)); i++) {
        static char flags[16][64];
        if (!cli_takes(command, v, o) || !cli_requires(command, v, o)) continue;
        char *flag = flags[n & 15];
        snprintf(flag, sizeof flags[0], "--%s=%.*s", o->name, o->choices ? (int)strcspn(o->choices, "|") : 1,
                 o->choices ? o->choices : "1");
        words[n++] = flag;
    }
    return n;
}

/* Every option of a command with every verb of it: taken by those whose help lists it, refused by name by the others.
 */
static void options_of_verbs(void **state) {
    (void)state;
    int n_pairs = 0, n_refused = 0;
    for (int c = 0; c < CLI_N_COMMANDS; c++)
        for (const struct cli_verb *v = cli_verbs(c); v && v->name; v++) {
            const char *words[40];
            struct cli_arguments a;
            const struct cli_option *o;
            const int n = least_words(c, v, words);
            if (cli_arguments_parse(&a, n, words)) fail_msg("%s %s: %s", words[1], v->name, lk_error_text());
            assert_ptr_equal(a.verb, v);
            assert_true(v->run || v->with_study);
            for (size_t i = 0; (o = cli_option(i)); i++) {
                char flag[80];
                if (!(o->commands >> c & 1) || o->kind == CLI_FILES || o->once) continue;
                snprintf(flag, sizeof flag, "--%s%s", o->name, o->kind == CLI_FLAG ? "" : "=");
                if (o->kind != CLI_FLAG) {
                    const char *value = o->choices ? o->choices : o->kind == CLI_SIZE ? "64x64" : "1";
                    snprintf(flag + strlen(flag), sizeof flag - strlen(flag), "%.*s",
                             o->choices ? (int)strcspn(value, "|") : (int)strlen(value), value);
                }
                words[n] = flag;
                const bool refused =
                    cli_arguments_parse(&a, n + 1, words) && strstr(lk_error_text(), ": not an option of '") != NULL;
                lk_job_free(&a.job);
                if (refused == cli_takes(c, v, o)) fail_msg("%s %s %s: %s", words[1], v->name, flag, lk_error_text());
                if (refused) assert_non_null(strstr(lk_error_text(), "; it belongs to: "));
                n_pairs++;
                n_refused += refused;
            }
        }
    assert_true(n_pairs > 1000 && n_refused > 500 && n_refused < n_pairs);
}

/* Whether a verb's list has the name. */
static bool lists(const struct cli_verb *v, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = v->options; (at = strstr(at, name)); at += n)
        if ((at == v->options || at[-1] == ' ') && strchr(" !", at[n])) return true;
    return false;
}

/* Names in the verbs' tables are options of their command; no option of a command is left without a verb. */
static void verbs_name_options(void **state) {
    (void)state;
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        const struct cli_option *o;
        for (const struct cli_verb *v = cli_verbs(c); v && v->name; v++) {
            char list[1024], *rest = list;
            const char *name;
            snprintf(list, sizeof list, "%s", v->options);
            assert_int_equal(strlen(list), strlen(v->options));
            while ((name = next_word(&rest))) {
                bool known = !strcmp(name, "@request");
                for (size_t i = 0; (o = cli_option(i)); i++)
                    known |= !strncmp(name, o->name, strcspn(name, "!")) && strlen(o->name) == strcspn(name, "!") &&
                             o->commands >> c & 1;
                if (!known) fail_msg("%s %s: --%s is no option", cli_commands[c].name, v->name, name);
            }
            for (const struct cli_says *says = v->says; says && says->option; says++)
                if (!lists(v, says->option))
                    fail_msg("%s %s: explains --%s", cli_commands[c].name, v->name, says->option);
        }
        for (size_t i = 0; cli_verbs(c) && (o = cli_option(i)); i++) {
            bool used = !(o->commands >> c & 1);
            for (const struct cli_verb *v = cli_verbs(c); v->name; v++) used |= cli_takes(c, v, o);
            if (!used) fail_msg("%s: no verb takes --%s", cli_commands[c].name, o->name);
        }
    }
}

static void verbs(void **state) {
    (void)state;
    struct cli_arguments a;
    assert_ok(PARSE(&a, "study", "run", "s.json", "-o", "out", "--devices", "0,1"));
    assert_string_equal(a.verb->name, "run");
    assert_string_equal(a.more[0], "s.json");
    assert_ok(PARSE(&a, "study", "merge", "s.json", "-o", "out", "a", "b", "c"));
    assert_string_equal(a.more[3], "c");
    assert_ok(PARSE(&a, "study", "--help"));
    assert_null(a.verb);
    assert_ok(PARSE(&a, "judge", "-r", "1.png", "-r", "2.png"));
    assert_string_equal(a.verb->name, "");
    assert_ok(PARSE(&a, "lora", "x.safetensors"));
    assert_string_equal(a.verb->name, "");
    assert_string_equal(a.more[0], "x.safetensors");
    assert_fails(PARSE(&a, "study"), LK_E_USAGE, "expected one of new, check, plan");
    assert_fails(PARSE(&a, "study", "rnu"), LK_E_USAGE, "study rnu: no such command; did you mean 'study run'?");
    assert_fails(PARSE(&a, "study", "-o", "out", "run"), LK_E_USAGE, "got \"-o\"");
    assert_fails(PARSE(&a, "study", "run", "-o", "out"), LK_E_USAGE,
                 "study run: expected STUDY.json; usage: likeness study run STUDY.json -o DIR [options]");
    assert_fails(PARSE(&a, "study", "run", "s.json"), LK_E_USAGE, "--output: missing");
    assert_fails(PARSE(&a, "study", "status", "a", "b"), LK_E_USAGE, "study status: expected no more than DIR");
    assert_fails(PARSE(&a, "study", "new", "a"), LK_E_USAGE, "study new: does not take \"a\"");
    assert_fails(PARSE(&a, "study", "run", "s.json", "--sample", "3"), LK_E_USAGE,
                 "--sample: not an option of 'study run'; it belongs to: study rerun, judge run, survey new, t2i");
    assert_fails(PARSE(&a, "judge", "import", "f", "--output", "x"), LK_E_USAGE, "judge run");
    assert_fails(PARSE(&a, "judge", "-r", "1.png", "run"), LK_E_USAGE, "judge: does not take \"run\"");
    assert_fails(PARSE(&a, "stats", "kappa", "f.csv", "--x", "a"), LK_E_USAGE, "--y: missing");
    assert_fails(PARSE(&a, "stats", "kappa", "f.csv", "--x", "a", "--y", "b", "--by", "c"), LK_E_USAGE,
                 "--by: not an option of 'stats kappa'");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_parse),
                                       cmocka_unit_test(accepts),
                                       cmocka_unit_test(refuses_numbers),
                                       cmocka_unit_test(refuses_flags),
                                       cmocka_unit_test(table),
                                       cmocka_unit_test(verbs),
                                       cmocka_unit_test(documents_parse),
                                       cmocka_unit_test(options_of_verbs),
                                       cmocka_unit_test(verbs_name_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
