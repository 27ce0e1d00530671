#!/usr/bin/env python3
"""Makes the goldens of tests/golden/test_tokenizer.c with Hugging Face tokenizers.

    python tests/golden/generate_tokenizer.py            # data/tokenizer/
    python tests/golden/generate_tokenizer.py --tables   # models/tokenizer/unicode_tables.h (needs unicodedata2)
    python tests/golden/generate_tokenizer.py --real mistral|qwen VOCABULARY FOLDER
        # tokenizer.json with the released vocabulary, prompts.bin and ids.bin (each: length, then bytes or ids, as
        # little-endian 32-bit numbers) for a comparison outside the repository. VOCABULARY: tekken_240911.json of
        # PyPI's mistral-common, qwen.tiktoken of PyPI's dashscope.

Prompts come from a generator that test_tokenizer.c repeats: fragments.txt and splitmix64.
"""

import base64
import hashlib
import json
import pathlib
import struct
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_corpus import CORPUS, FRAGMENTS

VERSION = "0.23.3"
FOLDER = pathlib.Path(__file__).parent / "data" / "tokenizer"
N_PROMPTS = 10000
N_VARIANT_PROMPTS = 250
MASK = 2**64 - 1

MISTRAL_SPECIAL = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
MISTRAL_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# sha256 of FLUX.2-dev's tokenizer/tokenizer.json: what --real mistral writes.
MISTRAL_SHA256 = "b76085f9923309d873994d444989f7eb6ec074b06f25b58f1e8d7b7741070949"
QWEN_REGEX = MISTRAL_REGEX.replace("{1,3}", "")
TEKKEN_REGEX = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K_REGEX = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
QWEN_ADDED = (
    [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True)]
    + [(f"<|{kind}_{end}|>", True) for kind in ("object_ref", "box", "quad") for end in ("start", "end")]
    + [(f"<|{name}|>", True) for name in "vision_start vision_end vision_pad image_pad video_pad".split()]
    + [("<tool_call>", False), ("</tool_call>", False)]
    + [(f"<|{name}|>", False) for name in "fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep".split()]
)


# --- prompts ---------------------------------------------------------------------------------------------------------

RANGES = [  # where random characters come from
    (0x01, 0x7F), (0x80, 0x24F), (0x250, 0x36F), (0x370, 0x58F), (0x590, 0x8FF), (0x900, 0x109F), (0x10A0, 0x1FFF),
    (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2C00, 0x3134), (0x3130, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7FF),
    (0xE000, 0xFFFF), (0x10000, 0x16FFF), (0x17000, 0x1BFFF), (0x1CC00, 0x1E0FF), (0x1E000, 0x1FAFF),
    (0x20000, 0x323AF), (0xE0000, 0x10FFFF),
]  # fmt: skip
SPACES = [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, 0x180E, 0x2002, 0x2009, 0x200B, 0x2028, 0x202F, 0x3000]


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % n


def prompt(index):
    random = Random(index)
    parts = []
    for _ in range(1 + random.below(12)):
        kind = random.below(8)
        if kind == 6:
            low, high = RANGES[random.below(len(RANGES))]
            parts.append("".join(chr(low + random.below(high - low + 1)) for _ in range(1 + random.below(6))))
        elif kind == 7:
            space = SPACES[random.below(len(SPACES))]
            parts.append(chr(space) * (1 + random.below(5)))
        else:
            parts.append(FRAGMENTS[random.below(len(FRAGMENTS))])
            if random.below(2):
                parts.append(" ")
    return "".join(parts)


def code_points():
    """Every code point but NUL and the surrogates, 1024 to a text."""
    points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    for i in range(0, len(points), 1024):
        yield points[i : i + 1024]


