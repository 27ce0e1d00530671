"""What the authors' own code makes of prompts that are rewritten: replies, pictures, chats.

    python tests/golden/generate_rewrite.py --qwen QWEN_IMAGE

writes data/rewrite.json. QWEN_IMAGE is a checkout of QwenLM/Qwen-Image, of whose polisher the lines that read a reply and
that shrink a picture are run here; FLUX.2's are those of the installed diffusers, and both models are tiny ones of data/.
"""

import argparse
import ast
import base64
import copy
import hashlib
import io
import json
import random
from pathlib import Path

from golden_file import check_versions, prepare

HERE = Path(__file__).resolve().parent
N_FUZZED = 600
N_TOKENS = 24


class Polisher:
    """Lines of the authors' prompt_utils.py, of which nothing else is run."""

    def __init__(self, folder):
        source = (Path(folder) / "src/examples/tools/prompt_utils.py").read_text()
        functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
        attempt = next(node for node in ast.walk(functions["polish_edit_prompt"]) if isinstance(node, ast.Try))
        self.reading = compile(ast.Module(body=attempt.body[1:], type_ignores=[]), "reading", "exec")
        scope = {"print": lambda *_: None}
        exec(compile(ast.Module(body=[functions["encode_image"]], type_ignores=[]), "picture", "exec"), scope)
        self.encode_image = scope["encode_image"]

    def read(self, reply):
        scope = {"result": reply, "json": json}
        try:
            exec(self.reading, scope)
            out = scope["polished_prompt"]
            out.encode()
            return out if out and "\0" not in out else None
        except Exception:
            return None


