#!/usr/bin/env python3
"""Records what agents of published scaffolds are shown, for scripted answers.

The originals run as they are, on this machine, in an empty folder, with a model that answers from a list:

    python3 -m venv venv && venv/bin/pip install mini-swe-agent==2.4.6
    venv/bin/python scripts/record_scaffolds.py mini envs/src/toolsets/mini/recorded.json

    git clone https://github.com/SWE-agent/SWE-agent && venv/bin/pip install -e ./SWE-agent
    venv/bin/python scripts/record_scaffolds.py aci envs/src/toolsets/aci/recorded.json

    python3 -m venv other && other/bin/pip install harbor==0.26.0
    other/bin/python scripts/record_scaffolds.py terminus envs/src/toolsets/terminus/recorded.json

mini-swe-agent works in containers; here its `docker` is a program that runs what it is given on this machine. SWE-agent puts its
tools into /root/tools, and there a repository is put into /testbed, of the machine it is run on: run it where that does no harm.
"""

import argparse
import json
import os
import re
import stat
import sys
import tempfile
from pathlib import Path

DOCKER = """#!{python}
import os, subprocess, sys
words = sys.argv[1:]
if words[0] == "run":
    print("container")
elif words[0] == "exec":
    env, words = dict(PATH=os.environ["PATH"], HOME="{folder}", LC_ALL="C.UTF-8"), words[1:]
    while words[0] in ("-w", "-e"):
        if words[0] == "-e":
            name, _, value = words[1].partition("=")
            env[name] = value
        words = words[2:]
    env["BASH_ENV"] = ""
    code = subprocess.run(words[1:], cwd="{folder}", env=env).returncode
    sys.exit(code if code >= 0 else 128 - code)
"""

LONG = "python3 -c \"print('ä' * {0}, end='')\""

# Commands, one after the other, each an answer of its own.
COMMANDS = [
    "echo hello",
    "printf 'no end'",
    "ls /no/such/folder",
    "echo out; echo err >&2; echo out again; exit 3",
    "cd /tmp && X=1; pwd >/dev/null; echo \"[$X]\"",
    "echo \"[$X] $PAGER $LESS $TQDM_DISABLE\"",
    "no_such_command_at_all --x",
    "if then",
    "echo 'a b' | (read -r x; echo \"$x\")",
    "printf 'a\\r\\nb\\rc\\n'",
    "printf '\\377\\376 \\303\\244\\n'",
    "kill -9 $$",
    LONG.format(25000),
    "true",
    "cat",
    "cat <<'EOF' > new.py\nprint('x')\nEOF\ncat new.py",
    "echo first; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; false",
]
LONG_ONES = [LONG.format(9999), LONG.format(10000), LONG.format(10001), "seq 1 4000"]
SUBMIT = "echo; echo '  COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT ' && printf 'diff --git a/x b/x\\nmore'"


