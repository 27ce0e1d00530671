"""Trains a small transformer by flow matching to make the picture after an edit from the one before it."""

import copy
import time

import torch
from torch import nn

import muon

AT_START, AT_STEPS = 0.4, 0.8  # shares of examples: at the first noise level of inference, at any of its levels
GROUP = 16  # examples that go through the model together; of some families with prompts of one length
ENDS = ("embedder", "img_in", "txt_in", "proj_out", "norm_out")  # first and last layers
MIXED, LOST = 0.4, 0.1  # share of examples whose words stand in any order; of the words that are left out of these
CHANGED = 3  # how much more the values that an edit changes count together than all by themselves


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
        self.model, self.average, self.checkpoint, self.step = model, Average(model), checkpoint, 0
        self.optimizer = muon.Muon(model.named_parameters(), lr, adam_lr=lr / 10, adam=ENDS, weight_decay=0.01)
        self.schedule = muon.schedule(self.optimizer, steps)
        if checkpoint.exists():
            state = torch.load(checkpoint)
            self.step = state.pop("step")
            self.average.n = self.step
            for name, value in state.items():
                (self.average.model if name == "average" else getattr(self, name)).load_state_dict(value)

    def save(self):
        state = {k: getattr(self, k).state_dict() for k in ("model", "optimizer", "schedule")}
        torch.save(dict(state, average=self.average.model.state_dict(), step=self.step), self.checkpoint)


def choose(which, lengths, often, generator):
    """Indices of a group, each chosen as often as said; with lengths of the prompts given, all of one length."""
    if lengths is None:
        return torch.multinomial(often, GROUP, generator=generator)
    one = which[torch.multinomial(often, 1, generator=generator)]
    fitting = torch.nonzero(lengths[which] == lengths[one]).flatten()
    return fitting[torch.multinomial(often[fitting], GROUP, replacement=True, generator=generator)]


def example(data, which, levels, i, generator):
    """data: before, after [n, tokens, channels], the wordings of its prompt [n, k], what these are embedded
    as, each [p, ...], how often each is chosen [n]. which: the wording of each that is taken now, [n]."""
    before, after, _, prompts, _ = data
    noise = torch.randn(after[i].shape, generator=generator)
    later = levels[torch.randint(1, len(levels), (len(i),), generator=generator)]
    anywhere = torch.rand(len(i), generator=generator).clamp_min(0.02)
    draw = torch.rand(len(i), generator=generator)
    sigma = torch.where(draw < AT_START, levels[0], torch.where(draw < AT_STEPS, later, anywhere))
    s = sigma.view(-1, 1, 1)
    return before[i], after[i], tuple(p[which[i]] for p in prompts), noise, sigma, (1 - s) * after[i] + s * noise


def reworded(prompt, generator):
    """Words in any order and a few left out: what a wording means is then learnt from its words, and holds in wordings
    that training never saw. prompt: embeddings [n, tokens, width] and, of some families, the mask."""
    embeds = prompt[0]
    n, tokens = embeds.shape[:2]
    place = torch.arange(tokens).expand(n, tokens)
    there = prompt[1].bool() if len(prompt) > 1 else torch.ones(n, tokens, dtype=torch.bool)
    mixed = torch.rand(n, 1, generator=generator) < MIXED
    order = torch.where(mixed & there, torch.rand(n, tokens, generator=generator) - 1, place).argsort(1)
    lost = mixed & (torch.rand(n, tokens, generator=generator) < LOST)
    embeds = embeds.gather(1, order.unsqueeze(2).expand_as(embeds)).masked_fill(lost.unsqueeze(2), 0)
    return (embeds, *prompt[1:])


def loss_of(family, model, data, which, levels, i, generator, side):
    before, after, prompt, noise, sigma, noisy = example(data, which, levels, i, generator)
    v = family.velocity(model, noisy, before, reworded(prompt, generator), sigma, side)
    # As an error of the picture: that of the velocity counts as much as it moves the latents.
    error = (sigma.view(-1, 1, 1) * (v - (noise - after))).square()
    # What the edit changes counts more, by the same amount in all for a scar, for a background and for nothing.
    change = (after - before).abs() + 1e-4
    return (error * (1 + CHANGED * change / change.mean((1, 2), keepdim=True))).mean()


def train(family, model, data, side, steps, batch, lr, seed, checkpoint, log=print):
    run = Run(model, lr, steps, checkpoint)
    levels = family.sigmas(side)
    lengths = data[3][1].sum(1) if getattr(family, "EQUAL_LENGTHS", False) else None
    parameters, groups = list(model.parameters()), batch // GROUP
    fast = model if lengths is not None else torch.compile(model)  # shapes that change are compiled again and again
    began, first, total = time.time(), run.step, 0.0
    while run.step < steps:
        generator = torch.Generator().manual_seed((seed << 32) + run.step)
        run.optimizer.zero_grad(set_to_none=True)
        n, k = data[2].shape
        which = data[2].gather(1, torch.randint(k, (n, 1), generator=generator)).squeeze(1)
        if lengths is None:
            together = [torch.cat([choose(which, None, data[4], generator) for _ in range(groups)])]
        else:
            together = [choose(which, lengths, data[4], generator) for _ in range(groups)]
        for i in together:
            loss = loss_of(family, fast, data, which, levels, i, generator, side) / len(together)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        run.optimizer.step()
        run.schedule.step()
        run.average.update(model)
        run.step += 1
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


def sample_all(family, model, data, side, seed):
    """Of all examples, in bunches whose prompts have one length where the family needs it."""
    before, _, which, prompts, _ = data
    which = which[:, 0]
    lengths = prompts[1].sum(1)[which] if getattr(family, "EQUAL_LENGTHS", False) else torch.zeros_like(which)
    generator, out = torch.Generator().manual_seed(seed), torch.empty_like(before)
    for length in lengths.unique():
        for i in torch.nonzero(lengths == length).flatten().split(128):
            prompt = tuple(p[which[i]] for p in prompts)
            out[i] = sample(family, model, before[i], prompt, side, generator)
    return out
