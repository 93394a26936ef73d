"""TRL's and PEFT's side of compare_with_trl.py: one measurement, printed as a line of JSON.

    peer_trl.py WORK FOLDER WORKLOAD.json

WORK: `adapter` writes a fresh adapter in PEFT's files; `rollouts` samples completions and keeps them with their
log-probabilities; `learn` runs GRPOTrainer from prompts to updates; `update` makes
updates on stored samples by GRPOTrainer's own loss; `imitate` does so by SFTTrainer's; `gradient` writes the gradient
of the first.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
torch.set_num_threads(THREADS)


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def tokenizer_of(folder: str):
    return AutoTokenizer.from_pretrained(folder, padding_side="left")


def model_of(folder: str, work: dict, dtype: str = "float32"):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa")
    # The end of a turn is what this model pads with, and PyTorch leaves the padding row out of the gradient of tokens that
    # are read, at the places that are no padding too. The loss does not do so, and spar does not.
    model.get_input_embeddings().padding_idx = None
    if work.get("adapter"):
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, work["adapter"], is_trainable=True)
    return model


def adapter(folder: str, work: dict) -> dict:
    """Fresh factors; `B` is drawn too, so that `A` has a gradient from the first update on."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(work["seed"])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = LoraConfig(
        r=work["rank"], lora_alpha=work["alpha"], lora_dropout=0.0, target_modules=work["targets"], task_type="CAUSAL_LM"
    )
    model = get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0.0, work["deviation_of_b"])
    model.save_pretrained(work["adapter_folder"])
    return {"parameters": sum(p.numel() for p in model.parameters() if p.requires_grad)}


def f1(answer: str, right: str) -> float:
    """The F1 of two texts' words, as SQuAD's script has it."""
    import collections
    import re
    import string

    def words(text: str) -> list[str]:
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    ours, theirs = words(answer), words(right)
    common = sum((collections.Counter(ours) & collections.Counter(theirs)).values())
    return 2 * common / (len(ours) + len(theirs)) if common else 0.0


def chats_of(work: dict) -> list[list[dict]]:
    system = {"role": "system", "content": work.get("instruction", "")}
    return [[system, {"role": "user", "content": prompt}] for prompt in work.get("prompts", ["unused"])]


def prompt_ids(tokenizer, work: dict) -> list[list[int]]:
    chats = chats_of(work)
    return tokenizer.apply_chat_template(chats, add_generation_prompt=True, tokenize=True, return_dict=True)["input_ids"]


def padded(lists: list[list], side: str, value) -> torch.Tensor:
    width = max(map(len, lists))
    return torch.tensor([
        [value] * (width - len(row)) + row if side == "left" else row + [value] * (width - len(row)) for row in lists
    ])


@torch.inference_mode()
def sample(model, tokenizer, ids: list[list[int]], count: int, scores: bool):
    inputs = padded(ids, "left", tokenizer.pad_token_id)
    mask = padded([[1] * len(row) for row in ids], "left", 0)
    out = model.generate(
        inputs, attention_mask=mask, max_new_tokens=count, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, return_dict_in_generate=True,
        output_logits=scores,
    )  # fmt: skip
    return out, inputs.shape[1]


def rollouts(folder: str, work: dict) -> dict:
    """Groups of completions with their log-probabilities and advantages, written for both sides to learn from."""
    torch.manual_seed(work["seed"])
    tokenizer, model = tokenizer_of(folder), model_of(folder, work).eval()
    prompts = [ids for ids in prompt_ids(tokenizer, work) for _ in range(work["group_size"])]
    out, start = sample(model, tokenizer, prompts, work["new_tokens"], scores=True)
    completions = out.sequences[:, start:]
    logprobs = torch.stack(out.logits, 1).float().log_softmax(-1).gather(-1, completions[..., None])[..., 0]
    texts = tokenizer.batch_decode(completions, skip_special_tokens=True)
    rights = [right for right in work["answers"] for _ in range(work["group_size"])]
    rewards = torch.tensor(list(map(f1, texts, rights))).view(-1, work["group_size"])
    deviation = rewards.std(1, keepdim=True)
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (deviation + 1e-4)).flatten()
    # The policy that drew them is taken to be another one, so that ratios are not 1 and some are clipped.
    noise = torch.randn(logprobs.shape) * work["deviation_of_old"]
    data = {
        "prompts": prompts, "completions": completions.tolist(), "advantages": advantages.tolist(),
        "behavior_logprobs": (logprobs + noise).tolist(), "texts": texts[:4],
    }  # fmt: skip
    Path(work["data_file"]).write_text(json.dumps(data))
    return {"with_advantage": int((advantages != 0).sum()), "prompt_tokens": sorted(set(map(len, prompts)))}


