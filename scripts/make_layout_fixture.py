#!/usr/bin/env python3
"""Write text/tests/fixtures/layouts.json: conversations cut at every turn, as the tokens of Hugging Face's
`apply_chat_template`, for templates that are laid out like those of public models.

    python3 -m venv venv && venv/bin/pip install tokenizers transformers jinja2
    venv/bin/python scripts/make_layout_fixture.py [FOLDER]

With FOLDER, the *.jinja files in it are used instead, and the fixture goes to the file `layouts.json`
there; text/tests/it/layouts.rs reads it from SPAR_LAYOUTS. Tokenizers are those of
text/tests/fixtures/tokenizers, their control tokens renamed. The day is 26 July 2024.
"""

import datetime
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path

from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


chat_template_utils.datetime = Clock
FIXTURES = Path(__file__).parent.parent / "text" / "tests" / "fixtures"
HEADERS = {"<|begin|>": "<|begin_of_text|>", "<|eos|>": "<|end_of_text|>", "<|start|>": "<|start_header_id|>",
           "<|stop|>": "<|end_header_id|>", "<|eot|>": "<|eot_id|>"}
BASES = {
    "qwen": ({}, {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}),
    "llama-3": (HEADERS, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}),
    "mistral": ({}, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
}
# Name: tokenizer, template, and whether it has a place for instructions.
TEMPLATES = {
    # Instructions of its own where there are none, as Qwen2.5's.
    "default-system": ("qwen", r"""
{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- else %}
    {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) or message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}""", True),
    # An empty thought behind the last question, as Qwen3's.
    "thoughts": ("qwen", r"""
{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
    {%- if m.role == 'assistant' and loop.index0 > ns.last %}
        {{- '<|im_start|>assistant\n<think>\n\n</think>\n\n' + m.content.lstrip('\n') + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}""", True),
    # A token for the beginning before the first message, as Llama 3's.
    "headers": ("llama-3", "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
                "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + "
                "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
                "{{ content }}{% endfor %}{% if add_generation_prompt %}"
                "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}", True),
    # The day in instructions that are always there, as Llama 3.2's.
    "dated-headers": ("llama-3", r"""{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + strftime_now("%d %b %Y") + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
""", True),
    # No instructions, as Mistral's first.
    "brackets": ("mistral", "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
                 "(loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
                 "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
                 "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token}}{% endif %}"
                 "{% endfor %}", False),
    # Instructions move to the last question, as Mistral's third.
    "moving": ("mistral", r"""
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message['role'] == 'user' %}
        {%- if loop.last and system_message is defined %}
            {{- '[INST] ' + system_message + '\n\n' + message['content'] + '[/INST]' }}
        {%- else %}
            {{- '[INST] ' + message['content'] + '[/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}
""", False),
    # Instructions are part of the first question and stay there.
    "staying": ("mistral", r"""
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"]|trim + '\n\n' %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- bos_token }}
{%- for message in messages %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' + (system_message if loop.first else '') + message['content'] + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message['content']|trim + eos_token }}
    {%- endif %}
{%- endfor %}
""", True),
}
INSTRUCTIONS = "You act in a text world. Answer with one action."
QUESTIONS = ["You see a desk 1, and a mug 2.\nAdmissible actions:\n- look\n- take mug 2", "  Nothing happens. \n",
             "naïve café, 日本語 🙂\n\n1234", "[x] <|im <end> don't", "Done."]
ANSWERS = ["take mug 2 from desk 1", "look", "go to 日本 12", "Ok, I'll go."]


def conversations():
    for turns in range(len(QUESTIONS)):
        messages = []
        for turn in range(turns + 1):
            messages.append({"role": "user", "content": QUESTIONS[turn]})
            if turn < turns:
                messages.append({"role": "assistant", "content": ANSWERS[turn]})
        yield messages
        yield [{"role": "system", "content": INSTRUCTIONS}] + messages


def layout(name, base, template, has_place):
    rename, names = BASES[base]
    text = (FIXTURES / "tokenizers" / base / "tokenizer.json").read_text()
    for old, new in rename.items():
        text = text.replace(json.dumps(old)[1:-1], new)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False} | names
    config["chat_template"] = template
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tokenizer.json").write_text(text)
        (Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    cases = []
    for messages in conversations():
        try:
            ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        except Exception:
            ids = None
        cases.append({"messages": messages, "ids": ids})
    return {"name": name, "base": base, "rename": rename, "config": config,
            "has_place_for_instructions": has_place, "cases": cases}


if len(sys.argv) > 1:
    folder, found = Path(sys.argv[1]), []
    for path in sorted(folder.rglob("*.jinja")):
        text = path.read_text()
        base = "qwen" if "<|im_start|>" in text else "llama-3" if "<|start_header_id|>" in text else \
            "mistral" if "[INST]" in text else None
        if base:
            found.append(layout(str(path.relative_to(folder)), base, text, None))
    target = folder / "layouts.json"
else:
    found = [layout(name, *rest) for name, rest in TEMPLATES.items()]
    target = FIXTURES / "layouts.json"
target.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n")
print(len(found), "layouts,", target.stat().st_size, "bytes")
