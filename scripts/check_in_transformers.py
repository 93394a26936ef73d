#!/usr/bin/env python3
"""Open a checkpoint that spar wrote in Hugging Face's transformers and compare.

    cargo run -p spar-policy --example write_checkpoint -- /tmp/checkpoint
    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python scripts/check_in_transformers.py /tmp/checkpoint

The folder also holds expected.json: texts and conversations with their tokens, and logits behind
the first tokens. Prints the largest difference; exits 1 where it is above 1e-4 or tokens differ.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = Path(sys.argv[1])
expected = json.loads((folder / "expected.json").read_text())
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
tokenizer = AutoTokenizer.from_pretrained(folder)

with torch.no_grad():
    logits = model(torch.tensor([expected["ids"]])).logits[0]
difference = (logits - torch.tensor(expected["logits"])).abs().max().item()
print(f"{type(model).__name__}: largest difference of logits {difference:.2e}")

wrong = 0
for text, ids in expected["texts"]:
    found = tokenizer.encode(text, add_special_tokens=False)
    decoded = tokenizer.decode(ids)
    if found != ids or decoded != text:
        wrong += 1
        print(f"text {text!r}: {found} {ids} {decoded!r}")
for messages, ids in expected["conversations"]:
    found = tokenizer.apply_chat_template(messages, return_dict=False)
    if found != ids:
        wrong += 1
        print(f"conversation {messages!r}: {found} {ids}")
print(f"{type(tokenizer).__name__}: {wrong} of {len(expected['texts'])} texts and "
      f"{len(expected['conversations'])} conversations differ")
sys.exit(difference > 1e-4 or wrong > 0)
