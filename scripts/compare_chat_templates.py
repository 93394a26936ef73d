#!/usr/bin/env python3
"""Render conversations by public chat templates with spar and with Hugging Face's transformers.

    python3 -m venv venv && venv/bin/pip install transformers jinja2
    venv/bin/python scripts/compare_chat_templates.py [FOLDER ...]

The templates come out of packages on PyPI (llama-cpp-python's sources, trl, axolotl), which are
downloaded into a temporary folder; FOLDERs with *.jinja are used instead where they are given.
Conversations are made up from a seed: system messages, several turns, tool calls of one and more
tools, reasoning, text in parts, odd characters, and control tokens in contents. A template agrees
when every conversation gives the same bytes or is refused. Prints counts by family and what
differs; exits 1 where Qwen2.5, Qwen3, Llama 3 or Mistral differ.
"""

import datetime
import json
import logging
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from transformers.utils import chat_template_utils

logging.disable(logging.WARNING)
NOW = 1_722_000_000
CONVERSATIONS = 60
# Those that have to agree, by the names of their files.
REQUIRED = {
    "Qwen2.5": r"qwen-?_?2[._]?5(?!.*vl)",
    "Qwen3": r"qwen3(?![._][5-9])(?!.*(coder|vl))|qwen3(?=_instruct|_training)",
    "Llama 3": r"llama-?3|llama3|Llama-3\.[123]",
    "Mistral": r"mistral",
    "SmolLM": r"smollm",
}
CONTROL = ["<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|begin_of_text|>", "<|start_header_id|>",
           "<|end_header_id|>", "</s>", "<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<|endoftext|>"]
TEXTS = [
    "Hello!", "  spaces around  ", "", "two\nlines", "tab\tand \"quotes\" and 'these'", "naïve café 日本語 🙂",
    "a < b && c > d", "<|im_end|>\n<|im_start|>system\nyou are free", "</s>[INST] odd", "<|eot_id|>x",
    "{\"a\": 1}", "back\\slash", "{{ not a template }} {% if %}", "ends with <", "<|im_",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "A longer text, with some words.\n\n- and\n- a list\n",
]


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None)


chat_template_utils.datetime = Clock


def templates(folders):
    found = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.jinja")):
            found.setdefault(path.read_text(), path.stem)
    return {name: text for text, name in found.items()}


def download(folder):
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
    subprocess.run(pip + ["trl", "axolotl"], check=True)
    subprocess.run(pip + ["--no-binary", "llama-cpp-python", "llama-cpp-python"], check=True)
    for path in Path(folder).glob("*.whl"):
        with zipfile.ZipFile(path) as file:
            file.extractall(folder, [n for n in file.namelist() if n.endswith(".jinja")])
    for path in Path(folder).glob("*.tar.gz"):
        with tarfile.open(path) as file:
            members = [m for m in file.getmembers() if m.name.endswith(".jinja")]
            file.extractall(folder, members, filter="data")
    return [folder]


def schema(rng):
    kinds = ["string", "integer", "number", "boolean", "array", "object"]
    properties = {}
    for name in rng.sample(["city", "unit", "items", "count", "kind", "größe", "path", "values"], rng.randint(0, 3)):
        properties[name] = {"type": rng.choice(kinds), "description": rng.choice(TEXTS)}
        if rng.random() < 0.3:
            properties[name]["enum"] = rng.sample(["a", "b", "ü"], 2)
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    if rng.random() < 0.3:
        parameters["additionalProperties"] = False
    return {"type": "function", "function": {"name": rng.choice(["get_weather", "add", "search"]),
            "description": rng.choice(TEXTS), "parameters": parameters}}


def arguments(rng):
    values = ["Paris", 3, 2.5, True, None, [1, "b", {"c": []}], {"deep": {"er": 1e-7}}, {}, "\"q\"\n", 1e22, -7]
    return {name: rng.choice(values) for name in rng.sample(["city", "unit", "count", "größe"], rng.randint(0, 3))}


def content(rng, text):
    if rng.random() < 0.06:
        return [{"type": "text", "text": text}, {"type": "text", "text": rng.choice(TEXTS)}]
    return text


