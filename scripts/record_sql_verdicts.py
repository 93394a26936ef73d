#!/usr/bin/env python3
"""Records how the official evaluations of Spider and BIRD judge pairs of queries of our own.

    pip install sqlparse tqdm
    git clone https://github.com/taoyds/test-suite-sql-eval
    git clone https://github.com/AlibabaResearch/DAMO-ConvAI
    git clone https://github.com/bird-bench/mini_dev
    scripts/record_sql_verdicts.py test-suite-sql-eval DAMO-ConvAI/bird/llm/src mini_dev/evaluation \\
        sql/tests/fixtures/verdicts.json

Databases and queries are made here, and no query writes, which the programs let it; of them only their verdicts are kept. `null` stands for a program that ended with
an error of its own.
"""

import importlib.util
import json
import os
import random
import sqlite3
import sys
import tempfile
import types

SCHEMA = """
CREATE TABLE makers(id INTEGER PRIMARY KEY, name TEXT, country TEXT, founded INTEGER);
CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, kind TEXT, price REAL, stock INTEGER, maker_id INTEGER REFERENCES makers(id));
"""

# Two contents of one schema: what is right on the one by luck is wrong on the other.
CONTENTS = [
    """
INSERT INTO makers VALUES (1, 'Abel', 'Chile', 1950), (2, 'Berg', 'Norway', 1990), (3, 'Cole', 'Chile', 2001), (4, 'Dorn', NULL, 1950);
INSERT INTO items VALUES (1, 'tea', 'drink', 3.5, 10, 1), (2, 'rum', 'drink', 9.0, 0, 2), (3, 'bun', 'food', 3.5, 7, 1),
  (4, 'jam', 'food', 4.0, NULL, 3), (5, 'ale', 'drink', 4, 12, 2), (6, 'tea', 'food', 2.25, 5, 3);
""",
    """
INSERT INTO makers VALUES (1, 'Abel', 'Norway', 1980), (2, 'Berg', 'Norway', 1990), (3, 'Eng', 'Kenya', 1890);
INSERT INTO items VALUES (1, 'tea', 'drink', 5.0, 1, 1), (2, 'pie', 'food', 9.5, 30, 2), (3, 'bun', 'food', 1.0, 30, 3),
  (4, 'gin', 'drink', 8.0, NULL, NULL), (5, 'oat', 'grain', 1, 12, 2);
""",
]

# Queries that belong together; each is compared with each.
GROUPS = [
    [
        "SELECT name FROM items WHERE kind = 'drink'",
        "SELECT DISTINCT name FROM items WHERE kind = 'drink'",
        "select T1.name from items as T1 where T1.kind = \"drink\"",
        "SELECT name FROM items WHERE kind = 'drink' ORDER BY name",
        "SELECT name FROM items WHERE kind = 'drink' ORDER BY name DESC",
        "SELECT name FROM items WHERE kind = 'food'",
        "SELECT name, kind FROM items WHERE kind = 'drink'",
        "SELECT name FROM items WHERE kind = 'value'",
        "SELECT name FROM items WHERE kind LIKE 'dr%'",
    ],
    [
        "SELECT name, price FROM items WHERE price >= 4",
        "SELECT price, name FROM items WHERE price > = 4",
        "SELECT name, price FROM items WHERE price > 3.9",
        "SELECT name, price FROM items WHERE price > 100",
        "SELECT price, name FROM items WHERE NOT price < 4",
        "SELECT name, CAST(price AS INTEGER) FROM items WHERE price >= 4",
        "SELECT name, price FROM items WHERE price >= 4; SELECT 1",
        "SELECT name, price FROM items WHERE price >= 4;",
        "SELECT name, price FROM items WHERE price >= 4 -- all of them",
    ],
    [
        "SELECT count(*) FROM items",
        "SELECT count(id) FROM items",
        "SELECT count(DISTINCT name) FROM items",
        "SELECT count(stock) FROM items",
        "SELECT sum(1.0) FROM items",
        "SELECT 6",
        "SELECT '6'",
        "",
        " ",
        "-- nothing",
        ";",
        "SELECT",
    ],
    [
        "SELECT kind, count(*) FROM items GROUP BY kind",
        "SELECT count(*), kind FROM items GROUP BY kind",
        "SELECT kind, count(*) FROM items GROUP BY kind ORDER BY count(*)",
        "SELECT kind, count(*) FROM items GROUP BY kind ORDER BY kind DESC",
        "SELECT kind, sum(stock) FROM items GROUP BY kind",
        "SELECT kind, count(*) + 0.0 FROM items GROUP BY 1",
        "SELECT kind, count(*) FROM items GROUP BY kind HAVING count(*) > 1",
        "SELECT kind, count(*) FROM items GROUP BY kind HAVING count(*) > 99",
    ],
    [
        "SELECT i.name, m.name FROM items i JOIN makers m ON i.maker_id = m.id",
        "SELECT m.name, i.name FROM makers m JOIN items i ON i.maker_id = m.id",
        "SELECT T1.name, T2.name FROM items AS T1, makers AS T2 WHERE T1.maker_id = T2.id",
        "SELECT i.name, m.name FROM items i LEFT JOIN makers m ON i.maker_id = m.id",
        "SELECT i.name, i.name FROM items i JOIN makers m ON i.maker_id = m.id",
        "SELECT i.name, m.name FROM items i, makers m",
        "SELECT i.name, m.nme FROM items i JOIN makers m ON i.maker_id = m.id",
    ],
    [
        "SELECT country FROM makers",
        "SELECT country FROM makers WHERE country IS NOT NULL",
        "SELECT DISTINCT country FROM makers",
        "SELECT country FROM makers UNION SELECT country FROM makers",
        "SELECT coalesce(country, 'None') FROM makers",
        "SELECT country FROM makers ORDER BY country",
        "SELECT country FROM makers ORDER BY id",
    ],
    [
        "SELECT name FROM items ORDER BY price DESC LIMIT 1",
        "SELECT name FROM items WHERE price = (SELECT max(price) FROM items)",
        "SELECT name FROM items ORDER BY price LIMIT 1",
        "SELECT name FROM items ORDER BY price DESC LIMIT 2",
        "SELECT name, max(price) FROM items",
    ],
    [
        "SELECT name FROM makers WHERE founded > 1900 AND founded < 1995",
        "SELECT name FROM makers WHERE founded BETWEEN 1901 AND 1994",
        "SELECT name FROM makers WHERE founded > 5 AND founded < 10",
        "SELECT name FROM makers WHERE founded > 1995 AND founded < 1900",
        "SELECT name FROM makers WHERE founded < 1995 AND country = 'Chile'",
        "SELECT name FROM makers WHERE founded < 10 AND country = \"none\"",
    ],
    [
        "SELECT id, stock, maker_id, price FROM items",
        "SELECT stock, id, price, maker_id FROM items",
        "SELECT maker_id, maker_id, stock, id FROM items",
        "SELECT * FROM items",
        "SELECT id, stock, maker_id, price FROM items ORDER BY id",
        "SELECT id, stock, maker_id, price FROM items ORDER BY id DESC",
    ],
    [
        "SELECT YEAR(CURDATE()) - 1 FROM makers WHERE id = 1",
        "SELECT 2019 FROM makers WHERE id = 1",
        "SELECT 2019.0 FROM makers WHERE id = 1",
        "SELECT 2018 FROM makers WHERE id = 1",
    ],
    [
        "SELECT x'61', 'a', 1, 1.5, NULL",
        "SELECT 'a', x'61', 1.0, NULL, 1.5",
        "SELECT x'61', 'a', 1, 1.5, 'None'",
        "SELECT 1e16, 1e-5",
        "SELECT 10000000000000000, 0.00001",
    ],
    [
        "SELECT name FROM items WHERE id = 99",
        "SELECT name, kind FROM items WHERE id = 98",
        "SELECT name FROM makers WHERE 1 = 0",
        "",
        "-- nothing",
        "DELETE FROM items WHERE id = ?",
        "SELECT NULL",
    ],
]


