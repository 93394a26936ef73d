"""PyTorch's side of compare.py: one measurement, printed as a line of JSON.

    peer_torch.py make FOLDER MAX_POSITIONS     a Qwen3 model with random weights
    peer_torch.py WORK FOLDER WORKLOAD.json     as trainer/examples/measure.rs
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

torch.set_num_threads(2)


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def make(folder: str, max_positions: str) -> None:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=8192, hidden_size=384, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=6,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=int(max_positions),
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    # Norms and embeddings away from their neutral start, so that every token draws its own continuation.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.03)
    model.save_pretrained(folder)
    print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}))


def load(folder: str, dtype: str = "float32"):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa")
    if dtype == "float64":
        compute_in_double(model)
    return model


def compute_in_double(model) -> None:
    """Norms and rotary angles too, which transformers computes in single precision whatever the weights are in."""

    def norm(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    def rotary(self, x, position_ids):
        dim = 2 * len(self.inv_freq)
        theta = model.config.rope_parameters["rope_theta"]
        inverse = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        angles = position_ids[..., None].double() * inverse
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    for module in model.modules():
        for name, forward in (("Qwen3RMSNorm", norm), ("Qwen3RotaryEmbedding", rotary)):
            if type(module).__name__ == name:
                module.forward = forward.__get__(module)


def accumulate(model, work) -> float:
    """Adds the gradient of the weighted mean cross-entropy; sequences have equal lengths."""
    ids = torch.tensor(work["sequences"])
    weights = torch.tensor(work["weights"]) if work.get("weights") else torch.ones(ids.shape)
    weights = weights[:, 1:]
    total, loss_sum = weights.sum(), 0.0
    for ids, weights in zip(ids.split(work["rows_at_a_time"]), weights.split(work["rows_at_a_time"])):
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
        losses = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        loss = (losses * weights.flatten()).sum() / total
        loss.backward()
        loss_sum += loss.item()
    return loss_sum


def train(folder: str, work) -> dict:
    model = load(folder).train()
    if work.get("checkpointing"):
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=work["learning_rate"], betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, fused=True
    )
    if work.get("compile"):
        # Shapes stay as they are, so that one graph is made, in the first update, which is not timed.
        model = torch.compile(model, dynamic=False)
    seconds, losses = [], []
    for update in range(work["updates"] + 1):
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        losses.append(accumulate(model, work))
        optimizer.step()
        if update > 0:
            seconds.append(time.perf_counter() - started)
        else:
            # The peak of compiling is not that of training; what the compiler keeps loaded still counts.
            Path("/proc/self/clear_refs").write_text("5")
    return {"seconds": seconds, "losses": losses}


def gradient(folder: str, work) -> dict:
    from safetensors.torch import save_file

    model = load(folder, work.get("dtype", "float32")).train()
    if work.get("checkpointing"):
        model.gradient_checkpointing_enable()
    seconds, loss = [], 0.0
    for repetition in range(work["updates"] + 1):
        model.zero_grad(set_to_none=True)
        started = time.perf_counter()
        loss = accumulate(model, work)
        if repetition > 0:
            seconds.append(time.perf_counter() - started)
    if work.get("gradient_file"):
        named = dict(model.named_parameters())
        save_file({name: p.grad.contiguous() for name, p in named.items()}, work["gradient_file"])
    return {"seconds": seconds, "losses": [loss]}


@torch.inference_mode()
def decode(folder: str, work) -> dict:
    model = load(folder).eval()
    ids = torch.tensor(work["sequences"])

    def generate(count: int):
        started = time.perf_counter()
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count,
            do_sample=False, pad_token_id=0, eos_token_id=None,
        )  # fmt: skip
        return time.perf_counter() - started, out[:, ids.shape[1]:].tolist()

    generate(2)
    prefill, _ = generate(1)
    seconds, tokens = generate(work["new_tokens"])
    return {"prefill_seconds": prefill, "seconds": seconds, "tokens": tokens}


def main() -> None:
    what, folder, last = sys.argv[1:]
    if what == "make":
        return make(folder, last)
    work = json.loads(Path(last).read_text())
    start = peak_bytes()
    result = {"train": train, "gradient": gradient, "decode": decode}[what](folder, work)
    result |= {"peak_bytes": peak_bytes(), "start_bytes": start, "threads": torch.get_num_threads()}
    print(json.dumps(result))


main()
