/* fp8 weights, as ComfyUI and others write them: a scale for the whole matrix, MODULE.scale_weight or
 * MODULE.weight_scale, scales of inputs, which are for hardware that multiplies fp8, and MODULE.comfy_quant (JSON). And
 * the forms that are told apart to be refused. */
#include <stdio.h>
#include <string.h>

#include "engine/base/json.h"
#include "weights/quant/source.h"

#define MODULE_MAX 512

/* Index of MODULE.part in the checkpoint; the module is name without ".weight". -1: none. */
static ptrdiff_t beside(const char *name, const char *part, const struct lk_checkpoint *cp) {
    char full[MODULE_MAX + 32];
    const size_t n = strlen(name);
    if (n < 7 || n > MODULE_MAX || strcmp(name + n - 7, ".weight") != 0) return -1;
    snprintf(full, sizeof full, "%.*s.%s", (int)(n - 7), name, part);
    return lk_checkpoint_find_index(cp, full);
}

static enum lk_code check_format(const struct lk_st_tensor *about, enum lk_dtype dtype) {
    const char *want = dtype == LK_F8_E4M3 ? "float8_e4m3fn" : "float8_e5m2", *key, *text;
    struct lk_json j;
    bool seen = false;
    if (about->tensor.dtype != LK_U8 || about->tensor.n_dims != 1)
        return lk_fail(LK_E_BIND, "%s: expected JSON as u8 [n]", about->name);
    lk_json_init(&j, about->tensor.data, (size_t)about->tensor.shape[0], about->name);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j)) {
        if (!lk_json_key(&j, &key)) break;
        if (strcmp(key, "format") != 0) {
            lk_json_skip(&j); /* how to multiply, which is this program's own affair */
            continue;
        }
        seen = true;
        if (lk_json_peek(&j) != '"' || !lk_json_string(&j, &text) || strcmp(text, want) != 0)
            lk_json_fail(&j, LK_E_BIND,
                         "field \"format\": expected \"%s\", the dtype of the weight; others are not read", want);
    }
    lk_json_end(&j);
    if (!seen) lk_json_fail(&j, LK_E_BIND, "field \"format\" is missing");
    return lk_json_finish(&j);
}

enum lk_code lk_f8_read(struct lk_quant_source *out, const struct lk_st_tensor *weight, const struct lk_checkpoint *cp,
                        bool *known) {
    static const char *const scales[] = {"scale_weight", "weight_scale"};
    static const char *const inputs[] = {"scale_input", "input_scale"};
    char have[96];
    *out = (struct lk_quant_source){.tensor = weight->tensor};
    if (weight->tensor.dtype != LK_F8_E4M3 && weight->tensor.dtype != LK_F8_E5M2) return LK_OK;
    for (int i = 0; i < 2; i++) {
        ptrdiff_t at = beside(weight->name, inputs[i], cp);
        if (at >= 0) known[at] = true;
        if ((at = beside(weight->name, scales[i], cp)) < 0) continue;
        known[at] = true;
        const struct lk_st_tensor *s = cp->tensors[at].tensor;
        if (s->tensor.dtype != LK_F32 || lk_tensor_numel(&s->tensor) != 1 || out->n_scales)
            return lk_fail(LK_E_BIND, "%s: expected one scale, f32 with one element, got %s", s->name,
                           lk_tensor_describe(&s->tensor, have));
        out->n_scales = 1;
        out->scales = s->tensor.data;
    }
    const ptrdiff_t about = beside(weight->name, "comfy_quant", cp), all = lk_checkpoint_find_index(cp, "scaled_fp8");
    if (all >= 0) known[all] = true;
    if (about < 0) return LK_OK;
    known[about] = true;
    return check_format(cp->tensors[about].tensor, weight->tensor.dtype);
}

enum lk_code lk_quant_refuse(const struct lk_st_tensor *weight, const struct lk_checkpoint *cp) {
    const ptrdiff_t about = beside(weight->name, "comfy_quant", cp);
    if (beside(weight->name, "SCB", cp) >= 0)
        return lk_fail(
            LK_E_BIND,
            "%s: LLM.int8 weights are not read: they lose more than NF4 on these models; use the bf16 model, "
            "with --quantize q8 for 8 bits",
            weight->name);
    if (about >= 0 && weight->tensor.dtype != LK_BF16)
        return lk_fail(LK_E_BIND, "%s: %.*s is not read; fp8, NF4 of bitsandbytes and GGUF are", weight->name,
                       (int)lk_tensor_bytes(&cp->tensors[about].tensor->tensor),
                       (const char *)cp->tensors[about].tensor->tensor.data);
    return LK_OK;
}

enum lk_code lk_quant_refuse_missing(const char *name, const struct lk_checkpoint *cp) {
    if (beside(name, "qweight", cp) < 0) return LK_OK;
    return lk_fail(LK_E_BIND,
                   "%s: nunchaku's SVDQuant weights are not read: their activations have 4 bits too, which is another "
                   "model; use the bf16 model, with --quantize nf4",
                   name);
}
