#!/usr/bin/env python3
"""Runs spar beside TRL and PEFT on one model, the same tasks and the same samples, and prints both with their ratio.

    benches/compare_with_trl.py --set-up --model FOLDER [--threads 2] [--rounds 3] [--json FILE] WORK...

`--set-up` makes the virtual environment from PyPI first (`.cache/compare`, that of compare.py); later runs do without.
It needs the command `zstd`.

WORK: `learn` (GRPO from prompts to updates), `update` (updates on stored samples), `turns` (the same on dialogues with
turns in common), `imitate` (supervised losses); all when none is named. `--trained lora`, `all` or `both` tells what is
trained. FOLDER is SmolLM2-135M-Instruct as Hugging Face lays it out, or another model with a chat template.

A round runs every side once, one after the other, each in a process of its own with so many threads. Figures are
medians over the rounds; a ratio is the median of the rounds' ratios, with the smallest and the largest behind it. Both
sides compute in f32. CPU seconds stand beside wall-clock seconds, since they depend less on what else the machine does:
those of spar are of its whole process, loading included; those of TRL begin behind imports and loading. Losses that differ by more than `--tolerance` end the program with an error.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER = HERE / "compare" / "peer_trl.py"
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RANK, ALPHA = 16, 32.0
LEARNING_RATE = {"lora": 1e-4, "all": 1e-5}

FUNCTIONS = """add_event(title: string, day: string, hour: integer)
get_weather(city: string, unit: string)
find_flight(from: string, to: string, day: string)
set_alarm(hour: integer, label: string)"""
EXAMPLE = 'Set a meeting on Monday at 9.\n{"name": "add_event", "arguments": {"title": "meeting", "day": "Monday", "hour": 9}}'

INSTRUCTION = "Answer with one call of a function, as JSON."

SUITE = """name = "calls"
version = "1"
about = "One call of a function, as JSON."
environment = "question"
instruction = "{instruction}"

[[graders]]
kind = "squad"
reward = "f1"

[splits.train]
tasks = "train.jsonl"

[splits.dev]
tasks = "dev.jsonl"
"""

RECIPE = """name = "beside-trl"
start_from = {model}
{lora}
[data]
suite = {suite}
train = "train"
dev = "dev"
test = ["dev"]

[episode]
constrain_to_admissible = false

[episode.sampling]
temperature = 1.0
max_tokens = {new_tokens}

[evaluation]
every = 1000
dev_tasks = 1

[keep]
checkpoint_every = 1000
checkpoints = 1
trajectories_every = 1

[[stages]]
kind = "reinforce"
iterations = 2
tasks = {tasks}
group_size = {group_size}
max_turns = 1
credit = {{ kind = "grpo" }}
objective = {{ name = "clip", aggregation = "token_mean" }}

[stages.trainer]
shards = {threads}
keep_prompts_together = true

