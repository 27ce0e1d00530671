/* What a model family's checkpoint consists of: configs as diffusers and transformers save them, tensors in the
 * released layout. */
#pragma once

#include "tools/make/weights.h"

#define MAKE_MAX_FILES   16
#define MAKE_MAX_WEIGHTS 4

struct make_family {
    const char *name;  /* "flux2" */
    size_t size_bytes; /* of the family's struct of sizes */
    /* Fills *size; preset "tiny", "small" or "wide"; released_vae: the released VAE's widths. LK_E_USAGE for what there
     * is not. */
    enum lk_code (*choose)(void *size, const char *preset, bool released_vae);
    struct {
        const char *path;                 /* "transformer/config.json"; NULL ends the list */
        cJSON *(*json)(const void *size); /* NULL when memory is out */
    } files[MAKE_MAX_FILES];
    struct {
        const char *component, *stem; /* component "" for the folder itself; stem NULL ends the list */
        void (*tensors)(struct make_list *list, const void *size);
    } weights[MAKE_MAX_WEIGHTS];
};

extern const struct make_family make_family_flux2, make_family_qwen25_vl, make_family_qwen_edit, make_family_step1x;
