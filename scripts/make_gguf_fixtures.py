#!/usr/bin/env python3
"""Write policy/tests/fixtures/gguf/: small GGUF files, and what Hugging Face's transformers and the package gguf make of them.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf safetensors
    venv/bin/python scripts/make_gguf_fixtures.py "$(scripts/get_smollm2.sh)"

- blocks.gguf has a tensor of each type, of bytes that were drawn; blocks.safetensors has their numbers by gguf's dequantisation, which
  is the one that transformers uses.
- A file for each family, random weights in several types with a tokenizer; NAME.json has what transformers makes of it: hashes of all
  weights, and the logits behind a sequence.
- smollm2.json has, of the model whose file is named, ids of hostile texts (those of transformers too where they differ) and conversations, the largest logits behind a prompt, and
  hashes of all weights.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

torch.set_num_threads(1)
ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "policy" / "tests" / "fixtures" / "gguf"
TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q2_K, Type.Q3_K,
         Type.Q4_K, Type.Q5_K, Type.Q6_K]
# Where the half-precision scales of a block lie.
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82],
          Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}
CHAT_ML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def drawn_blocks(rng, kind, rows, columns):
    """Bytes of blocks with scales of all sizes, positive and negative ones, and one that is subnormal."""
    length, size = gguf.GGML_QUANT_SIZES[kind]
    if length == 1:
        numbers = rng.normal(size=(rows, columns)).astype(np.float32)
        return gguf.quantize(numbers, kind)
    blocks = rng.integers(0, 256, size=(rows * columns // length, size), dtype=np.uint8)
    for at in SCALES[kind]:
        scales = rng.normal(size=len(blocks)) * 10.0 ** rng.integers(-6, 2, size=len(blocks))
        scales[0] = 3e-7
        blocks[:, at:at + 2] = scales.astype(np.float16).reshape(-1, 1).view(np.uint8)
    return blocks.reshape(rows, -1)


def write_blocks():
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(FIXTURES / "blocks.gguf", "llama")
    expected = {}
    for kind in TYPES:
        columns = max(gguf.GGML_QUANT_SIZES[kind][0], 32)
        data = drawn_blocks(rng, kind, 4, columns)
        expected[kind.name] = gguf.dequantize(data, kind).astype(np.float32).reshape(4, columns)
        if gguf.GGML_QUANT_SIZES[kind][0] == 1 and kind != Type.BF16:
            writer.add_tensor(kind.name, data)
        else:
            writer.add_tensor(kind.name, data, raw_dtype=kind)
    finish(writer)
    save_file(expected, FIXTURES / "blocks.safetensors")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vocabulary():
    """Tokens and merges of a small tokenizer of bytes, learnt from this repository's documents."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False)
    trainer = trainers.BpeTrainer(vocab_size=317, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator((ROOT / "ARCHITECTURE.md").read_text().splitlines(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(merge) for merge in model["merges"]]


def add_gpt2(writer, pre):
    tokens, merges = vocabulary()
    control = ["<|im_start|>", "<|im_end|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(control + tokens + ["<think>"])
    writer.add_token_types([3] * len(control) + [1] * len(tokens) + [4])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(CHAT_ML)
    return len(tokens) + 3


def add_sentence_piece(writer):
    """Pieces of one to three letters; a text is put together from them by their scores."""
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    score = 0.0
    for text in ["▁t", "he", "▁the", "er", "in", "▁a", "on", "re", "▁tr", "ra", "▁tra", "ai", "▁trai", "in", "▁train"]:
        if all(text != piece for piece, _, _ in pieces):
            score -= 1.0
            pieces.append((text, score, 1))
    for letter in "▁abcdefghijklmnopqrstuvwxyzé,.":
        score -= 1.0
        pieces.append((letter, score, 1))
    while len(pieces) < 320:
        pieces.append((f"[PAD{len(pieces)}]", -1000.0, 5))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece for piece, _, _ in pieces])
    writer.add_token_scores([score for _, score, _ in pieces])
    writer.add_token_types([kind for _, _, kind in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    return len(pieces)


def write_model(name, architecture, add_tokenizer, kinds, is_tied, rope_factor=None):
    rng = np.random.default_rng(2)
    path = FIXTURES / f"{name}.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    hidden, feed, layers, heads, key_heads, width = 32, 64, 2, 4, 2, 8
    if architecture == "qwen3":
        width = 16
    writer.add_block_count(layers)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(feed)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_layer_norm_rms_eps(1e-5)
    theta = 500_000.0 if rope_factor else 10_000.0
    writer.add_rope_freq_base(theta)
    if architecture == "llama":
        writer.add_rope_dimension_count(width)
    vocab = add_tokenizer(writer)
    writer.add_vocab_size(vocab)
    kinds = iter(kinds * 100)

    def add(name, *shape):
        if len(shape) == 1:
            scale = 0.3 if name.endswith("bias") else 0.2
            numbers = rng.normal(size=shape).astype(np.float32) * scale + (0 if name.endswith("bias") else 1)
            writer.add_tensor(name, numbers.astype(np.float32))
            return
        kind = next(kinds)
        numbers = (rng.normal(size=shape) * 0.3).astype(np.float32)
        writer.add_tensor(name, gguf.quantize(numbers, kind), raw_dtype=kind)

    add("token_embd.weight", vocab, hidden)
    add("output_norm.weight", hidden)
    if not is_tied:
        add("output.weight", vocab, hidden)
    if rope_factor:
        # As llama.cpp's converter computes it.
        factors = []
        for frequency in 1.0 / theta ** (np.arange(0, width, 2, dtype=np.float32) / width):
            wavelength = 2 * np.pi / frequency
            smooth = np.clip((8192 / wavelength - 1) / 3, 0, 1)
            factors.append(1 / ((1 - smooth) / rope_factor + smooth))
        writer.add_tensor("rope_freqs.weight", np.array(factors, dtype=np.float32))
    for layer in range(layers):
        at = f"blk.{layer}."
        add(at + "attn_norm.weight", hidden)
        add(at + "ffn_norm.weight", hidden)
        for part, heads_of in [("q", heads), ("k", key_heads), ("v", key_heads)]:
            add(at + f"attn_{part}.weight", heads_of * width, hidden)
            if architecture == "qwen2":
                add(at + f"attn_{part}.bias", heads_of * width)
            if architecture == "qwen3" and part != "v":
                add(at + f"attn_{part}_norm.weight", width)
        add(at + "attn_output.weight", hidden, heads * width)
        add(at + "ffn_gate.weight", feed, hidden)
        add(at + "ffn_up.weight", feed, hidden)
        add(at + "ffn_down.weight", hidden, feed)
    finish(writer)

    # transformers reads neither the width of a head nor the factors of the frequencies.
    config = AutoConfig.from_pretrained(FIXTURES, gguf_file=path.name)
    config.head_dim = width
    if rope_factor:
        config.rope_parameters = dict(rope_type="llama3", rope_theta=theta, factor=rope_factor, low_freq_factor=1.0,
                                      high_freq_factor=4.0, original_max_position_embeddings=8192)
    model = AutoModelForCausalLM.from_pretrained(FIXTURES, config=config, gguf_file=path.name, dtype=torch.float32).eval()
    tokens = torch.tensor([[3, 14, 15, 92, 65, 35, 89, 79, 3, 23, 84, 62]])
    with torch.no_grad():
        logits = model(tokens).logits[0]
    write_json(f"{name}.json", dict(tokens=tokens[0].tolist(), logits=logits[-1].double().tolist(), weights=hashes(model, is_tied)))


def hashes(model, is_tied):
    """SHA-256 of the numbers of every weight, little-endian."""
    return {name: hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest()
            for name, value in model.state_dict().items() if not (is_tied and name == "lm_head.weight")}


def write_json(name, values):
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
    (FIXTURES / name).write_text("{\n" + lines + "\n}\n")


def hostile_texts():
    rng = random.Random(3)
    texts = ["", " ", "  ", "\n", "\r\n\t", "a\n\nb", "don't WE'LL I'm", "12345 1,234.5 ½ ٣ ²", "naïve café 日本語 русский 🙂🚀",
             "e\u0301 \u00e9 \ufb01 ｆｕｌｌ", "\u0000\u007f\u00a0\u2028\u200b\ufeff", "x" * 300, "    code(x);\n\t}", "<|im_end|>",
             "<|im_start|>system\n", "<|endoftext|><repo_name>", "< | im_end | >", "<|im_end", "a  b   c    d ", "👩‍👩‍👧‍👦🏳️‍🌈",
             "̈̈̈̈", "\U0001f468\u200d\U0001f33e", "القطط ١٢٣", "a" + "\u0300" * 40, "__init__.py:42", "{\"a\": [1, 2.5e-3, null]}",
             "SELECT * FROM t WHERE a='b''c';--", "\\boxed{\\frac{1}{2}}", "Ġ▁Ċ", "ÃÂ", "IV Ⅳ ⅷ", "00000000000", "1" * 100]
    alphabet = (list("abcdefghijklmnopqrstuvwxyzABCXYZ 0123456789.,;:!?'\"()[]{}<>|/\\-_=+*&^%$#@~`\n\t\r")
                + list("éßñœ中文日本語한글русαβγ🙂🚀½²٣\u00a0\u2003\u200b\u0301\ufb01") + ["<|im_end|>", "'s", "'ll", "  ", "\n\n"])
    while len(texts) < 400:
        texts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 60))))
    return texts


