"""llama.cpp's side of compare.py: one measurement, printed as a line of JSON.

    peer_llama.py convert FOLDER FILE.gguf (f32 | bf16)     a Qwen3 model of transformers as GGUF
    peer_llama.py decode FILE.gguf WORKLOAD.json            as trainer/examples/measure.rs
"""

import json
import sys
import time
from pathlib import Path

import numpy as np


def convert(folder: str, path: str, precision: str) -> None:
    import gguf
    import torch
    from safetensors.torch import load_file

    config = json.loads(Path(folder, "config.json").read_text())
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config["num_hidden_layers"])
    for name, tensor in load_file(Path(folder, "model.safetensors")).items():
        target = names.get_name(name, try_suffixes=(".weight",))
        if precision == "bf16" and tensor.dim() == 2:
            data = tensor.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint8)
            writer.add_tensor(target, data, raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            writer.add_tensor(target, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print("{}")


def decode(path: str, work) -> dict:
    import llama_cpp as llama

    prompts, count = work["sequences"], work["new_tokens"]
    llama.llama_backend_init()
    quiet = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(quiet, None)
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    total = sum(len(prompt) + count for prompt in prompts)
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = total + 64, 4096, 512
    params.n_seq_max = len(prompts)
    params.n_threads = params.n_threads_batch = 2
    params.kv_unified = True
    # Keys and values in single precision, as on the other sides, or as its authors would have it: in f16,
    # and flash attention where it finds that worth while.
    if not work.get("defaults"):
        params.type_k = params.type_v = llama.GGML_TYPE_F32
    vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))

    def run(count: int):
        context = llama.llama_init_from_model(model, params)
        batch = llama.llama_batch_init(4096, 0, 1)

        def read(entries):
            """Reads (sequence, position, token, wants logits); returns the best token of each that wants."""
            batch.n_tokens = len(entries)
            for i, (sequence, position, token, wanted) in enumerate(entries):
                batch.token[i], batch.pos[i] = token, position
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
                batch.logits[i] = wanted
            if llama.llama_decode(context, batch) != 0:
                raise RuntimeError("llama_decode failed")
            best = []
            for i, entry in enumerate(entries):
                if entry[3]:
                    logits = llama.llama_get_logits_ith(context, i)
                    best.append(int(np.ctypeslib.as_array(logits, shape=(vocabulary,)).argmax()))
            return best

        started = time.perf_counter()
        last = []
        for s, prompt in enumerate(prompts):
            entries = [(s, p, token, p + 1 == len(prompt)) for p, token in enumerate(prompt)]
            last += read(entries)
        prefill = time.perf_counter() - started
        tokens = [[token] for token in last]
        for step in range(1, count):
            last = read([(s, len(prompts[s]) + step - 1, token, True) for s, token in enumerate(last)])
            for row, token in zip(tokens, last):
                row.append(token)
        seconds = time.perf_counter() - started
        llama.llama_batch_free(batch)
        llama.llama_free(context)
        return prefill, seconds, tokens

    run(2)
    prefill, seconds, tokens = run(count)
    return {"prefill_seconds": prefill, "seconds": seconds, "tokens": tokens, "threads": 2}


def main() -> None:
    if sys.argv[1] == "convert":
        convert(*sys.argv[2:])
    else:
        print(json.dumps(decode(sys.argv[2], json.loads(Path(sys.argv[3]).read_text()))))


main()
