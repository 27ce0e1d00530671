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
    assert_fails(PARSE(&a, "edit", "--strength", "1"), LK_E_USAGE, "always starts from noise");
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

/* The next word as a shell reads it, its quotes gone, to be written over `text`; NULL at the end. */
static const char *next_word(char **text) {
    char *from = *text + strspn(*text, " "), *to = from, *word = from;
    if (!*from) return NULL;
    for (bool quoted = false; *from && (quoted || *from != ' '); from++)
        if (*from == '"')
            quoted = !quoted;
        else
            *to++ = *from;
    *text = from + (*from != 0);
    *to = 0;
    return word;
}

/* What the help shows as an example is a job that the parser takes, of the command it stands at. */
static void examples_parse(void **state) {
    (void)state;
    for (int c = 0; c < CLI_N_COMMANDS; c++) {
        bool of_command = false;
        int n_examples = 0;
        for (const char *const *example = cli_commands[c].examples; *example; example += 2, n_examples++) {
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
                    of_command |= (int)a.command == c;
                }
                n = 0;
            } while (word);
        }
        if (!of_command || n_examples < 2) fail_msg("help of %s: no examples of its own", cli_commands[c].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_parse), cmocka_unit_test(accepts),
                                       cmocka_unit_test(refuses_numbers), cmocka_unit_test(refuses_flags),
                                       cmocka_unit_test(table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
