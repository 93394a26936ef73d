#!/usr/bin/env python3
"""Runs spar and its peers on the same weights and the same work, and prints both with their ratio.

    benches/compare/compare.py [--rounds 5] [--folder .cache/compare] [--json FILE] WORK...

WORK: train, groups, decode, shared, context, prefill; all but the last two when none is named.
`set_up.sh` makes the folder; spar's side is built with `cargo build --release`. A round runs every side once,
one after the other, each in a process of its own with two threads; figures are medians over the rounds, and the
ratio is the median of the rounds' ratios, with the smallest and the largest behind it.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VOCABULARY = 8192
THREADS = "2"


class SideFailed(RuntimeError):
    """A program that was to be measured did not end well."""


class Bench:
    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self.python = folder / "bin" / "python"
        if not self.python.exists():
            sys.exit(f"no virtual environment in {folder}: run benches/compare/set_up.sh")
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        built = subprocess.run(
            ["cargo", "build", "--release", "-p", "spar-trainer", "--example", "measure", "--message-format=json"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        artifacts = [json.loads(line) for line in built.stdout.splitlines()]
        self.measure = next(a["executable"] for a in artifacts if a.get("executable"))
        self.results: dict = {}

    def run(self, *command: str, **more: str) -> dict:
        environment = os.environ | {
            "RAYON_NUM_THREADS": THREADS,
            "OMP_NUM_THREADS": THREADS,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error",
        }
        environment |= more
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SideFailed(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def model(self, max_positions: int) -> Path:
        folder = self.work / f"qwen3-16m-{max_positions}"
        if not (folder / "model.safetensors").exists():
            self.run(self.python, HERE / "peer_torch.py", "make", folder, max_positions)
        return folder

    def gguf(self, precision: str) -> Path | None:
        if subprocess.run([self.python, "-c", "import llama_cpp"], capture_output=True).returncode != 0:
            print("llama.cpp is not installed: left out", file=sys.stderr)
            return None
        path = self.work / f"qwen3-16m-{precision}.gguf"
        if not path.exists():
            self.run(self.python, HERE / "peer_llama.py", "convert", self.model(8192), path, precision)
        return path

    def workload(self, name: str, **fields) -> Path:
        path = self.work / f"{name}.json"
        path.write_text(json.dumps(fields))
        return path

    def spar(self, work: str, model: Path, workload: Path) -> dict:
        return self.run(self.measure, work, model, workload)

    def torch(self, work: str, model: Path, workload: Path, **more: str) -> dict:
        return self.run(self.python, HERE / "peer_torch.py", work, model, workload, **more)

    def jemalloc(self) -> str | None:
        """Where set_up.sh found it: PyTorch's guide recommends it on CPUs."""
        path = self.folder / "jemalloc.path"
        found = path.read_text().strip() if path.exists() else ""
        if not found:
            print("jemalloc is not installed: PyTorch is run without it alone", file=sys.stderr)
        return found or None

    def rounds_of(self, sides: dict) -> dict[str, list[dict]]:
        """Each side once per round, in turn; a peer that fails is told and left out."""
        found: dict[str, list[dict]] = {name: [] for name in sides}
        for number in range(self.rounds):
            for name in list(found):
                print(f"round {number + 1} of {self.rounds}: {name} ...", file=sys.stderr)
                try:
                    found[name].append(sides[name]())
                except SideFailed as failure:
                    if not any(word in name for word in ("compiled", "jemalloc", "llama.cpp")):
                        raise
                    print(f"{name} is left out: {failure}", file=sys.stderr)
                    del found[name]
        return found


def tokens(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(VOCABULARY), k=count)


def line(*cells) -> None:
    print("| " + " | ".join(map(str, cells)) + " |")


def head(title: str, *columns: str) -> None:
    print(f"\n{title}\n")
    line(*columns)
    line(*["---"] * len(columns))