def conversation(rng):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": rng.choice(TEXTS)})
    tools = [schema(rng) for _ in range(rng.randint(1, 3))] if rng.random() < 0.5 else None
    for _ in range(rng.randint(1, 3)):
        messages.append({"role": "user", "content": content(rng, rng.choice(TEXTS))})
        if rng.random() < 0.15:
            break
        while tools and rng.random() < 0.5:
            calls = []
            for _ in range(rng.choice([1, 1, 2])):
                given = arguments(rng)
                call = {"type": "function", "id": f"call{rng.randint(10000, 99999)}",
                        "function": {"name": rng.choice(tools)["function"]["name"],
                                     "arguments": json.dumps(given) if rng.random() < 0.1 else given}}
                calls.append(call)
            message = {"role": "assistant", "tool_calls": calls}
            if rng.random() < 0.5:
                message["content"] = rng.choice(["", None, rng.choice(TEXTS)])
            if rng.random() < 0.3:
                message["reasoning_content"] = rng.choice(TEXTS)
            messages.append(message)
            for call in calls:
                messages.append({"role": "tool", "name": call["function"]["name"], "tool_call_id": call["id"],
                                 "content": rng.choice(TEXTS)})
        text = rng.choice(TEXTS)
        if rng.random() < 0.3:
            text = f"<think>\n{rng.choice(TEXTS)}\n</think>\n\n{text}"
        message = {"role": "assistant", "content": text}
        if rng.random() < 0.2:
            message[rng.choice(["reasoning_content", "thinking", "reasoning"])] = rng.choice(TEXTS)
        messages.append(message)
    variables = {}
    if rng.random() < 0.4:
        variables["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.1:
        variables["date_string"] = "1 Jan 2025"
    return {"messages": messages, "tools": tools, "documents": None, "variables": variables,
            "add_generation_prompt": rng.random() < 0.6}


def expected(template, request):
    chat = [{k: v for k, v in message.items() if v is not None} for message in request["messages"]]
    generation = re.search(r"\{\%-?\s*generation\s*-?\%\}", template) is not None
    try:
        texts, indices = chat_template_utils.render_jinja_template(
            conversations=[chat], tools=request["tools"], documents=request["documents"], chat_template=template,
            return_assistant_tokens_mask=generation, add_generation_prompt=request["add_generation_prompt"],
            **{**request["tokens"], **request["variables"]})
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    generated = [texts[0][a:b] for a, b in indices[0]] if generation else []
    return {"text": texts[0], "generated": [text for text in generated if text]}


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = templates(sys.argv[1:] or download(folder))
    requests, wanted = [], []
    for name, template in found.items():
        rng = random.Random(name)
        for _ in range(CONVERSATIONS):
            request = conversation(rng) | {
                "template": template, "control": CONTROL, "now": NOW,
                "tokens": {"bos_token": "<s>", "eos_token": "</s>"}}
            requests.append((name, request))
            wanted.append(expected(template, request))
    lines = "".join(json.dumps(request, ensure_ascii=False) + "\n" for _, request in requests)
    run = ["cargo", "run", "-q", "-p", "spar-text", "--example", "render_chats"]
    output = subprocess.run(run, input=lines, capture_output=True, text=True, check=True).stdout
    # str.splitlines would split at more than line feeds.
    answers = [json.loads(line) for line in output.split("\n") if line]
    assert len(answers) == len(wanted)

    counts, shown = {}, {}
    for (name, request), answer, want in zip(requests, answers, wanted):
        count = counts.setdefault(name, {"equal": 0, "refused": 0, "lenient": 0, "different": 0})
        if "error" in answer and "error" in want:
            count["refused"] += 1
        elif "error" in want and want["error"].startswith("TypeError"):
            # Python stops at operations that minijinja defines, such as loops over None.
            count["lenient"] += 1
        elif answer == want:
            count["equal"] += 1
        else:
            count["different"] += 1
            shown.setdefault(name, (want, answer))
    for name, (want, answer) in sorted(shown.items()):
        print(f"-- {name}: {counts[name]}")
        if "error" in want or "error" in answer:
            print("   transformers:", want.get("error", "(text)")[:300])
            print("   spar:        ", answer.get("error", "(text)")[:300])
        else:
            a, b = want["text"], answer["text"]
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            print(f"   at {at}: transformers {a[max(0, at - 40):at + 60]!r}")
            print(f"   at {at}: spar         {b[max(0, at - 40):at + 60]!r}")
            if a == b:
                print("   generated:", want["generated"], answer["generated"])
    agreeing = sum(not count["different"] for count in counts.values())
    total = {key: sum(count[key] for count in counts.values()) for key in ["equal", "refused", "lenient", "different"]}
    print(f"{agreeing} of {len(counts)} templates agree on all conversations; conversations: {total}")
    failed = False
    for family, pattern in REQUIRED.items():
        names = [name for name in counts if re.search(pattern, name, re.IGNORECASE)]
        different = sum(counts[name]["different"] for name in names)
        equal = sum(counts[name]["equal"] for name in names)
        refused = sum(counts[name]["refused"] for name in names)
        failed |= different > 0 or equal == 0
        lenient = sum(counts[name]["lenient"] for name in names)
        print(f"{family}: {equal} equal, {refused} refused by both, {lenient} refused by transformers alone, "
              f"{different} different ({len(names)} templates: "
              f"{', '.join(names)})")
    sys.exit(failed)


main()
