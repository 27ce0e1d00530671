/* A server's reply to a judge's question: an answer of as many bytes as it says, or none; the server's words are one
 * printable line. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "eval/judge/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_chat_answer answer;
    char words[LK_HTTP_WORDS];
    const struct lk_http_secrets secrets = {{"s3cret-key", NULL}};
    bool read = lk_judge_server_read((const char *)data, size, &secrets, &answer, words);
    check(read == (answer.text != NULL) && strlen(words) < sizeof words && *words && !strstr(words, "s3cret-key"));
    if (read) check(strlen(answer.text) == answer.n && answer.n_tokens >= 0 && answer.n_prompt_tokens >= 0);
    if (read) check(lk_utf8_valid(answer.text, answer.n) && !strstr(answer.text, "s3cret-key"));
    for (const char *at = words; *at; at++) check(*at >= 0x20 && *at < 0x7f);
    lk_chat_answer_free(&answer);
    return 0;
}
