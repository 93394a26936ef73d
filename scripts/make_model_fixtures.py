#!/usr/bin/env python3
"""Write the checkpoints that policy/tests/it/families.rs compares with.

Each folder in policy/tests/fixtures/models/ holds a small random model as Hugging Face's transformers
saves it, and expected.safetensors: token sequences, their logits, the gradient of the mean
cross-entropy of all next tokens for every parameter (names prefixed with `gradient.`), and `greedy`, the
256 most probable tokens behind the first sequence.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python scripts/make_model_fixtures.py
"""

import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

torch.set_num_threads(1)
FIXTURES = Path(__file__).parent.parent / "policy" / "tests" / "fixtures" / "models"
SEQUENCES = torch.tensor(
    [[3, 14, 15, 9, 26, 5, 35, 8, 9, 63, 9, 3], [2, 7, 18, 28, 18, 2, 8, 45, 9, 0, 45, 2]]
)
GREEDY = 256
# Two equal logits would leave the next token to rounding.
LEAST_GAP = 2e-3
SHAPE = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    bos_token_id=None,
    eos_token_id=None,
)


def rope(theta, **scaling):
    return {"rope_type": "default", "rope_theta": theta} | scaling


def greedy(model):
    """The most probable tokens and the least gap to the second ones, which may be left early."""
    ids, cache, generated, least = SEQUENCES[:1], None, [], float("inf")
    with torch.no_grad():
        while len(generated) < GREEDY and least > LEAST_GAP:
            output = model(ids, past_key_values=cache, use_cache=True)
            best = output.logits[0, -1].topk(2)
            least = min(least, (best.values[0] - best.values[1]).item())
            ids, cache = best.indices[:1].unsqueeze(0), output.past_key_values
            generated.append(ids.item())
        generated = torch.tensor(generated)
        # The same without a cache, all at once.
        whole = model(torch.cat([SEQUENCES[0], generated])[None], use_cache=False).logits[0]
        if not torch.equal(whole[SEQUENCES.shape[1] - 1:-1].argmax(-1), generated):
            least = 0.0
    return generated, least


def make(name, model_class, config):
    for seed in range(1000):
        torch.manual_seed(seed)
        model = model_class(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Far from the initial values, so that every parameter matters to the logits.
                parameter.add_(torch.randn_like(parameter) * 0.2)
        generated, gap = greedy(model)
        # A model that repeats one token would tell little.
        if gap > LEAST_GAP and len(generated.unique()) > 6:
            break
    else:
        raise SystemExit(f"{name}: no seed gives clear choices")

    logits = model(SEQUENCES).logits
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), SEQUENCES[:, 1:].reshape(-1)
    )
    loss.backward()

    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    expected = {"sequences": SEQUENCES, "logits": logits.detach().contiguous(), "greedy": generated}
    for parameter_name, parameter in model.named_parameters():
        expected[f"gradient.{parameter_name}"] = parameter.grad.contiguous()
    save_file(expected, folder / "expected.safetensors")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: seed {seed}, {len(generated.unique())} tokens, gaps from {gap:.1e}, {size} bytes", flush=True)


make("llama", LlamaForCausalLM, LlamaConfig(
    **SHAPE, tie_word_embeddings=True, rope_parameters=rope(
        500_000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)))
make("llama-linear", LlamaForCausalLM, LlamaConfig(
    **SHAPE, tie_word_embeddings=False, rope_parameters=rope(10_000.0, rope_type="linear", factor=4.0)))
make("mistral", MistralForCausalLM, MistralConfig(
    **SHAPE, tie_word_embeddings=False, sliding_window=5, head_dim=16, rope_parameters=rope(10_000.0)))
make("qwen2", Qwen2ForCausalLM, Qwen2Config(
    **SHAPE, tie_word_embeddings=True, rope_parameters=rope(1_000_000.0)))
make("qwen2-window", Qwen2ForCausalLM, Qwen2Config(
    **SHAPE, tie_word_embeddings=False, use_sliding_window=True, sliding_window=7, max_window_layers=0,
    rope_parameters=rope(10_000.0)))
make("qwen3", Qwen3ForCausalLM, Qwen3Config(
    **SHAPE, head_dim=8, tie_word_embeddings=True, rope_parameters=rope(10_000.0)))
make("qwen3-untied", Qwen3ForCausalLM, Qwen3Config(
    **SHAPE, head_dim=16, tie_word_embeddings=False, rope_parameters=rope(1_000_000.0)))
