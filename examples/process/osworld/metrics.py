"""OSWorld's metrics: how far what was fetched is what was expected, from 0 to 1. Those that read offices' documents, pictures,
sound or pages are not here."""

import ast
import csv
import difflib
import json
import operator
import re
import sqlite3
from pathlib import Path

TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)")
PREFERENCE = re.compile(r'user_pref\("(?P<key>(?:[^"]|\\")+)", (?P<value>.+)\);')


def text(path):
    return Path(path).read_text(encoding="utf-8")


def settings(path):
    """The lines of a file of settings as (name, value)."""
    pairs = (line.split("=") for line in text(path).split("\n") if "=" in line)
    return [(parts[0], parts[-1].strip()) for parts in pairs]


def similarity(left, right):
    """What two texts have in common, of both: twice the longest common subsequence (Hyyrö's way, by bits), by their letters."""
    places = {}
    for number, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << number
    row = whole = (1 << len(left)) - 1
    for letter in right:
        found = row & places.get(letter, 0)
        row = (row + found) | (row - found)
    common = bin(~row & whole).count("1")
    return 2 * common / (len(left) + len(right)) if left or right else 1.0


def keeps(value, rule):
    """Whether a value keeps to a rule of `method` and `ref`."""
    method, ref = rule["method"], rule["ref"]
    if method in ("eq", "ne", "le", "lt", "ge", "gt"):
        return getattr(operator, method)(value, ref)
    if method.startswith("re"):
        flags = 0
        for name in method.split(".")[1:]:
            flags |= getattr(re, name)
        return re.search(ref, value, flags) is not None
    if method.startswith("approx:"):
        try:
            return abs(float(value) - ref) <= float(method.split(":")[1])
        except (TypeError, ValueError):
            return False
    if re.fullmatch("range[.][te][te]", method):
        # `range.te`: above the first, at most the second.
        left, right = (getattr(operator, "l" + letter) for letter in method[6:8])
        return left(ref[0], value) and right(value, ref[1])
    raise ValueError(f"method `{method}` is not known")


def has_all(record, rule):
    return all(name in record and record[name] == value for name, value in rule.items())


def is_extension_installed(given, rules):
    return (rules["expected"] in given) == {"contain": True, "not_contain": False}[rules["type"]]


def literal_match(result, expected, type="str", ignore_case=False):
    if type == "list" and not (isinstance(result, (list, tuple)) and isinstance(expected, (list, tuple)) and len(result) == len(expected)):
        return False
    left, right = ([str(part) for part in (given if type == "list" else [given])] for given in (result, expected))
    return [part.lower() for part in left] == [part.lower() for part in right] if ignore_case else left == right


def check_include_exclude(result, rules):
    return all(part in result for part in rules.get("include", [])) and not any(part in result for part in rules.get("exclude", []))


