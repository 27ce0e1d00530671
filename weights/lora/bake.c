/* Adapters put into the weights as they are bound, for pipelines of which every matrix and every convolution, the text
 * encoders' too, may have one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "weights/lora/internal.h"
#include "weights/lora/keys.h"
#include "weights/mapped_file.h"

static int component_of(const char *name) {
    for (int i = 1; i <= 2; i++)
        if (!strncmp(lk_lora_component(i), name, strlen(name)) && lk_lora_component(i)[strlen(name)] == '.') return i;
    return 0;
}

enum lk_code lk_loras_weight(struct lk_loras *loras, const char *component, const char *module,
                             struct lk_tensor *weight, const struct lk_tensor *from) {
    const int number = component_of(component);
    char name[LK_LORA_MOST_NAME];
    snprintf(name, sizeof name, "%s%s", lk_lora_component(number), module);
    LK_TRY(lk_loras_layer(loras, name, weight->shape[0], lk_tensor_row_numel(weight), NULL, NULL));
    struct lk_lora_layer *l = &loras->layers[loras->n_layers - 1];
    l->component = number;
    l->weight = weight;
    l->from = from;
    return LK_OK;
}

static size_t first_of(const struct lk_loras *loras, int component) {
    size_t first = loras->n_layers;
    while (first && loras->layers[first - 1].component == component) first--;
    return first;
}

enum lk_code lk_loras_place(struct lk_loras *loras, const char *component, const struct lk_rename *rules,
                            size_t n_rules) {
    const int number = component_of(component);
    return lk_lora_place_files(loras, number, first_of(loras, number), rules, n_rules);
}

struct lk_tensor *lk_loras_changed(const struct lk_loras *loras, const char *component, const struct lk_tensor *after,
                                   const struct lk_tensor **from) {
    const int number = component_of(component);
    bool met = !after;
    for (size_t i = 0; i < loras->n_layers; i++) {
        const struct lk_lora_layer *l = &loras->layers[i];
        if (met && l->component == number && l->rank) {
            *from = l->from;
            return l->weight;
        }
        met = met || l->weight == after;
    }
    return NULL;
}

static bool is_finite(const struct lk_tensor *t) {
    for (int64_t i = 0; i < lk_tensor_numel(t); i++)
        if (!isfinite(lk_lora_element(t, i))) return false;
    return true;
}

enum lk_code lk_loras_bake(struct lk_loras *loras, const char *component) {
    const int number = component_of(component);
    for (size_t i = 0; i < loras->n_layers; i++) {
        const struct lk_lora_layer *l = &loras->layers[i];
        if (l->component != number || !l->rank) continue;
        LK_TRY(lk_lora_merge_layer(loras, l, l->from, l->weight));
        if (!is_finite(l->weight))
            return lk_fail(LK_E_BIND, "%s: a value of %s with the adapter is NaN or Inf", loras->list[0].path, l->name);
    }
    for (int i = 0; i < loras->n; i++)
        if (!loras->list[i].planned_rank) LK_TRY(lk_mapped_check(loras->list[i].st.file));
    return LK_OK;
}

enum lk_code lk_loras_check_components(const struct lk_loras *loras, int n_text) {
    for (int i = 0; i < loras->n; i++)
        for (size_t k = 0; k < loras->list[i].n_modules; k++) {
            const struct lk_lora_module *m = &loras->list[i].modules[k];
            if (m->component > n_text)
                return lk_fail(LK_E_BIND,
                               "%s: \"%.200s\" is of a second text encoder, which this model has not: a LoRA of "
                               "another model",
                               loras->list[i].path, m->a->name);
        }
    return LK_OK;
}
