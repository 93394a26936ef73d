#!/usr/bin/env python3
"""Writes small Parquet files by pyarrow, and what they hold as JSON: the fixtures of the crate in parquet/.

    scripts/record_parquet_fixtures.py            needs pyarrow, from PyPI

Each NAME.parquet in parquet/tests/fixtures has a NAME.json beside it: the list of its rows; the instances among them are those of
swe/tests/fixtures/parquet, the questions those of tasks/tests/fixtures/parquet.
"""

import datetime
import decimal
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "parquet" / "tests" / "fixtures"
INSTANCES = ROOT / "swe" / "tests" / "fixtures" / "parquet"
QUESTIONS = ROOT / "tasks" / "tests" / "fixtures" / "parquet"

NESTED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("tests", pa.list_(pa.string())),
        pa.field("meta", pa.struct([("score", pa.float64()), ("flags", pa.list_(pa.bool_())), ("name", pa.string())])),
        pa.field("lists", pa.list_(pa.list_(pa.int64()))),
        pa.field("people", pa.list_(pa.struct([("name", pa.string()), ("age", pa.int32())]))),
        pa.field("env", pa.map_(pa.string(), pa.string())),
        pa.field("blob", pa.binary()),
        pa.field("small", pa.int8()),
        pa.field("single", pa.float32()),
    ]
)


def nested(count):
    rows = []
    for at in range(count):
        rows.append(
            {
                "id": f"row-{at}",
                "tests": [None, [], ["a"], ["a", None, "b\u00e9"]][at % 4],
                "meta": [None, {"score": at / 4, "flags": [True, None, False], "name": None}, {"score": None, "flags": [], "name": "n"}][at % 3],
                "lists": [None, [], [[]], [[1, 2], None, [], [3]]][at % 4],
                "people": [[], [{"name": "x", "age": at}, None, {"name": None, "age": None}], None][at % 3],
                "env": [None, [], [("A", "1"), ("B", None)]][at % 3],
                "blob": [b"text", b"\xff\x00", None][at % 3],
                "small": [at % 100, None][at % 2],
                "single": [0.5, None, -2.25][at % 3],
            }
        )
    return rows


