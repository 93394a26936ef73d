#!/usr/bin/env python3
"""Records what BrowserGym shows of MiniWoB++ tasks, for `spar conformance miniwob --traces FILE`.

    pip install browsergym-core==0.14.3 browsergym-miniwob==0.14.3 miniwob==1.1.0
    python3 scripts/record_browsergym.py OUT.jsonl [--tasks click-test,...] [--seeds 1,2] [--steps 3] [--browser /usr/bin/chromium]

One line for each task and seed: the goal, the text of the accessibility tree behind the reset and behind each action
(`flatten_axtree_to_str` as it is, and with `with_visible`, `with_clickable` and `with_center_coords`), rewards, ends and
errors. Actions are drawn from a generator that is seeded by task and seed, over the elements that are shown. Pages are
served under http://miniwob.test/miniwob/, the address under which spar answers for them. Lines that are there already are
not recorded again. The window of the chat, which no observation shows, is left out.
"""

import argparse
import functools
import http.server
import json
import os
import pathlib
import random
import sys
import threading
import time


def serve(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".html": "text/html; charset=utf-8",
            ".js": "text/javascript; charset=utf-8",
        }

        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def point_playwright_at(browser):
    """Playwright looks for its own build: a folder with links to the browser stands in for it."""
    import playwright

    manifest = pathlib.Path(playwright.__file__).parent / "driver/package/browsers.json"
    revision = next(
        entry["revision"]
        for entry in json.loads(manifest.read_text())["browsers"]
        if entry["name"] == "chromium"
    )
    place = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"spar-playwright-{os.getuid()}"
    program = place / f"chromium-{revision}" / "chrome-linux" / "chrome"
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.is_symlink():
        program.symlink_to(browser)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(place)


