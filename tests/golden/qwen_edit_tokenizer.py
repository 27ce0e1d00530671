"""A small tokenizer in the form of the Qwen models', and the processor around it."""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer, Qwen2VLImageProcessor, Qwen2VLProcessor, Qwen2VLVideoProcessor
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from diffusers.pipelines.qwenimage import QwenImageEditPlusPipeline, QwenImagePipeline
from flux2_tokenizer import corpus

SPECIAL_TOKENS = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"
).split()
PLAIN_TOKENS = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>"
).split()

VOCAB_SIZE = 640


def templates():
    """The pipelines' own prompt templates: their words must become one token each, since the number of tokens that the
    pipelines drop is that of the released vocabulary."""
    import inspect

    texts = []
    for pipeline in (QwenImageEditPlusPipeline, QwenImagePipeline):
        line = next(x for x in inspect.getsource(pipeline.__init__).splitlines() if "prompt_template_encode =" in x)
        texts.append(json.loads(line.split("=", 1)[1].strip()))
    return texts


def build_tokenizer():
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIAL_TOKENS) - len(PLAIN_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    spoken = [text.replace("<|im_start|>", "").replace("<|im_end|>", "") for text in templates()]
    tokenizer.train_from_iterator(corpus()[12:] + ["Picture 1: "] * 300 + spoken * 400, trainer)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in PLAIN_TOKENS])
    fast = Qwen2Tokenizer(tokenizer_object=tokenizer, model_max_length=131072, pad_token="<|endoftext|>")
    fast._tokenizer = tokenizer
    return fast


IMAGE_PROCESSOR = dict(
    do_convert_rgb=True,
    do_normalize=True,
    do_rescale=True,
    do_resize=True,
    image_mean=[0.48145466, 0.4578275, 0.40821073],
    image_std=[0.26862954, 0.26130258, 0.27577711],
    max_pixels=12845056,
    merge_size=2,
    min_pixels=3136,
    patch_size=14,
    resample=3,
    rescale_factor=1 / 255,
    temporal_patch_size=2,
)


def build_processor(tokenizer):
    return Qwen2VLProcessor(
        image_processor=Qwen2VLImageProcessor(**IMAGE_PROCESSOR),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
    )
