#!/usr/bin/env python3
"""llama.cpp and transformers on the CPU, as peers of bench_decode.

    decode.py --make DIR --family qwen|mistral [--num-layers N] [--vocab-size N]   # a model of random bf16 weights
    decode.py DIR --peer llama|llama-f16|transformers --threads 1 --batch 16 --prompt 32 --steps 8

The first form writes a model of the released widths cut to a few layers, its vocabulary in proportion: DIR as
transformers saves it, and the language model as DIR/bf16.gguf and DIR/f16.gguf. The second prints "ready DESCRIPTION"
and then answers lines on stdin: "run" with "ns WALL CPU" (STEPS greedy steps of BATCH sequences after their prompts,
which bench_decode has too), "dump PATH" with "ok" (the ids chosen, int32 [BATCH, STEPS + 1]).

Measured with torch 2.15.0 and transformers 5.23.0; llama-cpp-python 0.3.36 and gguf 0.19.0, in an environment of its
own, built with CMAKE_ARGS="-DGGML_NATIVE=ON". --make needs torch, transformers and gguf."""

import argparse
import os
import pathlib
import sys
import time

# The released widths; layers and vocabulary are cut.
WIDTHS = {
    "qwen": dict(hidden_size=3584, intermediate_size=18944, num_attention_heads=28, num_key_value_heads=4),
    "mistral": dict(hidden_size=5120, intermediate_size=32768, num_attention_heads=32, num_key_value_heads=8, head_dim=128),
}
CUTS = {"qwen": dict(num_layers=3, vocab_size=16288), "mistral": dict(num_layers=2, vocab_size=6560)}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--family", choices=tuple(WIDTHS), default="qwen")
    parser.add_argument("--num-layers", type=int)
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("--peer", choices=("llama", "llama-f16", "transformers"), default="llama")
    for name, n in (("threads", 1), ("batch", 1), ("prompt", 32), ("steps", 8)):
        parser.add_argument(f"--{name}", type=int, default=n)
    return parser.parse_args()


def build(family, num_layers, vocab_size):
    import transformers as t

    text = dict(WIDTHS[family], num_hidden_layers=num_layers, vocab_size=vocab_size, max_position_embeddings=4096)
    if family == "qwen":
        text["rope_parameters"] = dict(rope_type="default", type="default", mrope_section=[16, 24, 24], rope_theta=1e6)
        vision = dict(depth=1, hidden_size=32, num_heads=2, intermediate_size=48, out_hidden_size=text["hidden_size"])
        special = range(vocab_size - 5, vocab_size)
        names = ("vision_start_token_id", "vision_end_token_id", "vision_token_id", "image_token_id", "video_token_id")
        config = t.Qwen2_5_VLConfig(
            text_config=text, vision_config=dict(vision, fullatt_block_indexes=[0]), tie_word_embeddings=False,
            **dict(zip(names, special)),
        )
        return t.Qwen2_5_VLForConditionalGeneration(config)
    text["rope_parameters"] = dict(rope_type="default", rope_theta=1e9)
    vision = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, patch_size=14)
    config = t.Mistral3Config(
        text_config=t.MistralConfig(**text, rms_norm_eps=1e-5, sliding_window=None, tie_word_embeddings=False),
        vision_config=t.PixtralVisionConfig(num_channels=3, **vision), image_token_index=10,
        tie_word_embeddings=False, multimodal_projector_bias=False,
    )
    return t.Mistral3ForConditionalGeneration(config)


