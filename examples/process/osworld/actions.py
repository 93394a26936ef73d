"""What a policy wrote, as OSWorld's actions: Python with pyautogui, or the sixteen actions of `computer_13`. All but WAIT, DONE and
FAIL become programs that run on the computer."""

import ast
import json
import re

WORDS = ("WAIT", "DONE", "FAIL")
MOST_ACTIONS = 16
# A program is an argument of a process, of which Linux takes 128 KiB.
MOST_CODE_BYTES = 60_000
FENCE = re.compile(r"```(?:[A-Za-z0-9_+-]+[ \t]*(?=\r?\n)|(?:python|json)(?=\s))?(.*?)```", re.S)
# On X11 pyautogui types `>` for `<`; the keys that make one are pressed instead.
HEAD = """\
import pyautogui
import time
pyautogui.FAILSAFE = False
def _with_less_than(do, whole):
    def done(keys, *others, **named):
        if not isinstance(keys, str) or "<" not in keys or whole and keys != "<":
            return do(keys, *others, **named)
        for number, part in enumerate(keys.split("<")):
            if number:
                pyautogui.hotkey("shift", ",")
            if part:
                do(part, *others, **named)
    return done
pyautogui.typewrite = pyautogui.write = _with_less_than(pyautogui.typewrite, False)
pyautogui.press = _with_less_than(pyautogui.press, True)
"""
# pyautogui's names of keys, with every printable character that is no capital.
KEYS = set("\t\n\r" + "".join(map(chr, range(32, 65))) + "".join(map(chr, range(91, 127)))) | set("""
    accept add alt altleft altright apps backspace browserback browserfavorites browserforward browserhome browserrefresh
    browsersearch browserstop capslock clear command convert ctrl ctrlleft ctrlright decimal del delete divide down end enter
    esc escape execute final fn hanguel hangul hanja help home insert junja kana kanji launchapp1 launchapp2 launchmail
    launchmediaselect left modechange multiply nexttrack nonconvert numlock option optionleft optionright pagedown pageup
    pause pgdn pgup playpause prevtrack print printscreen prntscrn prtsc prtscr return right scrolllock select separator shift
    shiftleft shiftright sleep space stop subtract tab up volumedown volumemute volumeup win winleft winright yen
""".split()) | {f"f{n}" for n in range(1, 25)} | {f"num{n}" for n in range(10)}
BUTTONS = {"left", "right", "middle"}
# What each action takes, and which of that it needs.
FIELDS = {
    "MOVE_TO": ({"x", "y"}, {"x", "y"}), "CLICK": ({"button", "x", "y", "num_clicks"}, set()),
    "MOUSE_DOWN": ({"button"}, set()), "MOUSE_UP": ({"button"}, set()), "RIGHT_CLICK": ({"x", "y"}, set()),
    "DOUBLE_CLICK": ({"x", "y"}, set()), "DRAG_TO": ({"x", "y"}, {"x", "y"}), "SCROLL": ({"dx", "dy"}, set()),
    "TYPING": ({"text"}, {"text"}), "PRESS": ({"key"}, {"key"}), "KEY_DOWN": ({"key"}, {"key"}),
    "KEY_UP": ({"key"}, {"key"}), "HOTKEY": ({"keys"}, {"keys"}), **{word: (set(), set()) for word in WORDS},
}
CALLS = {"CLICK": "click", "MOUSE_DOWN": "mouseDown", "MOUSE_UP": "mouseUp", "RIGHT_CLICK": "rightClick", "DOUBLE_CLICK": "doubleClick",
         "TYPING": "typewrite", "PRESS": "press", "KEY_DOWN": "keyDown", "KEY_UP": "keyUp", "HOTKEY": "hotkey"}

ABOUT = {
    "pyautogui": """Answer with Python that uses pyautogui, in a block:
```python
pyautogui.click(100, 200)
```
Places are pixels of the screen. Nothing is kept from one answer to the next; let `time.sleep(0.5)` stand between lines where the computer \
needs time. A block with WAIT, DONE or FAIL alone waits, says that the task is done, or that it cannot be done.""",
    "computer_13": """Answer with an action as JSON, such as {"action_type": "CLICK", "x": 100, "y": 200}. There are \
MOVE_TO and DRAG_TO with x and y; CLICK with button (left, right, middle), x, y and num_clicks (1 to 3), of which all can be left out; RIGHT_CLICK and \
DOUBLE_CLICK with x and y or without; MOUSE_DOWN and MOUSE_UP with button or without; SCROLL with dx, dy or both; TYPING with text; PRESS, \
KEY_DOWN and KEY_UP with key; HOTKEY with keys, a list; WAIT; DONE, when the task is done; FAIL, when it cannot be done. Places are pixels of the screen.""",
}


class Wrong(ValueError):
    """An answer that is no action, with what is wrong with it."""


