"""The Qwen-Image cases: which checkpoint, what is asked of it, and the photographs it is asked about."""

import io

from PIL import Image

from flux2_cases import picture

def thin(tokens=11, pixels=211, blocks=29):
    """Of what is large every n-th row of tokens, or pixel of a picture, is stored: the first part that is in a tensor's
    name gives n, which shares no divisor with the picture's width, so that they come from all columns."""
    return dict(
        scatter={
            "pixels": 499,
            "decoded": pixels,
            "f32.image": pixels // 2,
            "image": pixels // 9,
            ".mean": tokens,
            "vae.": tokens,
        },
        thin={
            "f32.": 37,
            ".img": blocks,
            ".block.": blocks,
            "text_encoder.hidden": 11,
            "prompt_embeds": 5,
            "features": 3,
            "reference.": tokens,
            "velocity": tokens,
            ".latents": tokens,
        },
    )


# Later steps and the second prompt take the same way through the networks as the first.
LATER = tuple(f"step.{step}.{branch}.velocity" for step in (1, 2) for branch in ("cond", "uncond"))
TWICE = ("uncond.text_encoder.hidden", "uncond.img_in", "uncond.txt_in", "uncond.block")

# Areas are those of the references, in place of the released 384^2 and 1024^2. Pictures are large enough that it hardly
# matters which of their values happen to fall on the other side of a rounding.
CASES = {
    "edit2511": {
        "one": dict(
            prompt="Turn the house into a wooden sculpture under warm light.",
            negative_prompt=" ",
            true_cfg_scale=4.0,
            images=["portrait.jpg"],
            condition_area=160 * 160,
            vae_area=256 * 256,
            height=272,
            width=304,
            steps=3,
            seed=42,
            blocks=("0",),
            without=(*LATER, *TWICE),
            **thin(),
        ),
        "two": dict(
            prompt="Place the person of image 1 behind the glass: 人物の髪を赤く, größer — 🎉!",
            images=["wide.jpg", "portrait.jpg"],
            condition_area=224 * 224,
            vae_area=224 * 224,
            height=288,
            width=272,
            steps=2,
            seed=3,
            without=("pixels", "hidden", "txt_in", ".txt", "cond.velocity", "decoded"),
            **thin(),
        ),
    },
    "edit2509": {
        "two": dict(
            prompt="make the sky red",
            negative_prompt="blurry, low quality",
            true_cfg_scale=2.5,
            images=["small.jpg", "wide.jpg"],
            condition_area=128 * 128,
            vae_area=192 * 192,
            height=268,
            width=251,
            steps=2,
            seed=1234567890123,
            blocks=("0",),
            without=("pixels", "decoded", *LATER, *TWICE),
            **thin(37, blocks=53),
        ),
    },
    "edit": {
        "one": dict(
            prompt="change the jacket",
            negative_prompt=" ",
            true_cfg_scale=4.0,
            images=["portrait.jpg"],
            vae_area=256 * 256,
            height=272,
            width=272,
            steps=2,
            seed=7,
            bf16=("step.0.temb", "step.1.temb", "vision.0.features", "cond.text_encoder.hidden.1"),
            without=("pixels", "txt_in", *LATER, *TWICE),
            **thin(),
        ),
    },
    "text": {
        "cut": dict(
            prompt="it's   number 12345: a dog is dancing, with a red umbrella, over the water, in winter, at night",
            negative_prompt="",
            true_cfg_scale=2.0,
            max_sequence_length=24,
            height=275,
            width=305,
            steps=2,
            seed=11,
            blocks=("0",),
            bf16=("step.0.temb", "cond.text_encoder.hidden.1", "step.0.cond.block.0.query", "step.0.cond.block.0.key"),
            without=("txt_in", "decoded", *LATER, *TWICE),
            **thin(),
        ),
    },
}


def photographs():
    """File name -> bytes. Larger and smaller than what the pipeline makes of them, and no multiples of 32."""

    def encode(array, quality):
        out = io.BytesIO()
        Image.fromarray(array, "RGB").save(out, "JPEG", quality=quality)
        return out.getvalue()

    return {
        "portrait.jpg": encode(picture(263, 301, 3, 21), 80),
        "wide.jpg": encode(picture(402, 223, 3, 22), 60),
        "small.jpg": encode(picture(97, 90, 3, 23), 85),
    }
