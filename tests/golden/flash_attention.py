"""Attention in bf16 as GPUs compute it, in the place of torch's on the CPU."""

import contextlib

import torch

KEYS = 64


def in_blocks_of_keys(query, key, value, seen, scale):
    """softmax(scale query keyT) value of [..., rows, head_dim] without the matrix of scores: keys go by in ascending blocks,
    from the first that any row sees; probabilities are relative to the greatest score so far and rounded to bf16 before
    they multiply values. What was summed is brought to each new maximum. seen: added to the scores, or None."""
    factor = (scale or query.shape[-1] ** -0.5) * 1.4426950408889634  # of powers of two
    scores = query.float() @ key.float().transpose(-2, -1)
    start = 0
    if seen is not None:
        scores = scores + seen
        start = int((scores > float("-inf")).flatten(0, -2).any(0).int().argmax())
    most = torch.full((*scores.shape[:-1], 1), float("-inf"))
    total = torch.zeros_like(most)
    out = torch.zeros((*scores.shape[:-1], value.shape[-1]))
    for first in range(start, scores.shape[-1], KEYS):
        block = scores[..., first : first + KEYS]
        now = torch.maximum(most, block.amax(-1, keepdim=True))
        shift = now.clamp(min=torch.finfo(torch.float32).min)  # of rows that have seen no key yet
        older = torch.exp2((most - shift) * factor)
        p = torch.exp2((block - shift) * factor)
        total = total * older + p.sum(-1, keepdim=True)
        out = out * older + p.bfloat16().float() @ value[..., first : first + KEYS, :].float()
        most = now
    return torch.where(total > 0, out / total, 0.0).to(query.dtype)


@contextlib.contextmanager
def flash_attention():
    functional = torch.nn.functional
    original = functional.scaled_dot_product_attention

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if query.dtype != torch.bfloat16:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if enable_gqa:
            key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
        seen = attn_mask
        if is_causal:
            seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
        if seen is not None and seen.dtype == torch.bool:
            seen = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
        return in_blocks_of_keys(query, key, value, seen, scale)

    functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = original