def plain(value, kind):
    """A value as rows have it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: plain(one, kind.item_type) for key, one in value}
    if pa.types.is_list(kind):
        return [plain(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind):
        return {field.name: plain(value.get(field.name), field.type) for field in kind}
    if isinstance(value, datetime.datetime):
        told = value.strftime("%Y-%m-%dT%H:%M:%S")
        if value.microsecond:
            digits = {"ms": 3, "us": 6, "ns": 9}[kind.unit]
            told += "." + f"{value.microsecond:06}000"[:digits]
        return told + ("Z" if kind.tz else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return value


def write(name, rows, schema, out=OUT, **options):
    out.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema)
    pq.write_table(table, out / f"{name}.parquet", **options)
    rows = [{field.name: plain(row.get(field.name), field.type) for field in schema} for row in rows]
    (out / f"{name}.json").write_text(json.dumps(rows, ensure_ascii=False) + "\n")


def write_questions():
    """The columns in which datasets of questions and programs are published."""
    gsm8k = [{"question": f"What is {at} + 1?", "answer": f"It is one more.\n#### {at + 1}"} for at in range(40)]
    write("gsm8k", gsm8k, pa.schema([("question", pa.string()), ("answer", pa.string())]), QUESTIONS, compression="snappy", row_group_size=16)
    texts = pa.list_(pa.string())
    choices = pa.struct([("label", texts), ("text", texts)])
    arc = [{"id": "a", "question": "Which is wet?", "choices": {"label": ["A", "B"], "text": ["sand", "rain"]}, "answerKey": "B"}]
    schema = pa.schema([("id", pa.string()), ("question", pa.string()), ("choices", choices), ("answerKey", pa.string())])
    write("arc", arc, schema, QUESTIONS, compression="zstd")
    mbpp = [
        {"task_id": 7, "text": "Write a function `f` that returns 1.", "code": "def f():\n    return 1", "test_list": ["assert f() == 1"], "test_setup_code": "", "challenge_test_list": []},
        {"task_id": 8, "text": "Write a function `g` that returns 2.", "code": "def g():\n    return 2", "test_list": ["assert g() == 2"], "test_setup_code": "", "challenge_test_list": []},
    ]
    schema = pa.schema(
        [("task_id", pa.int32()), ("text", pa.string()), ("code", pa.string()), ("test_list", texts), ("test_setup_code", pa.string()), ("challenge_test_list", texts)]
    )
    write("mbpp", mbpp, schema, QUESTIONS, compression="snappy")
    hotpot = [
        {
            "id": f"h{at}", "question": "Who wrote the book?", "answer": "Ann", "type": "bridge", "level": "hard",
            "supporting_facts": {"title": ["Book", "Ann"], "sent_id": [0, 1]},
            "context": {"title": ["Book", "Ann"], "sentences": [["Of Ann.", " It is long."], ["She writes."]]},
        }
        for at in range(3)
    ]
    schema = pa.schema(
        [
            ("id", pa.string()), ("question", pa.string()), ("answer", pa.string()), ("type", pa.string()), ("level", pa.string()),
            ("supporting_facts", pa.struct([("title", texts), ("sent_id", pa.list_(pa.int32()))])),
            ("context", pa.struct([("title", texts), ("sentences", pa.list_(texts))])),
        ]
    )
    write("hotpotqa", hotpot, schema, QUESTIONS, compression="snappy")


def main():
    write_questions()
    write("nested_snappy", nested(40), NESTED, compression="snappy", row_group_size=16)
    write("nested_plain", nested(20), NESTED, compression="none", use_dictionary=False)
    write("nested_zstd_second", nested(30), NESTED, compression="zstd", data_page_version="2.0", column_encoding=None, use_dictionary=True)
    flat = pa.schema([pa.field("text", pa.string()), pa.field("flag", pa.bool_(), nullable=False), pa.field("number", pa.int64(), nullable=False)])
    rows = [{"text": None if at % 7 == 0 else "word " * (at % 50), "flag": at % 3 == 0, "number": at * at - 40} for at in range(400)]
    # Several pages in each column.
    write("flat_pages", rows, flat, compression="snappy", data_page_size=512, write_batch_size=16)
    write("empty", [], flat)
    # Numbers that say something else.
    zone = datetime.timezone.utc
    moments = [datetime.datetime(2001, 9, 9, 1, 46, 40, 500000 * (at % 2), zone) for at in range(4)]
    kinds = pa.schema(
        [
            pa.field("day", pa.date32()), pa.field("milli", pa.timestamp("ms", "UTC")), pa.field("micro", pa.timestamp("us")),
            pa.field("nano", pa.timestamp("ns", "UTC")), pa.field("small", pa.uint32()), pa.field("large", pa.uint64()), pa.field("nothing", pa.null()),
        ]
    )
    rows = [
        {
            "day": moment.date(), "milli": moment, "micro": moment.replace(tzinfo=None), "nano": moment, "small": 4294967295 - at, "large": 18446744073709551615 - at,
            "nothing": None,
        }
        for at, moment in enumerate(moments)
    ]
    write("kinds", rows, kinds)
    rows = [
        {
            "repo": "own/calc", "instance_id": f"own__calc-{at}", "base_commit": "0123456789abcdef0123456789abcdef01234567", "patch": "diff", "test_patch": "diff",
            "problem_statement": "It fails.", "hints_text": "", "version": "1", "created_at": "2001-09-09T01:46:40Z",
            "FAIL_TO_PASS": ["t::a"], "PASS_TO_PASS": ["t::b", "t::c"], "environment_setup_commit": "0123456789abcdef", "eval_script": "true\n",
            "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail", "image": "own/calc:1",
        }
        for at in range(3)
    ]
    kinds = {name: pa.list_(pa.string()) if isinstance(value, list) else pa.string() for name, value in rows[0].items()}
    write("instances", rows, pa.schema(list(kinds.items())), INSTANCES, compression="snappy")
    # What is not read, and has to be told.
    table = pa.Table.from_pylist([{"text": "x"}])
    pq.write_table(table, OUT / "gzip.parquet", compression="gzip")
    pq.write_table(pa.table({"text": pa.array([decimal.Decimal("3.14")], pa.decimal128(10, 2))}), OUT / "decimal.parquet")
    pq.write_table(pa.table({"text": pa.array([datetime.time(1, 2)], pa.time64("us"))}), OUT / "time.parquet")
    pq.write_table(table, OUT / "delta.parquet", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})


if __name__ == "__main__":
    main()