def grpo_trainer(folder: str, work: dict, model=None, **more):
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = tokenizer_of(folder)
    answers = work.get("answers", ["unused"])
    count = work.get("updates", 1) + 1
    rows = [{"prompt": chat, "answer": answer} for chat, answer in zip(chats_of(work), answers)] * count
    at_a_time = work["rows_at_a_time"]
    samples = work.get("samples", at_a_time)
    config = GRPOConfig(
        output_dir=work["output"], use_cpu=True, bf16=work.get("bf16", False), beta=0.0, loss_type="dapo",
        per_device_train_batch_size=at_a_time, gradient_accumulation_steps=samples // at_a_time,
        num_generations=work.get("group_size", at_a_time), max_completion_length=work.get("new_tokens", 16),
        temperature=1.0, epsilon=0.2, epsilon_high=0.28, learning_rate=work["learning_rate"],
        lr_scheduler_type="constant", max_grad_norm=1.0, adam_beta2=0.999, weight_decay=0.0, max_steps=count,
        logging_steps=1, save_strategy="no", report_to="none", shuffle_dataset=False, disable_tqdm=True,
        gradient_checkpointing=work.get("checkpointing", False), optim="adamw_torch_fused", seed=work.get("seed", 0),
    )  # fmt: skip

    def reward(completions, answer, **_):
        return [f1(completion[0]["content"], right) for completion, right in zip(completions, answer)]

    class Clock(TrainerCallback):
        """What iterations take, sampling and optimiser included: wall-clock and CPU seconds."""

        def on_train_begin(self, *_, **__):
            self.seconds, self.cpu_seconds = [], []
            self.begun = time.perf_counter(), time.process_time()

        def on_step_end(self, *_, **__):
            now = time.perf_counter(), time.process_time()
            self.seconds.append(now[0] - self.begun[0])
            self.cpu_seconds.append(now[1] - self.begun[1])
            self.begun = now

    clock = Clock()
    model = model if model is not None else model_of(folder, work)
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward, args=config, train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer, callbacks=[clock], **more,
    )  # fmt: skip
    return trainer, clock


def learn(folder: str, work: dict) -> dict:
    """GRPO from prompts to updates."""
    torch.manual_seed(work["seed"])
    trainer, clock = grpo_trainer(folder, work)
    sampling, cpu_of_sampling, lengths = [], [], []
    original = trainer._generate_and_score_completions

    def timed(inputs):
        started, cpu = time.perf_counter(), time.process_time()
        out = original(inputs)
        sampling.append(time.perf_counter() - started)
        cpu_of_sampling.append(time.process_time() - cpu)
        lengths.append(out["completion_mask"].sum(1).tolist())
        return out

    trainer._generate_and_score_completions = timed
    trainer.train()
    history = [entry for entry in trainer.state.log_history if "loss" in entry]
    return {
        "seconds": clock.seconds, "cpu_seconds": clock.cpu_seconds, "rollout_seconds": sampling,
        "rollout_cpu_seconds": cpu_of_sampling,
        "update_seconds": [a - b for a, b in zip(clock.seconds, sampling)],
        "completion_tokens": sum(map(sum, lengths)), "prompts": prompt_ids(tokenizer_of(folder), work),
        "losses": [entry["loss"] for entry in history],
        "with_gradient": [1.0 - entry["frac_reward_zero_std"] for entry in history],
    }  # fmt: skip


