#!/usr/bin/env python3
"""Open checkpoints that spar wrote in Hugging Face's transformers and compare.

    cargo run -p spar-policy --example write_checkpoint -- /tmp/checkpoints
    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python scripts/check_in_transformers.py /tmp/checkpoints

Every folder in it also holds expected.json: texts and conversations with their tokens, and logits behind
the first tokens. Prints the largest difference for each; exits 1 where one is above 1e-4 or tokens differ.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast



def check(folder):
    expected = json.loads((folder / "expected.json").read_text())
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    # The class that tokenizer_config.json names; AutoTokenizer of transformers 5 takes Qwen2's own one for every
    # model of that type, whatever the folder says.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    with torch.no_grad():
        logits = model.eval()(torch.tensor([expected["ids"]])).logits[0]
    difference = (logits - torch.tensor(expected["logits"])).abs().max().item()
    unread = [name for kind in ["missing_keys", "unexpected_keys", "mismatched_keys"] for name in report.get(kind, [])]
    files = len(list(folder.glob("*.safetensors")))
    print(f"{folder.name}: {type(model).__name__} of {files} files, largest difference of logits {difference:.2e} "
          f"of {logits.abs().max().item():.1f}, {len(unread)} tensors not as expected {unread[:3]}")

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
    print(f"{folder.name}: {wrong} of {len(expected['texts'])} texts and "
          f"{len(expected['conversations'])} conversations differ")
    return difference <= 1e-4 and wrong == 0 and not unread


folders = sorted(path.parent for path in Path(sys.argv[1]).glob("*/expected.json"))
results = [check(folder) for folder in folders]
print(f"{sum(results)} of {len(results)} checkpoints agree")
sys.exit(not results or not all(results))