def draw_action(rng, obs):
    """An action on something that is shown; most are clicks and entries, some make no sense."""
    nodes = [n for n in obs["axtree_object"]["nodes"] if n.get("browsergym_id")]
    role = lambda n: n["role"]["value"]
    fields = [n for n in nodes if role(n) in ("textbox", "searchbox", "spinbutton", "textarea")]
    lists = [n for n in nodes if role(n) in ("combobox", "listbox")]
    presses = [
        n
        for n in nodes
        if role(n)
        in ("button", "link", "checkbox", "radio", "tab", "option", "menuitem", "gridcell", "cell", "LabelText")
    ]
    bid = lambda n: n["browsergym_id"]
    kind = rng.random()
    if fields and kind < 0.3:
        n = rng.choice(fields)
        word = rng.choice(["abc", "Ann", "10", "x y z", "it's \"so\"", "é✓"])
        return rng.choice(
            [f"fill({bid(n)!r}, {word!r})"] * 3
            + [
                f"fill({bid(n)!r}, {word!r}, True)",
                f"focus({bid(n)!r})",
                f"press({bid(n)!r}, 'a')",
                f"press({bid(n)!r}, 'Enter')",
                f"clear({bid(n)!r})",
            ]
        )
    if lists and kind < 0.45:
        n = rng.choice(lists)
        by_id = {m["nodeId"]: m for m in obs["axtree_object"]["nodes"]}
        found, todo = [], list(n["childIds"])
        while todo:
            m = by_id.get(todo.pop())
            if m is None:
                continue
            todo += m["childIds"]
            if role(m) in ("option", "MenuListOption") and m.get("name", {}).get("value"):
                found.append(m["name"]["value"])
        if found:
            return f"select_option({bid(n)!r}, {rng.choice(sorted(found))!r})"
    if presses and kind < 0.75:
        return f"click({bid(rng.choice(presses))!r})"
    boxes = [
        p["bbox"]
        for p in obs["extra_element_properties"].values()
        if p["bbox"] and p["visibility"] and p["visibility"] >= 0.5
    ]
    others = []
    if nodes:
        one, two = bid(rng.choice(nodes)), bid(rng.choice(nodes))
        others += [f"click({one!r})", f"hover({one!r})", f"dblclick({one!r})", f"drag_and_drop({one!r}, {two!r})"]
    if boxes:
        x, y, w, h = rng.choice(boxes)
        others += [f"mouse_click({round(x + w / 2, 1)}, {round(y + h / 2, 1)})"] * 2
    others += ["scroll(0, 60)", "keyboard_press('Tab')", "keyboard_type('ab')", "noop(100)", "click('9999')"]
    return rng.choice(others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    point_playwright_at(arguments.browser)

    import miniwob

    html = pathlib.Path(miniwob.__file__).parent / "html"
    port = serve(html)
    os.environ["MINIWOB_URL"] = "http://miniwob.test/miniwob/"

    import browsergym.core.env as core_env
    import browsergym.miniwob.all as every
    from browsergym.core.action.highlevel import HighLevelActionSet
    from browsergym.utils.obs import flatten_axtree_to_str

    class NoChat:
        def __init__(self, *_, **__):
            self.messages = []

        def add_message(self, role, msg):
            self.messages.append({"role": role, "timestamp": 0.0, "message": msg})

        def close(self):
            pass

    core_env.Chat = NoChat
    actions = HighLevelActionSet(subsets=["chat", "infeas", "bid", "coord", "nav", "tab"])
    known = {
        task.subdomain: task
        for task in vars(every).values()
        if isinstance(task, type) and getattr(task, "subdomain", None)
    }
    names = [name for name in arguments.tasks.split(",") if name] or sorted(known)
    done = set()
    if os.path.exists(arguments.out):
        for line in open(arguments.out):
            trace = json.loads(line)
            done.add((trace["task"], trace["seed"]))
    text_of = lambda obs: flatten_axtree_to_str(obs["axtree_object"])
    full_of = lambda obs: flatten_axtree_to_str(
        obs["axtree_object"],
        extra_properties=obs["extra_element_properties"],
        with_visible=True,
        with_clickable=True,
        with_center_coords=True,
    )
    with open(arguments.out, "a") as out:
        for seed in map(int, arguments.seeds.split(",")):
            for name in names:
                if (name, seed) in done:
                    continue
                env = core_env.BrowserEnv(
                    task_entrypoint=known[name],
                    action_mapping=actions.to_python_code,
                    pw_chromium_kwargs={
                        "executable_path": arguments.browser,
                        "chromium_sandbox": False,
                    },
                    pw_context_kwargs={},
                )
                # Its own arguments are given by name only, so the resolver's rule goes by way of the browser's kind.
                launch = core_env._get_global_playwright().chromium.launch
                if not getattr(launch, "is_mapped", False):

                    def mapped(*args, launch=launch, **options):
                        options["args"] = list(options.get("args") or []) + [
                            f"--host-resolver-rules=MAP miniwob.test 127.0.0.1:{port}"
                        ]
                        return launch(*args, **options)

                    mapped.is_mapped = True
                    core_env._get_global_playwright().chromium.launch = mapped
                rng = random.Random(f"{name} {seed}")
                try:
                    recorded_at = int(time.time() * 1000)
                    obs, info = env.reset(seed=seed)
                    trace = {
                        "task": name,
                        "seed": seed,
                        "recorded_at": recorded_at,
                        "nondeterministic": bool(known[name].nondeterministic),
                        "goal": obs["goal"],
                        "text": text_of(obs),
                        "full": full_of(obs),
                        "focused": obs["focused_element_bid"],
                        "steps": [],
                    }
                    for _ in range(arguments.steps):
                        action = draw_action(rng, obs)
                        obs, reward, terminated, _, info = env.step(action)
                        trace["steps"].append(
                            {
                                "action": action,
                                "text": text_of(obs),
                                "full": full_of(obs),
                                "focused": obs["focused_element_bid"],
                                "reward": reward,
                                "raw_reward": info["task_info"].get("RAW_REWARD_GLOBAL"),
                                "terminated": bool(terminated),
                                "error": obs["last_action_error"],
                            }
                        )
                        if terminated:
                            break
                    out.write(json.dumps(trace, ensure_ascii=False) + "\n")
                    out.flush()
                except Exception as error:  # noqa: BLE001: one task that cannot be recorded is told, the others go on.
                    print(f"{name} {seed}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
                finally:
                    env.close()


if __name__ == "__main__":
    main()
