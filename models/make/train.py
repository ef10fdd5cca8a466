"""Training: Muon for the matrices, Adam for the rest; the draft learns from what rill says, not from the text alone."""
import os
import sys
import time

import torch
import torch.nn.functional as F

import shards
from network import Llama, document_mask
from settings import ADAM_RATE, CONTEXT, DECAY, FINISH_RATE, MODELS, MUON_RATE, ROWS, SEED, SHARD_ROWS, STEPS, WARMUP, WORK


class Muon:
    """Momentum whose matrix is made orthogonal by five Newton-Schulz steps. Matrices of one shape go through in one stack."""

    def __init__(self, parameters, momentum=0.95, decay=0.01):
        self.groups: dict[tuple, list] = {}
        for p in parameters:
            self.groups.setdefault(tuple(p.shape), []).append(p)
        self.buffers = {s: torch.zeros(len(g), *s, device=g[0].device) for s, g in self.groups.items()}
        self.momentum, self.decay = momentum, decay

    @staticmethod
    @torch.compile
    def _orthogonal(g):
        x = g.bfloat16()
        tall = x.shape[-2] > x.shape[-1]
        if tall:
            x = x.mT
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.mT
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.mT if tall else x

    @torch.no_grad()
    def step(self, rate: float):
        for shape, group in self.groups.items():
            grads = torch.stack([p.grad for p in group])
            buffer = self.buffers[shape].lerp_(grads, 1 - self.momentum)
            update = self._orthogonal(grads.lerp(buffer, self.momentum)).float() * max(1, shape[0] / shape[1]) ** 0.5
            torch._foreach_mul_(group, 1 - rate * self.decay)
            torch._foreach_add_(group, list(update.unbind()), alpha=-rate)


def batches(steps: int, shard: int = 0):
    """(tokens, owner, weights, positions) on the device, step after step through the shards."""
    per_shard = SHARD_ROWS // ROWS
    arrays = None
    for step in range(steps):
        if step % per_shard == 0:
            arrays = shards.read(shard + step // per_shard)
        at = slice(step % per_shard * ROWS, (step % per_shard + 1) * ROWS)
        tokens, owner, weights = (torch.from_numpy(a[at]).pin_memory().cuda(non_blocking=True) for a in arrays)
        tokens, owner, weights = tokens.to(torch.int64), owner.to(torch.int32), weights.float()
        index = torch.arange(CONTEXT, device="cuda").expand_as(owner)
        first = torch.ones_like(owner, dtype=torch.bool)
        first[:, 1:] = owner[:, 1:] != owner[:, :-1]
        positions = index - torch.where(first, index, 0).cummax(dim=1).values
        yield tokens, owner, weights, positions


def rate_at(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / WARMUP, (steps - step) / (steps * DECAY))


def stored(name: str) -> dict:
    """The weights as they were exported."""
    from safetensors.torch import load_file
    return {k.removeprefix("model."): v.float() for k, v in load_file(str(MODELS / name / "model.safetensors")).items()}


def train(name: str, teacher: str | None = None, finish: bool = False) -> None:
    """finish: take the stored weights up again, at a lower rate."""
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    run = "finish" if finish else name
    steps = STEPS[run]
    model = Llama(name).cuda()
    if finish:
        model.load_state_dict(stored(name))
    count = sum(p.numel() for p in model.parameters())
    matrices = [p for n, p in model.layers.named_parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if not any(p is m for m in matrices)]
    muon = Muon(matrices)
    adam = torch.optim.AdamW(others, lr=1.0, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)
    guide = None
    if teacher:
        guide = Llama(teacher).cuda().eval()
        guide.load_state_dict(torch.load(WORK / f"{teacher}.pt"))

    def loss_of(tokens, targets, weights, positions, mask):
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(tokens, positions, mask)
            if guide is not None:
                with torch.no_grad():
                    wanted = guide(tokens, positions, mask).float().softmax(-1)
        if guide is not None:
            loss = -(wanted * logits.float().log_softmax(-1)).sum(-1)
        else:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none").view_as(weights)
        return (loss * weights).sum() / weights.sum()

    loss_of = torch.compile(loss_of)
    started = time.time()
    for step, (tokens, owner, weights, positions) in enumerate(batches(steps, shards.span(run)[0])):
        targets = tokens.roll(-1, 1)
        goal = weights.roll(-1, 1) * (owner == owner.roll(-1, 1))
        goal[:, -1] = 0
        loss = loss_of(tokens, targets, goal, positions, document_mask(owner))
        loss.backward()
        rate = rate_at(step, steps) * (FINISH_RATE if finish else 1)
        for g in adam.param_groups:
            g["lr"] = ADAM_RATE[name] * rate
        muon.step(MUON_RATE[name] * rate)
        adam.step()
        model.zero_grad(set_to_none=True)
        if step % 100 == 0 or step == steps - 1:
            if step == 100:
                started100 = time.time()
            spent = time.time() - started
            speed = (step - 100) * ROWS * CONTEXT / (time.time() - started100) if step > 100 else 0
            print(f"{name} step {step}/{steps} loss {loss.item():.4f} rate {rate:.3f} {speed / 1e6:.2f} M tok/s {spent:.0f} s", file=sys.stderr, flush=True)
    WORK.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), WORK / f"{name}.pt.tmp")
    os.rename(WORK / f"{name}.pt.tmp", WORK / f"{name}.pt")
    print(f"{name}: {count} parameters, {steps * ROWS * CONTEXT / 1e6:.0f} M tokens, {time.time() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    train(sys.argv[1], "rill" if sys.argv[1] != "rill" else None)
