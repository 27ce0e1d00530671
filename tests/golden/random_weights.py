"""Random weights of such scales that every part of a model shows in the result."""

import math

import torch


def smooth_in_time(n_frequencies):
    """Column factors with which the time embedding listens to slow oscillations, as trained models do.

    A bf16 run rounds the timestep by up to 4 of 1000; an untrained embedding would answer with a wholly different
    vector, and every later comparison in bf16 would be between unrelated numbers.
    """
    half = n_frequencies // 2
    omega = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    return torch.clamp(0.005 / omega, max=1.0).repeat(2) * 1.5


@torch.no_grad()
def randomize(model, seed, gains, time_weights):
    """Weights with which every part matters: nothing zero, one or negligible.

    gains: (part of a name, gain over 1/sqrt(fan_in)), the first that fits. time_weights: how the names of the matrices
    end that take the sinusoids of the time.
    """
    generator = torch.Generator("cpu").manual_seed(seed)

    def normal(tensor):
        return torch.randn(tensor.shape, generator=generator, dtype=torch.float32)

    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            value = 0.2 * normal(parameter)
            if "conv_in" in name:
                value *= 0.05
        elif parameter.ndim == 1:
            value = 1.0 + 0.3 * normal(parameter)
        else:
            gain = next((g for part, g in gains if part in name), 1.0)
            fan_in = 1 if "embed_tokens" in name else math.prod(parameter.shape[1:])
            value = gain / math.sqrt(fan_in) * normal(parameter)
            if name.endswith(time_weights):
                value *= smooth_in_time(parameter.shape[1])
        parameter.copy_(value)
    if hasattr(model, "bn"):
        model.bn.running_mean.copy_(0.3 * normal(model.bn.running_mean))
        uniform = torch.rand(model.bn.running_var.shape, generator=generator)
        model.bn.running_var.copy_(torch.exp(math.log(0.01) * (1 - uniform)))
        model.bn.num_batches_tracked.fill_(1000)
    return model
