"""Texts for generate_tokenizer.py: what the small tokenizers are trained on, and what prompts are put together from."""

SENTENCES = """\
Make the person in the photograph smile, and keep everything else the same.
Change the background to a beach at sunset with soft golden light over the water.
Replace the red jacket with a dark blue coat; don't change the face or the hair.
Turn this picture into a watercolour painting in the style of an old children's book.
Remove the glasses from the woman's face and add a small scar above her left eyebrow.
Add falling snow, cover the trees and the roof of the house with a thick white layer.
Make him look twenty years older: grey hair, deeper wrinkles, the same expression.
Put the two people from image 1 and image 2 side by side in a restaurant at night.
It's raining; she'll need an umbrella, they've got one, I'm sure we'd share, aren't we?
THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG. It's 1,234.56 dollars, or 99% of 2025's 10,000.
You are an AI that reasons about image descriptions. You give structured responses focusing on object relationships.
The camera is a Canon EOS 5D Mark IV, f/1.8, 85mm, ISO 400, shot at 1/250 s in RAW.
def forward(self, x: Tensor) -> Tensor:\n    return self.proj(F.silu(self.gate(x)) * self.up(x))  # SwiGLU
for (int i = 0; i < n; i++) { sum += a[i] * b[i]; if (!ok) return -1; }
<div class="image"><img src="https://example.org/a_b-c.png?w=1024&h=768" alt="none"/></div>
Ersetze den Hintergrund durch eine verschneite Straße mit Fachwerkhäusern, größer und schöner.
Remplace l'arrière-plan par une forêt enneigée; garde le visage du garçon, ça m'est égal où.
Cambia el fondo por una playa al atardecer y añade un sombrero a la niña pequeña, ¿vale?
Zmień tło na zaśnieżoną ulicę i zachowaj twarz, żeby była taka sama jak wcześniej.
Thay đổi nền thành một con phố phủ tuyết và giữ nguyên khuôn mặt của người phụ nữ.
Измени фон на заснеженную улицу, а лицо человека оставь таким же, как раньше.
Άλλαξε το φόντο σε έναν χιονισμένο δρόμο και κράτησε το πρόσωπο ίδιο.
把背景换成下雪的街道，保持人物的脸不变，并且给她戴上一顶红色的帽子。
請將照片中的人物變成水彩畫風格，背景改為海邊的日落。
背景を雪の降る街に変えて、人物の顔はそのままにしてください。カメラをズームする。
배경을 눈 내리는 거리로 바꾸고 사람의 얼굴은 그대로 유지해 주세요.
غيّر الخلفية إلى شارع مغطى بالثلج واحتفظ بوجه الشخص كما هو.
שנה את הרקע לרחוב מושלג והשאר את הפנים כמו שהן.
पृष्ठभूमि को बर्फीली सड़क में बदलें और व्यक्ति का चेहरा वैसा ही रखें।
เปลี่ยนพื้นหลังเป็นถนนที่มีหิมะและคงใบหน้าของคนไว้เหมือนเดิม
ফটোটির পটভূমি পরিবর্তন করুন এবং মুখ একই রাখুন।
பின்னணியை பனி பொழியும் தெருவாக மாற்று.
🎉 party 🧑‍🚀 astronaut 👍🏽 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇩🇪 ❤️‍🔥""".split("\n")
CORPUS = [sentence.replace("\\n", "\n") for sentence in SENTENCES] * 4

