#include "tools/make/autoencoder_kl.h"

#include <stdio.h>

static void group_norm(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_norm(list, n, prefix, name);
    make_bias(list, n, prefix, name);
}

static void resnet(struct make_list *list, int64_t in, int64_t out, const char *prefix) {
    group_norm(list, in, prefix, "norm1");
    make_conv(list, out, in, 3, prefix, "conv1");
    group_norm(list, out, prefix, "norm2");
    make_conv(list, out, out, 3, prefix, "conv2");
    if (in != out) make_conv(list, out, in, 1, prefix, "conv_shortcut");
}

static void mid_block(struct make_list *list, int64_t c, const char *side) {
    char p[96];
    for (int i = 0; i < 2; i++) {
        snprintf(p, sizeof p, "%s.mid_block.resnets.%d.", side, i);
        resnet(list, c, c, p);
    }
    snprintf(p, sizeof p, "%s.mid_block.attentions.0.", side);
    group_norm(list, c, p, "group_norm");
    static const char *const square[] = {"to_q", "to_k", "to_v", "to_out.0"};
    for (int i = 0; i < 4; i++) {
        make_linear(list, c, c, 1, p, square[i]);
        make_bias(list, c, p, square[i]);
    }
}

void make_autoencoder_kl(struct make_list *list, const struct make_autoencoder_kl *f) {
    int64_t z = f->latent_channels, in = f->levels[0], top = f->levels[3];
    char p[96];
    list->dtype = LK_F32;
    make_conv(list, in, 3, 3, "encoder.", "conv_in");
    for (int level = 0; level < 4; level++) {
        for (int i = 0; i < f->layers_per_block; i++, in = f->levels[level]) {
            snprintf(p, sizeof p, "encoder.down_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, f->levels[level], p);
        }
        snprintf(p, sizeof p, "encoder.down_blocks.%d.downsamplers.0.", level);
        if (level < 3) make_conv(list, in, in, 3, p, "conv");
    }
    mid_block(list, top, "encoder");
    group_norm(list, top, "encoder.", "conv_norm_out");
    make_conv(list, 2 * z, top, 3, "encoder.", "conv_out");
    if (f->quant_convs) {
        make_conv(list, 2 * z, 2 * z, 1, "", "quant_conv");
        make_conv(list, z, z, 1, "", "post_quant_conv");
    }
    make_conv(list, top, z, 3, "decoder.", "conv_in");
    mid_block(list, top, "decoder");
    in = top;
    for (int level = 0; level < 4; level++) {
        int64_t out = f->levels[3 - level];
        for (int i = 0; i <= f->layers_per_block; i++, in = out) {
            snprintf(p, sizeof p, "decoder.up_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, out, p);
        }
        snprintf(p, sizeof p, "decoder.up_blocks.%d.upsamplers.0.", level);
        if (level < 3) make_conv(list, out, out, 3, p, "conv");
    }
    group_norm(list, in, "decoder.", "conv_norm_out");
    /* Quiet enough that few pixels are clipped: a clipped pixel hides a difference. */
    make_add(list, MAKE_LINEAR, 0.3, MAKE_SHAPE(3, in, 3, 3), "decoder.conv_out.weight");
    make_bias(list, 3, "decoder.", "conv_out");
    if (!f->batch_norm) return;
    make_add(list, MAKE_BIAS, 1, MAKE_SHAPE(4 * z), "bn.running_mean");
    make_add(list, MAKE_VARIANCE, 1, MAKE_SHAPE(4 * z), "bn.running_var");
    make_add(list, MAKE_COUNT, 1, MAKE_SHAPE(0), "bn.num_batches_tracked");
}
