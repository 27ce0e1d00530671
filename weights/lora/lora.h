/* LoRA: low-rank adapters of a transformer's linear layers, in files of every published layout.
 *
 *     struct lk_loras *loras;
 *     lk_loras_open(&loras, (const char *[]){"lightning.safetensors=0.8"}, 1, true);
 *     lk_bind_loras(bind, loras, rules, n_rules);    // before the layers are bound; lk_bind_finish then fills them
 *     ...
 *     lk_loras_close(loras);                         // when nothing reads the layers any more
 *
 * A file holds for each module A [r, K] ("down") and B [n, r] ("up"); the layer W [N, K] becomes W + s B A, where s is
 * scale * alpha / r in double, rounded once to f32. W stays as it is: a layer gets down [R, K] and up [N, R], the
 * matrices of all files one below (beside) the other in the order asked for, s multiplied into up, R filled up with
 * zeros to a multiple of LK_LORA_GRAIN. Under bf16 compute both are rounded to bf16. struct lk_linear says what is
 * computed with them.
 *
 * Every key of a file is bound or refused by name: LK_E_BIND says which file, key, what it is and how many more. */
#pragma once

#include "weights/quant/rename.h"
#include "weights/safetensors.h"

#define LK_MAX_LORAS     8
#define LK_LORA_MAX_RANK 1024
#define LK_LORA_GRAIN    32
#define LK_LORA_MIN      (-10.0) /* of scales; never 0 */
#define LK_LORA_MAX      10.0

struct lk_lora_module;

/* A file that was read, or one that a plan supposes. */
struct lk_lora {
    int64_t planned_rank; /* of all layers of blocks but modulation's; 0: there is a file */
    char *path;
    const char *name; /* the path's last part */
    char sha256[65];  /* of the whole file; "" when only planned with */
    char layout[96];  /* "lora_down, prefix lora_unet_" */
    double scale;
    struct lk_safetensors st;
    struct lk_lora_module *modules; /* sorted */
    size_t n_modules;
    char *texts; /* behind the modules' names */
};

struct lk_lora_layer;

struct lk_loras {
    struct lk_lora list[LK_MAX_LORAS];
    int n;
    bool whole;                   /* lk_loras_open_whole */
    struct lk_lora_layer *layers; /* that a model has, while it is bound */
    size_t n_layers, layers_capacity;
    void *owned; /* the matrices */
};

/* FILE[=SCALE], as users write it: the last "=" splits. *length gets that of FILE. "rank=N" is a file that is not
 * there: *scale gets N. LK_E_USAGE for a scale that is none or out of range. */
enum lk_code lk_lora_split(const char *asked, size_t *length, double *scale);

/* asked: FILE[=SCALE], where FILE is a path, a folder with one .safetensors file, or ORG/NAME[@REVISION][:FILE] in the
 * HF cache; in plans also "rank=N". with_data false: for plans; values are not looked at and files not hashed.
 * LK_E_USAGE for what is asked wrongly; LK_E_NOT_FOUND, LK_E_ST_*, LK_E_JSON*, LK_E_BIND for what is wrong in a file.
 */
enum lk_code lk_loras_open(struct lk_loras **out, const char *const *asked, int n, bool with_data);
void lk_loras_close(struct lk_loras *loras); /* NULL is allowed */
/* The same for pipelines of which text encoders and convolutions take adapters, too: W + s B A in place of W, as
 * lk_loras_bake makes it, and no matrix beside it. */
enum lk_code lk_loras_open_whole(struct lk_loras **out, const char *const *asked, int n, bool with_data);

/* The model has a linear layer [rows, columns] under this name; down and up get its adapter when all are bound, and
 * stay absent where no file has one. */
enum lk_code lk_loras_layer(struct lk_loras *loras, const char *module, int64_t rows, int64_t columns,
                            struct lk_tensor *down, struct lk_tensor *up);
/* Binds every file to the layers named. rules: other names of them. with_data false: shapes and addresses alone. */
enum lk_code lk_loras_bind(struct lk_loras *loras, const struct lk_rename *rules, size_t n_rules, enum lk_dtype compute,
                           bool with_data);

/* Of lk_loras_open_whole. A component ("unet", "text_encoder", "text_encoder_2") has a weight [rows, ...] of this
 * module: a matrix, or filters [rows, channels, height, width]. from: what the checkpoint has; NULL when planning. */
enum lk_code lk_loras_weight(struct lk_loras *loras, const char *component, const char *module,
                             struct lk_tensor *weight, const struct lk_tensor *from);
/* Finds the component's modules that the files name; rules: other names of modules, or of what they are part of. */
enum lk_code lk_loras_place(struct lk_loras *loras, const char *component, const struct lk_rename *rules,
                            size_t n_rules);
/* Weights of the component that a file changes: the next one after `after` (NULL: the first), NULL at the end. */
struct lk_tensor *lk_loras_changed(const struct lk_loras *loras, const char *component, const struct lk_tensor *after,
                                   const struct lk_tensor **from);
/* Fills these weights, dense and in memory of their own, from what the checkpoint has, with one rounding: as
 * lk_loras_merge. LK_E_BIND where a value is NaN or Inf. */
enum lk_code lk_loras_bake(struct lk_loras *loras, const char *component);
/* LK_E_BIND when a file has a module of a text encoder that a model with so many has not. */
enum lk_code lk_loras_check_components(const struct lk_loras *loras, int n_text);
/* Whether a file changes a text encoder. */
bool lk_lora_has_text(const struct lk_lora *file);

/* What file `i_file` brings to layer i; false: nothing. */
struct lk_lora_info {
    const char *layer; /* "transformer_blocks.0.attn.to_q" */
    int64_t rows, columns, rank;
    float s;
    double norm; /* |s B A|, Frobenius, of the layer's rows */
};
bool lk_lora_info(const struct lk_loras *loras, size_t i, int i_file, struct lk_lora_info *out);

/* Module i of a file before it is bound: named as in its keys, no norm. */
bool lk_lora_module_at(const struct lk_lora *file, size_t i, struct lk_lora_info *out);

/* w [rows, columns], bf16 or f32 in the caller's memory, becomes the weight with all adapters in it, unless the layer
 * has none. acc = w in f32; file after file t = the sum over the rank in ascending order of r(B A), acc = r(acc + r(s
 * t)), all in f32; then one rounding to w's dtype. */
enum lk_code lk_loras_merge(const struct lk_loras *loras, const char *layer, const struct lk_tensor *w, bool *merged);

/* Values of layer i's adapter, filled up; 0: it has none. */
int64_t lk_lora_layer_values(const struct lk_loras *loras, size_t i);

/* What lora merge noted in a file that it wrote, a JSON list of {"sha256", "scale"}: *out, lk_free; NULL: nothing, or
 * no list. LK_E_NOMEM. */
enum lk_code lk_lora_merged(const struct lk_safetensors *st, char **out);

/* How many modules of a safetensors file are LoRA's; 0: it is none. */
size_t lk_lora_count(const struct lk_safetensors *st);
