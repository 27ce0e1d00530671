"""A small tokenizer and processor in the form of Qwen2.5-VL's: the same added tokens, pre-split pattern and chat text."""

import tempfile
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import Qwen2_5_VLProcessor, Qwen2TokenizerFast, Qwen2VLImageProcessorFast, Qwen2VLVideoProcessor

from generate_tokenizer import QWEN_ADDED, QWEN_REGEX
from tokenizer_corpus import CORPUS

# The rendered text is the released template's; "!" must be token 0, as there.
CHAT_TEMPLATE = (
    "{% set pictures = namespace(count=0) %}{% for message in messages %}"
    "{% if loop.first and message.role != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}{% set pictures.count = pictures.count + 1 %}"
    "{% if add_vision_id %}{{ 'Picture ' ~ pictures.count ~ ': ' }}{% endif %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
VOCAB_SIZE = 640


def build_tokenizer(prefix):
    """prefix: a text that is to become one token a word, as with the released vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_REGEX), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(QWEN_ADDED),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    chat = f"system\nYou are a helpful assistant.\nuser\n{prefix} Picture 1: \nassistant\n"
    tokenizer.train_from_iterator([chat] * 40 + CORPUS[: len(CORPUS) // 4], trainer)
    tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token, special in QWEN_ADDED])
    return tokenizer


def build_processor(prefix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        build_tokenizer(prefix).save(str(path))
        special = [token for token, is_special in QWEN_ADDED if is_special]
        tokenizer = Qwen2TokenizerFast(
            tokenizer_file=str(path),
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            unk_token=None,
            additional_special_tokens=special[1:],
            model_max_length=131072,
        )
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessorFast(min_pixels=3136, max_pixels=12845056),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
