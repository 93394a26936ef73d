#!/usr/bin/env python3
"""Write the numbers that policy/tests/it/sampling.rs compares with.

policy/tests/fixtures/sampling.json holds rows of logits, and what the logits processors of Hugging
Face's transformers make of them, in the order in which `generate` applies them: bias,
repetition penalty, bad words, temperature, top-k, top-p, min-p. Scores that were left out are null.

    python3 -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python scripts/make_sampling_fixture.py
"""

import json
import math
from pathlib import Path

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

FIXTURE = Path(__file__).parent.parent / "policy" / "tests" / "fixtures" / "sampling.json"
VOCABULARY = 40
CASES = [
    {},
    {"temperature": 0.6},
    {"top_k": 5},
    {"top_p": 0.8},
    {"top_p": 0.05},
    {"min_p": 0.1},
    {"repetition_penalty": 1.4},
    {"logit_bias": {3: 2.5, 17: -4.0}},
    {"bad_words": [[3], [7, 9], [9, 8, 7, 5], [2, 2]]},
    {"temperature": 1.7, "top_k": 12, "top_p": 0.7},
    {"temperature": 0.4, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {
        "temperature": 0.9,
        "top_k": 30,
        "top_p": 0.9,
        "min_p": 0.01,
        "repetition_penalty": 0.8,
        "logit_bias": {1: 1.0, 9: -1.5},
        "bad_words": [[9, 8, 7, 11]],
    },
]


def process(options: dict, tokens: list[int], logits: torch.Tensor) -> torch.Tensor:
    processors = []
    if "logit_bias" in options:
        bias = {(token,): value for token, value in options["logit_bias"].items()}
        processors.append(SequenceBiasLogitsProcessor(bias))
    if "repetition_penalty" in options:
        processors.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
    if "bad_words" in options:
        processors.append(NoBadWordsLogitsProcessor(options["bad_words"]))
    if "temperature" in options:
        processors.append(TemperatureLogitsWarper(options["temperature"]))
    if "top_k" in options:
        processors.append(TopKLogitsWarper(options["top_k"]))
    if "top_p" in options:
        processors.append(TopPLogitsWarper(options["top_p"]))
    if "min_p" in options:
        processors.append(MinPLogitsWarper(options["min_p"]))
    for processor in processors:
        logits = processor(torch.tensor([tokens]), logits)
    return logits


def main() -> None:
    torch.manual_seed(0)
    rows = []
    for options in CASES:
        for scale in (1.0, 3.0):
            prompt, answer = [1, 2, 3, 9], [9, 8, 7]
            logits = torch.randn(1, VOCABULARY) * scale
            found = process(options, prompt + answer, logits.clone())
            # A score of minus infinity has no JSON.
            number = lambda value: None if math.isinf(value) else value
            rows.append(
                {
                    "options": options,
                    "prompt": prompt,
                    "answer": answer,
                    "logits": logits[0].tolist(),
                    "logprobs": [number(v) for v in found.log_softmax(-1)[0].tolist()],
                }
            )
    lines = ",\n".join(json.dumps(row) for row in rows)
    FIXTURE.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
