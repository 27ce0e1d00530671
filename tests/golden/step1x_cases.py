"""The Step1X-Edit cases: which checkpoint, what is asked of it, and the photographs it is asked about."""

import io

from PIL import Image

from flux2_cases import picture


def thin(text=23, blocks=29, latents=11, picture=47):
    """Of large tensors every n-th row is kept: the first part that is in a tensor's name gives n."""
    return {
        ".txt": text,
        "ids": 1,
        "quoted": 1,
        "f32.image": 2 * picture,
        "f32.": 29,
        "noise": 1,
        "image": picture,
        "pixels": 149,
        "text_positions": 1,
        "prompt_embeds": text,
        "token_embeds": text,
        "hidden": text,
        "features": text,
        "connector": text,
        "txt_in": text,
        "img_in": blocks,
        "double.": blocks,
        "single.": blocks,
        "cond.velocity": 2 * latents + 1,
        "velocity": latents,
        "moments": latents,
        ".latents": latents,
        "vae.": latents,
        "decoded": 3 * picture,
    }


# What an uncond branch repeats of the prompt's stages.
UNCOND_TEXT = ("uncond.single", "uncond.prompt_embeds", "uncond.txt_in", "uncond.connector", "uncond.img_in")

# Pictures are large enough that it hardly matters which of their values fall on the other side of a rounding. A step's
# uncond branch differs from cond in the text alone; one case of a config keeps both.
CASES = {
    "rich": {
        "quotes": dict(
            prompt='Make the text "AB! 12" with “Zoë 人” and don\'t stop!',
            images=["portrait.jpg"],
            size_level=256,
            steps=3,
            true_cfg_scale=6.0,
            seed=42,
            blocks=("cond.double.0", "cond.single.0"),
            without=("step.0.uncond.double", "step.0.uncond.single.0", "step.1.uncond.v", "step.1.cond.v"),
            thin=thin(17, 23, 7, picture=29),
        ),
        "text": dict(
            prompt='a shop sign that says "OPEN", in neon light',
            width=278,
            height=310,
            size_level=256,
            steps=2,
            true_cfg_scale=4.0,
            seed=7,
            without=("double", "single.0", "hidden", "token_embeds", "uncond.text_positions", "decoded", *UNCOND_TEXT),
            thin=thin(),
        ),
        "no_cfg": dict(
            prompt="Make it winter now.",
            images=["alpha.png"],
            size_level=300,
            steps=2,
            true_cfg_scale=1.0,
            seed=1234567890123,
            without=("double", "single", "hidden", "token_embeds", "text_positions", "unresized", "decoded"),
            thin=thin(),
        ),
    },
    "plain": {
        "edit": dict(
            prompt='remove the "lamp, please!!',
            negative_prompt='ugly, "bad" hands',
            images=["tall.jpg"],
            size_level=272,
            steps=4,
            true_cfg_scale=3.5,
            seed=3,
            blocks=("uncond.double.0", "uncond.single.0"),
            without=("cond.double", "cond.single.0.", "token_embeds", "step.1.", "step.2."),
            thin=thin(),
        ),
        "text": dict(
            prompt="",
            negative_prompt="",
            size_level=256,
            steps=1,
            true_cfg_scale=6.0,
            seed=5,
            without=("double", "single", "token_embeds", "hidden", "text_positions", "uncond", "decoded"),
            thin=thin(),
        ),
    },
}


def photographs():
    """File name -> bytes. Sizes are no multiples of 16, so that every resize does something."""

    def encode(array, mode, kind, **options):
        out = io.BytesIO()
        Image.fromarray(array, mode).save(out, kind, **options)
        return out.getvalue()

    return {
        "portrait.jpg": encode(picture(331, 251, 3, 21), "RGB", "JPEG", quality=60),
        "alpha.png": encode(picture(46, 42, 4, 22), "RGBA", "PNG"),
        "tall.jpg": encode(picture(203, 389, 3, 23), "RGB", "JPEG", quality=60),
    }
