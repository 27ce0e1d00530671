"""Trains a small transformer by flow matching to make the picture after an edit from the one before it."""

import copy
import time

import torch
from torch import nn

AT_STEPS = 0.7  # share of the examples at exactly the noise levels that inference goes through


def start_plain(model):
    """Gates and the last layer begin near nothing, as is usual for such transformers."""
    for name, p in model.named_parameters():
        if p.ndim > 1 and ("mod" in name or "norm_out.linear" in name or "norm1" in name or name == "proj_out.weight"):
            nn.init.normal_(p, std=0.02)


class Average:
    """A running mean of the weights."""

    def __init__(self, model):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.n = 0

    @torch.no_grad()
    def update(self, model, decay=0.998):
        self.n += 1
        keep = min(decay, self.n / (self.n + 10))
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), 1 - keep)


class Run:
    """Model, optimizer, schedule and their state, so that a run goes on where its checkpoint stands."""

    def __init__(self, model, lr, steps, checkpoint):
        start_plain(model)
        self.model, self.average, self.checkpoint, self.step = model, Average(model), checkpoint, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, lr, steps, pct_start=0.03, cycle_momentum=False
        )
        if checkpoint.exists():
            state = torch.load(checkpoint)
            self.step = state.pop("step")
            self.average.n = self.step
            for name, value in state.items():
                (self.average.model if name == "average" else getattr(self, name)).load_state_dict(value)

    def save(self):
        state = {k: getattr(self, k).state_dict() for k in ("model", "optimizer", "schedule")}
        torch.save(dict(state, average=self.average.model.state_dict(), step=self.step), self.checkpoint)


def choose(which, lengths, batch, generator):
    """Indices of examples; with lengths of the prompts given, all of prompts of one length."""
    if lengths is None:
        return torch.randint(len(which), (batch,), generator=generator)
    length = lengths[which]
    one = torch.randint(len(which), (1,), generator=generator)
    fitting = torch.nonzero(length == length[one]).flatten()
    return fitting[torch.randint(len(fitting), (batch,), generator=generator)]


def example(data, levels, batch, generator, lengths=None):
    """data: before, after [n, tokens, channels], which prompt [n], what prompts are embedded as, each [p, ...]."""
    before, after, which, prompts = data
    i = choose(which, lengths, batch, generator)
    noise = torch.randn(after[i].shape, generator=generator)
    at = levels[torch.randint(len(levels), (batch,), generator=generator)]
    anywhere = torch.rand(batch, generator=generator).clamp_min(0.02)
    sigma = torch.where(torch.rand(batch, generator=generator) < AT_STEPS, at, anywhere)
    s = sigma.view(-1, 1, 1)
    return before[i], after[i], tuple(p[which[i]] for p in prompts), noise, sigma, (1 - s) * after[i] + s * noise


def train(family, model, data, side, steps, batch, lr, seed, checkpoint, log=print):
    run = Run(model, lr, steps, checkpoint)
    levels = family.sigmas(side)
    lengths = data[3][1].sum(1) if getattr(family, "EQUAL_LENGTHS", False) else None
    parameters = list(model.parameters())
    began, first, total = time.time(), run.step, 0.0
    while run.step < steps:
        generator = torch.Generator().manual_seed((seed << 32) + run.step)
        before, after, prompt, noise, sigma, noisy = example(data, levels, batch, generator, lengths)
        v = family.velocity(model, noisy, before, prompt, sigma, side)
        # As an error of the picture: that of the velocity counts as much as it moves the latents.
        loss = (sigma.view(-1, 1, 1) * (v - (noise - after))).square().mean()
        run.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        run.optimizer.step()
        run.schedule.step()
        run.average.update(model)
        run.step += 1
        total += loss.item()
        if run.step % 100 == 0:
            rate = batch * (run.step - first) / (time.time() - began)
            log(f"denoiser {run.step}/{steps}: error {total / 100:.4f}, {rate:.0f} examples/s", flush=True)
            total = 0.0
            run.save()
    run.save()
    return run.average.model


@torch.no_grad()
def sample(family, model, before, prompt, side, generator):
    """As the pipelines do: Euler steps from noise."""
    levels = torch.cat([family.sigmas(side), torch.zeros(1)])
    x = torch.randn(before.shape, generator=generator)
    for now, then in zip(levels[:-1], levels[1:]):
        x = x + (then - now) * family.velocity(model, x, before, prompt, now.expand(len(x)), side)
    return x
