#!/usr/bin/env python3
"""Write the adapters that policy/tests/it/lora.rs compares with: policy/tests/fixtures/lora/.

Each is an adapter of the model in policy/tests/fixtures/models/qwen2 as Hugging Face's PEFT saves it, and
expected.safetensors: token ids, the logits of the model it is merged into, and the gradient of the mean
cross-entropy of all next tokens for every factor, under its name in the adapter's file behind `gradient.`.

    python3 -m venv venv && venv/bin/pip install torch transformers peft safetensors
    venv/bin/python scripts/make_lora_fixture.py
"""

import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

FIXTURES = Path(__file__).parent.parent / "policy" / "tests" / "fixtures"
IDS = torch.tensor([[3, 14, 15, 9, 26, 5, 35, 8, 9, 63, 9, 3]])

torch.set_num_threads(1)
for name, root, modules in [("plain", False, ["q_proj", "v_proj", "down_proj"]), ("root", True, ["k_proj", "gate_proj"]),
                            ("all", False, "all-linear")]:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(FIXTURES / "models" / "qwen2", dtype=torch.float32)
    config = LoraConfig(r=4, lora_alpha=8, use_rslora=root, target_modules=modules, task_type="CAUSAL_LM")
    model = get_peft_model(base, config)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "lora_" in parameter_name:
                parameter.copy_(torch.randn_like(parameter) * 0.2)
    folder = FIXTURES / "lora" / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config_file = folder / "adapter_config.json"
    # Where this machine keeps the model is nobody's business.
    text = config_file.read_text().replace(str(FIXTURES / "models" / "qwen2"), "qwen2")
    config_file.write_text(text + "\n")
    model.eval()
    model(IDS, labels=IDS).loss.backward()
    gradients = {"gradient." + name.replace(".default", ""): parameter.grad.clone()
                 for name, parameter in model.named_parameters() if parameter.requires_grad}
    with torch.no_grad():
        logits = model.merge_and_unload().eval()(IDS).logits
    save_file(gradients | {"ids": IDS, "logits": logits.contiguous()}, folder / "expected.safetensors")
    print(name, sum(path.stat().st_size for path in folder.iterdir()), "bytes")
