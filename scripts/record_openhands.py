#!/usr/bin/env python3
"""Records what OpenHands says and does, for envs/src/toolsets/openhands: its tools, its message of the system, and its editor.

    scripts/record_openhands.py OPENHANDS ACI            needs jinja2, binaryornot, charset-normalizer and cachetools, from PyPI

OPENHANDS and ACI are folders with the unpacked wheels of openhands-ai 0.62.0 and openhands-aci 0.3.3 (`pip download --no-deps
--only-binary=:all: --python-version 3.12`, and `unzip`). Parts of the editor that need large packages, its linter and its reader of office files, are left out;
no case comes to them.
"""

import json
import logging
import random
import sys
import tempfile
import types
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "envs" / "src" / "toolsets" / "openhands"


def texts(package):
    """Tools and message of the system."""
    sys.path.insert(0, package)
    litellm = types.ModuleType("litellm")
    litellm.ChatCompletionToolParam = lambda **fields: fields
    litellm.ChatCompletionToolParamFunctionChunk = lambda **fields: fields
    sys.modules["litellm"] = litellm
    tools = []
    folder = Path(package, "openhands/agenthub/codeact_agent/tools")
    # Loaded one by one: the package's own init imports all of OpenHands.
    names = {}
    for name, path in [
        ("openhands.llm.tool_names", Path(package, "openhands/llm/tool_names.py")),
        ("openhands.agenthub.codeact_agent.tools.prompt", folder / "prompt.py"),
        ("openhands.agenthub.codeact_agent.tools.security_utils", folder / "security_utils.py"),
    ]:
        parts = name.split(".")
        for count in range(1, len(parts)):
            sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(".".join(parts[:count])))
        module = types.ModuleType(name)
        exec(path.read_text(), module.__dict__)
        sys.modules[name] = module
    config = types.ModuleType("openhands.core.config.config_utils")
    config.DEFAULT_WORKSPACE_MOUNT_PATH_IN_SANDBOX = "/workspace"
    for name in ("openhands.core", "openhands.core.config"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["openhands.core.config.config_utils"] = config
    for name in ("bash", "think", "finish", "str_replace_editor"):
        exec((folder / f"{name}.py").read_text(), names)
    for tool in (names["create_cmd_run_tool"](), names["ThinkTool"], names["FinishTool"], names["create_str_replace_editor_tool"](runtime_type="docker")):
        function = tool["function"]
        tools.append({"name": function["name"], "description": function["description"], "parameters": function["parameters"]})
    (OUT / "texts" / "tools.json").write_text(json.dumps(tools, ensure_ascii=False, indent=1) + "\n")

    import jinja2

    prompts = Path(package, "openhands/agenthub/codeact_agent/prompts")
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(prompts))
    system = environment.get_template("system_prompt.j2").render(cli_mode=False).strip()
    assert "{{" not in system and "{%" not in system
    (OUT / "texts" / "system.txt").write_text(system)


def editor(package):
    """What its editor says and leaves, call by call, each on a file of its own."""
    sys.path.insert(0, package)
    for name, member in (("openhands_aci.linter", "DefaultLinter"), ("openhands_aci.editor.md_converter", "MarkdownConverter")):
        module = types.ModuleType(name)
        setattr(module, member, type(member, (), {}))
        sys.modules[name] = module
    from openhands_aci.editor.editor import OHEditor
    from openhands_aci.editor.exceptions import ToolError

    rng = random.Random(7)
    words = ["alpha", "beta", "x = 1", "", "    return y", "\tz", "\u00e4\u00f6", "beta", "def f():"]
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.py")

        def case(text, **arguments):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_bytes(text.encode())
            # One that remembers nothing.
            tool = OHEditor(workspace_root=folder)
            try:
                result = tool(path=str(path), **arguments)
                output = f"ERROR:\n{result.error}" if result.error else result.output
            except ToolError as error:
                output = f"ERROR:\n{error.message}"
            after = path.read_bytes().decode() if path.exists() else None
            output = output.replace(str(path), "/w/file.py")
            cases.append({"before": text, "arguments": arguments, "output": output, "after": after})

        for size in (0, 1, 3, 11):
            for end in ("\n", ""):
                lines = [rng.choice(words) for _ in range(size)]
                text = "\n".join(lines) + (end if lines else "")
                case(text, command="view")
                for first, last in ((1, 1), (1, -1), (2, 4), (3, 2), (0, 2), (size, size), (1, size + 3), (size + 1, size + 1)):
                    case(text, command="view", view_range=[first, last])
                for old in ("beta", "x = 1", " beta ", lines[0] if lines else ""):
                    for new in ("one\ntwo", None, old):
                        case(text, command="str_replace", old_str=old, new_str=new)
                for line in (0, 1, 2, size, size + 1, -1):
                    case(text, command="insert", insert_line=line, new_str="new")
                    case(text, command="insert", insert_line=line, new_str="new\nlines\n")
        case("a\r\nb\r\n", command="str_replace", old_str="b", new_str="c")
        case("a\rb\r\nc", command="view")
        case("a\rb\r\nc", command="insert", insert_line=1, new_str="n")
        case("a\x0bb\x1cc\u2028d\n", command="view", view_range=[1, 1])
        case("x" * 16_100, command="view")
        case(None, command="create", file_text="new\n")
        case("there\n", command="create", file_text="new\n")
        case(None, command="view")
        case("a\n", command="create")
        case("a\n", command="str_replace")
        case("a\n", command="insert", new_str="b")
        case("a\n", command="insert", insert_line=1)
        case("a\n", command="undo_edit")
        case("a\n", command="rename")
        case("a\n", command="view", view_range=[1])
        case("a\n", command="view", view_range=[1, 2, 3])
    (OUT / "recorded.json").write_text(json.dumps(short(cases), ensure_ascii=False) + "\n")


def short(value):
    """Long runs of a character are written as their number."""
    import re

    if isinstance(value, str):
        return re.sub(r"(.)\1{40,}", lambda found: f"\u27e6{found[1]}*{len(found[0])}\u27e7", value)
    if isinstance(value, list):
        return [short(one) for one in value]
    if isinstance(value, dict):
        return {name: short(one) for name, one in value.items()}
    return value


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    texts(sys.argv[1])
    editor(sys.argv[2])