REPLIES = [
    '{"Rewritten": "Add red hair"}',
    '```json\n{"Rewritten": "Add red hair"}\n```',
    '```\n{"Rewritten": "Add red hair"}\n```',
    '{"Rewritten": "Add ```json red``` hair"}',
    '``````json{"Rewritten": "x"}``````',
    '```js```jsonon{"Rewritten": "x"}',
    '``{"Rewritten": "x"}```json`',
    "```JSON\n{\"Rewritten\": \"x\"}```",
    '\ufeff{"Rewritten": "x"}',
    ' \t\r\n{"Rewritten": "x"} \n',
    '\u00a0{"Rewritten": "x"}',
    '{"Rewritten": "a", "Rewritten": "b"}',
    '{"Rewritten": "a", "Rewritten": 1}',
    '{"Rewritten": 1, "Rewritten": "a"}',
    '{"Rewritten": "a", "Rewritten": null}',
    '{"rewritten": "a"}',
    '{"REWRITTEN": "a"}',
    '{"Rewritten ": "a"}',
    '{"Re\\u0077ritten": "a"}',
    '{"Rewritten": 1}',
    '{"Rewritten": 1.5e3}',
    '{"Rewritten": null}',
    '{"Rewritten": true}',
    '{"Rewritten": ["a"]}',
    '{"Rewritten": {"Rewritten": "a"}}',
    '{"a": {"Rewritten": "a"}}',
    '[{"Rewritten": "a"}]',
    '"Rewritten"',
    "17",
    "",
    "```",
    "```json```",
    "{}",
    '{"Rewritten": ""}',
    '{"Rewritten": "  \\n \\u00a0 "}',
    '{"Rewritten": "\\ud83d\\ude00 smile"}',
    '{"Rewritten": "\\ud83d smile"}',
    '{"Rewritten": "\\ude00\\ud83d"}',
    '{"Rewritten": "\\ud83d\\u0041"}',
    '{"Rewritten": "a", "b": "\\ud83d"}',
    '{"\\ud83d": 1, "Rewritten": "a"}',
    '{"Rewritten": "a\\nb\\n\\nc"}',
    '{"Rewritten": "a\nb"}',
    '{"Rewritten": "a\\rb\\tc"}',
    '{"Rewritten": "a\tb"}',
    '{"Rewritten": "a\\u2028b"}',
    '{"Rewritten": "a\u2028b"}',
    '{"Rewritten": "\\u00a0 a \\u3000"}',
    '{"Rewritten": "\u001ca"}',
    '{"Rewritten": "\\u001ca\\u001f"}',
    '{"Rewritten": "\\u0085a\\u0085"}',
    '{"Rewritten": "\\u200ba\\u200b"}',
    '{"Rewritten": "a\\u0000b"}',
    '{"Rewritten": "a\\/b\\"c\\\\d"}',
    '{"Rewritten": "a\\x"}',
    '{"Rewritten": "\\u00e"}',
    '{"Rewritten": "\\u00G0"}',
    '{"Rewritten": "\\u 041"}',
    '{"Rewritten": "\\uFF21"}',
    "{'Rewritten': 'a'}",
    '{Rewritten: "a"}',
    '{"Rewritten": "a",}',
    '{"Rewritten": "a"} and more',
    'Sure: {"Rewritten": "a"}',
    '{"Rewritten": "a"',
    '{"Rewritten": "a',
    '{"Rewritten" "a"}',
    '{"Rewritten": "a" "b": 1}',
    '{"x": NaN, "Rewritten": "a"}',
    '{"x": Infinity, "y": -Infinity, "Rewritten": "a"}',
    '{"x": nan, "Rewritten": "a"}',
    '{"Rewritten": NaN}',
    '{"x": 01, "Rewritten": "a"}',
    '{"x": 1., "Rewritten": "a"}',
    '{"x": .5, "Rewritten": "a"}',
    '{"x": -, "Rewritten": "a"}',
    '{"x": -0.5E+7, "Rewritten": "a"}',
    '{"x": 1e999, "Rewritten": "a"}',
    '{"x": 1e, "Rewritten": "a"}',
    '{"x": [1, [2, {}], [], {"y": [{}]}], "Rewritten": "a"}',
    '{"x": [1,], "Rewritten": "a"}',
    '{"x": [1 2], "Rewritten": "a"}',
    '{"x": tru, "Rewritten": "a"}',
    '{"x": truee, "Rewritten": "a"}',
    '{"x": ' + "9" * 4300 + ', "Rewritten": "a"}',
    '{"x": ' + "9" * 4301 + ', "Rewritten": "a"}',
    '{"x": ' + "[" * 300 + "]" * 300 + ', "Rewritten": "a"}',
    '{"x": ' + "[" * 100000 + ', "Rewritten": "a"}',
    '{"Rewritten": "把头发染成红色"}',
    '{"Rewritten": "Replace \\"A\\" with \\"B\\""}',
    '{\u2028"Rewritten": "a"}',
    '{"Rewritten"\u000b: "a"}',
]


def fuzzed(draw):
    """Replies that are nearly right: bytes of good ones taken out, doubled, exchanged."""
    parts = ["```json", "```", "{", "}", "[", "]", '"', ":", ",", "\\u00e9", "\\ud83d", "\\", "1", "-", "e5", "null"]
    parts += ["\n", " ", "\u00a0", "Rewritten", '"Rewritten": "x"', '"Rewritten": 3', "NaN", "é", "😀"]
    for _ in range(N_FUZZED):
        text = draw.choice([reply for reply in REPLIES if len(reply) < 200] + 30 * REPLIES[:3])
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(text) + 1)
            what = draw.randrange(3)
            text = text[:at] + (draw.choice(parts) if what else "") + text[at + (what == 0) + (what == 1) :]
        yield text


TEXTS = [
    "A plain text.",
    "A text , with spaces . And more ! Or not ?",
    "It 's the man 's hat ; they 've left , we 're here , I 'm not , do n't .",
    "the ' quoted ' word ' '",
    " ' ' ' ",
    "a  .b ..c . . . d",
    " leading and trailing \n",
    "line\nbreaks\n .",
    "n't 'm 's",
    "x 'sy 'v 'ver 'rent",
    "",
    " \n\u00a0\u3000",
    "é 's ü .",
]