def load(path, name, folder):
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    spider_folder, bird_folder, mini_folder, out = sys.argv[1:]
    for name, parts in [
        ("psycopg2", []),
        ("pymysql", []),
        ("func_timeout", ["func_timeout", "FunctionTimedOut"]),
        ("tqdm", ["tqdm"]),
    ]:
        stub = types.ModuleType(name)
        for part in parts:
            setattr(stub, part, type(part, (Exception,), {}))
        sys.modules.setdefault(name, stub)
    spider = load(os.path.join(spider_folder, "exec_eval.py"), "exec_eval", spider_folder)
    bird = load(os.path.join(bird_folder, "evaluation.py"), "bird_evaluation", bird_folder)
    mini = load(os.path.join(mini_folder, "evaluation_f1.py"), "mini_evaluation", mini_folder)
    random.seed(0)

    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, content in enumerate(CONTENTS):
            path = os.path.join(folder, f"shop{number or ''}.sqlite")
            connection = sqlite3.connect(path)
            connection.executescript(SCHEMA + content)
            connection.close()
            paths.append(path)

        def spider_says(predicted, gold, plug, keep):
            # As its evaluate() does in front.
            predicted = predicted.replace("value", "1")
            try:
                return bool(spider.eval_exec_match(paths[0], predicted, gold, plug, keep, False))
            except Exception:
                return None

        def rows(sql):
            connection = sqlite3.connect(paths[0])
            try:
                return connection.execute(sql).fetchall()
            finally:
                connection.close()

        def bird_says(predicted, gold):
            try:
                return bool(bird.execute_sql(predicted, gold, paths[0]))
            except Exception:
                return False

        def soft_f1(predicted, gold):
            try:
                return mini.calculate_f1_score(rows(predicted), rows(gold))
            except Exception:
                return 0.0

        pairs = []
        for group in GROUPS:
            for gold in group:
                try:
                    rows(gold) if "CURDATE" not in gold else None
                except Exception:
                    continue
                if not gold.strip() or gold.startswith((";", "--", "DELETE")):
                    continue
                for predicted in group:
                    pairs.append(
                        {
                            "predicted": predicted,
                            "gold": gold,
                            "spider": spider_says(predicted, gold, False, False),
                            "spider_keep_distinct": spider_says(predicted, gold, False, True),
                            "spider_plug_value": spider_says(predicted, gold, True, False),
                            "bird": bird_says(predicted, gold),
                            "soft_f1": soft_f1(predicted, gold),
                        }
                    )
    fixture = {"databases": [SCHEMA + content for content in CONTENTS], "pairs": pairs}
    with open(out, "w") as file:
        json.dump(fixture, file, indent=1)
        file.write("\n")
    print(f"{len(pairs)} pairs")


if __name__ == "__main__":
    main()