def spread(ours: list[float], theirs: list[float]) -> str:
    """How many times theirs ours is, round by round: median (smallest to largest)."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def median_rate(count: float, results: list[dict]) -> list[float]:
    return [count / statistics.median(result["seconds"]) for result in results]


def megabytes(results: list[dict], field: str = "peak_bytes") -> float:
    return statistics.median(result[field] for result in results) / 1e6


def train(bench: Bench) -> None:
    sequences = [tokens(seed, 512) for seed in range(2)]
    workload = bench.workload("train", sequences=sequences, updates=3, learning_rate=4e-4)
    fields = {"sequences": sequences, "updates": 3, "learning_rate": 4e-4, "rows_at_a_time": 2}
    eager = bench.workload("train-torch", **fields)
    compiled = bench.workload("train-torch-compiled", **fields, compile=True)
    model = bench.model(8192)
    sides = {
        "spar": lambda: bench.spar("train", model, workload),
        "PyTorch": lambda: bench.torch("train", model, eager),
        "PyTorch, compiled": lambda: bench.torch("train", model, compiled),
    }
    jemalloc = bench.jemalloc()
    if jemalloc:
        sides["PyTorch, jemalloc"] = lambda: bench.torch("train", model, eager, LD_PRELOAD=jemalloc)
        sides["PyTorch, compiled, jemalloc"] = lambda: bench.torch("train", model, compiled, LD_PRELOAD=jemalloc)
    found = bench.rounds_of(sides)
    bench.results["train"] = found
    rates = {name: median_rate(1024, results) for name, results in found.items()}
    head("Training, 2 x 512 tokens: forward, loss, backward, AdamW", "", "tokens/s", "spar is so many times it",
         "peak memory", "of it work", "spar's memory, and that of its work", "losses of four updates")

    def work(name: str) -> float:
        return megabytes(found[name]) - megabytes(found[name], "start_bytes")

    for name, results in found.items():
        losses = ", ".join(f"{loss:.4f}" for loss in results[0]["losses"])
        memory = megabytes(found["spar"]) / megabytes(results)
        line(name, f"{statistics.median(rates[name]):.0f}", spread(rates["spar"], rates[name]),
             f"{megabytes(results):.0f} MB", f"{work(name):.0f} MB",
             f"{memory:.2f}, {work('spar') / work(name):.2f}", losses)


def forked_group() -> tuple[list[list[int]], list[list[float]]]:
    """Eight trajectories of 20 turns behind one prompt, parting in two after turns 5, 10 and 15.

    A turn is 16 observed tokens and 16 sampled ones, which carry weight.
    """
    prompt = tokens(0, 512)
    paths: list[list[int]] = [[]]
    for turn in range(20):
        if turn in (5, 10, 15):
            paths = [list(path) for path in paths for _ in range(2)]
        for index, path in enumerate(paths):
            path.extend(tokens(1000 * turn + index + 1, 32))
    weights = [0.0] * 512 + ([0.0] * 16 + [1.0] * 16) * 20
    return [prompt + path for path in paths], [weights] * 8


def largest_difference(bench: Bench, ours: Path, theirs: Path) -> float:
    """Over all parameters, the largest difference of an element relative to the largest element."""
    script = (
        "import sys; from safetensors.torch import load_file; a, b = map(load_file, sys.argv[1:]);"
        "assert set(a) >= set(b) - {'lm_head.weight'}, set(a) ^ set(b);"
        "d = lambda n: (a[n].double() - b[n].double()).abs().max() / b[n].double().abs().max();"
        "print(max(d(n).item() for n in b if n in a))"
    )
    return float(bench.run(bench.python, "-c", script, ours, theirs))


def groups(bench: Bench) -> None:
    sequences, weights = forked_group()
    files = {name: bench.work / f"gradient-{name}.safetensors" for name in ("spar", "PyTorch")}
    common = {"sequences": sequences, "weights": weights, "updates": 1}
    workload = bench.workload("groups", **common, gradient_file=str(files["spar"]))
    for_torch = bench.workload("groups-torch", **common, gradient_file=str(files["PyTorch"]), rows_at_a_time=2)
    model = bench.model(8192)
    found = bench.rounds_of({
        "spar": lambda: bench.spar("gradient", model, workload),
        "PyTorch, dense": lambda: bench.torch("gradient", model, for_torch),
    })
    bench.results["groups"] = found
    count = sum(map(len, sequences))
    rates = {name: median_rate(count, results) for name, results in found.items()}
    # In double precision, which tells whose rounding it is.
    exact = bench.work / "gradient-exact.safetensors"
    in_double = {**common, "updates": 0, "rows_at_a_time": 1, "dtype": "float64"}
    bench.torch("gradient", model, bench.workload("groups-exact", **in_double, gradient_file=str(exact)))
    differences = {
        "spar to PyTorch": largest_difference(bench, files["spar"], files["PyTorch"]),
        "spar to PyTorch in f64": largest_difference(bench, files["spar"], exact),
        "PyTorch to PyTorch in f64": largest_difference(bench, files["PyTorch"], exact),
    }
    bench.results["groups"]["gradient_differences"] = differences
    head(f"A group of 8 trajectories, {count} tokens: forward, loss, backward", "", "tokens/s", "peak memory", "loss")
    for name in rates:
        loss = found[name][0]["losses"][0]
        line(name, f"{statistics.median(rates[name]):.0f}", f"{megabytes(found[name]):.0f} MB", f"{loss:.6f}")
    memory = megabytes(found["spar"]) / megabytes(found["PyTorch, dense"])
    line("ratio", spread(rates["spar"], rates["PyTorch, dense"]), f"{memory:.2f}", "")
    print("\nlargest difference of the gradients, relative to each parameter's largest element:")
    for name, difference in differences.items():
        print(f"{name}: {difference:.1e}")


def decode(bench: Bench) -> None:
    model = bench.model(8192)
    sides = {
        "spar": lambda w: bench.spar("decode", model, w["f32"]),
        "spar bf16": lambda w: bench.spar("decode", model, w["bf16"]),
        "transformers": lambda w: bench.torch("decode", model, w["f32"]),
    }
    for precision in ("f32", "bf16"):
        path = bench.gguf(precision)
        if path:
            for name, settings in (("", "f32"), (", its defaults", "defaults")):
                sides[f"llama.cpp {precision}{name}"] = lambda w, path=path, settings=settings: bench.run(
                    bench.python, HERE / "peer_llama.py", "decode", path, w[settings]
                )
    for batch in (1, 16):
        new = 128 if batch == 1 else 64
        sequences = [tokens(seed, 128) for seed in range(batch)]
        work = {"sequences": sequences, "new_tokens": new}
        workload = {
            "f32": bench.workload(f"decode-{batch}", **work),
            "bf16": bench.workload(f"decode-{batch}-bf16", **work, keep="bf16"),
            "defaults": bench.workload(f"decode-{batch}-defaults", **work, defaults=True),
        }
        found = bench.rounds_of({name: lambda side=side: side(workload) for name, side in sides.items()})
        bench.results[f"decode-{batch}"] = found
        rates = {
            name: [batch * (new - 1) / (r["seconds"] - r["prefill_seconds"]) for r in results]
            for name, results in found.items()
        }
        prefill = {name: [batch * 128 / r["prefill_seconds"] for r in results] for name, results in found.items()}
        head(f"Decoding, batch {batch}, {new} tokens behind prompts of 128", "", "tokens/s", "spar is so many times it",
             "reading the prompts, tokens/s", "equal tokens")
        for name, results in found.items():
            # What is kept in bf16 is compared with what keeps it so too.
            side = "spar bf16" if "bf16" in name else "spar"
            ours = sum(found[side][0]["tokens"], [])
            equal = sum(a == b for a, b in zip(ours, sum(results[0]["tokens"], [])))
            line(name, f"{statistics.median(rates[name]):.0f}", spread(rates[side], rates[name]),
                 f"{statistics.median(prefill[name]):.0f}", f"{equal} of {len(ours)}")


def shared(bench: Bench) -> None:
    workload = bench.workload("shared", sequences=[tokens(0, 1024)], rollouts=16, updates=3)
    model = bench.model(8192)
    found = bench.rounds_of({"spar": lambda: bench.spar("shared", model, workload)})["spar"]
    bench.results["shared"] = found
    alone = [statistics.median(result["alone_seconds"]) for result in found]
    together = [statistics.median(result["together_seconds"]) for result in found]
    head("First tokens of rollouts that share a prompt of 1,024 tokens", "", "seconds")
    line("one rollout", f"{statistics.median(alone):.3f}")
    line("sixteen", f"{statistics.median(together):.3f}")
    line("ratio", spread(together, alone))


def context(bench: Bench) -> None:
    model = bench.model(131_072)
    head("One long sequence: forward and backward", "tokens", "tokens/s", "peak memory")
    for length in (4096, 8192, 16_384, 32_768):
        fields = {"sequences": [tokens(0, length)], "updates": 0, "train": True, "recompute": True}
        result = bench.spar("context", model, bench.workload("context", **fields))
        bench.results[f"context-{length}"] = result
        seconds = result["all_seconds"]
        line(length, f"{length / seconds:.0f}", f"{result['peak_bytes'] / 1e6:.0f} MB")


def prefill(bench: Bench) -> None:
    model = bench.model(131_072)
    head("Reading one long prompt", "tokens", "tokens/s", "peak memory")
    for length in (32_768, 131_072):
        workload = bench.workload("prefill", sequences=[tokens(0, length)])
        result = bench.spar("context", model, workload)
        bench.results[f"prefill-{length}"] = result
        line(length, f"{length / result['seconds'][0]:.0f}", f"{result['peak_bytes'] / 1e6:.0f} MB")


WORKS = {
    "train": train, "groups": groups, "decode": decode, "shared": shared, "context": context, "prefill": prefill,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", metavar="WORK", choices=[*WORKS, []])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "compare")
    parser.add_argument("--json", type=Path, help="where all figures go")
    options = parser.parse_args()
    bench = Bench(options.folder.resolve(), options.rounds)
    for name in options.works or ["train", "groups", "decode", "shared"]:
        try:
            WORKS[name](bench)
        except SideFailed as failure:
            sys.exit(f"{name}: {failure}")
    if options.json:
        options.json.write_text(json.dumps(bench.results, indent=1))


main()