def texts(kind):
    if kind == "prompts":
        for i in range(N_VARIANT_PROMPTS):
            yield prompt(i)
    elif kind == "code points":
        for block in code_points():
            yield "".join(map(chr, block))
    elif kind == "marks":  # order against marks of the classes 1, 220 and 240; then a mark that composes
        for block in code_points():
            yield "".join(f"a{chr(c)}\u0334o\u0323{chr(c)}e\u0345{chr(c)}\u0307" for c in block)
    else:  # words: an added token with single_word beside each
        for block in code_points():
            yield "".join(f"{chr(c)}Word;Word{chr(c)};" for c in block)


def hash32(numbers, value=0x811C9DC5):
    """FNV-1a over 32-bit numbers, one number a step."""
    for n in numbers:
        value = ((value ^ n) * 0x01000193) & 0xFFFFFFFF
    return value


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


# --- tokenizers ------------------------------------------------------------------------------------------------------


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def byte_level(add_prefix_space=False, use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def finish(tokenizer, regex):
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split(Regex(regex)), byte_level()])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def mistral_template():
    return processors.TemplateProcessing(
        single="<s>:0 $A:0", pair="<s>:0 $A:0 <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )


def train(tokenizer, size, special):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS + FRAGMENTS * 2, trainer)
    return tokenizer


def small_mistral():
    tokenizer = train(finish(Tokenizer(models.BPE(ignore_merges=True)), MISTRAL_REGEX), 3000,
                      [AddedToken(t, special=True, normalized=False) for t in MISTRAL_SPECIAL])  # fmt: skip
    tokenizer.post_processor = mistral_template()
    return tokenizer


def small_qwen():
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    tokenizer.normalizer = normalizers.NFC()
    train(finish(tokenizer, QWEN_REGEX), 2500, [])
    tokenizer.add_tokens([AddedToken(t, special=s, normalized=False) for t, s in QWEN_ADDED])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def legacy_merges(text):
    """The file as tokenizers wrote it before 0.20: a merge is one string."""
    file = json.loads(text)
    file["model"]["merges"] = ["#version: 0.2"] + [" ".join(pair) for pair in file["model"]["merges"]]
    return json.dumps(file, ensure_ascii=True, indent=None)


def variants():
    """(texts, normalizer, pre_tokenizer, added tokens) on one tiny model."""
    none = []
    flags = [dict(), dict(lstrip=True), dict(rstrip=True), dict(lstrip=True, rstrip=True), dict(single_word=True),
             dict(single_word=True, lstrip=True, rstrip=True)]  # fmt: skip
    contents = ["<|a|>", "Word", "wor", "é", "e\u0301", " x", " ", "\n", "ing", "the", "th", "每", "👍", "aba", "bab"]
    nfc = normalizers.NFC()
    for f in flags:
        for normalized in (False, True):
            # The reference stops with a panic where a token that is white space should strip what is already taken.
            fine = [c for c in contents if (c != "e\u0301" or not normalized) and (c == c.strip() or "lstrip" not in f)]
            added = [AddedToken(c, normalized=normalized, **f) for c in fine]
            yield "prompts", nfc if normalized else None, byte_level(), added
    mixed = [
        AddedToken(c, **flags[i % 6 if c == c.strip() else 2], normalized=i % 2 == 0) for i, c in enumerate(contents)
    ]
    yield "prompts", nfc, pre_tokenizers.Sequence([split(Regex(QWEN_REGEX)), byte_level()]), mixed
    yield "prompts", normalizers.Sequence([nfc, nfc]), byte_level(use_regex=True), mixed
    behaviors = "removed isolated merged_with_previous merged_with_next contiguous".split()
    for behavior in behaviors:
        for invert in (False, True):
            for pattern in (Regex(r"\s|\d"), Regex(r"\p{Lu}?"), "e", Regex(r"(?=[aeiou])")):
                yield "prompts", None, pre_tokenizers.Sequence([split(pattern, behavior, invert), byte_level()]), none
    regexes = (MISTRAL_REGEX, QWEN_REGEX, TEKKEN_REGEX, CL100K_REGEX)
    for regex in regexes:
        yield "prompts", None, pre_tokenizers.Sequence([split(Regex(regex)), byte_level()]), none
    for prefix in (False, True):
        yield "prompts", nfc, byte_level(add_prefix_space=prefix, use_regex=True), none
        yield "prompts", None, pre_tokenizers.Sequence(
            [split(" ", "removed"), split(Regex(r"[.,!?]+"), "contiguous"), byte_level(prefix, prefix)]
        ), none
    yield "prompts", None, pre_tokenizers.Sequence([split(""), byte_level()]), none
    yield "prompts", None, byte_level(add_prefix_space=True), none
    yield "prompts", None, pre_tokenizers.Sequence([split(Regex(QWEN_REGEX)), byte_level(True)]), none
    categories = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn"
    classes = [r"\p{%s}" % c for c in categories.split()] + [r"\s", r"\S", r"\d", r"\P{L}", r".", r"[^\s\p{L}\p{N}]"]
    for pattern in classes + [r"(?i:[sdmtk])", r"(?i:k|s)", "[a-zß-ÿ一-龥]"]:
        yield "code points", None, pre_tokenizers.Sequence([split(Regex(pattern), "removed", True), byte_level()]), none
    yield "code points", nfc, byte_level(), none
    yield "marks", nfc, byte_level(), none
    inside = AddedToken("ord", normalized=False)  # must not be found in a Word, not even in one that does not count
    yield "words", None, byte_level(), [AddedToken("Word", single_word=True, normalized=False), inside]
    yield "words", None, byte_level(), [AddedToken("Word", lstrip=True, rstrip=True, normalized=False)]


