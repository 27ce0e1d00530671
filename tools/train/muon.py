"""Muon (K. Jordan et al., 2024): a matrix's step is its momentum with all singular values made about one. In the same
time it brings these nets much further than Adam, which takes what is no matrix: biases, norms, first and last layers."""

import torch

MOMENTUM, NEWTON_SCHULZ = 0.95, (3.4445, -4.7750, 2.0315)
BETAS, EPS = (0.9, 0.99), 1e-8


def orthogonal(g, steps=5):
    """g: [n, rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    high = x.shape[-2] > x.shape[-1]
    x = x.mT if high else x
    for _ in range(steps):
        s = x @ x.mT
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.mT if high else x


class Muon(torch.optim.Optimizer):
    def __init__(self, named, lr, adam_lr, adam=(), weight_decay=0.0):
        """named: of parameters. adam: parts of names whose matrices are left to Adam."""
        named = [(name, p, p.ndim > 1 and not any(part in name for part in adam)) for name, p in named]
        groups = [dict(params=[p for _, p, m in named if m is kind], lr=rate, matrices=kind)
                  for kind, rate in ((True, lr), (False, adam_lr))]
        super().__init__(groups, dict(weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            (self.matrices if group["matrices"] else self.others)(parameters, group["lr"])

    def matrices(self, parameters, lr):
        shapes = {}
        for p in parameters:
            state = self.state[p]
            if not state:
                state["momentum"] = torch.zeros_like(p)
            state["momentum"].lerp_(p.grad, 1 - MOMENTUM)
            step = p.grad.lerp(state["momentum"], MOMENTUM).flatten(1)
            shapes.setdefault(step.shape, []).append((p, step))
        for (rows, columns), same in shapes.items():
            steps = orthogonal(torch.stack([step for _, step in same])) * max(1, rows / columns) ** 0.5
            for (p, _), step in zip(same, steps):
                p.add_(step.view_as(p), alpha=-lr)

    def others(self, parameters, lr):
        for p in parameters:
            state = self.state[p]
            if not state:
                state.update(mean=torch.zeros_like(p), square=torch.zeros_like(p), n=0)
            state["n"] += 1
            state["mean"].lerp_(p.grad, 1 - BETAS[0])
            state["square"].lerp_(p.grad.square(), 1 - BETAS[1])
            unit = [1 - beta ** state["n"] for beta in BETAS]
            p.addcdiv_(state["mean"] / unit[0], (state["square"] / unit[1]).sqrt() + EPS, value=-lr)


def schedule(optimizer, steps, warm=0.05, hold=0.4):
    """Up, level, and down to nothing in a line."""

    def factor(step):
        done = step / steps
        return max(1e-3, min(1, (step + 1) / (warm * steps), (1 - done) / (1 - hold)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
