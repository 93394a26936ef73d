"""Writes OSWorld's tasks as the lines that `env.toml` takes, and tells on standard error which cannot be played over the server's interface.

    python3 collect.py OSWORLD/evaluation_examples [test_all.json] [NAME=VALUE ...] > tasks.jsonl

`NAME=VALUE` sets one of the settings in `osworld.py` for all of them, such as `action_space="computer_13"` or `max_steps=50`.
"""

import json
import sys
from pathlib import Path

import judge
import osworld


def main(folder, *others):
    lists = [name for name in others if "=" not in name] or ["test_all.json"]
    settings = {name: json.loads(value) for name, _, value in (given.partition("=") for given in others if "=" in given)}
    checked = osworld.settings_of(settings)
    if set(settings) - set(osworld.SETTINGS):
        sys.exit(f"there is no setting {', '.join(sorted(set(settings) - set(osworld.SETTINGS)))}, only {', '.join(osworld.SETTINGS)}")
    num_written = num_left_out = 0
    for area, names in ((area, names) for name in lists for area, names in json.loads((Path(folder) / name).read_text()).items()):
        for name in names:
            task = json.loads((Path(folder) / "examples" / area / f"{name}.json").read_text())
            unknown = [f"it has `{field}`, which is not known" for field in task if field not in osworld.OTHER_FIELDS]
            wrong = unknown + judge.problems(task)
            if wrong:
                num_left_out += 1
                print(f"{area}/{name}: {'; '.join(wrong)}", file=sys.stderr)
                continue
            num_written += 1
            print(json.dumps({**task, **settings, "id": f"{area}-{name}", "max_turns": checked["max_steps"], "tags": [area]}))
    print(f"{num_written} tasks, {num_left_out} left out", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
