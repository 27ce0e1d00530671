/* "quantization_config" of a config.json, as diffusers and transformers write it for bitsandbytes. */
#include "weights/quant/config.h"

#include <string.h>

void lk_quantization_config_read(struct lk_config *json) {
    /* Which weights are quantised and how, their companions say; the dtype of activations is this program's. */
    static const char *const inert[] = {"_load_in_4bit",
                                        "_load_in_8bit",
                                        "bnb_4bit_compute_dtype",
                                        "bnb_4bit_quant_storage",
                                        "bnb_4bit_use_double_quant",
                                        "llm_int8_enable_fp32_cpu_offload",
                                        "llm_int8_has_fp16_weight",
                                        "llm_int8_skip_modules",
                                        "llm_int8_threshold"};
    struct lk_config *c = lk_config_object(json, "quantization_config", false);
    const char *type = NULL;
    bool int8 = false, four = true;
    if (!c) return;
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(c, inert[i]);
    lk_config_expect_string(c, "quant_method", "bitsandbytes");
    lk_config_bool_or(c, "load_in_8bit", &int8, false);
    lk_config_bool_or(c, "load_in_4bit", &four, true);
    lk_config_string_or(c, "bnb_4bit_quant_type", &type, "nf4");
    if (int8)
        lk_config_problem(c, "load_in_8bit", LK_E_CONFIG_VALUE,
                          "LLM.int8 weights are not read: they lose more than NF4 on these models; use the bf16 model, "
                          "with --quantize q8 for 8 bits");
    else if (four && type && strcmp(type, "nf4"))
        lk_config_problem(c, "bnb_4bit_quant_type", LK_E_CONFIG_VALUE,
                          "expected \"nf4\", got \"%.40s\": quantise the bf16 model again with that type", type);
}
