/* Every kind of reply that servers were seen to send, and what it is read as. */
#include "eval/judge/server.h"
#include "tests/common/test.h"

#define S5                    "\\\"edit_success\\\":5,\\\"skin_tone\\\":3,\\\"race_drift\\\":1,\\\"gender_drift\\\":2,\\\"age_drift\\\":4"
#define SAYS(message, reason) "{\"choices\":[{\"message\":" message ",\"finish_reason\":" reason "}]}"
#define TEXT(text)            SAYS("{\"content\":\"" text "\"}", "\"stop\"")

/* What a reply is read as: text (NULL: no answer), refused, cut off; else what is said to be wrong. */
static void replies_of_every_kind(void **state) {
    static const struct {
        const char *reply, *text;
        bool refused, cut;
        const char *words;
    } cases[] = {
        {TEXT("{" S5 "}"), "{\"edit_success\":5,\"skin_tone\":3,\"race_drift\":1,\"gender_drift\":2,\"age_drift\":4}",
         0, 0, ""},
        {SAYS("{\"content\":\"a\"}", "\"length\""), "a", 0, 1, ""},
        {SAYS("{\"content\":\"a\"}", "null"), "a", 0, 0, ""},
        {SAYS("{\"content\":\"\"}", "\"stop\""), "", 0, 0, ""},
        {SAYS("{\"content\":null}", "\"stop\""), "", 0, 0, ""},
        {SAYS("{}", "\"stop\""), "", 0, 0, ""},
        /* parts */
        {SAYS("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}", "\"stop\""),
         "ab", 0, 0, ""},
        {SAYS("{\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}", "\"stop\""), "a", 0, 0, ""},
        {SAYS("{\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"text\",\"text\":\"a\"}]}",
              "\"stop\""),
         "<think>t</think>\na", 0, 0, ""},
        {SAYS("{\"content\":[{\"type\":\"refusal\",\"refusal\":\"No.\"}]}", "\"stop\""), "No.", 1, 0, ""},
        {SAYS("{\"content\":[1,{\"type\":\"text\",\"text\":5}]}", "\"stop\""), "", 0, 0, ""},
        {SAYS("{\"content\":[]}", "\"stop\""), "", 0, 0, ""},
        /* thoughts beside the answer */
        {SAYS("{\"content\":\"a\",\"reasoning_content\":\"t\"}", "\"stop\""), "<think>t</think>\na", 0, 0, ""},
        {SAYS("{\"content\":\"a\",\"reasoning\":\"t\"}", "\"stop\""), "<think>t</think>\na", 0, 0, ""},
        {SAYS("{\"content\":null,\"reasoning_content\":\"t\"}", "\"length\""), "<think>t", 0, 1, ""},
        {SAYS("{\"content\":\"\",\"reasoning_content\":\"t\"}", "\"stop\""), "<think>t</think>\n", 0, 0, ""},
        {SAYS("{\"content\":\"a\",\"reasoning_content\":\"\"}", "\"stop\""), "a", 0, 0, ""},
        /* refusals */
        {SAYS("{\"content\":null,\"refusal\":\"I can't.\"}", "\"stop\""), "I can't.", 1, 0, ""},
        {SAYS("{\"content\":\"\",\"refusal\":\"I can't.\"}", "\"stop\""), "I can't.", 1, 0, ""},
        {SAYS("{\"content\":null,\"refusal\":null}", "\"content_filter\""), "no reason given", 1, 0, ""},
        {SAYS("{\"content\":\"a\",\"refusal\":null}", "\"stop\""), "a", 0, 0, ""},
        {"{\"error\":{\"code\":\"content_filter\",\"message\":\"filtered\"}}", "filtered", 1, 0, ""},
        {"{\"error\":{\"type\":\"content_policy_violation\",\"message\":\"policy\"}}", "policy", 1, 0, ""},
        /* bytes that are no text */
        {TEXT("a\xff"
              "b"),
         "a\\xffb", 0, 0, ""},
        {TEXT("caf\xc3"), "caf\\xc3", 0, 0, ""},
        {TEXT("\xc0\x80\xed\xa0\x80"), "\\xc0\\x80\\xed\\xa0\\x80", 0, 0, ""},
        {TEXT("a\\u0000b"), "a\\u0000b", 0, 0, ""},
        {TEXT("a\\ud83db"), "a\\ud83db", 0, 0, ""},
        {TEXT("\\udc00\\ud83d"), "\\udc00\\ud83d", 0, 0, ""},
        {TEXT("\\ud83d\\ude00"), "\xf0\x9f\x98\x80", 0, 0, ""},
        {TEXT("\\\\u0000"), "\\u0000", 0, 0, ""},
        {TEXT("\\\"\\u0041"), "\"A", 0, 0, ""},
        {"\xef\xbb\xbf" TEXT("a"), "a", 0, 0, ""},
        /* secrets */
        {TEXT("key s3cret-key and s3cret-key, pass-word"), "key ********** and **********, *********", 0, 0, ""},
        {SAYS("{\"content\":null,\"refusal\":\"s3cret-key\"}", "\"stop\""), "**********", 1, 0, ""},
        {SAYS("{\"content\":\"a\",\"reasoning\":\"s3cret\\u002dkey\"}", "\"stop\""), "<think>**********</think>\na", 0,
         0, ""},
        {"{\"error\":{\"message\":\"your key Bearer s3cret-key is wrong \\u001b[31m\"}}", NULL, 0, 0,
         "your key Bearer ********** is wrong ?[31m"},
        {"s3cret-key", NULL, 0, 0, "no reason given; the reply begins \"**********\""},
        /* no answers */
        {"", NULL, 0, 0, "the reply is empty"},
        {"{\"choices\":[]}", NULL, 0, 0, "the reply begins \"{\"choices\":[]}\""},
        {"{\"choices\":[{\"text\":\"a\"}]}", NULL, 0, 0, "the reply begins \"{\"choices\":[{\"text\""},
        {"<html>Bad gateway</html>", NULL, 0, 0, "the reply begins \"<html>Bad gateway</html>\""},
        {"data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]", NULL, 0, 0, "the reply begins \"data: {"},
        {"\x1f\x8b\x08", NULL, 0, 0, "the reply begins \"?\\\\x8b?\""},
        {"{\"error\":\"no slot\"}", NULL, 0, 0, "no slot"},
        {"{\"error\":{\"message\":\"model overloaded\"}}", NULL, 0, 0, "model overloaded"},
        {"{\"object\":\"error\",\"message\":\"maximum context length\"}", NULL, 0, 0, "maximum context length"},
        {"{\"detail\":\"Not Found\"}", NULL, 0, 0, "Not Found"},
        {"[[[[", NULL, 0, 0, "the reply begins"},
    };
    static const struct lk_http_secrets secrets = {{"s3cret-key", "pass-word"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_chat_answer got;
        char words[LK_HTTP_WORDS];
        bool read = lk_judge_server_read(cases[i].reply, strlen(cases[i].reply), &secrets, &got, words);
        bool same = read ? cases[i].text && !strncmp(got.text, cases[i].text, strlen(cases[i].text)) &&
                               (got.n == strlen(cases[i].text) || strstr(cases[i].text, "no reason")) &&
                               got.refused == cases[i].refused && got.stopped != cases[i].cut
                         : !cases[i].text && strstr(words, cases[i].words);
        if (!same)
            fail_msg("%s\ngot %d \"%s\" refused %d cut %d, %s", cases[i].reply, read, read ? got.text : "", got.refused,
                     !got.stopped, words);
        lk_chat_answer_free(&got);
    }
    /* a NUL among the bytes; a short "key" is none */
    static const char nul[] = TEXT("a\0b, EMPTY");
    static const struct lk_http_secrets none = {{"EMPTY", NULL}};
    struct lk_chat_answer got;
    char words[LK_HTTP_WORDS];
    assert_true(lk_judge_server_read(nul, sizeof nul - 1, &none, &got, words));
    assert_string_equal(got.text, "a\\x00b, EMPTY");
    lk_chat_answer_free(&got);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(replies_of_every_kind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