def pixels(width, height, channels, seed):
    """The top bytes of splitmix64, row by row."""
    import numpy

    n = width * height * channels
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + (numpy.arange(n, dtype=numpy.uint64) + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    bytes_ = (z >> numpy.uint64(56)).astype(numpy.uint8)
    return bytes_.reshape((height, width, channels) if channels > 1 else (height, width))


def picture(size):
    from PIL import Image

    width, height, channels = size
    return Image.fromarray(pixels(width, height, channels, width * 70000 + height))


SINGLE = [(2000, 100, 3), (2001, 50, 3), (50, 2500, 3), (2600, 1300, 3), (1999, 2000, 3), (100, 100, 4), (2100, 30, 4)]
SINGLE += [(30, 2100, 1), (2050, 2049, 1), (4001, 3, 3), (3, 2400, 3)]
JOINED = [
    [(769, 768, 3)],
    [(768, 768, 3)],
    [(4000, 500, 3)],
    [(1000, 1000, 3), (300, 500, 3)],
    [(100, 50, 3), (60, 90, 3), (31, 17, 3)],
    [(100, 50, 4), (60, 91, 1)],
    [(900, 700, 4)],
    [(900, 700, 1)],
    [(17, 900, 3), (800, 20, 3), (33, 33, 3)],
    [(640, 480, 3), (480, 640, 3)],
    [(1, 1, 3), (2, 2, 3)],
]


def digest(image):
    return dict(
        width=image.width,
        height=image.height,
        channels=len(image.getbands()),
        sha256=hashlib.sha256(image.tobytes()).hexdigest(),
    )


def pictures(polisher):
    from PIL import Image

    from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor
    from diffusers.pipelines.flux2.pipeline_flux2 import UPSAMPLING_MAX_IMAGE_SIZE, _validate_and_process_images

    for size in SINGLE:
        sent = Image.open(io.BytesIO(base64.b64decode(polisher.encode_image(picture(size)))))
        yield dict(style="qwen", sizes=[size]) | digest(sent)
    for sizes in JOINED:
        seen = _validate_and_process_images(
            [[picture(size) for size in sizes]], Flux2ImageProcessor(), UPSAMPLING_MAX_IMAGE_SIZE
        )
        yield dict(style="flux2", sizes=sizes) | digest(seen[0][0])


CHATS = [
    ("red hair", []),
    ("Give her red hair", [(64, 80, 3)]),
    ("[IMG]the hat [IMG] of the first on the second", [(64, 80, 3), (90, 40, 3)]),
    ("all three", [(40, 40, 3), (80, 64, 3), (33, 70, 3)]),
    ("ein {prompt} mit Umlaut: ü\n", [(70, 70, 4)]),
]


def ids_of(ids):
    return dict(n_ids=len(ids), ids_sha256=hashlib.sha256(json.dumps(ids, separators=(",", ":")).encode()).hexdigest())


def beyond(tokenizer, model):
    """Ids that the tiny model can give and its tokenizer does not have, which the program never chooses."""
    return list(range(len(tokenizer), model.config.text_config.vocab_size)) or None


def flux2_chats():
    """diffusers' own upsample_prompt on a tiny FLUX.2, but greedy and short."""
    import torch

    from diffusers import Flux2Pipeline
    from diffusers.pipelines.flux2 import pipeline_flux2
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil

    pipeline_flux2.SYSTEM_MESSAGE_UPSAMPLING_T2I = "You rewrite."
    pipeline_flux2.SYSTEM_MESSAGE_UPSAMPLING_I2I = "You see."
    folder = HERE / "data/flux2/rich/checkpoint"
    pipeline = Flux2Pipeline.from_pretrained(folder, torch_dtype=torch.float32)
    # The tiny tokenizer's template passes pictures over; the released one puts a token in their place.
    processor = pipeline.tokenizer
    processor.chat_template = processor.chat_template.replace(
        "{{ block.text }}{% endif %}", "{{ block.text }}{% else %}{{ '[IMG]' }}{% endif %}"
    )
    processor.image_processor = PixtralImageProcessorPil.from_pretrained(folder / "tokenizer")
    encoder, seen = pipeline.text_encoder, {}
    generate = encoder.generate

    def short(**inputs):
        seen["ids"] = inputs["input_ids"][0][inputs["attention_mask"][0].bool()].tolist()
        inputs |= dict(max_new_tokens=N_TOKENS, do_sample=False, temperature=None)
        return generate(**inputs, top_k=None, top_p=None, suppress_tokens=beyond(processor.tokenizer, encoder))

    encoder.generate = short
    for prompt, sizes in CHATS:
        images = [[picture(size) for size in sizes]] if sizes else None
        text = pipeline.upsample_prompt([prompt], images=images)[0]
        yield dict(model="flux2/rich", prompt=prompt, sizes=sizes, text=text) | ids_of(seen["ids"])


def qwen_chats(system, user):
    """The processor's chat template and the model's own generate, as a Qwen2.5-VL is asked here."""
    import torch
    from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    folder = HERE / "data/step1x/rich/checkpoint"
    processor = AutoProcessor.from_pretrained(folder / "processor")
    processor.image_processor = Qwen2VLImageProcessorPil.from_pretrained(folder / "processor")
    processor.image_processor.size["longest_edge"] = 1003520
    for key in ("min_pixels", "max_pixels"):  # Step1X's tokenizer has them too, and they would go before
        processor.tokenizer.init_kwargs.pop(key)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder / "text_encoder", dtype=torch.float32).eval()
    for prompt, sizes in CHATS:
        sizes = [(*size[:2], 3) for size in sizes]  # versions of transformers differ in what they make of alpha
        content = [dict(type="image", image=picture(size)) for size in sizes]
        content.append(dict(type="text", text=user.replace("{prompt}", prompt)))
        messages = [
            dict(role="system", content=[dict(type="text", text=system)]),
            dict(role="user", content=content),
        ]
        inputs = processor.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        config = copy.deepcopy(model.generation_config)
        config.do_sample, config.temperature, config.top_k, config.top_p = False, None, None, None
        with torch.no_grad():
            out = model.generate(
                **inputs,
                generation_config=config,
                max_new_tokens=N_TOKENS,
                suppress_tokens=beyond(processor.tokenizer, model),
            )
        ids = inputs["input_ids"][0].tolist()
        text = processor.tokenizer.decode(out[0, len(ids) :], skip_special_tokens=True)
        yield dict(model="step1x/rich", prompt=prompt, sizes=sizes, text=text) | ids_of(ids)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qwen", required=True, metavar="QWEN_IMAGE")
    arguments = parser.parse_args()
    check_versions()
    prepare()
    from transformers import PreTrainedTokenizerBase

    polisher = Polisher(arguments.qwen)
    replies = REPLIES + list(fuzzed(random.Random(11)))
    clean = PreTrainedTokenizerBase.clean_up_tokenization
    out = dict(
        replies=[(reply, polisher.read(reply)) for reply in replies],
        texts=[(text, clean(None, text) if text.strip() else None) for text in TEXTS],
        pictures=list(pictures(polisher)),
        chats=list(flux2_chats()) + list(qwen_chats("You rewrite.", "Rules: be {short}.\n\nUser: {prompt}\n\nNew:")),
    )
    (HERE / "data/rewrite.json").write_text(json.dumps(out, ensure_ascii=True, indent=None, separators=(",", ":")) + "\n")
    print(sum(text is not None for _, text in out["replies"]), "of", len(replies), "replies are prompts")


if __name__ == "__main__":
    main()
