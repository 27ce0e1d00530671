"""Tokenizers in the released form whose vocabulary is the words of the drawings' instructions: any other word is
spelt in bytes. A sentence that stands in every prompt may be a token of its own."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_characters():
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def build(texts, digits, first_special, special, whole=(), nfc=False):
    """texts: whose words are to be tokens. special: before (first_special True) or after all words. whole: sentences."""
    before = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(ENDINGS % digits), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ]
    )
    words = {}
    for text in texts:
        for sentence in whole:
            text = text.replace(sentence, "\n")
        words.update((piece, None) for piece, _ in before.pre_tokenize_str(text) if len(piece) > 1)
    order = byte_characters() + list(words)
    vocabulary = list(special) + order if first_special else order
    tokenizer = Tokenizer(models.BPE({w: i for i, w in enumerate(vocabulary)}, [], ignore_merges=True))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = before
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(s, special=False, normalized=False) for s in whole])
    return tokenizer