def short(value):
    """Runs of a character that are long stand as `⟦character*number⟧`."""
    if isinstance(value, dict):
        return {name: short(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [short(inner) for inner in value]
    if isinstance(value, str):
        return re.sub(r"([^⟦⟧])\1{99,}", lambda run: f"⟦{run[1]}*{len(run[0])}⟧", value)
    return value


def call(name, arguments, content="THOUGHT: so.", finish="tool_calls"):
    calls = [(name, arguments)] if isinstance(name, str) else name
    written = lambda it: it if isinstance(it, str) else json.dumps(it)
    return {"content": content, "calls": [[name, written(given)] for name, given in calls], "finish": finish}


def said(content, finish="stop"):
    return {"content": content, "calls": [], "finish": finish}


def bash(*commands):
    return call([("bash", {"command": command}) for command in commands], None)


def block(command, mark):
    return said(mark.format(command))


MARKS = {
    "backticks": "THOUGHT: so.\n\n```mswea_bash_command\n{}\n```\n",
    "xml": "THOUGHT: so.\n<mswea_bash_command>{}</mswea_bash_command>",
    "v1": "THOUGHT: so.\n\n```bash\n{}\n```\n",
}


def scripts():
    yield "calls", "work", [bash(command) for command in COMMANDS + LONG_ONES] + [bash(SUBMIT)]
    yield "calls", "several", [bash("echo one", "echo two >&2; exit 1"), bash("echo a", SUBMIT, "echo never")]
    yield "calls", "format", [
        said("I am done."),
        bash("echo fine"),
        said("It goes on", finish="length"),
        bash("echo fine"),
        call("submit", {}),
        call("bash", {"cmd": "ls"}),
        bash("echo fine"),
        said("one"),
        said("two"),
        said("three"),
    ]
    for form, mark in MARKS.items():
        yield form, "work", [block(command, mark) for command in COMMANDS] + [block(SUBMIT, mark)]
        two = mark.format("echo one") + mark.format("echo two")
        yield form, "format", [
            said("I am done."),
            block("echo fine", mark),
            said(two),
            said("It goes on", finish="length"),
            block("  echo fine\n\n", mark),
            said(mark.format("echo fine") * 3),
            block("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", mark),
        ]


def mini(out):
    import litellm
    import minisweagent
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.config import builtin_config_dir

    records = {"version": minisweagent.__version__, "task": "`calc.add` subtracts.\n\nIt should add.", "cases": []}
    is_first = minisweagent.__version__.startswith("1.")
    for form, name, answers in scripts():
        if (form == "v1") != is_first:
            continue
        with tempfile.TemporaryDirectory() as folder:
            docker = Path(folder, "docker")
            docker.write_text(DOCKER.format(python=sys.executable, folder=folder))
            docker.chmod(docker.stat().st_mode | stat.S_IEXEC)
            work = Path(folder, "work")
            work.mkdir()
            docker.write_text(DOCKER.format(python=sys.executable, folder=work))
            case = v1_case if is_first else v2_case
            case = case(form, answers, records["task"], str(docker), builtin_config_dir, yaml, litellm, DefaultAgent)
            records["cases"].append({"form": form, "name": name, "answers": answers, **case})
    if not is_first:
        records["late"] = late()
    old = json.loads(Path(out).read_text()) if Path(out).exists() else {}
    old["v1" if is_first else "v2"] = records
    Path(out).write_text(json.dumps(short(old), ensure_ascii=False, indent=1) + "\n")


def v2_case(form, answers, task, docker, configs, yaml, litellm, DefaultAgent):
    from minisweagent.environments.docker import DockerEnvironment
    from minisweagent.models.litellm_model import LitellmModel
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    file = {"calls": "swebench", "backticks": "swebench_backticks", "xml": "swebench_xml"}[form]
    config = yaml.safe_load((configs / "benchmarks" / f"{file}.yaml").read_text())
    left = list(answers)

    class Scripted(LitellmModel if form == "calls" else LitellmTextbasedModel):
        def _query(self, messages, **kwargs):
            answer = left.pop(0)
            function = lambda it: {"name": it[0], "arguments": it[1]}
            calls = [
                {"id": f"c{len(left)}{place}", "type": "function", "function": function(it)}
                for place, it in enumerate(answer["calls"])
            ]
            message = {"role": "assistant", "content": answer["content"], "tool_calls": calls or None}
            choice = {"index": 0, "finish_reason": answer["finish"], "message": message}
            return litellm.ModelResponse(choices=[choice], model="scripted")

    config["model"].pop("model_class", None)
    model = Scripted(**config["model"], cost_tracking="ignore_errors")
    config["environment"].pop("environment_class")
    environment = DockerEnvironment(**config["environment"], image="none", executable=docker)
    agent = DefaultAgent(model, environment, **config["agent"])
    ended = agent.run(task)
    shown = []
    for message in agent.messages[2:]:
        if message["role"] in ("tool", "user"):
            extra = message.get("extra", {})
            raw = {name: extra.get(name) for name in ("raw_output", "returncode", "exception_info")}
            raw = raw if raw["raw_output"] is not None else None
            shown.append({"role": message["role"], "text": message["content"], "raw": raw})
    first = [message["content"] for message in agent.messages[:2]]
    end = {"status": ended["exit_status"], "submission": ended["submission"], "answers_left": len(left)}
    return {"first": first, "shown": shown, "end": end}


def v1_case(form, answers, task, docker, configs, yaml, litellm, DefaultAgent):
    from minisweagent.environments.docker import DockerEnvironment

    config = yaml.safe_load((configs / "extra" / "swebench.yaml").read_text())
    left = list(answers)

    class Scripted:
        n_calls, cost = 0, 0.0

        def query(self, messages):
            self.n_calls += 1
            return {"content": left.pop(0)["content"]}

        def get_template_vars(self):
            return {}

    config["environment"].pop("environment_class")
    environment = DockerEnvironment(**config["environment"], image="none", executable=docker)
    outputs, execute = [], environment.execute
    environment.execute = lambda *given: outputs.append(execute(*given)) or outputs[-1]
    agent = DefaultAgent(Scripted(), environment, **config["agent"])
    status, submission = agent.run(task)
    shown = [{"role": "user", "text": it["content"], "raw": None} for it in agent.messages[2:-1] if it["role"] == "user"]
    left_outputs = list(outputs)
    for one in shown:
        if one["text"].startswith("<returncode>"):
            output = left_outputs.pop(0)
            one["raw"] = {"raw_output": output["output"], "returncode": output["returncode"], "exception_info": ""}
    first = [message["content"] for message in agent.messages[:2]]
    end = {"status": status, "submission": submission, "answers_left": len(left)}
    return {"first": first, "shown": shown, "end": end}


def late():
    """A command that takes too long, where the original runs it itself."""
    from minisweagent.environments.local import LocalEnvironment

    command = "echo before; sleep 5; echo behind"
    output = LocalEnvironment(timeout=1).execute({"command": command})
    return {"command": command, "seconds": 1, **{name: output[name] for name in ("output", "returncode", "exception_info")}}


# What is in the repository at first.
FILES = {
    "calc/__init__.py": "def add(a, b):\n\treturn a - b\n\n\ndef mul(a, b):\n    return a * b\n",
    "notes.txt": "one\r\ntwo\r\nthree\r\n",
    "long.txt": "".join(f"line {number}\n" for number in range(1, 4001)),
    "latin.txt": b"caf\xe9\nbar\n",
    "empty.txt": "",
    ".hidden": "x\n",
}


def edit(command, path, **rest):
    return call("str_replace_editor", {"command": command, "path": path, **rest})


def shell(command):
    return call("bash", {"command": command})


ACI = [
    shell("ls"),
    shell("cd calc && X=5"),
    shell('echo "$X"; pwd; echo "$PAGER $TQDM_DISABLE $LC_ALL"'),
    shell("cd .."),
    shell("no_such_command_at_all"),
    shell("echo out; echo err >&2\necho again"),
    shell("true"),
    shell("printf 'no end'"),
    shell("if then"),
    shell("vim x"),
    shell("echo fine"),
    shell("python3"),
    shell("cat <<'E'\na  b\nE"),
    shell("for i in 1 2; do\n  echo $i\ndone"),
    shell("printf '\\033[31mred\\033[0m\\n\\377\\n'"),
    shell("python3 -c 'print(\"x\" * 100005)'"),
    shell("(exit 3); echo $?"),
    said("I am done."),
    call([("bash", {"command": "echo a"}), ("bash", {"command": "echo b"})], None),
    shell("echo fine"),
    call("edit", {"x": 1}),
    call("bash", {"cmd": "ls"}),
    shell("echo fine"),
    call("submit", {"force": True}),
    edit("view", "/testbed"),
    edit("view", "/testbed", view_range=[1, 2]),
    edit("view", "/testbed/calc/__init__.py"),
    edit("view", "/testbed/calc/__init__.py", view_range=[2, 5]),
    edit("view", "/testbed/calc/__init__.py", view_range=[5, -1]),
    edit("view", "/testbed/calc/__init__.py", view_range=[0, 3]),
    edit("view", "/testbed/calc/__init__.py", view_range=[9, 3]),
    edit("view", "/testbed/calc/__init__.py", view_range=[3, 99]),
    edit("view", "/testbed/calc/__init__.py", view_range=[5, 3]),
    edit("view", "/testbed/calc/__init__.py", view_range=[5]),
    edit("view", "/testbed/calc/__init__.py", view_range=[5, 6, 7]),
    edit("view", "calc/__init__.py"),
    edit("view", "/testbed/no_such.py"),
    edit("view", "/testbed/empty.txt"),
    edit("view", "/testbed/notes.txt"),
    edit("view", "/testbed/latin.txt"),
    edit("view", "/testbed/long.txt"),
    edit("look", "/testbed/notes.txt"),
    edit("create", "/testbed/new.py", file_text="print(1)\n"),
    edit("create", "/testbed/new.py", file_text="print(2)\n"),
    edit("create", "/testbed/newer.py"),
    edit("create", "/testbed/no/such/folder.py", file_text="x"),
    edit("create", "/testbed/calc", file_text="x"),
    edit("str_replace", "/testbed/calc/__init__.py", old_str="\treturn a - b", new_str="\treturn a + b"),
    shell("cat -A calc/__init__.py"),
    edit("str_replace", "/testbed/calc/__init__.py", old_str="return", new_str="x"),
    edit("str_replace", "/testbed/calc/__init__.py", old_str="nowhere", new_str="x"),
    edit("str_replace", "/testbed/calc/__init__.py", old_str="a * b", new_str="a * b"),
    edit("str_replace", "/testbed/calc/__init__.py", new_str="x"),
    edit("str_replace", "/testbed/calc/__init__.py", old_str="\n\ndef mul", new_str=""),
    edit("str_replace", "/testbed/calc", old_str="a", new_str="b"),
    edit("str_replace", "/testbed/long.txt", old_str="line 2000\n", new_str="a\nb\nc\n"),
    edit("str_replace", "/testbed/latin.txt", old_str="bar", new_str="baz"),
    edit("str_replace", "/testbed/latin.txt", old_str="baz", new_str="\u20ac"),
    shell("od -c latin.txt"),
    edit("str_replace", "/testbed/notes.txt", old_str="two", new_str="2"),
    shell("od -c notes.txt"),
    edit("insert", "/testbed/new.py", insert_line=0, new_str="import os"),
    edit("insert", "/testbed/new.py", insert_line=2, new_str="    x = 1\n"),
    edit("insert", "/testbed/new.py", insert_line=99, new_str="x"),
    edit("insert", "/testbed/new.py", insert_line=-1, new_str="x"),
    edit("insert", "/testbed/new.py", new_str="x"),
    edit("insert", "/testbed/new.py", insert_line=1),
    edit("insert", "/testbed/new.py", insert_line="one", new_str="x"),
    edit("insert", "/testbed/new.py", insert_line=1, new_str="-x"),
    edit("insert", "/testbed/new.py", insert_line=1, new_str="- x"),
    shell("cat -A new.py"),
    edit("undo_edit", "/testbed/nothing.py"),
    edit("undo_edit", "/testbed/.hidden"),
    call("find_file", {"file_name": "*.py"}),
    call("find_file", {"file_name": "*.py", "dir": "/testbed/calc"}),
    call("find_file", {"file_name": "*.c"}),
    call("find_file", {"file_name": "*.c", "dir": "/no/such"}),
    call("search_dir", {"search_term": "return"}),
    call("search_dir", {"search_term": "nowhere at all", "dir": "/testbed"}),
    call("search_dir", {"search_term": "line 1", "dir": "/testbed/calc/.."}),
    call("search_file", {"search_term": "return", "file": "calc/__init__.py"}),
    call("search_file", {"search_term": "line 100", "file": "long.txt"}),
    call("search_file", {"search_term": "nowhere", "file": "long.txt"}),
    call("search_file", {"search_term": "return", "file": "none.py"}),
    call("search_file", {"search_term": "return"}),
    shell("sleep 30"),
    shell("echo still here"),
    shell("rm -f long.txt latin.txt new.py empty.txt .hidden && git checkout -q . && sed -i 's/a - b/a + b/' calc/__init__.py"),
    call("submit", {}),
    call("submit", {}),
]


def aci(out):
    import asyncio
    import shutil
    import subprocess

    root = Path("/testbed")
    assert not root.exists() and not Path("/root/tools").exists(), "somebody else's"
    os.environ["TERM"] = "dumb"
    import sweagent
    import yaml
    from sweagent.agent.agents import DefaultAgent, DefaultAgentConfig
    from sweagent.agent.models import InstantEmptySubmitTestModel
    from sweagent.agent.problem_statement import TextProblemStatement
    from sweagent.environment.repo import PreExistingRepoConfig
    from sweagent.environment.swe_env import SWEEnv
    from swerex.deployment.local import LocalDeployment

    try:
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "base"], check=True)
        home = Path(sweagent.__file__).parent.parent
        config = yaml.safe_load((home / "config" / "default.yaml").read_text())["agent"]
        config["tools"]["bundles"].insert(1, {"path": "tools/search"})
        # Its parser of whole files cannot be installed without a network; then they are shown clipped.
        config["tools"]["registry_variables"]["USE_FILEMAP"] = "false"
        config["tools"]["execution_timeout"] = 3
        config["model"] = {"name": "instant_empty_submit"}
        config = DefaultAgentConfig.model_validate(config)
        env = SWEEnv(
            deployment=LocalDeployment(), repo=PreExistingRepoConfig(repo_name="testbed", reset=False), post_startup_commands=[]
        )
        agent = DefaultAgent.from_config(config)
        left = list(ACI)

        def query(history):
            answer = left.pop(0)
            function = lambda it: {"name": it[0], "arguments": it[1]}
            calls = [
                {"id": f"c{len(left)}{place}", "type": "function", "function": function(it)}
                for place, it in enumerate(answer["calls"])
            ]
            return {"message": answer["content"], "tool_calls": calls or None}

        agent.model.query = query
        env.start()
        shown, task = [], "`calc.add` subtracts.\n\nIt should add."
        requery = agent.get_model_requery_history
        agent.get_model_requery_history = lambda **given: shown.append(requery(**given)[-1]["content"]) or requery(**given)
        append = agent._append_history

        def appended(item):
            if item.get("message_type") == "observation":
                shown.append(item["content"])
            append(item)

        agent._append_history = appended
        agent.setup(env, TextProblemStatement(text=task), Path(tempfile.mkdtemp()))
        first = [agent.history[0]["content"], shown.pop(0)]
        done = False
        while not done:
            done = agent.step().done
        env.close()
        record = {
            "version": sweagent.__version__,
            "task": task,
            "files": {name: text if isinstance(text, str) else {"latin1": text.decode("latin1")} for name, text in FILES.items()},
            "first": first,
            "answers": ACI,
            "shown": shown,
            "end": {"status": agent.info.get("exit_status"), "submission": agent.info.get("submission")},
        }
        Path(out).write_text(json.dumps(short(record), ensure_ascii=False, indent=1) + "\n")
    finally:
        for path in (root, Path("/root/tools")):
            shutil.rmtree(path, ignore_errors=True)
        for name in (".swe-agent-env", "state.json", "model.patch"):
            Path("/root", name).unlink(missing_ok=True)


