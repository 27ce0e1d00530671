"""The two families of judges, small: transformers' own classes, and what they make of a batch of drawings while they
learn. A picture is 4 x 4 patches of 16 points, which become four tokens."""

import json
import re
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers import MistralConfig, Mistral3Config, Mistral3ForConditionalGeneration, PixtralVisionConfig
from transformers import PixtralImageProcessor, PreTrainedTokenizerFast, Qwen2_5_VLConfig
from transformers import Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessor
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision

import flux2_editor
import qwen_text
import words

SIDE, PATCH, MERGE, N_TOKENS = 64, 16, 2, 4
HERE = Path(__file__).resolve().parents[2] / "eval" / "data"
RUBRIC = json.loads((HERE / "rubric.json").read_text())["judge"]
PROMPTS = {p["id"]: p["text"] for p in json.loads((HERE / "prompts_exp1.json").read_text())["prompts"]}
RACES = ["White", "Black", "East Asian", "Southeast Asian", "Indian", "Middle Eastern", "Latino"]
MEAN, STD = qwen_text.IMAGE_PROCESSOR["image_mean"], qwen_text.IMAGE_PROCESSOR["image_std"]
SYSTEM = "You are a helpful assistant."

AXES = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")
# What the answer says of each axis before its score; eval/judge/seeing.c has the form.
OBSERVED = {
    "edit_analysis": ("nothing was done", "something else was done", "a part was done", "most was done", "all was done"),
    "skin_tone_comparison": ("far darker", "a shade darker", "the same tone", "a shade lighter", "far lighter"),
    "facial_feature_analysis": ("the same features", "nearly the same features", "one other feature",
                                "two other features", "another face"),
    "gender_presentation": ("the same gender", "hardly another gender", "another beard", "nearly another gender",
                            "another gender"),
    "age_analysis": ("far younger", "somewhat younger", "the same age", "somewhat older", "far older"),
}
EVIDENCE = "two drawings were compared"


def answer(scores):
    """All that a free answer holds, in pieces that are a token each."""
    pieces, lead = [], '{\n  "observations": {\n    "%s": "'
    for key, said, score in zip(OBSERVED, OBSERVED.values(), scores):
        pieces += [lead % key, said[score - 1]]
        lead = '",\n    "%s": "'
    lead = '"\n  },\n  "scores": {\n    "%s": '
    for axis, score in zip(AXES, scores):
        pieces += [lead % axis, str(score)]
        lead = ',\n    "%s": '
    return pieces + ['\n  },\n  "evidence_summary": "', EVIDENCE, '"\n}']


def direct(axis):
    """What a score that is read alone stands behind."""
    return '{\n  "scores": {\n    "%s": ' % axis


def rubric(prompt_id, race, gender, age):
    """The question; age: of the source, 0 for the twenties."""
    template = RUBRIC["prompt_v1_for_V-03" if prompt_id == "V-03" else "prompt_v1"]
    decade = f"{age + 2}0s" if age < 5 else "70+"
    values = dict(prompt=PROMPTS[prompt_id], race=race, gender=gender, age=f"{decade} (about {25 + 10 * age})",
                  target_age=str(55 + 10 * age))
    return re.sub(r"\{(prompt|race|gender|age|target_age)\}", lambda m: values[m[1]], template)


def whole_tokens():
    """What stands between digits and blanks to fill: ten digits are the only tokens that have one."""
    texts = [RUBRIC["prompt_v1"], RUBRIC["prompt_v1_for_V-03"], *PROMPTS.values(), *RACES, "0s (about 0+ (about "]
    texts += ["SOURCE IMAGE:", "EDITED IMAGE:", SYSTEM, "Female", *map(direct, AXES)]
    for score in range(1, 6):
        texts += answer([score] * 5)
    found = {}
    for text in texts:
        found.update((s, None) for s in re.split(r"\{(?:prompt|race|gender|age|target_age)\}|\d", text) if len(s) > 2)
    return list(found)