def stored_batches(work: dict, pad: int) -> list[dict]:
    """The samples of a workload as GRPOTrainer hands them to its loss."""
    data, batches = work["data"], []
    weights = data.get("weights") or [[1] * len(row) for row in data["completions"]]
    total = torch.tensor(float(sum(map(sum, weights))))
    for start in range(0, len(data["prompts"]), work["rows_at_a_time"]):
        part = slice(start, start + work["rows_at_a_time"])
        prompts, completions = data["prompts"][part], data["completions"][part]
        batch = {
            "prompt_ids": padded(prompts, "left", pad),
            "prompt_mask": padded([[1] * len(row) for row in prompts], "left", 0),
            "completion_ids": padded(completions, "right", pad),
            "completion_mask": padded([[1] * len(row) for row in completions], "right", 0),
            "advantages": torch.tensor(data["advantages"][part]),
            "old_per_token_logps": padded(data["behavior_logprobs"][part], "right", 0.0),
            "num_items_in_batch": total,
        }
        if "weights" in data:
            batch["tool_mask"] = padded(weights[part], "right", 0)
        batches.append(batch)
    return batches


def stored_update(folder: str, work: dict):
    """GRPOTrainer, its batches of stored samples, and what adds their gradient."""
    trainer, _ = grpo_trainer(folder, work | {"samples": len(work["data"]["prompts"])})
    batches = stored_batches(work, trainer._tokenizer.pad_token_id)
    model = trainer.model.train()
    trainer.current_gradient_accumulation_steps = len(batches)

    def accumulate() -> float:
        total = 0.0
        for batch in batches:
            loss = trainer._compute_loss(model, batch)
            loss.backward()
            total += loss.item()
        return total

    return trainer, model, accumulate


def update(folder: str, work: dict) -> dict:
    trainer, model, accumulate = stored_update(folder, work)
    optimizer = trainer.create_optimizer()
    parameters = [p for p in model.parameters() if p.requires_grad]
    seconds, cpu_seconds, losses, norms = [], [], [], []
    for number in range(work["updates"] + 1):
        started, cpu = time.perf_counter(), time.process_time()
        losses.append(accumulate())
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, 1.0).item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if number > 0:
            seconds.append(time.perf_counter() - started)
            cpu_seconds.append(time.process_time() - cpu)
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "losses": losses, "gradient_norms": norms}


def gradient(folder: str, work: dict) -> dict:
    from safetensors.torch import save_file

    _, model, accumulate = stored_update(folder, work)
    loss = accumulate()
    named = {name.replace(".default.", "."): p for name, p in model.named_parameters() if p.grad is not None}
    save_file({name: p.grad.contiguous() for name, p in named.items()}, work["gradient_file"])
    return {"losses": [loss]}


def imitate(folder: str, work: dict) -> dict:
    """The loss of SFTTrainer on the completions alone."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    data = work["data"]
    rows = [
        {"input_ids": p + c, "completion_mask": [0] * len(p) + [1] * len(c)}
        for p, c in zip(data["prompts"], data["completions"])
    ]
    count, at_a_time = work["updates"] + 1, work["rows_at_a_time"]
    config = SFTConfig(
        output_dir=work["output"], use_cpu=True, bf16=False, per_device_train_batch_size=at_a_time,
        gradient_accumulation_steps=len(rows) // at_a_time, learning_rate=work["learning_rate"],
        lr_scheduler_type="constant", max_grad_norm=1.0, adam_beta2=0.999, weight_decay=0.0, max_steps=count,
        logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True, gradient_checkpointing=False,
        optim="adamw_torch_fused", completion_only_loss=True, packing=False, max_length=None, shuffle_dataset=False,
    )  # fmt: skip
    trainer = SFTTrainer(
        model=model_of(folder, work), args=config, train_dataset=Dataset.from_list(rows * count),
        processing_class=tokenizer_of(folder),
    )  # fmt: skip
    # Every update is on all of the rows, whatever their order.
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(trainer.train_dataset)
    trainer.train()
    history = [entry for entry in trainer.state.log_history if "loss" in entry]
    return {"losses": [e["loss"] for e in history], "gradient_norms": [e["grad_norm"] for e in history]}


WORKS = {
    "adapter": adapter, "rollouts": rollouts, "learn": learn, "update": update,
    "gradient": gradient, "imitate": imitate,
}  # fmt: skip


def main() -> None:
    what, folder, path = sys.argv[1:]
    work = json.loads(Path(path).read_text())
    start = peak_bytes()
    # TRL prints its own lines; ours is the last.
    result = WORKS[what](folder, work)
    result |= {"peak_bytes": peak_bytes(), "start_bytes": start, "threads": torch.get_num_threads()}
    print("\n" + json.dumps(result))


main()
