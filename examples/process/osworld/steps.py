"""What is done on the computer before the task and before it is judged: OSWorld's `config` and `postconfig`, as far as the server carries it out."""

import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

from machine import COMMAND_SECS, MOST_BYTES, WINDOW_SECS, MachineError, Refused

# OSWorld waits for as long as it takes.
UNTIL_SECS = 300
MOST_SLEEP_SECS = 600


def download(here, files):
    """Files from the web, by this machine, as OSWorld has it."""
    for file in files:
        here.machine.upload(file["path"], fetched(file["url"]))


def upload_file(here, files):
    for file in files:
        here.machine.upload(file["path"], Path(file["local_path"]).read_bytes())


def change_wallpaper(here, path):
    post(here, "change_wallpaper", path=path)


def open_(here, path):
    here.machine.ask("POST", "/setup/open_file", body(path=path), timeout=WINDOW_SECS)


def launch(here, command, shell=False):
    if isinstance(command, str) and not shell:
        command = command.split()
    post(here, "launch", command=filled(here, command), shell=shell)


def execute(here, command, stdout="", stderr="", shell=False, until=None):
    """Runs a command, again and again where `until` says what has to come of it."""
    end = time.monotonic() + UNTIL_SECS
    while True:
        done = here.machine.execute(filled(here, command), shell, "/setup/execute")
        for name, part in ((stdout, "output"), (stderr, "error")):
            if name:
                here.path(name).write_text(done[part])
        if not until or any((
            "returncode" in until and done["returncode"] == until["returncode"],
            "stdout" in until and until["stdout"] in done["output"],
            "stderr" in until and until["stderr"] in done["error"],
        )):
            return
        if time.monotonic() >= end:
            raise MachineError(f"{command!r} did not come to {until!r} within {UNTIL_SECS} seconds")
        time.sleep(0.3)


def execute_with_verification(here, command, verification=None, max_wait_time=10, check_interval=1.0, shell=False):
    given = {"command": command, "verification": verification or {}, "max_wait_time": max_wait_time, "check_interval": check_interval, "shell": shell}
    here.machine.ask("POST", "/setup/execute_with_verification", body(**given), timeout=max_wait_time + COMMAND_SECS)


def sleep(_, seconds):
    time.sleep(min(max(float(seconds), 0.0), MOST_SLEEP_SECS))


def activate_window(here, window_name, strict=False, by_class=False):
    post(here, "activate_window", window_name=window_name, strict=strict, by_class=by_class)


def close_window(here, window_name, strict=False, by_class=False):
    post(here, "close_window", window_name=window_name, strict=strict, by_class=by_class)


# What each takes, and which of that it needs first.
STEPS = {
    "download": (download, ["files"], []),
    "upload_file": (upload_file, ["files"], []),
    "change_wallpaper": (change_wallpaper, ["path"], []),
    "open": (open_, ["path"], []),
    "launch": (launch, ["command"], ["shell"]),
    "execute": (execute, ["command"], ["stdout", "stderr", "shell", "until"]),
    "command": (execute, ["command"], ["stdout", "stderr", "shell", "until"]),
    "execute_with_verification": (execute_with_verification, ["command"], ["verification", "max_wait_time", "check_interval", "shell"]),
    "sleep": (sleep, ["seconds"], []),
    "activate_window": (activate_window, ["window_name"], ["strict", "by_class"]),
    "close_window": (close_window, ["window_name"], ["strict", "by_class"]),
}
# Why the others are not here.
ELSEWHERE = {
    "chrome_open_tabs": "speaks to Chrome's debugger", "chrome_close_tabs": "speaks to Chrome's debugger",
    "login": "speaks to Chrome's debugger and an account of Google's", "googledrive": "needs an account of Google's",
    "update_browse_history": "needs a file from OSWorld's cache",
}
OF_FILES = {"download": {"url", "path"}, "upload_file": {"local_path", "path"}}


def body(**given):
    return json.dumps(given).encode()


def post(here, path, /, **given):
    here.machine.ask("POST", f"/setup/{path}", body(**given), timeout=COMMAND_SECS)


def filled(here, command):
    """A command with the screen and the password that it names."""
    width, height = here.size
    values = {"{CLIENT_PASSWORD}": here.password, "{SCREEN_WIDTH_HALF}": str(width // 2), "{SCREEN_HEIGHT_HALF}": str(height // 2),
              "{SCREEN_WIDTH}": str(width), "{SCREEN_HEIGHT}": str(height)}
    def one(text):
        for name, value in values.items():
            text = text.replace(name, value)
        return text
    return one(command) if isinstance(command, str) else [one(part) for part in command]


def fetched(url):
    """What is at an address. Proxies of this machine are used."""
    if not url.startswith(("http://", "https://")):
        raise MachineError(f"`{url}` is no address of the web")
    try:
        with urllib.request.urlopen(url, timeout=300) as answer:
            got = answer.read(MOST_BYTES + 1)
    except (OSError, urllib.error.URLError) as error:
        raise MachineError(f"could not fetch `{url}`: {error}") from error
    if len(got) > MOST_BYTES:
        raise MachineError(f"`{url}` has more than {MOST_BYTES} bytes")
    return got


def problems(steps, where):
    """Why some of the steps cannot be carried out."""
    if not isinstance(steps, list):
        return [f"{where} is no list"]
    return [problem for number, step in enumerate(steps, 1) for problem in problems_of(step, f"{where} {number}")]


def problems_of(step, where):
    kind = step.get("type") if isinstance(step, dict) else None
    given = step.get("parameters") if isinstance(step, dict) else None
    if not isinstance(kind, str) or not isinstance(given, dict):
        return [f"{where} has no `type` with `parameters`"]
    if kind not in STEPS:
        return [f"{where} is `{kind}`, which {ELSEWHERE.get(kind, 'is not known')}"]
    _, needed, others = STEPS[kind]
    found = [f"{where} (`{kind}`) needs `{name}`" for name in needed if not given.get(name) and given.get(name) != 0]
    found += [f"{where} (`{kind}`) has `{name}`, which is not known" for name in given if name not in needed + others]
    for file in given.get("files", []) if kind in OF_FILES else []:
        if not isinstance(file, dict) or set(file) != OF_FILES[kind]:
            found.append(f"{where} (`{kind}`) has a file without {' and '.join(sorted(OF_FILES[kind]))}")
        elif kind == "upload_file" and not os.path.isfile(file["local_path"]):
            found.append(f"{where} (`{kind}`): there is no file `{file['local_path']}`")
    return found


def carry_out(here, steps, where, refused=None):
    """Carries steps out in their order. What the server refuses fails the episode, or is told to `refused` where that is given."""
    for number, step in enumerate(steps, 1):
        try:
            STEPS[step["type"]][0](here, **step["parameters"])
        except Refused as error:
            if refused is None:
                raise MachineError(f"{where} {number} (`{step['type']}`) was not carried out: {error}") from error
            refused(f"{where} {number} (`{step['type']}`): {error}")