# --- files -----------------------------------------------------------------------------------------------------------


def write_prompt_hashes(name, tokenizer):
    hashes = [hash32(ids(tokenizer, prompt(i))) for i in range(N_PROMPTS)]
    (FOLDER / f"{name}.hashes").write_bytes(struct.pack(f"<{N_PROMPTS}I", *hashes))


def write_vectors(tokenizers_by_name):
    """Full ids of some texts: NAME, the text and the ids, a line each, separated by tabs; the text as JSON."""
    chosen = [
        "<s>[INST]Hello, how are you?[/INST]",
        "<s>USER: [IMG]\nWhat's the content of the image? ASSISTANT:",
        "<|im_start|>user\nMake it snow, don't change the face.<|im_end|>\n",
        "e\u0301 \u00e9 \u1e69 s\u0323\u0307 s\u0307\u0323",
        "12345 67 \u0661\u0662\u0663\u0664 \u2460\u2461",
        "  \u3000\u00a0 \r\n\r\n x",
    ] + [prompt(i) for i in range(40)]
    with open(FOLDER / "vectors.txt", "w", newline="\n") as f:
        for name, tokenizer in tokenizers_by_name.items():
            for text in chosen:
                numbers = " ".join(map(str, ids(tokenizer, text)))
                f.write(f"{name}\t{text.encode().hex()}\t{numbers}\n")


def write_long(tokenizers_by_name):
    """Hashes of long runs: NAME, unit and tail in hexadecimal, repetitions, hash."""
    runs = [
        ("a", "x"), ("ab", "x"), (" ", "x"), ("\n", " "), (" \n", "x"), ("\u3000", "x"), ("1", "x"), ("!", "x"), ("中", "x"),
        ("\u0301", "x"), ("\u0301\u0323", "x"), ("A\u0301", "x"), ("'s", "x"), ("<s>", "x"), ("[INST", "x"), ("\U00031350", "x"),
    ]  # fmt: skip
    with open(FOLDER / "long.txt", "w", newline="\n") as f:
        for name, tokenizer in tokenizers_by_name.items():
            for unit, tail in runs:
                times = 2**20 // len(unit.encode())
                total = hash32(ids(tokenizer, unit * times + tail))
                f.write(f"{name} {unit.encode().hex()} {tail.encode().hex()} {times} {total}\n")


