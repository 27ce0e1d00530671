"""What the recorders of all pipelines share: tensors of every stage, batch dropped, channels last or token-major."""


def tokens(latents):
    """[1, C, h, w] -> [h * w, C]"""
    return latents[0].flatten(1).T


def pixels(image):
    """[1, C, H, W] -> [H, W, C]"""
    return image[0].permute(1, 2, 0)


class StageRecorder:
    """Collects stages while a pipeline runs."""

    def __init__(self):
        self.stages = {}
        self.step = 0

    def keep(self, name, value):
        value = value.detach()
        self.stages[name] = value.clone().contiguous()

    def wrap(self, stack, owner, name, observe):
        original = getattr(owner, name)

        def wrapped(*args, **kwargs):
            result = original(*args, **kwargs)
            observe(result, *args, **kwargs)
            return result

        setattr(owner, name, wrapped)
        stack.callback(setattr, owner, name, original)

    def hook(self, stack, module, observe, first_step_only=True):
        def called(_, args, kwargs, output):
            if self.step == 0 or not first_step_only:
                observe(output, *args, **kwargs)

        stack.callback(module.register_forward_hook(called, with_kwargs=True).remove)


def plain_strides(stack, vae):
    """The pipeline hands the VAE tensors with channels-last strides, with which torch's group norm sums a megapixel in one
    f32: an error of 4e-4 in the latents, and bf16 roundings that flip by that error instead of by the model's. The same
    values in NCHW give 7e-7."""
    for name in ("encode", "decode"):
        original = getattr(vae, name)
        setattr(vae, name, lambda x, *args, original=original, **kwargs: original(x.contiguous(), *args, **kwargs))
        stack.callback(setattr, vae, name, original)
