"""What a task is judged by, fetched from the computer: OSWorld's getters, as far as the server answers them."""

import json
import time
import urllib.parse

from machine import MachineError, Refused
from steps import fetched

VIDEO_TYPES = """3gp 3gpp 3gpp2 avi divx dv fli flv mp2t mp4 mp4v-es mpeg mpeg-system msvideo ogg quicktime vnd.divx
    vnd.mpegurl vnd.rn-realvideo webm x-anim x-avi x-flc x-fli x-flv x-m4v x-matroska x-mpeg x-mpeg-system x-mpeg2 x-ms-asf
    x-ms-asf-plugin x-ms-asx x-ms-wm x-ms-wmv x-ms-wmx x-ms-wvx x-msvideo x-nsv x-ogm x-ogm+ogg x-theora x-theora+ogg""".split()


def command(here, about, part):
    try:
        return here.machine.execute(about["command"], about.get("shell", False))[part]
    except Refused:
        # There is no such program, or it did not end.
        return None


def kept(here, dest, content):
    """A file's content in the episode's folder, as a path; None where there is none."""
    if content is None:
        return None
    here.path(dest).write_bytes(content)
    return str(here.path(dest))


def files(here, about, fetch):
    """One path, or several with `multi` and `gives`."""
    several = about.get("multi", False)
    pairs = list(zip(about["path"], about["dest"])) if several else [(about["path"], about["dest"])]
    found = [kept(here, dest, fetch(path)) for path, dest in pairs]
    given = [path for number, path in enumerate(found) if number in about.get("gives", [0])]
    return given[0] if len(given) == 1 else given


def cache_file(here, about):
    path = here.path(about["path"])
    if not path.is_file():
        raise MachineError(f"no step has written `{about['path']}`")
    return str(path)


def below_home(here, dest, *parts):
    path = here.machine.python(f"import os; print(os.path.join(os.path.expanduser('~'), *{parts!r}))")
    return kept(here, dest, here.machine.file(path))


def of_linux(here, what):
    if here.platform != "Linux":
        raise MachineError(f"{what} is known of Linux alone, and the computer runs {here.platform}")


def gimp_config_file(here, about):
    of_linux(here, "where GIMP's settings are")
    return below_home(here, about["dest"], ".config", "GIMP", "2.10", about["file_name"])


def vlc_config(here, about):
    places = {"Linux": (".config", "vlc", "vlcrc"), "Darwin": ("Library", "Preferences", "org.videolan.vlc", "vlcrc"),
              "Windows": ("AppData", "Roaming", "vlc", "vlcrc")}
    return below_home(here, about["dest"], *places[here.platform])


def vscode_config(here, about):
    """A command of an extension is called by hand, and writes the file."""
    here.machine.python(
        f"import pyautogui\npyautogui.hotkey({'command' if here.platform == 'Darwin' else 'ctrl'!r}, 'shift', 'p')\n"
        f"pyautogui.typewrite({about['vscode_extension_command']!r})\npyautogui.press('enter')"
    )
    time.sleep(1.0)
    return kept(here, about["dest"], here.machine.file(about["path"]))


def default_video_player(here, _):
    of_linux(here, "the default player")
    answers = [command(here, {"command": ["xdg-mime", "query", "default", f"video/{kind}"]}, "output") for kind in VIDEO_TYPES]
    named = [answer for answer in answers if answer]
    return max(named, key=named.count) if named else "unknown"


def window_size(here, about):
    form = urllib.parse.urlencode({"app_class_name": about["app_class_name"]})
    try:
        return json.loads(here.machine.ask("POST", "/window_size", form.encode(), "application/x-www-form-urlencoded"))
    except Refused:
        # There is no such window.
        return None


def list_directory(here, about):
    try:
        return here.machine.field("POST", "/list_directory", "directory_tree", path=about["path"])
    except Refused:
        return None


def wallpaper(here, about):
    try:
        return kept(here, about["dest"], here.machine.ask("POST", "/wallpaper", b""))
    except Refused:
        return None


# What is fetched, and which settings it needs.
GETTERS = {
    "rule": (lambda here, about: about["rules"], ["rules"]),
    "time_diff_range": (lambda here, about: about["diff_range_in_minutes"], ["diff_range_in_minutes"]),
    "vm_command_line": (lambda here, about: command(here, about, "output"), ["command"]),
    "vm_command_error": (lambda here, about: command(here, about, "error"), ["command"]),
    "vm_terminal_output": (lambda here, about: here.machine.terminal() or None, []),
    "vm_file": (lambda here, about: files(here, about, here.machine.file), ["path", "dest"]),
    "cloud_file": (lambda here, about: files(here, about, fetched), ["path", "dest"]),
    "cache_file": (cache_file, ["path"]),
    "vm_screen_size": (lambda here, about: dict(zip(("width", "height"), here.machine.screen_size())), []),
    "vm_window_size": (window_size, ["app_class_name"]),
    "vm_wallpaper": (wallpaper, ["dest"]),
    "list_directory": (list_directory, ["path"]),
    "accessibility_tree": (lambda here, about: here.machine.accessibility(), []),
    "gimp_config_file": (gimp_config_file, ["file_name", "dest"]),
    "vlc_config": (vlc_config, ["dest"]),
    "vscode_config": (vscode_config, ["vscode_extension_command", "path", "dest"]),
    "default_video_player": (default_video_player, []),
}


def problems(about, where):
    """Why something cannot be fetched."""
    kind = about.get("type") if isinstance(about, dict) else None
    if kind not in GETTERS:
        return [f"{where} is of `{kind}`, which cannot be had over the server's interface, or is not known"]
    found = [f"{where} (`{kind}`) needs `{name}`" for name in GETTERS[kind][1] if name not in about]
    if about.get("time_suffix"):
        found.append(f"{where} (`{kind}`) has `time_suffix`, which is not known")
    return found


def fetch(here, about):
    return GETTERS[about["type"]][0](here, about)
