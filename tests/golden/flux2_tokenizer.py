"""A small byte-level BPE tokenizer in the form of FLUX.2's: the same special tokens, pre-tokenizer and chat template."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PixtralImageProcessor, PixtralProcessor, PreTrainedTokenizerFast

from diffusers.pipelines.flux2.system_messages import SYSTEM_MESSAGE

SPECIAL_TOKENS = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()

PRE_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# <s>[SYSTEM_PROMPT]...[/SYSTEM_PROMPT][INST]...[/INST], no generation prompt.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'system' %}{{ '[SYSTEM_PROMPT]' }}{% else %}{{ '[INST]' }}{% endif %}"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for block in message.content %}{% if block.type == 'text' %}{{ block.text }}{% endif %}{% endfor %}{% endif %}"
    "{% if message.role == 'system' %}{{ '[/SYSTEM_PROMPT]' }}{% else %}{{ '[/INST]' }}{% endif %}{% endfor %}"
)

VOCAB_SIZE = 1000


def corpus():
    verbs = "make turn change replace paint remove add keep place move colour brighten darken blur sharpen".split()
    things = (
        "sky,house,person,woman,man,child,dog,cat,dress,jacket,hair,background,window,street,river,mountain,tree,"
        "flower,chair,table,lamp,poster,car,bicycle,bridge,beach,snow,rain,sunset,portrait"
    ).split(",")
    manners = (
        "in winter,at night,as a watercolour painting,without changing the face,into a wooden sculpture,"
        "with a red umbrella,in the style of a photograph,while the identity stays the same,slightly older,"
        "behind the glass,under warm light,over the water"
    ).split(",")
    lines = [SYSTEM_MESSAGE] * 12
    for i, verb in enumerate(verbs):
        for j, thing in enumerate(things):
            manner = manners[(7 * i + 5 * j) % len(manners)]
            lines.append(f"{verb.capitalize()} the {thing} {manner}, please; it's number {37 * i + 11 * j}.")
    lines += [
        "Ändere die Straße über dem Fluß größer und schöner, daß niemand es übersieht.",
        "Le garçon a déjà mangé où l'été commençait, c'est ça, n'est-ce pas?",
        "人物の髪を赤くしてください。背景は夜の街にします。",
        "把背景换成下雪的山，人物保持不变。",
        "Сделай небо темнее, а человека оставь прежним.",
        "اجعل السماء زرقاء واحتفظ بالوجه كما هو",
        "Tail\twith tabs\n\nand   spaces   \n and don't, we'll, they've, I'm",
        "🎉 party 🧑‍🚀 astronaut 👍🏽",
    ] * 6
    return lines


def build_processor():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_SPLIT), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        min_frequency=2,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        padding_side="left",
        model_max_length=131072,
    )
    return PixtralProcessor(
        image_processor=PixtralImageProcessor(patch_size=14, size={"longest_edge": 1540}),
        tokenizer=fast,
        patch_size=14,
        spatial_merge_size=2,
        chat_template=CHAT_TEMPLATE,
    )
