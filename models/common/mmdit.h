/* What the diffusion transformers of all families share (MMDiT): text and image rows in one matrix, norms modulated by
 * the timestep, one attention over both. */
#pragma once

#include "models/common/layers.h"

/* shift, scale, gate: [dim] each. */
struct lk_modulation {
    struct lk_tensor shift, scale, gate;
};

/* What depends on the timestep only, made for all steps before the first: each modulation layer's output for every
 * time, [n_times, width], one layer after the other. Its weights are not read in the steps. A layer is found by what
 * stands before it, in units of dim. */
struct lk_ahead {
    struct lk_tensor rows; /* [units * n_times, dim] */
    int64_t n_times;
};

struct lk_rows {
    int64_t first, n; /* none: n <= 0 */
};

/* One sequence's forward pass; several go through the layers together. Text rows come first in every matrix, so that
 * joint attention needs no concatenation. */
struct lk_mmdit {
    struct lk_device *dev;
    enum lk_dtype dtype;
    int64_t n_txt, n_img, n; /* n = n_txt + n_img */
    int64_t dim, n_heads, head_dim;
    float eps;                         /* of all norms */
    bool round_before_weight;          /* in the norms of q and k */
    const struct lk_tensor *cos, *sin; /* f32 [n, head_dim / 2] */
    const struct lk_ahead *ahead;
    int step;           /* names the traces; the row of `ahead` */
    const char *branch; /* "cond", "uncond"; NULL: the family has one */
    int64_t slice_rows; /* that a block works on at a time, but for keys and values; 0: all */
    /* Keys and values of more rows than this pass has, [rows of cos, dim] each, block after block; NULL: its own. */
    const struct lk_tensor *kv;
    int64_t n_kv;            /* that were handed out */
    struct lk_cache *cache;  /* models/common/cache.h; NULL: none */
    struct lk_tensor before; /* with it, [rows, dim]: the image before the first blocks, then what those added */
    struct lk_modulation first_modulation; /* with it: of the target's rows, before block 0 */
    bool skips;                            /* it leaves out the blocks that follow */
    const struct lk_tensor *velocity;      /* [n_noise, out_channels], where the family's tail has it from here */
    struct lk_tensor z;                    /* [n, dim]: residual stream */
    /* Of the block at hand. */
    struct lk_modulation txt[2], img[2]; /* of attention and of MLP */
    struct lk_tensor u, qkv[3];          /* [n, dim]: the norms' output, then the attention's; queries, keys, values. In
                                            slices u and queries have the rows of one, from row `own` on */
    struct lk_tensor wide;               /* [rows, ...]: what the block's last layer takes */
    int64_t first_out, n_out;            /* rows that the block writes */
    struct lk_rows at;                   /* the slice */
    int64_t own;
};

/* Rows of an MLP's inner activations that exist at one time at most: 8,704 x 36,864 values would be 0.6 GB in bf16.
 * Rows do not depend on each other, so that no bit depends on this number, nor on slices. */
#define LK_MLP_ROWS 4096

/* Sequences that pass through a layer together: the branches of LK_MAX_JOBS_PER_VISIT jobs. A layer's weights are read
 * for all of them one after the other, and what a sequence gives does not depend on the others. */
#define LK_MAX_PASSES              16
#define LK_EACH_PASS(p, passes, n) for (struct lk_mmdit *p = (passes); p < (passes) + (n); p++)

/* Weights of one stream, text or image, of a double-stream block. */
struct lk_mmdit_stream {
    struct lk_layer mod; /* [6 D, D]: shift, scale, gate, shift, scale, gate; absent where all blocks share one */
    struct lk_layer to_q, to_k, to_v, to_out; /* add_q_proj ... to_add_out for text: [D, D] */
    struct lk_tensor norm_q, norm_k;          /* norm_added_q, norm_added_k for text: [head_dim] */
    struct lk_layer ff_in, ff_out;
};

struct lk_mmdit_block {
    struct lk_mmdit_stream img, txt;
};

