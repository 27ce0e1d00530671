#!/usr/bin/env python3
"""Trains one of the small judges of drawn portraits and writes it in the layout of its family's released checkpoint:

    python tools/train/train_judge.py FAMILY --pairs BUILD/make_pairs --work WORK -o FOLDER

FAMILY: qwen2_5_vl or mistral3. WORK keeps the drawings.
"""

import argparse
import json
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import judges
import muon
from denoiser import Average

SEED = {"qwen2_5_vl": 11, "mistral3": 12}
N_PAIRS, FAULTS = 2_500, 0.8  # of each prompt; share of pairs with something wrong
LOOKING = dict(steps=600, batch=96)  # single pictures, the tower alone
JUDGING = {"qwen2_5_vl": dict(steps=1_400, whole=250), "mistral3": dict(steps=600, whole=100)}
BATCH, BATCH_WHOLE = 64, 32  # the last steps have all of the question, those before not the rubric, which is always the same
ALONE, WORDS = 1.5, 0.1  # how much a score that is read alone counts; a token that is the same in every answer
ENDS = ("embed_tokens", "lm_head", "patch", "aside")  # left to Adam


def draw(program, work, seed, count, faults, apart=False):
    """Of each prompt of the study: pictures [n, 2, side, side, 3] and what is known of them. apart: other portraits and
    faults for each prompt, not the same for all."""
    arrays, lines = [], []
    for i, prompt in enumerate(judges.PROMPTS):
        path = work / f"{prompt}-{seed}"
        if not path.exists():
            command = [program, "--size", judges.SIDE, "--seed", seed, "--count", count, "--faults", faults,
                       "--prompt", prompt, "--first", i * count * apart, "-o", path]
            subprocess.run(list(map(str, command)), check=True)
        lines += [json.loads(line) for line in path.with_name(path.name + ".jsonl").open()][:count]
        arrays.append(np.memmap(path, np.uint8, "r").reshape(-1, 2, judges.SIDE, judges.SIDE, 3)[:count])
    return arrays, lines