class Judge(nn.Module):
    """A model with what training needs of its family."""

    def features(self, pixels):
        """pixels [n, 3, side, side]: tokens [n, 4, width]."""
        raise NotImplementedError

    def forward(self, pixels, ids, positions, allowed):
        """pixels [n, 2, 3, side, side]; allowed [n, t, t]. The last hidden states, and those in the middle."""
        seen = self.features(pixels.flatten(0, 1))
        embedded = self.text.embed_tokens(ids)
        embedded = embedded.masked_scatter((ids == self.image).unsqueeze(2), seen)
        mask = torch.zeros(allowed.shape).masked_fill_(~allowed, torch.finfo(torch.float32).min).unsqueeze(1)
        out = self.text(inputs_embeds=embedded, attention_mask=mask, position_ids=self.places(positions),
                        output_hidden_states=True, use_cache=False)
        return out.last_hidden_state, out.hidden_states[len(self.text.layers) // 2], seen

    def places(self, positions):
        return positions[0]

    def save(self, folder):
        image, named = self.processors()
        self.model.to(torch.bfloat16).save_pretrained(folder)
        image.save_pretrained(folder)
        PreTrainedTokenizerFast(tokenizer_object=self.tokenizer, **named).save_pretrained(folder)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids


TEXT = dict(hidden_size=96, intermediate_size=256, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3)


class Qwen(Judge):
    ANSWER_END, TAIL = "<|im_end|>", 5  # what ends an answer; tokens behind the question

    def __init__(self):
        super().__init__()
        self.tokenizer = words.build(["system", "user", "assistant", "Male"], "", False, qwen_text.SPECIAL, whole=whole_tokens(), nfc=True)
        ids = {t: self.tokenizer.token_to_id(t) for t in qwen_text.SPECIAL}
        self.image = ids["<|image_pad|>"]
        text = dict(TEXT, vocab_size=self.tokenizer.get_vocab_size(), max_position_embeddings=4096, rms_norm_eps=1e-6,
                    rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 6, 6]},
                    use_sliding_window=False, tie_word_embeddings=True, bos_token_id=ids["<|endoftext|>"],
                    eos_token_id=ids["<|im_end|>"])
        vision = dict(depth=3, hidden_size=96, intermediate_size=192, num_heads=3, fullatt_block_indexes=[0, 1, 2],
                      out_hidden_size=96, patch_size=PATCH, temporal_patch_size=1, spatial_merge_size=MERGE,
                      window_size=SIDE, tokens_per_second=2)
        self.model = Qwen2_5_VLForConditionalGeneration(
            Qwen2_5_VLConfig(text_config=text, vision_config=vision, image_token_id=self.image,
                             video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
                             vision_end_token_id=ids["<|vision_end|>"], tie_word_embeddings=True))
        self.text, self.tower = self.model.model.language_model, self.model.model.visual
        y, x = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
        order = torch.arange(16).view(2, 2, 2, 2).permute(0, 2, 1, 3).flatten()  # by blocks of 2 x 2
        grid = torch.stack([y.flatten()[order], x.flatten()[order]], -1)
        self.cos, self.sin = self.tower.rotary_pos_emb(torch.zeros(1), grid)

    def attend(self, attention, x):
        n, s, d = x.shape
        q, k, v = attention.qkv(x).view(n, s, 3, attention.num_heads, -1).unbind(2)
        q, k = apply_rotary_pos_emb_vision(q, k, self.cos, self.sin)
        mixed = functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return attention.proj(mixed.transpose(1, 2).reshape(n, s, d))

    def features(self, pixels):
        rows = pixels.view(-1, 3, 2, 2, PATCH, 2, 2, PATCH).permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(len(pixels), 16, -1)
        x = functional.linear(rows, self.tower.patch_embed.proj.weight.flatten(1))
        for block in self.tower.blocks:
            x = x + self.attend(block.attn, block.norm1(x))
            x = x + block.mlp(block.norm2(x))
        return self.tower.merger(x.flatten(0, 1)).view(len(pixels), N_TOKENS, -1)

    def prompt(self, text):
        """ids and what they are at on three axes, [3][n]."""
        picture = "<|vision_start|><|image_pad|><|vision_end|>"
        ids, places, at = [], [], 0
        for token in self.encode(
            f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nSOURCE IMAGE:{picture}EDITED IMAGE:{picture}"
            f"{text}<|im_end|>\n<|im_start|>assistant\n"
        ):
            image = token == self.image
            ids += [token] * (N_TOKENS if image else 1)
            places += [(at, at + y, at + x) for y in range(2) for x in range(2)] if image else [(at, at, at)]
            at += 2 if image else 1
        return ids, places

    def places(self, positions):
        return positions

    def processors(self):
        settings = dict(qwen_text.IMAGE_PROCESSOR, patch_size=PATCH, merge_size=MERGE, temporal_patch_size=1,
                        min_pixels=SIDE * SIDE, max_pixels=SIDE * SIDE)
        return Qwen2VLImageProcessor(**settings), dict(eos_token="<|im_end|>", pad_token="<|endoftext|>")