OBJECT = '{"analysis": "a", "plan": "p", "commands": [%s]}'
KEYS = '{"keystrokes": "ls\\n", "duration": 0.1}'
ANSWERS = [
    OBJECT % KEYS,
    OBJECT % "",
    "",
    "no json",
    "Sure! " + OBJECT % KEYS + " There.",
    "```json\n" + OBJECT % KEYS + "\n```",
    OBJECT % (KEYS + ", " + KEYS),
    OBJECT % '{"keystrokes": "ls"}, {"keystrokes": "C-c", "duration": 1}',
    OBJECT % '{"keystrokes": "", "duration": 10.0}, {"keystrokes": "x\\n", "duration": 999}',
    OBJECT % '{"keystrokes": "a", "duration": "long"}',
    OBJECT % '{"keystrokes": "a", "duration": true}',
    OBJECT % '{"keystrokes": "a", "duration": null}',
    OBJECT % '{"keystrokes": 5, "duration": 1}',
    OBJECT % '{"duration": 1}',
    OBJECT % '"ls"',
    OBJECT % '{"keystrokes": "a", "duration": 1, "wait": 2}',
    '{"analysis": "a", "commands": []}',
    '{"plan": "a"}',
    '{"analysis": 1, "plan": [], "commands": []}',
    '{"analysis": "a", "plan": "p", "commands": {}}',
    '{"analysis": "a", "plan": "p", "commands": "ls"}',
    '{"commands": [], "analysis": "a", "plan": "p"}',
    '{"plan": "p", "analysis": "\\"commands\\": x", "commands": []}',
    '{"analysis": "a", "plan": "p", "commands": [], "task_complete": true}',
    '{"analysis": "a", "plan": "p", "commands": [], "task_complete": "Yes"}',
    '{"analysis": "a", "plan": "p", "commands": [], "task_complete": "no"}',
    '{"analysis": "a", "plan": "p", "commands": [], "task_complete": 1}',
    '{"analysis": "a", "plan": "p", "commands": [], "task_complete": null}',
    '{"analysis": "a", "plan": "p", "commands": [5], "task_complete": true}',
    '{"analysis": "a", "plan": "p", "commands": [' + KEYS + "]",
    '{"analysis": "a", "plan": "p", "commands": [' + KEYS,
    '{"analysis": "a" "plan": "p", "commands": []}',
    '{"analysis": "a", "plan": "p", "commands": [],}',
    "{'analysis': 'a'}",
    '{"analysis": "a\nb", "plan": "p", "commands": []}',
    '{"analysis": "\\q", "plan": "p", "commands": []}',
    '{"analysis": "\\u00e4 \\ud83d\\ude00", "plan": "p", "commands": [{"keystrokes": "\\u00e4", "duration": 1}]}',
    '{"analysis": "' + "x" * 300 + '", "plan" "p"}',
    '{bad} {"analysis": "a", "plan": "p", "commands": []}',
    "thinking {of braces} then " + OBJECT % KEYS,
    '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "a", "duration": -1}]}',
    '[{"analysis": "a", "plan": "p", "commands": []}]',
    '{"analysis": "unclosed',
    '{"analysis": "{", "plan": "}", "commands": []}',
    '{"analysis": nan, "plan": "p", "commands": []}',
    '{"analysis": tru, "plan": "p", "commands": []}',
    '"only a string {"',
    "}{",
]
TYPED = [
    "echo hello\n",
    "cd /tmp && pwd\n",
    "printf 'no end'\n",
    "seq 1 100\n",
    "cat\n",
    "typed into cat\n",
    "C-c",
    "python3 -q\n",
    "1 + 1\n",
    "C-d",
    "",
    "no_such_command\n",
    "echo 'Enter' | wc -c\n",
    "Enter",
    "seq 1 3000\n",
    "clear\n",
    "echo ä; printf '\\033[31mred\\033[0m\\n'\n",
]