def write_smollm2(path):
    path = Path(path)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    inner = tokenizer.backend_tokenizer
    # What looks like a control token in a text is ordinary characters.
    inner.encode_special_tokens = True
    by_transformers = [inner.encode(text, add_special_tokens=False).ids for text in hostile_texts()]
    # transformers does not read that the file cuts digits apart (`tokenizer.ggml.pre`), as the model's own tokenizer.json does.
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)])
    texts = []
    for text, other in zip(hostile_texts(), by_transformers):
        ids = inner.encode(text, add_special_tokens=False).ids
        texts.append({"text": text, "ids": ids} | ({} if ids == other else {"transformers": other}))
    inner.encode_special_tokens = False
    messages = [{"role": "system", "content": "Answer with a call."}, {"role": "user", "content": "How warm is it in Oslo?"},
                {"role": "assistant", "content": "weather(city=\"Oslo\")"}, {"role": "user", "content": "-3 °C"}]
    conversations = []
    for start, end in [(0, 2), (0, 4), (1, 2), (1, 4)]:
        chosen = messages[start:end]
        ids = tokenizer.apply_chat_template(chosen, add_generation_prompt=True, tokenize=True, return_dict=False)
        conversations.append({"messages": chosen, "ids": list(ids)})
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    prompt = conversations[1]["ids"]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0].double()
        greedy = model.generate(torch.tensor([prompt]), max_new_tokens=16, do_sample=False)[0][len(prompt):]
    top = [{"position": at, "ids": row.indices.tolist(), "logits": row.values.tolist()}
           for at in [0, len(prompt) // 2, len(prompt) - 1] for row in [logits[at].topk(20)]]
    write_json("smollm2.json", dict(ends=[tokenizer.eos_token_id], texts=texts, conversations=conversations, prompt=prompt, top=top,
                                    greedy=greedy.tolist(), weights=hashes(model, True)))


def main():
    FIXTURES.mkdir(parents=True, exist_ok=True)
    write_blocks()
    write_model("llama", "llama", lambda writer: add_gpt2(writer, "smollm"), [Type.Q8_0, Type.Q4_1, Type.Q5_0, Type.Q4_0, Type.Q5_1], True)
    write_model("llama3", "llama", add_sentence_piece, [Type.Q8_0], False, rope_factor=8.0)
    write_model("qwen2", "qwen2", lambda writer: add_gpt2(writer, "qwen2"), [Type.F16], True)
    write_model("qwen3", "qwen3", lambda writer: add_gpt2(writer, "qwen2"), [Type.BF16, Type.Q8_0], True)
    if len(sys.argv) > 1:
        write_smollm2(sys.argv[1])


if __name__ == "__main__":
    main()
