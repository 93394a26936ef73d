#!/usr/bin/env python3
"""Write the Qwen3 checkpoints that policy/tests/qwen3.rs compares with.

Each folder in policy/tests/fixtures/ holds a small random model as Hugging Face's transformers
saves it, and expected.safetensors: token sequences, their logits, and the gradient of
the mean cross-entropy of all next tokens for every parameter (names prefixed with `gradient.`).

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python scripts/make_qwen3_fixture.py
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

FIXTURES = Path(__file__).parent.parent / "policy" / "tests" / "fixtures"
SEQUENCES = torch.tensor(
    [[3, 14, 15, 9, 26, 5, 35, 8, 9, 63, 9, 3], [2, 7, 18, 28, 18, 2, 8, 45, 9, 0, 45, 2]]
)


def make(name: str, tied: bool, theta: float) -> None:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Far from the initial values, so that every parameter matters to the logits.
            parameter.add_(torch.randn_like(parameter) * 0.2)

    logits = model(SEQUENCES).logits
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), SEQUENCES[:, 1:].reshape(-1)
    )
    loss.backward()

    folder = FIXTURES / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    expected = {"sequences": SEQUENCES, "logits": logits.detach().contiguous()}
    for parameter_name, parameter in model.named_parameters():
        expected[f"gradient.{parameter_name}"] = parameter.grad.contiguous()
    save_file(expected, folder / "expected.safetensors")


make("qwen3-tied", tied=True, theta=10_000.0)
make("qwen3-untied", tied=False, theta=1_000_000.0)