/* Binds the projections and norms of both streams' attention, "transformer_blocks.i.attn.*"; bias: of projections. */
void lk_mmdit_bind_attention(struct lk_bind *b, struct lk_mmdit_block *w, int i, int64_t dim, int64_t head_dim,
                             bool bias);

/* When `done` of the n_blocks of a list have run (lk_cache_between): passes that leave out those that follow come to
 * stand behind the n_active others. */
enum lk_code lk_mmdit_gate(struct lk_mmdit *passes, int n, int list, int64_t done, int64_t n_blocks, bool last_list,
                           int *n_active);

struct lk_tensor lk_mmdit_txt(const struct lk_mmdit *p, const struct lk_tensor *t);
struct lk_tensor lk_mmdit_img(const struct lk_mmdit *p, const struct lk_tensor *t);

/* Traces under "step.STEP." or "step.STEP.BRANCH.". */
#define LK_MMDIT_TRACE(p, value, format, ...)                                                                          \
    lk_trace((p)->dev, value, "step.%d.%s%s" format, (p)->step, (p)->branch ? (p)->branch : "",                        \
             (p)->branch ? "." : "", __VA_ARGS__)

/* What a model that multiplies by 1000 is fed: the pipeline divides the timestep by 1000 and the model multiplies it
 * again, each in the dtype of the latents. */
float lk_timestep_as_fed(enum lk_dtype dtype, float timestep_1000);

/* y [n, channels] in its dtype from host f32 values. */
enum lk_code lk_upload_rounded(struct lk_device *dev, const struct lk_tensor *y, const float *host);

/* y [n, dim] = the embedder's output for the sinusoids of n scalars, whose angles are multiplied by `factor` last. */
enum lk_code lk_embed_scalars(struct lk_device *dev, const struct lk_embedder *w, const float *scalars, float factor,
                              const struct lk_tensor *y);

/* Room for `units` at n_times. Stays in the arena. */
enum lk_code lk_ahead_new(struct lk_device *dev, enum lk_dtype dtype, int64_t units, int64_t n_times, int64_t dim,
                          struct lk_ahead *out);
/* temb [n_times, dim] becomes silu(temb); its first n_steps rows are shown before, as "step.STEP.temb". */
enum lk_code lk_ahead_silu(struct lk_device *dev, const struct lk_tensor *temb, int n_steps);
/* The rows of the layer that `first` units stand before, from silu_temb [n_times, dim]. */
enum lk_code lk_ahead_layer(struct lk_device *dev, const struct lk_ahead *ahead, const struct lk_tensor *silu_temb,
                            const struct lk_layer *w, int64_t first);
/* Row `time` of that layer: [1, width]. */
struct lk_tensor lk_ahead_row(const struct lk_ahead *ahead, int64_t first, int64_t units, int64_t time);

/* n_sets times shift, scale, gate, side by side in row [1, 3 n_sets dim]. */
void lk_modulation_split(const struct lk_tensor *row, int n_sets, struct lk_modulation *out);

/* The same from p->ahead, of the step. */
void lk_mmdit_modulation(const struct lk_mmdit *p, int64_t first, int n_sets, struct lk_modulation *out);

/* y = layer_norm(x) * (1 + scale) + shift, [rows, dim] each. */
enum lk_code lk_mmdit_modulate(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                               const struct lk_modulation *m);

/* RMS norm over each head, then rotation as rows [first, ...) of the sequence, in place on x [rows, dim]. */
enum lk_code lk_mmdit_norm_rope(const struct lk_mmdit *p, const struct lk_tensor *x, const struct lk_tensor *norm_w,
                                int64_t first);

/* y = x wT + bias; with norm_w (or NULL) normed and rotated as rows [first, ...) of the sequence. */
enum lk_code lk_mmdit_project(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                              int64_t first, const struct lk_layer *w, const struct lk_tensor *norm_w);

