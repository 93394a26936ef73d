#!/usr/bin/env python3
"""Write text/tests/fixtures/tokenizers/: small tokenizers of the known kinds, and how Hugging Face's
tokenizers and transformers encode and decode with them.

    python3 -m venv venv && venv/bin/pip install tokenizers transformers jinja2
    venv/bin/python scripts/make_tokenizer_fixtures.py

The vocabularies are learnt from this repository's own documents.
"""

import json
import logging
import os
import random
import shutil
import warnings
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)
from transformers import AutoTokenizer

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "text" / "tests" / "fixtures" / "tokenizers"
CORPUS = [line for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] for line in
          (ROOT / name).read_text().splitlines() if line] + [
    "naïve café, Straße, Ångström; 日本語のテキスト; русский текст; 🙂🚀 don't we'll I'm 1234 56"] * 5
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")
QWEN_2 = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
TEXTS = [
    "The policy acts; the trainer learns.", " leading", "  two", "trailing ", "", " ", "\n", "a\n\nb\r\n\tc",
    "naïve café 日本語 🙂🚀 русский", "don't WE'LL 12345 ½ ٣", "e\u0301 \u00e9 \ufb01 ｆｕｌｌ", "\u0000\u007f\u00a0\u2028\u200b",
    "x" * 70, "    indented(code);\n    }", "<think>hm</think>ok", "<unk> <0x0A> ▁ Ġ", "a  b   c    d",
]
CHAT_ML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
HEADERS = ("{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m['role'] + '<|stop|>\n\n' + m['content']|trim + "
           "'<|eot|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|stop|>\n\n' }}{% endif %}")
BRACKETS = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'assistant' %}{{ ' ' + m['content']|trim + eos_token }}"
            "{% else %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% endif %}{% endfor %}")


def special(*texts, **options):
    return [AddedToken(text, special=True, normalized=False, **options) for text in texts]


def byte_level(pattern):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    return tokenizer, trainer


def llama_3():
    tokenizer, trainer = byte_level(LLAMA_3)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(special("<|begin|>", "<|eos|>", "<|start|>", "<|stop|>", "<|eot|>"))
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", begin)])])
    return tokenizer, {"bos_token": "<|begin|>", "eos_token": "<|eos|>", "chat_template": HEADERS}


def qwen():
    tokenizer, trainer = byte_level(QWEN_2)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return tokenizer, {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": CHAT_ML}


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def sentence_piece(first_only):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    metaspace = pre_tokenizers.Metaspace("▁", prepend_scheme="first" if first_only else "always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=560, special_tokens=["<unk>", "<s>", "</s>"] + BYTES,
                                  limit_alphabet=90, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    # Only the first three are special; the bytes are ordinary tokens of the vocabulary.
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    if first_only:
        tokenizer.pre_tokenizer = metaspace
        tokenizer.add_special_tokens(special("[INST]", "[/INST]"))
    else:
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "chat_template": BRACKETS}


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
                                      show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", special=True, lstrip=True, normalized=False),
                                  AddedToken("<word>", special=True, single_word=True, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer, {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def write(name, tokenizer, config):
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False} | config
    (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n")
    fast = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(name)
    controls = [token.content for token in fast.added_tokens_decoder.values()]
    texts = TEXTS + [text + control + other for control in controls
                     for text, other in [("", ""), ("a", "b"), ("a ", " b")]]
    texts += ["".join(rng.choice(TEXTS + controls) for _ in range(4)) for _ in range(20)]
    cases = []
    for text in texts:
        ids = fast.encode(text)
        cases.append({
            "text": text, "prompt": ids, "decoded": fast.decode(ids, skip_special_tokens=True),
            "decoded_with_control": fast.decode(ids, skip_special_tokens=False),
            # As `tokenizers` has it with special tokens taken for text.
            "content": fast(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]})
    conversations = []
    if "chat_template" in config:
        for index, control in enumerate([None] + controls):
            content = lambda text: text if control is None else text + control + "\nx"
            messages = [{"role": "user", "content": content("Hello there")},
                        {"role": "assistant", "content": content("Hi 🙂")},
                        {"role": "user", "content": content(TEXTS[index % 4])}]
            conversations.append({"messages": messages, "ids": fast.apply_chat_template(
                messages, add_generation_prompt=True, return_dict=False, sanitize_control_tokens=True)})
    expected = {"cases": cases, "conversations": conversations}
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(name, len(cases), "texts", len(conversations), "conversations", fast.vocab_size)


write("llama-3", *llama_3())
write("qwen", *qwen())
write("llama-2", *sentence_piece(first_only=False))
write("mistral", *sentence_piece(first_only=True))
write("unigram", *unigram())