def check_csv(path, rules):
    with open(path, encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    return (all(any(has_all(record, rule) for record in records) for rule in rules.get("expect", []))
            and not any(has_all(record, rule) for record in records for rule in rules.get("unexpect", [])))


def check_list(path, rules):
    lines = text(path).splitlines(keepends=True)
    def is_found(pattern):
        return any(re.search(pattern, line) for line in lines)
    return all(map(is_found, rules.get("expect", []))) and not any(map(is_found, rules.get("unexpect", [])))


def check_json(path, rules):
    whole = json.loads(text(path))
    for rule in rules.get("expect", []):
        value = whole
        for key in rule["key"]:
            value = value[key]
        if not keeps(value, rule):
            return False
    for rule in rules.get("unexpect", []):
        value = whole
        try:
            for key in rule["key"]:
                value = value[key]
        except (KeyError, TypeError):
            value = None
        if keeps(value, rule):
            return False
    return True


def check_direct_json_object(result, rules):
    given = json.loads(result.strip().replace("'", '"')) if isinstance(result, str) else result
    for name, value in rules["expected"].items():
        found = given.get(name)
        if not rules.get("expect_in_result", False):
            if found != value:
                return False
        elif isinstance(value, list):
            if not (found in value if isinstance(found, str) else isinstance(found, list) and any(one in found for one in value)):
                return False
        elif not isinstance(value, str) or value not in found:
            return False
    return True


def run_sqlite3(path, rules):
    database = sqlite3.connect(path)
    try:
        return float(database.execute(rules["sql"]).fetchone()[0] or 0)
    finally:
        database.close()


def diff_text_file(path, expected):
    return difflib.SequenceMatcher(None, text(path).splitlines(), text(expected).splitlines()).ratio()


def compare_text_file(path, expected, ignore_blanks=False, ignore_case=False):
    left, right = text(path), text(expected)
    if ignore_blanks:
        left, right = (re.sub(r"\s+", " ", re.sub(r"[\t\n]", " ", given).strip()) for given in (left, right))
    return left.lower() == right.lower() if ignore_case else left == right


def compare_csv(path, expected, strict=True, ignore_case=False):
    def lines(name):
        try:
            found = text(name).splitlines()
        except UnicodeDecodeError:
            found = Path(name).read_text(encoding="latin-1").splitlines()
        found = found if strict else [line.strip() for line in found]
        return [line.lower() for line in found] if ignore_case else found
    return any(lines(path) == lines(name) for name in ([expected] if isinstance(expected, str) else expected))


def compare_result_files(path, expected):
    left, right = text(path).strip(), text(expected).strip()
    try:
        number = float(right)
        return right in left or abs(float(left) - number) < 1e-4
    except ValueError:
        return left == right


def compare_python_pure_text(path, expected):
    def lines(name):
        found = text(name).splitlines()
        number = 0
        while number < min(3, len(found)) and found[number].strip().startswith(("#!", "# -*- coding:", "# coding:", "# coding=")):
            number += 1
        return [line.expandtabs(4).rstrip() for line in found[number:] if line.strip()]
    return lines(path) == lines(expected)


def is_included_all_json_objects(expected, path):
    given = json.loads(text(path))
    return all(name in given and given[name] == value for name, value in json.loads(text(expected)).items())


def check_json_keybindings(path, rules):
    whole = text(path)
    for part in (whole, whole.partition("\n")[2]):
        try:
            given = json.loads(part)
        except ValueError:
            continue
        if isinstance(given, list):
            return rules["expected"] in given
    return False


def check_config_status(path, rule):
    """A line of GIMP's settings."""
    keys = [rule["key"]] if isinstance(rule["key"], str) else rule["key"]
    for line in text(path).splitlines():
        items = line.strip().lstrip("(").rstrip(")").split()
        if items and not line.startswith("#") and items[: len(keys)] == keys and items[-1] == rule["value"]:
            return True
    return False


def check_thunderbird_prefs(path, rules):
    met, is_right = dict.fromkeys(rules.get("expect", {}), False), True
    for line in text(path).splitlines():
        found = PREFERENCE.fullmatch(line.strip())
        if found is None:
            continue
        key, value = found["key"], json.loads(found["value"])
        if key in met:
            met[key] = keeps(value, rules["expect"][key])
        elif key in rules.get("unexpect", {}):
            is_right = is_right and not keeps(value, rules["unexpect"][key])
    return is_right and all(met.values())


def vlc_setting(name, default, read=lambda value: value):
    """A metric of one of VLC's settings, which stands in the file where it is not the default."""
    expected = "expected_" + name.replace("-", "_")
    def metric(path, rule):
        given = [read(value) for line, value in settings(path) if line.endswith(name)]
        return (given or [default])[-1] == str(rule[expected])
    return metric, [expected]


def is_vlc_recordings_folder(path, rule):
    found = [value for name, value in settings(path) if not name.startswith("#") and "input-record-path" in name]
    return found[:1] == [rule["recording_file_path"]]


def check_qt_slider_colours(path, rule):
    given = [value for name, value in settings(path) if "qt-slider-colours" in name]
    colours = (given or ["153;210;153;20;210;20;255;199;15;245;39;29"])[-1]
    if rule["type"] == "match":
        return colours == rule["expected_qt_slider_colours"]
    return rule["type"] == "blackish" and all(int(part) < 100 for part in colours.split(";"))


def same_members(given, expected):
    return len(given) == len(expected) and set(given) == set(expected)


def is_in_vm_clickboard(rules, output):
    expected = rules["expected"]
    return all(part in output for part in (expected if isinstance(expected, list) else [expected]))


# Each metric, with what it needs of `rules`; None where it is given a file, a text, or nothing.
METRICS = {
    "exact_match": (lambda result, rules: result == rules["expected"], ["expected"]),
    "match_in_list": (lambda result, rules: result in rules["expected"], ["expected"]),
    "is_in_list": (lambda result, rules: rules["expected"] in result, ["expected"]),
    "fuzzy_match": (lambda result, rules: similarity(result, rules["expected"]), ["expected"]),
    "literal_match": (literal_match, None),
    "check_include_exclude": (check_include_exclude, []),
    "check_csv": (check_csv, []),
    "check_list": (check_list, []),
    "check_json": (check_json, []),
    "check_direct_json_object": (check_direct_json_object, ["expected"]),
    "run_sqlite3": (run_sqlite3, ["sql"]),
    "diff_text_file": (diff_text_file, None),
    "file_contains": (lambda path, rules: all(part in text(path) for part in rules["expected"]), ["expected"]),
    "check_line_number": (lambda path, rules: sum(bool(TIME.search(line)) for line in text(path).split("\n")) == int(rules["expected"]), ["expected"]),
    "compare_terminal_and_txt": (lambda path, output: text(path) == output, None),
    "compare_text_file": (compare_text_file, None),
    "compare_csv": (compare_csv, None),
    "compare_result_files": (compare_result_files, None),
    "compare_python_pure_text": (compare_python_pure_text, None),
    "compare_config": (lambda path, rules: text(path) == rules["expected"], ["expected"]),
    "compare_answer": (lambda result, rules: bool(result) and result == rules["expected"], ["expected"]),
    "is_included_all_json_objects": (is_included_all_json_objects, None),
    "is_extension_installed": (is_extension_installed, ["type", "expected"]),
    "check_json_settings": (lambda path, rules: has_all(json.loads(text(path)), rules["expected"]), ["expected"]),
    "check_json_keybindings": (check_json_keybindings, ["expected"]),
    "check_gnome_favorite_apps": (lambda apps, rules: same_members(ast.literal_eval(apps.strip()), rules["expected"]), ["expected"]),
    "is_utc_0": (lambda output: output.split("\n")[3].endswith("+0000)"), None),
    "check_text_enlarged": (lambda factor: float(factor) > 1.0, None),
    "check_moved_jpgs": (lambda tree, rules: same_members([child["name"] for child in tree["children"]], rules["expected"]), ["expected"]),
    "is_in_vm_clickboard": (is_in_vm_clickboard, None),
    "check_config_status": (check_config_status, ["key", "value"]),
    "check_thunderbird_prefs": (check_thunderbird_prefs, []),
    "is_vlc_recordings_folder": (is_vlc_recordings_folder, ["recording_file_path"]),
    "check_qt_bgcone": vlc_setting("qt-bgcone", "1"),
    "check_qt_max_volume": vlc_setting("qt-max-volume", "125"),
    "check_qt_minimal_view": vlc_setting("qt-minimal-view", "0"),
    "check_one_instance_when_started_from_file": vlc_setting("one-instance-when-started-from-file", "1"),
    "check_global_key_play_pause": vlc_setting("global-key-play-pause", "0", lambda value: "1" if value else "0"),
    "check_qt_slider_colours": (check_qt_slider_colours, ["type"]),
}
# What each metric takes as `options`.
OPTIONS = {"literal_match": {"type", "ignore_case"}, "compare_text_file": {"ignore_blanks", "ignore_case"}, "compare_csv": {"strict", "ignore_case"}}
# What is wrong with what was fetched, and not with the computer.
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, RecursionError, csv.Error, re.error, sqlite3.Error)