def make(args):
    """Weights with standard deviation 1 / sqrt(fan in): every layer keeps its input's size."""
    import torch

    cut = CUTS[args.family]
    layers = args.num_layers or cut["num_layers"]
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = build(args.family, layers, args.vocab_size or cut["vocab_size"])
    model = model.to_empty(device="cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                bound = (3.0 / parameter[0].numel()) ** 0.5
                for row in parameter.split(4096):
                    row.copy_(torch.empty(row.shape, dtype=torch.float32).uniform_(-bound, bound))
    model.save_pretrained(args.folder, max_shard_size="100GB")
    for kind in ("bf16", "f16"):
        write_gguf(args.folder / f"{kind}.gguf", args.family, model, kind)


def rotated_in_pairs(weight, n_heads):
    """Rows of q or k for llama.cpp's "llama" architecture, which rotates neighbours instead of halves."""
    head = weight.shape[0] // n_heads
    return weight.view(n_heads, 2, head // 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


GGUF_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def write_gguf(path, family, model, kind):
    import gguf
    import torch

    text = model.config.text_config
    writer = gguf.GGUFWriter(path, "qwen2" if family == "qwen" else "llama")
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    writer.add_context_length(text.max_position_embeddings)
    writer.add_embedding_length(text.hidden_size)
    writer.add_block_count(text.num_hidden_layers)
    writer.add_feed_forward_length(text.intermediate_size)
    writer.add_head_count(text.num_attention_heads)
    writer.add_head_count_kv(text.num_key_value_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(text.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(text.rms_norm_eps)
    writer.add_vocab_size(text.vocab_size)
    writer.add_tokenizer_model("none")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16 if kind == "bf16" else gguf.LlamaFileType.MOSTLY_F16)

    def add(name, value):
        if value.ndim == 1:
            writer.add_tensor(name, value.float().numpy())
        elif kind == "f16":
            writer.add_tensor(name, value.to(torch.float16).numpy())
        else:
            raw = value.contiguous().view(torch.int16).numpy()
            writer.add_tensor(name, raw.view("uint8"), raw_dtype=gguf.GGMLQuantizationType.BF16)

    lm = model.model.language_model
    add("token_embd.weight", lm.embed_tokens.weight.detach())
    add("output_norm.weight", lm.norm.weight.detach())
    add("output.weight", model.lm_head.weight.detach())
    for i, layer in enumerate(lm.layers):
        for name, value in layer.named_parameters():
            module, leaf = name.rsplit(".", 1)
            value = value.detach()
            if family == "mistral" and module in ("self_attn.q_proj", "self_attn.k_proj"):
                value = rotated_in_pairs(
                    value, text.num_attention_heads if "q_proj" in module else text.num_key_value_heads
                )
            add(f"blk.{i}.{GGUF_NAMES[module]}.{leaf}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def prompt(args, vocab_size, sequence):
    """As bench_decode has it; no special token is among the first half of the ids above 16."""
    return [16 + (sequence * 7919 + i * 104729) % (vocab_size // 2) for i in range(args.prompt)]


class Transformers:
    def __init__(self, args):
        import torch
        import transformers

        torch.set_num_threads(args.threads)
        self.torch, self.args = torch, args
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(args.folder, dtype=torch.bfloat16).eval()
        isa = torch.backends.cpu.get_cpu_capability().lower()
        self.name = f"transformers {transformers.__version__}, torch {torch.__version__} ({isa})"
        vocab_size = self.model.config.text_config.vocab_size
        with torch.inference_mode():
            ids = torch.tensor([prompt(args, vocab_size, s) for s in range(args.batch)])
            out = self.model(input_ids=ids, use_cache=True)
            self.cache, self.first = out.past_key_values, out.logits[:, -1].argmax(-1)

    def run(self):
        with self.torch.inference_mode():
            chosen = [self.first]
            start = now()
            for _ in range(self.args.steps):
                out = self.model(input_ids=chosen[-1][:, None], past_key_values=self.cache, use_cache=True)
                chosen.append(out.logits[:, -1].argmax(-1))
            spent = since(start)
            self.cache.crop(-self.args.steps)
        self.ids = self.torch.stack(chosen, 1).int().numpy()
        return spent


class Llama:
    def __init__(self, args):
        import llama_cpp
        import numpy

        self.c, self.numpy, self.args = llama_cpp, numpy, args
        kind = "f16" if args.peer == "llama-f16" else "bf16"
        llama_cpp.llama_backend_init()
        self.log = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.log, None)
        self.model = llama_cpp.llama_model_load_from_file(
            os.fsencode(args.folder / f"{kind}.gguf"), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = args.batch * 256 * -(-(args.prompt + args.steps + 1) // 256)
        params.n_seq_max = args.batch
        params.n_batch = params.n_ubatch = max(args.batch, args.prompt)
        params.n_threads = params.n_threads_batch = args.threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.batch = llama_cpp.llama_batch_init(params.n_batch, 0, 1)
        self.name = f"llama-cpp-python {llama_cpp.__version__}, {kind}"
        self.first = []
        for s in range(args.batch):
            ids = prompt(args, self.n_vocab, s)
            self.decode([(id, i, s, i + 1 == len(ids)) for i, id in enumerate(ids)])
            self.first.append(self.best(len(ids) - 1))

    def decode(self, rows):
        self.batch.n_tokens = len(rows)
        for i, (id, position, sequence, wanted) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i] = id, position
            self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = 1, sequence, wanted
        code = self.c.llama_decode(self.context, self.batch)
        if code:
            raise RuntimeError(f"llama_decode: {code}")

    def best(self, row):
        logits = self.c.llama_get_logits_ith(self.context, row)
        return int(self.numpy.ctypeslib.as_array(logits, (self.n_vocab,)).argmax())

    def run(self):
        n, sequences = self.args.prompt, range(self.args.batch)
        for s in sequences:
            self.c.llama_memory_seq_rm(self.memory, s, n, -1)
        chosen = [self.first]
        start = now()
        for step in range(self.args.steps):
            self.decode([(chosen[-1][s], n + step, s, True) for s in sequences])
            chosen.append([self.best(s) for s in sequences])
        spent = since(start)
        self.ids = self.numpy.array(chosen, "int32").T.copy()
        return spent


def now():
    return time.perf_counter_ns(), time.process_time_ns()


def since(start):
    return tuple(end - begin for end, begin in zip(now(), start))


def reply(text):
    print(text, flush=True)


def serve(args):
    peer = Transformers(args) if args.peer == "transformers" else Llama(args)
    reply(f"ready {peer.name}")
    for line in sys.stdin:
        words = line.split()
        if words == ["run"]:
            reply("ns {} {}".format(*peer.run()))
        elif len(words) == 2 and words[0] == "dump":
            peer.ids.tofile(words[1])
            reply("ok")
        else:
            reply(f"error: not understood: {line.strip()}")


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.make:
        make(args)
    else:
        serve(args)


if __name__ == "__main__":
    main()