def terminus(out):
    import asyncio
    import subprocess
    from types import SimpleNamespace

    from harbor.agents.terminus_2.terminus_2 import Terminus2
    from harbor.agents.terminus_2.terminus_json_plain_parser import TerminusJSONPlainParser
    from harbor.agents.terminus_2 import tmux_session
    from importlib.metadata import version

    answers = []
    for text in ANSWERS:
        read = TerminusJSONPlainParser().parse_response(text)
        commands = [[it.keystrokes, float(max(0, min(it.duration, 60)))] for it in read.commands]
        answers.append(
            {"text": text, "commands": commands, "is_complete": bool(read.is_task_complete), "error": read.error, "warning": read.warning}
        )
    limit = lambda text: Terminus2._limit_output_length(None, text)
    texts = ["short", "x" * 10000, "x" * 10001, "ä" * 5000, "ä" * 5001, "a" + "ä" * 6000, "".join(f"{n}\n" for n in range(3000))]
    limited = [{"text": text, "limited": limit(text)} for text in texts]
    session = tmux_session.TmuxSession.__new__(tmux_session.TmuxSession)
    new = []
    for before, now in [
        ("$ ", "$ ls\na b\n$ \n"),
        ("$ ls\na b\n$ \n\n", "$ ls\na b\n$ pwd\n/x\n$ \n"),
        ("$ ls\nä b\n$", "$ ls\nä b\n$ pwd\n/x\n$ \n"),
        ("gone", "$ pwd\n"),
        ("", "$ pwd\n"),
        ("$ pwd", "$ pwd\n\n"),
    ]:
        session._previous_buffer = before
        new.append({"before": before, "now": now, "new": asyncio.run(session._find_new_content(now))})
    template = (Path(tmux_session.__file__).parent / "templates" / "terminus-json-plain.txt").read_text()
    first = {"task": "Make {it} work.\nNow.", "screen": "Current Terminal Screen:\n$ \n"}
    first["prompt"] = template.format(instruction=first["task"], terminal_state=first["screen"])

    class Here:
        """Runs on this machine what an environment would be asked to."""

        session_id, default_user = "here", None

        def __init__(self, folder):
            self.env = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8", "TMUX_TMPDIR": folder}
            self.folder = folder

        async def exec(self, command, user=None, **rest):
            ran = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True)
            return SimpleNamespace(stdout=ran.stdout, stderr=ran.stderr, return_code=ran.returncode)

    async def type_all():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, ".bash_profile").write_text("PS1='$ '\n")
            here = Here(folder)
            session = tmux_session.TmuxSession("terminus-2", here, Path(folder, "log"), None, None)
            await session.start()
            await asyncio.sleep(1.5)
            shown = [limit(await session.get_incremental_output())]
            for keys in TYPED:
                await session.send_keys(keys, block=False, min_timeout_sec=1.5)
                shown.append(limit(await session.get_incremental_output()))
            await here.exec("tmux kill-server")
            return shown

    record = {"version": version("harbor"), "answers": answers, "limited": limited, "new": new, "first": first}
    record["typed"], record["shown"] = TYPED, asyncio.run(type_all())
    Path(out).write_text(json.dumps(short(record), ensure_ascii=False, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scaffold", choices=["mini", "aci", "terminus"])
    parser.add_argument("out")
    arguments = parser.parse_args()
    os.environ.update(MSWEA_SILENT_STARTUP="1", LITELLM_LOCAL_MODEL_COST_MAP="True")
    {"mini": mini, "aci": aci, "terminus": terminus}[arguments.scaffold](arguments.out)


if __name__ == "__main__":
    main()