[stages.trainer.optimizer]
name = "adamw"
options = {{ learning_rate = {learning_rate}, beta2 = 0.999 }}
"""


class SideFailed(RuntimeError):
    """A program that was to be measured did not end well."""


def calls(count: int) -> list[dict]:
    """Requests with the call that each asks for."""
    chance = random.Random(0)
    cities, days = ["Paris", "Oslo", "Lima", "Cairo", "Tokyo", "Rome"], ["Monday", "Tuesday", "Friday"]
    rows = []
    for number in range(count):
        (start, end), day, hour = chance.sample(cities, 2), chance.choice(days), chance.randrange(6, 11)
        request, name, arguments = [
            (f"How warm is it in {start}, in celsius?", "get_weather", {"city": start, "unit": "celsius"}),
            (f"I need a flight from {start} to {end} on {day}.", "find_flight", {"from": start, "to": end, "day": day}),
            (f"Wake me at {hour} with the label work.", "set_alarm", {"hour": hour, "label": "work"}),
        ][number % 3]
        prompt = f"You can call one of these functions:\n{FUNCTIONS}\n\n{EXAMPLE}\n{request}"
        rows.append({"id": f"call-{number}", "prompt": prompt, "answer": json.dumps({"name": name, "arguments": arguments})})
    return rows


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.model = options.model.resolve()
        self.python = options.folder.resolve() / "bin" / "python"
        if not self.python.exists():
            sys.exit(f"no virtual environment in {options.folder}: run with --set-up")
        self.work = options.work_folder.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.results: dict = {}
        self.rows = calls(options.tasks)
        self.samples = options.tasks * options.group_size

    def run(self, *command) -> dict:
        """A program's last line, its wall-clock and CPU seconds, and the most memory that it held."""
        threads = str(self.options.threads)
        environment = os.environ | {
            "RAYON_NUM_THREADS": threads, "SPAR_THREADS": threads, "OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false",
        }  # fmt: skip
        started = time.perf_counter()
        with open(self.work / "out", "w+") as out, open(self.work / "err", "w+") as err:
            process = subprocess.Popen(list(map(str, command)), env=environment, stdout=out, stderr=err, cwd=self.work)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            printed, complaint = out.read(), err.read()
        if process.returncode != 0:
            raise SideFailed(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{complaint[-2000:]}")
        lines = [line for line in printed.splitlines() if line.startswith("{")]
        return (json.loads(lines[-1]) if lines else {}) | {
            "process_seconds": time.perf_counter() - started, "process_cpu_seconds": usage.ru_utime + usage.ru_stime,
            "resident_bytes": usage.ru_maxrss * 1024,
        }  # fmt: skip

    def peer(self, work: str, **fields) -> dict:
        path = self.work / f"trl-{work}.json"
        path.write_text(json.dumps({"output": str(self.work / "trl-output"), "seed": 0} | fields))
        return self.run(self.python, PEER, work, self.model, path)

    def measure(self, work: str, **fields) -> dict:
        path = self.work / f"spar-{work}.json"
        path.write_text(json.dumps(fields))
        return self.run(self.options.measure.resolve(), work, self.model, path)

    def adapter(self) -> Path:
        folder = self.work / "adapter"
        if not (folder / "adapter_model.safetensors").exists():
            self.peer("adapter", rank=RANK, alpha=ALPHA, targets=TARGETS, deviation_of_b=0.005, adapter_folder=str(folder))
        return folder

    def adapted(self, trained: str) -> dict:
        return {"adapter": str(self.adapter())} if trained == "lora" else {}

    def stored(self) -> dict:
        """Samples that TRL's side draws, for both to learn from."""
        path = self.work / "samples.json"
        if not path.exists():
            told = self.peer("rollouts", **self.asked(), deviation_of_old=0.2, data_file=str(path))
            self.results["stored"] = told
        return json.loads(path.read_text())

    def asked(self) -> dict:
        options = self.options
        return {
            "instruction": INSTRUCTION, "prompts": [row["prompt"] for row in self.rows], "answers": [row["answer"] for row in self.rows],
            "group_size": options.group_size, "new_tokens": options.new_tokens,
        }  # fmt: skip

    def rounds_of(self, name: str, sides: dict) -> dict[str, list[dict]]:
        found: dict[str, list[dict]] = {side: [] for side in sides}
        for number in range(self.options.rounds):
            for side, measured in sides.items():
                print(f"{name}, round {number + 1} of {self.options.rounds}: {side} ...", file=sys.stderr)
                found[side].append(measured())
                self.results[name] = found
                self.save()
        return found

    def save(self) -> None:
        if self.options.json:
            self.options.json.write_text(json.dumps(self.results, indent=1))


def line(*cells) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(title: str, *columns: str) -> None:
    print(f"\n{title}\n")
    line(*columns)
    line(*["---"] * len(columns))


def spread(ours: list[float], theirs: list[float]) -> str:
    """How many times theirs ours is, round by round: median (smallest to largest)."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def megabytes(found: list[dict]) -> float:
    return statistics.median(side["resident_bytes"] for side in found) / 1e6


def samples_per_minute(count: int, seconds: list[float]) -> str:
    return f"{60 * count / statistics.median(seconds):.1f}"


def spar_learns(bench: Bench, trained: str) -> dict:
    """One run of two iterations; the second is timed."""
    options, runs = bench.options, bench.work / "runs"
    suite = bench.work / "suite"
    suite.mkdir(exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in bench.rows]
    (suite / "train.jsonl").write_text("".join(lines))
    (suite / "dev.jsonl").write_text(json.dumps(calls(options.tasks + 1)[-1] | {"id": "dev"}) + "\n")
    (suite / "suite.toml").write_text(SUITE.format(instruction=INSTRUCTION))
    recipe = bench.work / "recipe.toml"
    lora = f"\n[lora]\nrank = {RANK}\nalpha = {ALPHA}\n" if trained == "lora" else ""
    recipe.write_text(RECIPE.format(
        model=json.dumps(str(bench.model)), suite=json.dumps(str(suite)), lora=lora, new_tokens=options.new_tokens,
        tasks=options.tasks, group_size=options.group_size, threads=options.threads,
        learning_rate=LEARNING_RATE[trained],
    ))  # fmt: skip
    shutil.rmtree(runs, ignore_errors=True)
    told = bench.run(options.spar.resolve(), "train", recipe, "--runs", runs, "--name", "run")
    records = [json.loads(text) for text in (runs / "run" / "timings.jsonl").read_text().splitlines()]
    second = {record["kind"]: record for record in records if record["iteration"] == 2}
    metrics = [json.loads(text) for text in (runs / "run" / "metrics.jsonl").read_text().splitlines()]
    iterations = [record for record in metrics if record["kind"] == "reinforce"]
    shards = sorted(map(str, (runs / "run" / "trajectories").glob("*.zst")))
    played = subprocess.run(["zstd", "-dcq", *shards], check=True, capture_output=True, text=True).stdout
    trajectories = [json.loads(text) for text in played.splitlines()]
    prompts = {t["task"].rsplit("/", 1)[-1]: t["turns"][0]["prompt"]["appended"] for t in trajectories}
    shutil.rmtree(runs, ignore_errors=True)
    return told | {
        "seconds": [second["reinforce"]["seconds"]],
        # Of the whole process: two iterations, an episode of the dev split, loading and a checkpoint.
        "cpu_seconds": [told["process_cpu_seconds"] / 2],
        "rollout_seconds": [second["parts"]["rollout_seconds"]],
        "update_seconds": [second["parts"]["update_seconds"]],
        "completion_tokens": second["reinforce"]["output_tokens"],
        "with_gradient": [iterations[-1]["samples_with_gradient"] / iterations[-1]["samples"]],
        "prompts": [prompts[row["id"]] for row in bench.rows],
    }  # fmt: skip


def learn(bench: Bench, trained: str) -> None:
    options = bench.options
    fields = bench.asked() | bench.adapted(trained) | {
        "updates": 0, "samples": bench.samples, "rows_at_a_time": options.rows_at_a_time,
        "learning_rate": LEARNING_RATE[trained],
    }  # fmt: skip
    found = bench.rounds_of(f"learn-{trained}", {
        "spar": lambda: spar_learns(bench, trained),
        "TRL": lambda: bench.peer("learn", **fields),
    })
    if found["spar"][0]["prompts"] != found["TRL"][0]["prompts"]:
        raise SideFailed("the two sides read other prompts")
    head(f"GRPO from prompts to an update, {trained}: {bench.samples} samples, {options.threads} threads", "",
         "samples per minute", "of CPU time", "rollouts", "updates", "tokens drawn per sample", "samples with gradient",
         "peak memory")
    all_of = {side: {key: [r[key][0] for r in rounds] for key in
                     ("seconds", "cpu_seconds", "rollout_seconds", "update_seconds", "with_gradient")}
              for side, rounds in found.items()}
    for side, rounds in found.items():
        of = all_of[side]
        drawn = statistics.median(r["completion_tokens"] for r in rounds) / bench.samples
        rates = [samples_per_minute(bench.samples, of[key]) for key in
                 ("seconds", "cpu_seconds", "rollout_seconds", "update_seconds")]
        line(side, *rates, f"{drawn:.1f}", f"{statistics.median(of['with_gradient']):.2f}", f"{megabytes(rounds):.0f} MB")
    ratios = [spread(all_of["TRL"][key], all_of["spar"][key]) for key in
              ("seconds", "cpu_seconds", "rollout_seconds", "update_seconds")]
    line("ratio", *ratios, "", "", f"{megabytes(found['spar']) / megabytes(found['TRL']):.2f}")


def on_both(bench: Bench, name: str, trained: str, data: dict, updates: int) -> None:
    """Updates on stored samples; equal losses are demanded."""
    options = bench.options
    count = len(data["prompts"])
    weights = data.get("weights") or [[1] * len(row) for row in data["completions"]]
    rest = [[0.0] * len(prompt) for prompt in data["prompts"]]
    common = bench.adapted(trained) | {"updates": updates, "learning_rate": LEARNING_RATE[trained]}
    ours = common | {
        "sequences": [p + c for p, c in zip(data["prompts"], data["completions"])],
        "weights": [r + list(map(float, w)) for r, w in zip(rest, weights)], "max_gradient_norm": 1.0,
        "advantages": data["advantages"], "shards": options.threads, "micro_batch_tokens": 1024,
        "behavior_logprobs": [r + l for r, l in zip(rest, data["behavior_logprobs"])],
    }  # fmt: skip
    theirs = common | {"data": data, "rows_at_a_time": options.rows_at_a_time, "group_size": options.rows_at_a_time}
    found = bench.rounds_of(f"{name}-{trained}", {
        "spar": lambda: bench.measure("train", **ours),
        "TRL": lambda: bench.peer("update", **theirs),
    })
    for side in found["spar"]:
        side["cpu_seconds"] = [side["process_cpu_seconds"] / (updates + 1)]
    tokens = sum(map(len, ours["sequences"]))
    head(f"Updates on {count} stored samples of {tokens} tokens ({name}), {trained}", "", "samples per minute",
         "of CPU time", "peak memory", f"losses of {updates + 1} updates", "gradient norms")
    seconds = {side: [statistics.median(r["seconds"]) for r in rounds] for side, rounds in found.items()}
    cpu = {side: [statistics.median(r["cpu_seconds"]) for r in rounds] for side, rounds in found.items()}
    for side, rounds in found.items():
        listed = [", ".join(f"{value:.6f}" for value in rounds[0][key]) for key in ("losses", "gradient_norms")]
        line(side, samples_per_minute(count, seconds[side]), samples_per_minute(count, cpu[side]),
             f"{megabytes(rounds):.0f} MB", *listed)
    differences = {
        key: max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found["spar"][0][key], found["TRL"][0][key]))
        for key in ("losses", "gradient_norms")
    }
    line("ratio", spread(seconds["TRL"], seconds["spar"]), spread(cpu["TRL"], cpu["spar"]),
         f"{megabytes(found['spar']) / megabytes(found['TRL']):.2f}",
         *(f"differ by at most {difference:.1e}" for difference in differences.values()))
    bench.results[f"{name}-{trained}-differences"] = differences
    bench.results[f"{name}-{trained}-computed"] = [found["spar"][0]["computed_tokens"], tokens]
    print(f"\nspar computes {found['spar'][0]['computed_tokens']} of the {tokens} tokens: the others are common to several.")
    bench.save()
    if differences["losses"] > options.tolerance:
        raise SideFailed(f"losses differ by {differences['losses']:.1e}, more than {options.tolerance:.0e}")


def update(bench: Bench, trained: str) -> None:
    on_both(bench, "update", trained, bench.stored(), 2)


def turns(bench: Bench, trained: str) -> None:
    """Two groups of dialogues of three turns: pairs part behind the first, whose answer they have in common."""
    data = bench.stored()
    shown = list(range(1000, 1040))
    completions, weights, logprobs = [], [], []
    for index in range(len(data["completions"])):
        first, second = index // 2 * 2, index // 4 * 4 + (index + 1) % 4
        parts = [data["completions"][i] for i in (first, index, second)]
        drawn = [data["behavior_logprobs"][i] for i in (first, index, second)]
        completions.append(parts[0] + shown + parts[1] + shown + parts[2])
        weights.append([1] * len(parts[0]) + [0] * 40 + [1] * len(parts[1]) + [0] * 40 + [1] * len(parts[2]))
        logprobs.append(drawn[0] + [0.0] * 40 + drawn[1] + [0.0] * 40 + drawn[2])
    data |= {"completions": completions, "weights": weights, "behavior_logprobs": logprobs}
    on_both(bench, "turns", trained, data, 1)


def imitate(bench: Bench, trained: str) -> None:
    """Cross-entropy on the answers alone, the prompts being given."""
    data, updates = bench.stored(), 2
    common = bench.adapted(trained) | {"updates": updates, "learning_rate": LEARNING_RATE[trained]}
    ours = bench.measure(
        "train", **common, sequences=[p + c for p, c in zip(data["prompts"], data["completions"])], max_gradient_norm=1.0,
        weights=[[0.0] * len(p) + [1.0] * len(c) for p, c in zip(data["prompts"], data["completions"])],
        micro_batch_tokens=1024,
    )  # fmt: skip
    theirs = bench.peer("imitate", **common, data=data, rows_at_a_time=bench.options.rows_at_a_time)
    head(f"Supervised losses of SFTTrainer on the answers alone, {trained}", "", "losses", "gradient norms")
    for side, told in (("spar", ours), ("TRL", theirs)):
        line(side, *(", ".join(f"{value:.6f}" for value in told[key]) for key in ("losses", "gradient_norms")))
    difference = max(abs(a - b) / abs(b) for a, b in zip(ours["losses"], theirs["losses"]))
    bench.results[f"imitate-{trained}"] = {"spar": ours, "TRL": theirs, "difference": difference}
    bench.save()
    print(f"\nlosses differ by at most {difference:.1e}")
    if difference > 10 * bench.options.tolerance:
        raise SideFailed(f"supervised losses differ by {difference:.1e}")


WORKS = {"learn": learn, "update": update, "turns": turns, "imitate": imitate}


def set_up(folder: Path) -> None:
    """PyTorch with stand-ins for CUDA by set_up.sh, then TRL and PEFT, which must not bring CUDA's libraries in."""
    subprocess.run([HERE / "compare" / "set_up.sh", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--no-deps", "trl", "peft", "accelerate", "datasets"], check=True)
    needs = ["pyarrow", "dill", "multiprocess", "xxhash", "pandas", "psutil", "pyyaml", "aiohttp", "requests", "httpx", "tqdm"]
    subprocess.run([*pip, *needs], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", metavar="WORK", choices=[*WORKS, []])
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "compare", help="the virtual environment")
    parser.add_argument("--set-up", action="store_true", help="make it first")
    parser.add_argument("--work-folder", type=Path, default=ROOT / ".cache" / "compare" / "trl")
    parser.add_argument("--spar", type=Path, help="the program; absent: it is built")
    parser.add_argument("--measure", type=Path, help="the example `measure` of spar-trainer; absent: it is built")
    parser.add_argument("--trained", choices=["lora", "all", "both"], default="both")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=48)
    parser.add_argument("--rows-at-a-time", type=int, default=8, help="samples of a micro-batch of TRL's")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="by which losses may differ")
    parser.add_argument("--json", type=Path, help="where all figures go")
    options = parser.parse_args()
    if options.set_up:
        set_up(options.folder)
    if options.spar is None:
        subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True)
        options.spar = ROOT / "target" / "release" / "spar"
    if options.measure is None:
        command = ["cargo", "build", "--release", "--locked", "-p", "spar-trainer", "--example", "measure"]
        subprocess.run(command, cwd=ROOT, check=True)
        options.measure = ROOT / "target" / "release" / "examples" / "measure"
    bench = Bench(options)
    for trained in ["lora", "all"] if options.trained == "both" else [options.trained]:
        for name in options.works or WORKS:
            try:
                WORKS[name](bench, trained)
            except SideFailed as failure:
                sys.exit(f"{name}, {trained}: {failure}")
    bench.save()


main()
