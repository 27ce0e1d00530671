"""What the recorders of all pipelines share: tensors of every stage, batch dropped, channels last or token-major."""

import contextlib

import torch


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


@contextlib.contextmanager
def dithered(seed):
    """Products with weights as if summed in another order: off by some 2e-6 of their size before they are rounded, so that
    a few round otherwise. Runs in bf16 drift apart from that, as ours does from the reference's."""
    generator = torch.Generator("cpu").manual_seed(seed)

    def called(module, inputs, output):
        if isinstance(module, torch.nn.Linear):
            product = torch.nn.functional.linear
        elif isinstance(module, (torch.nn.Conv2d, torch.nn.Conv3d)):
            product = module._conv_forward
        else:
            return None
        if not inputs[0].is_contiguous():  # such products add their bias after rounding
            return None
        bias = None if module.bias is None else module.bias.float()
        x = inputs[0].float()
        if hasattr(module, "_padding"):  # a causal convolution over time, which pads by itself; at one frame, with zeros
            x = torch.nn.functional.pad(x, module._padding)
        exact = product(x, module.weight.float(), bias)
        noise = torch.randn(exact.shape, generator=generator)
        return (exact + 2e-6 * exact.square().mean().sqrt() * noise).to(output.dtype)

    handle = torch.nn.modules.module.register_module_forward_hook(called)
    try:
        yield
    finally:
        handle.remove()