class Drawings:
    def __init__(self, program, work, seed, count, faults):
        self.arrays, self.lines = draw(program, work, seed, count, faults)
        self.count = len(self.arrays[0])
        self.fields = list(self.lines[0]["before"])
        self.levels = torch.tensor([[list(line[w].values()) for w in ("before", "after")] for line in self.lines])
        self.scores = torch.tensor([line["scores"] for line in self.lines])

    def __len__(self):
        return len(self.lines)

    def pictures(self, chosen, generator=None):
        """[n, 2, 3, side, side], normalised; with a generator as an editor might blur and stain them."""
        x = torch.from_numpy(np.stack([self.arrays[i // self.count][i % self.count] for i in chosen])).float()
        x = x.movedim(4, 2)
        if generator is not None:
            flat, n = x.flatten(0, 1), 2 * len(x)
            some = lambda share: (torch.rand(n, 1, 1, 1, generator=generator) < share).float()  # noqa: E731
            soft = some(0.5) * torch.rand(n, 1, 1, 1, generator=generator)
            flat = flat.lerp(functional.avg_pool2d(flat, 3, 1, 1, count_include_pad=False), soft)
            flat = flat + some(0.5) * 2.5 * torch.randn(n, 3, 1, 1, generator=generator)
            flat = flat + some(0.5) * 5 * torch.randn(flat.shape, generator=generator)
            x = flat.clamp(0, 255).round().view(x.shape)
        mean, std = (torch.tensor(v).view(3, 1, 1) for v in (judges.MEAN, judges.STD))
        return (x / 255 - mean) / std


class Aside(nn.Module):
    """Thrown away after training: what the picture's tokens say of each field, and what those of the second picture in
    the middle of the text model say has changed."""

    def __init__(self, data, width):
        super().__init__()
        self.skin = data.fields.index("skin")
        self.sizes = [2 if f == self.skin else 1 + data.levels[:, :, f].max().item() for f in range(len(data.fields))]
        self.aside_seen = nn.Linear(judges.N_TOKENS * width, sum(self.sizes) + 1)
        self.aside_changed = nn.Linear(judges.N_TOKENS * width, len(self.sizes) + 1)

    def looked(self, seen, levels):
        *fields, tone = self.aside_seen(seen.flatten(1)).split([*self.sizes, 1], 1)
        loss = 2 * (tone.squeeze(1) - levels[:, self.skin] / 10).square().mean()
        for f, logits in enumerate(fields):
            if f != self.skin:
                loss = loss + functional.cross_entropy(logits, levels[:, f]) / 4
        return loss

    def compared(self, hidden, levels):
        *changed, tone = self.aside_changed(hidden.flatten(1)).unbind(1)
        change = levels[:, 1] - levels[:, 0]
        loss = (tone - change[:, self.skin] / 10).square().mean()
        return loss + functional.binary_cross_entropy_with_logits(torch.stack(changed, 1), (change != 0).float())


class Questions:
    """Conversations as ids: the question once, then the whole answer, and beside it each score read alone."""

    def __init__(self, judge):
        self.judge, self.made = judge, {}
        one = lambda text: self.only(judge.encode(text))  # noqa: E731
        self.direct = [one(judges.direct(axis)) for axis in judges.AXES]
        self.digits = [one(str(d)) for d in range(1, 6)]
        self.end = one(judge.ANSWER_END)
        self.one = {}
        for score in range(1, 6):
            self.one.update((piece, one(piece)) for piece in judges.answer([score] * 5))
        self.rubric = one(re.split(r"\d", judges.RUBRIC["prompt_v1"].partition("{age}")[2])[0])

    @staticmethod
    def only(ids):
        (token,) = ids
        return token

    def question(self, line, whole):
        key = (line["prompt_id"], line["source"], whole)
        if key not in self.made:
            race, gender, age = line["source"].split("_")
            race = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", race)
            text = judges.rubric(line["prompt_id"], race, gender, int(age[0]) - 2)
            ids, places = self.judge.prompt(text)
            if not whole:
                cut, tail = ids.index(self.rubric), len(ids) - self.judge.TAIL
                ids, places = ids[:cut] + ids[tail:], places[:cut] + places[tail:]
            self.made[key] = ids, places
        return self.made[key]

    def batch(self, lines, whole):
        """ids [n, t], positions [3, n, t], allowed [n, t, t], labels [n, t] and their weights."""
        rows = [self.question(line, whole) for line in lines]
        longest = max(len(ids) for ids, _ in rows)
        pieces = [self.one[p] for p in judges.answer([1] * 5)]
        n_answer = len(pieces)
        t = longest + 5 + n_answer
        ids = torch.zeros(len(rows), t, dtype=torch.long)
        positions = torch.zeros(3, len(rows), t, dtype=torch.long)
        labels, weights = torch.zeros_like(ids), torch.zeros(len(rows), t)
        there = torch.ones(len(rows), t, dtype=torch.bool)
        for r, ((question, places), line) in enumerate(zip(rows, lines)):
            pad = longest - len(question)
            there[r, :pad] = False
            ids[r, pad:longest] = torch.tensor(question)
            positions[:, r, pad:longest] = torch.tensor(places).T
            after = places[-1][0] + 1
            said = [self.one[p] for p in judges.answer(line["scores"])]
            ids[r, longest:] = torch.tensor(self.direct + said)
            positions[:, r, longest:] = torch.tensor([after] * 5 + list(range(after, after + n_answer)))
            labels[r, longest - 1:] = torch.tensor(
                [said[0]] + [self.digits[s - 1] for s in line["scores"]] + said[1:] + [self.end])
        weights[:, longest - 1] = WORDS
        weights[:, longest : longest + 5] = ALONE
        weights[:, longest + 5 :] = torch.tensor([1.0 if i % 2 == 0 and i < 20 else WORDS for i in range(n_answer)])
        part = torch.cat([torch.zeros(longest), torch.arange(1, 6), torch.full((n_answer,), 6)])
        may = torch.ones(t, t, dtype=torch.bool).tril() & ((part == 0) | (part.unsqueeze(1) == part))
        allowed = (may & there.unsqueeze(1)) | torch.eye(t, dtype=torch.bool)
        return (ids, positions, allowed), labels, weights


def look(judge, aside, data, args):
    """The tower alone: fields of single pictures."""
    named = [(n, p) for n, p in judge.named_parameters() if p.requires_grad and "language_model" not in n
             and "lm_head" not in n] + list(aside.named_parameters())
    optimizer = muon.Muon(named, 2e-2, adam_lr=2e-3, adam=ENDS)
    schedule = muon.schedule(optimizer, LOOKING["steps"], hold=0.7)
    began, total = time.process_time(), 0.0
    for step in range(LOOKING["steps"]):
        generator = torch.Generator().manual_seed((args.seed << 32) + step)
        chosen = torch.randint(len(data), (LOOKING["batch"] // 2,), generator=generator)
        pixels = data.pictures(chosen.tolist(), generator)
        loss = aside.looked(judge.features(pixels.flatten(0, 1)), data.levels[chosen].flatten(0, 1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 100 == 99:
            print(f"looking {step + 1}: {total / 100:.3f}, {time.process_time() - began:.0f} s", flush=True)
            total = 0.0


class Run:
    """What learns, and its state, so that a run goes on where its checkpoint stands."""

    def __init__(self, judge, aside, steps, checkpoint):
        self.judge, self.aside, self.average, self.step = judge, aside, Average(judge), 0
        named = [*judge.named_parameters(), *aside.named_parameters()]
        self.optimizer = muon.Muon(named, 2e-2, adam_lr=2e-3, adam=ENDS, weight_decay=0.01)
        self.schedule = muon.schedule(self.optimizer, steps, hold=0.4)
        self.checkpoint = checkpoint
        if checkpoint.exists():
            state = torch.load(checkpoint)
            self.step = self.average.n = state.pop("step")
            self.average.model.load_state_dict(state.pop("average"))
            for name, value in state.items():
                getattr(self, name).load_state_dict(value)

    def save(self):
        state = {k: getattr(self, k).state_dict() for k in ("judge", "aside", "optimizer", "schedule")}
        torch.save(dict(state, average=self.average.model.state_dict(), step=self.step), self.checkpoint)


def losses_of(run, questions, data, chosen, generator, whole):
    batch, labels, weights = questions.batch([data.lines[i] for i in chosen], whole)
    hidden, middle, seen = run.judge(data.pictures(chosen, generator), *batch)
    asked = weights > 0
    logits = run.judge.model.lm_head(hidden[asked])
    said = (functional.cross_entropy(logits, labels[asked], reduction="none") * weights[asked]).sum() / weights.sum()
    images = batch[0] == run.judge.image
    second = middle[images & (images.cumsum(1) > judges.N_TOKENS)].view(len(chosen), -1)
    levels = data.levels[chosen]
    return said, run.aside.compared(second, levels), run.aside.looked(seen, levels.flatten(0, 1))


def learn(judge, aside, data, check, args):
    questions = Questions(judge)
    steps, whole_steps = JUDGING[args.family].values()
    run = Run(judge, aside, steps, args.work / f"{args.family}-judging.pt")
    began, total = time.process_time(), np.zeros(3)
    while run.step < steps:
        generator = torch.Generator().manual_seed((args.seed << 32) + (1 << 31) + run.step)
        whole = run.step >= steps - whole_steps
        chosen = torch.randint(len(data), (BATCH_WHOLE if whole else BATCH,), generator=generator).tolist()
        said, compared, looked = losses_of(run, questions, data, chosen, generator, whole)
        run.optimizer.zero_grad(set_to_none=True)
        (said + 0.5 * compared + 0.1 * looked).backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        run.optimizer.step()
        run.schedule.step()
        run.average.update(judge, 0.99)
        run.step += 1
        total += said.item(), compared.item(), looked.item()
        if run.step % 50 == 0:
            print(f"judging {run.step}: " + " ".join(f"{v / 50:.3f}" for v in total),
                  f"{time.process_time() - began:.0f} s", flush=True)
            total[:] = 0
            run.save()
        if run.step % 250 == 0 or run.step == steps:
            measure(run.average.model, questions, check, whole)
    return run.average.model


def kappa(a, b):
    """Quadratic weighted."""
    table = torch.zeros(5, 5, dtype=torch.double).index_put_((a, b), torch.ones(len(a), dtype=torch.double), True)
    far = (torch.arange(5).view(5, 1) - torch.arange(5)).square()
    by_chance = table.sum(1, keepdim=True) * table.sum(0) / len(a)
    return (1 - (far * table).sum() / (far * by_chance).sum()).item()


@torch.no_grad()
def measure(judge, questions, data, whole):
    """Scores read alone, of pictures that it never saw."""
    digits, got = torch.tensor(questions.digits), []
    for chosen in torch.arange(0, len(data), 3).split(100):
        batch, _, weights = questions.batch([data.lines[i] for i in chosen.tolist()], whole)
        hidden, _, _ = judge(data.pictures(chosen.tolist()), *batch)
        start = (weights[0] == ALONE).nonzero()[0].item()
        got.append(judge.model.lm_head(hidden[:, start : start + 5])[:, :, digits].argmax(2))
    got, due = torch.cat(got), data.scores[torch.arange(0, len(data), 3)] - 1
    for a, axis in enumerate(judges.AXES):
        away = (got[:, a] - due[:, a]).abs()
        print(f"    {axis}: exact {(away == 0).double().mean():.3f}, within one {(away <= 1).double().mean():.3f}, "
              f"kappa {kappa(got[:, a], due[:, a]):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=SEED)
    parser.add_argument("--pairs", required=True, help="the program make_pairs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    args.seed = SEED[args.family]
    args.work.mkdir(parents=True, exist_ok=True)
    data = Drawings(args.pairs, args.work, 1, N_PAIRS, FAULTS)
    check = Drawings(args.pairs, args.work, 900, 150, 0.7)
    torch.manual_seed(args.seed)
    judge = judges.FAMILIES[args.family]()
    aside = Aside(data, judges.TEXT["hidden_size"])
    looked = args.work / f"{args.family}-looked.pt"
    if not looked.exists():
        look(judge, aside, data, args)
        torch.save([judge.state_dict(), aside.state_dict()], looked)
    for part, state in zip((judge, aside), torch.load(looked)):
        part.load_state_dict(state)
    judge = learn(judge, aside, data, check, args)
    judge.save(args.output)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
