#!/usr/bin/env python3
"""Write trainer/tests/fixtures/optimizer_adamw.json and optimizer_muon.json.

The formulas are those of torch.optim.AdamW and torch.optim.Muon, restated in numpy with float64.
With optax at hand AdamW is compared with optax.adamw.

    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python scripts/make_optimizer_fixtures.py
"""

import json
import pathlib

import numpy as np

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "trainer" / "tests" / "fixtures"


def adamw(w, gradients, learning_rate, beta1, beta2, epsilon, weight_decay):
    m, v, out = np.zeros_like(w), np.zeros_like(w), []
    for k, g in enumerate(gradients, 1):
        w = w * (1 - learning_rate * weight_decay)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        w = w - learning_rate * (m / (1 - beta1**k)) / (np.sqrt(v / (1 - beta2**k)) + epsilon)
        out.append(w)
    return out


def orthogonalize(x, iterations=5):
    x = x / max(np.linalg.norm(x), 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(iterations):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


def muon(w, gradients, learning_rate, momentum, nesterov, weight_decay):
    m, out = np.zeros_like(w), []
    for g in gradients:
        m = momentum * m + (1 - momentum) * g
        u = momentum * m + (1 - momentum) * g if nesterov else m
        scale = max(1.0, w.shape[0] / w.shape[1]) ** 0.5
        w = w * (1 - learning_rate * weight_decay) - learning_rate * scale * orthogonalize(u)
        out.append(w)
    return out


def write(name, source, cases):
    text = json.dumps({"name": name, "source": source, "cases": cases}, indent=1)
    (FIXTURES / f"{name}.json").write_text(text + "\n")


def rounded(array):
    return np.round(np.asarray(array), 8)


def main():
    rng = np.random.default_rng(0)
    cases = []
    for params in [
        dict(learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01),
        dict(learning_rate=0.1, beta1=0.8, beta2=0.95, epsilon=1e-6, weight_decay=0.0),
    ]:
        w, gradients = rounded(rng.normal(size=5)), rounded(rng.normal(size=(4, 5)))
        out = adamw(w, gradients, **params)
        check_with_optax(w, gradients, params, out)
        cases.append({
            "params": params,
            "inputs": {"weights": w.tolist(), "gradients": gradients.tolist()},
            "outputs": {"weights": [row.tolist() for row in out]},
        })
    write("optimizer_adamw", "formulas of torch.optim.AdamW in numpy, float64", cases)
    cases = []
    for shape, params in [
        ((3, 5), dict(learning_rate=0.02, momentum=0.95, nesterov=True, weight_decay=0.0)),
        ((6, 2), dict(learning_rate=0.05, momentum=0.9, nesterov=False, weight_decay=0.1)),
    ]:
        w, gradients = rounded(rng.normal(size=shape)), rounded(rng.normal(size=(3, *shape)))
        cases.append({
            "params": params,
            "inputs": {"weights": w.tolist(), "gradients": gradients.tolist()},
            "outputs": {"weights": [x.tolist() for x in muon(w, gradients, **params)]},
        })
    write("optimizer_muon", "formulas of torch.optim.Muon in numpy, float64", cases)


def check_with_optax(w, gradients, params, out):
    try:
        import jax.numpy as jnp
        import optax
    except ImportError:
        print("optax is not installed: AdamW was not compared with it")
        return
    optimizer = optax.adamw(
        params["learning_rate"], params["beta1"], params["beta2"], params["epsilon"],
        weight_decay=params["weight_decay"],
    )
    weights = jnp.asarray(w)
    state = optimizer.init(weights)
    for g, wanted in zip(gradients, out):
        updates, state = optimizer.update(jnp.asarray(g), state, weights)
        weights = optax.apply_updates(weights, updates)
        np.testing.assert_allclose(weights, wanted, atol=2e-6)
    print("AdamW equals optax")


main()