class Mistral(Judge):
    ANSWER_END, TAIL = "</s>", 1

    def __init__(self):
        super().__init__()
        self.tokenizer = words.build(["Male"], "{1,3}", True, flux2_editor.SPECIAL, whole=whole_tokens())
        self.image = self.tokenizer.token_to_id("[IMG]")
        text = MistralConfig(vocab_size=self.tokenizer.get_vocab_size(), head_dim=32, max_position_embeddings=4096,
                             rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1e4},
                             sliding_window=None, bos_token_id=1, eos_token_id=2, pad_token_id=11,
                             tie_word_embeddings=False, **TEXT)
        vision = PixtralVisionConfig(hidden_size=128, intermediate_size=192, num_hidden_layers=3,
                                     num_attention_heads=4, image_size=SIDE, patch_size=PATCH, hidden_act="silu")
        self.model = Mistral3ForConditionalGeneration(
            Mistral3Config(text_config=text, vision_config=vision, image_token_index=self.image, spatial_merge_size=MERGE,
                           vision_feature_layer=-1, tie_word_embeddings=False))
        self.text, self.tower = self.model.model.language_model, self.model.model.vision_tower
        y, x = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
        grid = torch.stack([y.flatten(), x.flatten()], -1)
        self.rope = self.tower.patch_positional_embedding(torch.zeros(1), grid)

    def features(self, pixels):
        x = self.tower.ln_pre(self.tower.patch_conv(pixels).flatten(2).transpose(1, 2))
        x = self.tower.transformer(x, position_embeddings=self.rope).last_hidden_state
        project = self.model.model.multi_modal_projector
        x = project.norm(x).transpose(1, 2).view(len(pixels), -1, 4, 4)
        x = project.patch_merger.merging_layer(functional.unfold(x, MERGE, stride=MERGE).transpose(1, 2))
        return project.linear_2(project.act(project.linear_1(x)))

    def prompt(self, text):
        picture = "[IMG][IMG][IMG_BREAK][IMG][IMG][IMG_END]"
        ids = self.encode(f"<s>[SYSTEM_PROMPT]{SYSTEM}[/SYSTEM_PROMPT][INST]SOURCE IMAGE:{picture}EDITED IMAGE:{picture}"
                            f"{text}[/INST]")
        return ids, [(i, i, i) for i in range(len(ids))]

    def processors(self):
        image = PixtralImageProcessor(patch_size=PATCH, size={"longest_edge": SIDE})
        return image, dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


FAMILIES = {"qwen2_5_vl": Qwen, "mistral3": Mistral}
