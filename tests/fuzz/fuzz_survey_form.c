/* What a participant's browser sends: a form, a query and a Cookie header. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "tools/cli/survey/http.h"

static void require(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct survey_form form;
    char cookie[SURVEY_COOKIE_BYTES + 1], *text = malloc(n + 1);
    if (!text) return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    if (survey_cookie(text, "survey", cookie)) require(strspn(cookie, "0123456789abcdef") == SURVEY_COOKIE_BYTES);
    require(survey_number(text, 1000) <= 1000);
    lk_survey_id_is_valid(text);
    if (survey_form_read(text, &form)) {
        require(form.n <= SURVEY_MAX_FIELDS);
        for (int i = 0; i < form.n; i++) {
            const struct survey_field *field = &form.fields[i];
            require(lk_utf8_valid(field->name, strlen(field->name)) && !strchr(field->name, '\x1b'));
            require(lk_utf8_valid(field->value, strlen(field->value)) && !strchr(field->value, '\x7f'));
            require(survey_form_value(&form, field->name) != NULL);
        }
    }
    free(text);
    return 0;
}