def read(text, space, size):
    """The actions of an answer in their order, each a program or one of WORDS: DONE and FAIL are the last."""
    blocks = [block.strip() for block in FENCE.findall(text)]
    if not blocks and "```" in text:
        raise Wrong("a block is begun and not ended")
    found = []
    for block in blocks or [text.strip()]:
        found += python(block, bool(blocks)) if space == "pyautogui" else [computer_13(block, size)]
    if len(found) > MOST_ACTIONS:
        raise Wrong(f"these are {len(found)} actions, at most {MOST_ACTIONS} can be in one answer")
    for number, action in enumerate(found):
        if action in ("DONE", "FAIL"):
            return found[: number + 1]
    return found


def python(code, fenced):
    """A program, with WAIT, DONE or FAIL on its last line or without."""
    lines = code.splitlines()
    last = lines.pop().strip() if lines and lines[-1].strip() in WORDS else None
    program = "\n".join(lines).strip()
    if not program and not last:
        raise Wrong("there is nothing in the answer")
    if program and not fenced and not calls_pyautogui(program):
        raise Wrong("there is no block with Python, and neither WAIT, DONE nor FAIL")
    if "\0" in program or len(program.encode(errors="replace")) > MOST_CODE_BYTES:
        raise Wrong(f"a program has at most {MOST_CODE_BYTES} bytes and no NUL")
    return ([HEAD + program] if program else []) + ([last] if last else [])


def calls_pyautogui(program):
    """Whether a text that stands in no block is meant as a program."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.Name) and node.id == "pyautogui" for node in ast.walk(tree))


def computer_13(text, size):
    """The program of an action of `computer_13`."""
    if text in WORDS:
        return text
    try:
        action = json.loads(text)
    except (ValueError, RecursionError):
        raise Wrong("this is no JSON") from None
    kind = action.get("action_type") if isinstance(action, dict) else None
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Wrong(f"action_type has to be one of {', '.join(FIELDS)}")
    given = {name: value for name, value in action.items() if name != "action_type"}
    if "parameters" in given:
        if len(given) > 1 or not isinstance(given["parameters"], dict):
            raise Wrong("parameters is an object, and nothing stands beside it")
        given = given["parameters"]
    known, needed = FIELDS[kind]
    if set(given) - known:
        raise Wrong(f"{kind} has no {', '.join(sorted(set(given) - known))}")
    if needed - set(given):
        raise Wrong(f"{kind} needs {', '.join(sorted(needed - set(given)))}")
    if ("x" in given) != ("y" in given):
        raise Wrong("x and y are given together")
    if kind == "SCROLL" and not given:
        raise Wrong("SCROLL needs dx or dy")
    for name, value in given.items():
        check(name, value, size)
    if kind in WORDS:
        return kind
    return HEAD + program_of(kind, given)


def is_number(value, kinds):
    return isinstance(value, kinds) and not isinstance(value, bool)


def check(name, value, size):
    most = dict(zip("xy", size)).get(name)
    if most is not None and not (is_number(value, (int, float)) and 0 <= value <= most):
        raise Wrong(f"{name} has to be a number from 0 to {most}")
    if name == "button" and value not in BUTTONS:
        raise Wrong(f"button has to be one of {', '.join(sorted(BUTTONS))}")
    if name == "num_clicks" and (not is_number(value, int) or value not in (1, 2, 3)):
        raise Wrong("num_clicks has to be 1, 2 or 3")
    if name in ("dx", "dy") and not (is_number(value, int) and abs(value) <= 10_000):
        raise Wrong(f"{name} has to be a whole number from -10000 to 10000")
    if name == "text" and not (isinstance(value, str) and len(value.encode(errors="replace")) <= MOST_CODE_BYTES // 4):
        raise Wrong(f"text has to be a text of at most {MOST_CODE_BYTES // 4} bytes")
    for key in {"key": [value], "keys": value if isinstance(value, list) and value else [None]}.get(name, []):
        if not isinstance(key, str) or key.lower() not in KEYS:
            raise Wrong(f"{name} has {key!r}, which is no key of pyautogui's")


def program_of(kind, given):
    if kind == "SCROLL":
        wheels = {"dx": "hscroll", "dy": "vscroll"}
        return "\n".join(f"pyautogui.{call}({given[name]})" for name, call in wheels.items() if name in given)
    if kind == "MOVE_TO":
        return f"pyautogui.moveTo({given['x']}, {given['y']}, duration=0.5)"
    if kind == "DRAG_TO":
        return f"pyautogui.dragTo({given['x']}, {given['y']}, duration=1.0, button='left', mouseDownUp=True)"
    if kind == "HOTKEY":
        arguments = [repr(key) for key in given["keys"]]
    elif kind in ("TYPING", "PRESS", "KEY_DOWN", "KEY_UP"):
        arguments = [repr(value) for value in given.values()]
    else:
        arguments = [f"{'clicks' if name == 'num_clicks' else name}={value!r}" for name, value in given.items()]
    return f"pyautogui.{CALLS[kind]}({', '.join(arguments)})"
