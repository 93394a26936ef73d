#!/usr/bin/env python3
"""Open an adapter that spar trained in Hugging Face's PEFT, and the model that `spar merge` made of it in
transformers, and compare their logits.

    spar train adapter --start-from MODEL --name a ...
    spar merge runs/a --out merged
    python3 -m venv venv && venv/bin/pip install torch transformers peft
    venv/bin/python scripts/check_in_peft.py runs/a/checkpoints/iteration-000010 merged

Prints the largest differences of the two, and of the adapter to the model without it; exits 1 where the first
is above 1e-4 or the second is 0.
"""

import sys

import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM

adapted = AutoPeftModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
merged = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32).eval()
ids = torch.randint(0, merged.config.vocab_size, (2, 24), generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    wanted, found = adapted(ids).logits, merged(ids).logits
    with adapted.disable_adapter():
        without = adapted(ids).logits
difference = (wanted - found).abs().max().item()
change = (wanted - without).abs().max().item()
print(f"{type(merged).__name__}: merged against adapted {difference:.2e}, adapted against not {change:.2e}")
sys.exit(difference > 1e-4 or change == 0)