WORDS = """\
a the of and image photo face person woman man child same identity lighting background style painting hair eyes
smile older younger winter summer night sunset street house dog cat red blue dark bright very without keep change
Make Turn Add Remove Replace Put The A I It Photo HDR RGB 4K NASA iPhone McDonald snake_case camelCase kebab-case
don't Don't DON'T it's It'S we'll WE'LL they've THEY'VE I'm I'M you're YOU'RE he'd HE'D 'tis o'clock rock'n'roll
isn’t l'été d'accord ' 's 'S 't 'll 've 're 'd 'm 'ſ it'ſ "quoted" “curly” ‘single’ «guillemets» 「鉤」 (paren) [x] {y}
1 12 123 1234 12345 123456 1234567 1,000,000 3.14159 1e-5 0x1F 2025-01-31 12:34:56 50% $9.99 €5 №7 ½ ² Ⅷ ①②③ ٣٤٥ १२३ 𝟙𝟚
é e\u0301 E\u0301 ñ n\u0303 ö o\u0308 å A\u030a ﬁ ﬀ ß ẞ İ ı ſ K Å Ω Ǆ ǅ ǆ Ḍ\u0307 s\u0323\u0307 s\u0307\u0323 q\u0323\u0301\u0300 a\u0315\u0300\u05ae\u0300\u0062
\u0301 \u0300\u0301\u0302\u0303\u0304 Z\u0351\u036b\u0343\u036a a\u0334\u0315 \u1e9b\u0323 \u0344 \u0958 \u09dc \u0f43 \u2126 \u212b \uf900 \u1100\u1161\u11a8 \uac00\u11a8 \u1112\u1161\u11ab
中文 汉字 漢字 每 你好，世界！ 。 、 日本語 カタカナ ひらがな ｶﾀｶﾅ 한국어 ㄱㄴ ไทย สวัสดี हिन्दी বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ქართული հայերեն አማርኛ
ελληνικά Ελλάδα кириллица Москва українська العربية مَرْحَبًا فارسی‌زبان עברית שָׁלוֹם ᠮᠣᠩᠭᠣᠯ བོད་ཡིག မြန်မာ ខ្មែរ ᏣᎳᎩ ⵜⴰⵎⴰⵣⵉⵖⵜ ߒߞߏ
😀 🎉 👍 👍🏽 👩‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🇫🇷🇩🇪 ❤️ ❤ ☺️ ✈︎ 1️⃣ #️⃣ ™ © ® ♪ → ⇒ ∑ ∫ √ ≠ ≤ ∞ ∈ ℝ ℵ 𝒳 𝔘 𐍈 𓀀 𠀀 𪚥 \U0001f9d1\u200d\U0001f4bb \U0001fae8 \U0001fadc
, . ; : ! ? ... … -- – — __init__ // /* */ == != <= >= && || -> => :: @user #tag ~/path C:\\dir http://a.b/c?d=e&f=g a@b.co \\n
`code` ``` ~~~ *** ### <b> </b> &amp; %20 $x ${y} {{z}} [[w]] <!-- --> <?php ?> #!/bin/sh $(ls) |& 2>&1 ^_^ ¯\\_(ツ)_/¯
[INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [IMG] [IMG_BREAK] [IMG_END] <s> </s> <unk> <pad> [TOOL_CALLS] [INST [/INST][INST] [[INST]] <s>> <<s> <SPECIAL_20>
<|im_start|> <|im_end|> <|endoftext|> <|vision_start|> <|image_pad|> <|vision_end|> <|im_start <|im_start|>user <tool_call> </tool_call> <|fim_prefix|> <|a|> <|a|><|a|> Word Words sWord Word. wor world""".split()

FRAGMENTS = WORDS + [sentence[i : i + 30] for sentence in CORPUS[: len(SENTENCES)] for i in range(0, len(sentence), 30)] + [
    " ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", "\v", "\f", " \n", "\n ", "  \n\n  ",
    " \t \n \t ", "\u00a0", " \u00a0 ", "\u0085", "\u1680", "\u180e", "\u2000\u2001\u2002", "\u2009", "\u200b", "\u200c",
    "\u200d", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\u3000\u3000", "\ufeff", "\u00ad", "\u061c",
    "\u200e", "\u200f", "\u202e", "\u2066", "\u2069", "\x01", "\x1f", "\x7f", "\x80", "\x9f", "\ufffd", "\ufffe", "\uffff",
    "\ue000", "\U000f0000", "\U0010ffff", "\U000e0001", "\U000e0041", "\ufe0f", "\ufe0e", "\u20e3", "<|a|>  ", "  <|a|>",
    " <|a|> Word \n <|a|>", "Word\u3000<|a|>\u00a0Word", "a" * 40, "ab" * 20, "1" * 20, "!" * 20, " " * 20, "\n" * 20, "\u0301" * 12,
    "A\u0301" * 8, "中" * 12, "😀" * 6, "\U00031350", "\u0897", "\U00010d4a", "\U0001e4d0", "\U0002ebf0", "\u1c89", "\ua7dc",
    "\U00011382\U000113c9", "\U00016d63\U00016d67\U00016d67", "\U000105d2\u0307", "a\u0897\u0323", "a\u1acf\u0323",
]  # fmt: skip
