#!/usr/bin/env python3
"""Write trainer/tests/fixtures/loss_grpo_kl.json: the clipped loss with a divergence from a reference model,
and its gradient by PyTorch's differentiation.

    python3 -m venv venv && venv/bin/pip install torch
    venv/bin/python scripts/make_kl_fixture.py

GRPO (arXiv 2402.03300, eq. 3 and 4): mean over rows of the mean over tokens of
min(r A, clip(r, 1 - 0.2, 1 + 0.28) A) - beta (exp(ref - lp) - (ref - lp) - 1), negated; with the means of DAPO
(over all tokens) and Dr. GRPO (sum over tokens, divided by a constant) besides, and the square in place of
the exponential.
"""

import json
from pathlib import Path

import torch

FIXTURE = Path(__file__).parent.parent / "trainer" / "tests" / "fixtures" / "loss_grpo_kl.json"
CONSTANT = 7.0


def numbers(tensor):
    return [[float(f"{value:.9g}") for value in row] for row in tensor.tolist()]


def case(seed, aggregation, estimator, weight):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: torch.rand(3, 6, generator=generator, dtype=torch.float64)
    # As single precision holds them.
    single = lambda tensor: tensor.float().double()
    logprob = single(-0.1 - 3 * draw())
    old, reference = single(logprob + 0.6 * (draw() - 0.5)), single(logprob + 2.0 * (draw() - 0.5))
    advantage, mask = single(2 * draw() - 1), (draw() < 0.7).double()
    mask[:, 0] = 0
    mask[:, 1] = 1
    logprob.requires_grad_()
    ratio = (logprob - old).exp()
    policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
    d = reference - logprob
    kl = d.exp() - d - 1 if estimator == "k3" else d.square() / 2
    token = policy + weight * kl
    if aggregation == "token_mean":
        loss = (token * mask).sum() / mask.sum()
    elif aggregation == "row_mean":
        loss = ((token * mask).sum(1) / mask.sum(1)).mean()
    else:
        loss = ((token * mask).sum(1) / CONSTANT).mean()
    loss.backward()
    return {
        "params": {"aggregation": aggregation, "kl_estimator": estimator, "kl_weight": weight},
        "inputs": {"logprob": numbers(logprob.detach()), "behavior_logprob": numbers(old),
                   "reference_logprob": numbers(reference), "advantage": numbers(advantage), "mask": numbers(mask)},
        "outputs": {"loss": loss.item(), "gradient": numbers(logprob.grad),
                    "kl_reference": ((kl * mask).sum() / mask.sum()).item()},
    }


cases = [case(seed, aggregation, estimator, weight) for seed, (aggregation, estimator, weight) in enumerate(
    (aggregation, estimator, weight) for aggregation in ["token_mean", "row_mean", "row_sum"]
    for estimator, weight in [("k3", 0.04), ("k2", 0.5)])]
FIXTURE.write_text(json.dumps({"cases": cases}) + "\n")
print(len(cases), "cases", FIXTURE.stat().st_size, "bytes")