/* out [rows, dim] = attention of q [rows, dim] over k, v [n, dim]. kind and i name the traces. */
enum lk_code lk_mmdit_attention(const struct lk_mmdit *p, const struct lk_tensor *out, const struct lk_tensor *q,
                                const struct lk_tensor *k, const struct lk_tensor *v, const char *kind, int i);

/* The rows that a block writes: all; of the last one the noise's, the first image rows, which alone are read after it.
 * Who looks at the trace sees all. */
void lk_mmdit_rows_out(struct lk_mmdit *p, bool last, int64_t n_noise);

/* After n and slice_rows are known: a trace sees all rows at once. */
void lk_mmdit_begin(struct lk_mmdit *p);

/* Sets p->at to slice s of the rows that the block writes, or of all (for keys and values), or of one stream: false if
 * there is none. */
enum lk_mmdit_of { LK_ROWS_OUT, LK_ROWS_ALL, LK_ROWS_TXT, LK_ROWS_IMG };
bool lk_mmdit_slice(struct lk_mmdit *p, int64_t s, enum lk_mmdit_of of);
/* The same for each pass; false if none has one. */
bool lk_mmdit_slices(struct lk_mmdit *passes, int n, int64_t s, enum lk_mmdit_of of);
static inline int64_t lk_mmdit_slice_rows(const struct lk_mmdit *p, int64_t rows) {
    return p->slice_rows && p->slice_rows < rows ? p->slice_rows : rows;
}
static inline bool lk_mmdit_sliced(const struct lk_mmdit *p) { return p->slice_rows && p->slice_rows < p->n; }
/* Of the slice, rows [first, first + n). */
struct lk_rows lk_mmdit_cut(const struct lk_mmdit *p, int64_t first, int64_t n);
/* Those rows of u or queries. */
struct lk_tensor lk_mmdit_own(const struct lk_mmdit *p, const struct lk_tensor *t, struct lk_rows rows);

/* u and qkv of every pass in the arena. */
enum lk_code lk_mmdit_new_block(struct lk_mmdit *passes, int n);

/* u = mod(norm(z)) in rows of the slice; none: nothing. */
enum lk_code lk_mmdit_modulate_rows(const struct lk_mmdit *p, struct lk_rows rows, const struct lk_modulation *m);

/* Queries of the slice, attended into u. */
enum lk_code lk_mmdit_attend(const struct lk_mmdit *p, const char *kind, int i);
/* Of a single-stream block, in the slice: queries attended into the first columns of wide; z += gate * w(wide). */
enum lk_code lk_mmdit_attend_wide(const struct lk_mmdit *p, int i);
enum lk_code lk_mmdit_project_wide(const struct lk_mmdit *p, const struct lk_layer *w);

/* Queries (j 0), keys or values of one stream's rows of the slice, from u; queries and keys normed and rotated. */
enum lk_code lk_mmdit_project_qkv(const struct lk_mmdit *p, const struct lk_mmdit_stream *w, bool text, int j);

/* The attention of double-stream block i: z += gate * to_out(attention(mod(norm(z)))), each stream with weights and
 * modulation of its own. */
enum lk_code lk_mmdit_joint_attention(struct lk_mmdit *passes, int n, int i, const struct lk_mmdit_block *w);

/* y [rows, inner] of x [rows, dim]: the first layer of a feed-forward and what follows it. */
typedef enum lk_code lk_mmdit_inner_fn(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                                       const struct lk_layer *w);
/* Rows of one stream of z += gate * ff_out(inner(mod(rows))). */
enum lk_code lk_mmdit_feed_forward(struct lk_mmdit *passes, int n, bool text, const struct lk_mmdit_stream *w,
                                   lk_mmdit_inner_fn *inner);

/* velocity: the first image rows of z through the last norm, whose layer (`first` units stand before it) gives scale
 * before shift, and proj_out. */
enum lk_code lk_mmdit_tail(const struct lk_mmdit *p, int64_t first, const struct lk_layer *proj_out,
                           const struct lk_tensor *velocity);