def without_merges(model):
    """Tokens that merges no longer reach, which ignore_merges finds all the same."""
    return model | {"ignore_merges": True, "merges": model["merges"][: len(model["merges"]) // 2]}


def write_variants():
    base = json.loads(train(finish(Tokenizer(models.BPE()), QWEN_REGEX), 500, []).to_str())
    by_name = {"merges": base["model"], "ignore_merges": without_merges(base["model"])}
    for name, model in by_name.items():
        (FOLDER / f"variants.{name}.json").write_text(json.dumps(model, ensure_ascii=False))
    with open(FOLDER / "variants.txt", "w", newline="\n") as f:
        for kind, normalizer, pre_tokenizer, added in variants():
            for name, model in by_name.items():
                if kind != "prompts" and name != "merges":
                    continue
                tokenizer = Tokenizer.from_str(json.dumps(base | {"model": model}))
                if normalizer:
                    tokenizer.normalizer = normalizer
                tokenizer.pre_tokenizer = pre_tokenizer
                tokenizer.add_tokens(added)
                head = {k: v for k, v in json.loads(tokenizer.to_str()).items() if k not in ("model", "decoder")}
                total = 0x811C9DC5
                for text in texts(kind):
                    total = hash32(ids(tokenizer, text) + [0xFFFFFFFF], total)
                f.write(f"{kind}\t{name}\t{json.dumps(head)}\t{total}\n")


def main():
    if tokenizers.__version__ != VERSION:
        sys.exit(f"expected tokenizers {VERSION}, got {tokenizers.__version__}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    assert not any("\x1e" in fragment or "\0" in fragment for fragment in FRAGMENTS)
    (FOLDER / "fragments.txt").write_bytes("\x1e".join(FRAGMENTS).encode())
    mistral, qwen = small_mistral(), small_qwen()
    (FOLDER / "mistral.json").write_text(mistral.to_str())
    (FOLDER / "qwen.json").write_text(legacy_merges(qwen.to_str()))
    qwen = Tokenizer.from_file(str(FOLDER / "qwen.json"))
    for name, tokenizer in (("mistral", mistral), ("qwen", qwen)):
        write_prompt_hashes(name, tokenizer)
    write_vectors({"mistral": mistral, "qwen": qwen})
    write_long({"mistral": mistral, "qwen": qwen})
    write_variants()
    everything = hash32(b"".join(prompt(i).encode() for i in range(N_PROMPTS)))
    (FOLDER / "versions.json").write_text(
        json.dumps({"tokenizers": tokenizers.__version__, "python": sys.version.split()[0], "prompts": N_PROMPTS,
                    "variant_prompts": N_VARIANT_PROMPTS, "prompt_bytes_hash": everything}, indent=2) + "\n"
    )  # fmt: skip


# --- released vocabularies -------------------------------------------------------------------------------------------


def byte_alphabet():
    alphabet = [c for c in range(256) if 0x21 <= c <= 0x7E or 0xA1 <= c <= 0xAC or c >= 0xAE]
    others = [c for c in range(256) if c not in alphabet]
    return {c: chr(c) for c in alphabet} | {c: chr(256 + i) for i, c in enumerate(others)}


ALPHABET = byte_alphabet()


def printable(token):
    return "".join(ALPHABET[b] for b in token)


def all_merges(ranks):
    """Every split of a token into two tokens, by the token's rank and then by those of the parts (tekken)."""
    merges = []
    for token in ranks:
        parts = [(token[:i], token[i:]) for i in range(1, len(token))]
        parts = [p for p in parts if p[0] in ranks and p[1] in ranks]
        merges += sorted(parts, key=lambda p: (ranks[p[0]], ranks[p[1]]))
    return [(printable(a), printable(b)) for a, b in merges]


def last_merges(ranks):
    """The two parts that the merges of lower rank leave of each token (tiktoken)."""
    merges = []
    for token, rank in ranks.items():
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            pairs = [ranks.get(parts[i] + parts[i + 1], rank) for i in range(len(parts) - 1)]
            i = pairs.index(min(pairs))
            assert pairs[i] < rank
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            merges.append((printable(parts[0]), printable(parts[1])))
    return merges


def real_mistral(path):
    raw = json.loads(pathlib.Path(path).read_text())["vocab"][: 131072 - 1000]
    ranks = {base64.b64decode(entry["token_bytes"]): i for i, entry in enumerate(raw)}
    special = MISTRAL_SPECIAL + [f"<SPECIAL_{i}>" for i in range(len(MISTRAL_SPECIAL), 1000)]
    vocab = {printable(token): rank + 1000 for token, rank in ranks.items()}
    vocab.update({token: i for i, token in enumerate(special)})
    tokenizer = finish(Tokenizer(models.BPE(vocab, all_merges(ranks), ignore_merges=True)), MISTRAL_REGEX)
    tokenizer.add_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.post_processor = mistral_template()
    return tokenizer


def real_qwen(path):
    lines = pathlib.Path(path).read_bytes().split(b"\n")
    ranks = {base64.b64decode(line.split()[0]): i for i, line in enumerate(filter(None, lines))}
    vocab = {printable(token): rank for token, rank in ranks.items()}
    tokenizer = finish(Tokenizer(models.BPE(vocab, last_merges(ranks))), QWEN_REGEX)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken(t, special=s, normalized=False) for t, s in QWEN_ADDED])
    return tokenizer


QWEN_IMAGE_TEMPLATE = (
    "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, texture, objects, background), "
    "then explain how the user's text instruction should alter or modify the image. Generate a new image that meets the "
    "user's requirements while maintaining consistency with the original input where appropriate.<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
QWEN_CUT = ["<|im_", "|>", "<|image_pad", "<tool_call", "</tool_call", " <|im_end|> ", "\n<|im_start|>user\n"]


def special_prompt(index):
    """Added tokens, whole and cut, among fragments."""
    random, parts = Random(10**6 + index), []
    tokens = [t for t, _ in QWEN_ADDED] + QWEN_CUT
    for _ in range(1 + random.below(8)):
        among = tokens if random.below(3) else FRAGMENTS
        parts.append(among[random.below(len(among))])
        if random.below(3) == 0:
            parts.append(" ")
    return "".join(parts)


def real_prompts(which):
    for i in range(2 * N_PROMPTS):
        yield prompt(i)
    for i in range(N_PROMPTS if which == "qwen" else 0):
        image = f"Picture {1 + i % 3}: <|vision_start|>{'<|image_pad|>' * (1 + i % 7)}<|vision_end|>"
        yield special_prompt(i)
        yield QWEN_IMAGE_TEMPLATE.format(image + (prompt(i) if i % 2 else special_prompt(i)))


def real(which, vocabulary, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = {"mistral": real_mistral, "qwen": real_qwen}[which](vocabulary)
    text = tokenizer.to_str(pretty=True)
    (folder / "tokenizer.json").write_text(text)
    if which == "mistral":
        print("as released:", hashlib.sha256(text.encode()).hexdigest() == MISTRAL_SHA256)
        assert ids(tokenizer, "<s>[INST]Hello, how are you?[/INST]") == [1, 3, 22177, 1044, 2606, 1584, 1636, 1063, 4]
    else:
        assert ids(tokenizer, "Hello world") == [9707, 1879]
        assert len(ids(tokenizer, QWEN_IMAGE_TEMPLATE.split("{}")[0])) == 64
    with open(folder / "prompts.bin", "wb") as prompts, open(folder / "ids.bin", "wb") as out:
        for string in real_prompts(which):
            text, numbers = string.encode(), ids(tokenizer, string)
            prompts.write(struct.pack("<I", len(text)) + text)
            out.write(struct.pack(f"<{len(numbers) + 1}I", len(numbers), *numbers))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--real"]:
        real(*sys.argv[2:])
    elif sys.argv[1:] == ["--tables"]:
        from tokenizer_unicode import write_tables

        write_tables(pathlib.Path(__file__).parents[2] / "models" / "tokenizer" / "unicode_tables.h")
    else:
        main()
