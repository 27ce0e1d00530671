/* A model of a study that does not run here: it is asked over the network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "eval/design/internal.h"
#include "eval/hosted/images.h"

enum lk_code lk_study_complete_hosted(struct lk_study *s, struct lk_study_model *m) {
    struct lk_study_hosted *h = &m->hosted;
    char field[100];
    if (m->written || m->family || m->weights_identity) {
        snprintf(field, sizeof field, "models.%s", m->key);
        return lk_study_bad(s, field, "expected hosted alone, without path, family and weights_identity, got both");
    }
    snprintf(field, sizeof field, "models.%s.hosted.model", m->key);
    if (!h->model) return lk_study_bad(s, field, "expected the model's name at the service, got nothing");
    snprintf(field, sizeof field, "models.%s.hosted.images_url", m->key);
    if (!h->images_url) return lk_study_bad(s, field, "expected an address as https://api.openai.com/v1, got nothing");
    const bool web = !strncasecmp(h->images_url, "http://", 7) || !strncasecmp(h->images_url, "https://", 8);
    if (!web || strpbrk(h->images_url, "?#@"))
        return lk_study_bad(s, field,
                            "expected http://HOST:PORT/v1 or https://... without user, password and \"?\"; the key "
                            "goes into OPENAI_API_KEY");
    h->requests_per_minute = h->per_minute ? strtod(h->per_minute, NULL) : 0;
    if (!m->label) m->label = m->key;
    m->family = "hosted";
    m->path = m->written = h->images_url;
    return LK_OK;
}

void lk_study_write_hosted(const struct lk_study_hosted *h, bool places, struct lk_text *out) {
    lk_text_add(out, "{\"images_url\": ");
    lk_text_json(out, h->images_url);
    lk_text_add(out, ", \"model\": ");
    lk_text_json(out, h->model);
    lk_text_add(out, ", \"set\": {");
    for (int i = 0; i < h->n_set; i++) {
        lk_text_add(out, "%s\"%s\": ", i ? ", " : "", h->set[i].key);
        if (h->set[i].text)
            lk_text_json(out, h->set[i].value);
        else
            lk_text_add(out, "%s", h->set[i].value);
    }
    lk_text_add(out, "}, \"seed_field\": %s", h->seed_field ? "true" : "false");
    if (places && h->per_minute) lk_text_add(out, ", \"requests_per_minute\": %s", h->per_minute);
    if (places)
        lk_text_add(out, ", \"repeat_refused\": %lld, \"fetch_urls\": %s", (long long)h->repeat_refused,
                    h->fetch_urls ? "true" : "false");
    lk_text_add(out, "}");
}
