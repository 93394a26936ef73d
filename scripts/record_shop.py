#!/usr/bin/env python3
"""Records visits of WebShop, for `spar conformance shop`.

    pip install flask beautifulsoup4 thefuzz rich tqdm
    python3 scripts/record_shop.py CHECKOUT shop/tests/webshop.json [SEED [VISITS]]

CHECKOUT is one of github.com/princeton-nlp/WebShop (MIT). Its server, pages, goals and rewards run unchanged, over products that are
made up here. What cannot be had without its downloads is stood in for: the search finds all products in the order of
the file, and the tagger calls those words nouns that `shop/src/nouns.rs` does.
"""

import json
import random
import re
import sys
import types
from pathlib import Path

checkout, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
visits = int(sys.argv[4]) if len(sys.argv) > 4 else 14
sys.path.insert(0, str(checkout))

source = (Path(__file__).parent.parent / "shop/src/nouns.rs").read_text()
lists = re.findall(r"= &\[(.*?)\];|=\s+&\[(.*?)\];", source, re.S)
OTHERS, ENDINGS = [set(re.findall(r'"([a-z]+)"', a or b)) for a, b in lists[:2]]


def nouns(text):
    for run in re.split(r"[^\w'’]|_", text):
        word = run.strip("'’")
        word = re.sub(r"['’]s$", "", word)
        if len(word) < 2 or not all(c.isalpha() or c == "'" for c in word):
            continue
        word = word.lower()
        if word in OTHERS or len(word) > 5 and any(word.endswith(e) for e in ENDINGS):
            continue
        yield types.SimpleNamespace(text=word, pos_="NOUN")


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made


class Everything:
    def __init__(self, *_):
        pass

    def search(self, _, k):
        return [types.SimpleNamespace(docid=item["asin"]) for item in ITEMS[:k]]

    def doc(self, docid):
        return types.SimpleNamespace(raw=lambda: json.dumps({"id": docid}))


module("gym", Env=object)
# The package of environments registers itself, and one of its browsers: only the text environment is wanted.
package = types.ModuleType("web_agent_site.envs")
package.__path__ = [str(checkout / "web_agent_site/envs")]
sys.modules["web_agent_site.envs"] = package
module("torch")
module("numpy", cumsum=lambda xs: types.SimpleNamespace(tolist=lambda: [sum(xs[: i + 1]) for i in range(len(xs))]))
module("cleantext")
module("rank_bm25", BM25Okapi=None)
module("spacy", load=lambda _: lambda text: list(nouns(text)))
module("pyserini")
module("pyserini.search")
module("pyserini.search.lucene", LuceneSearcher=Everything)

rng = random.Random(seed)
HEADS = ["Shirt", "Lamp", "Tea", "Boots", "Table"]
ADJECTIVES = ["Soft", "Washable", "Red", "Crème", "Kids' 3-in-1", "Fast & Easy", "<Large>"]
ATTRIBUTES = ["machine wash", "gluten free", "long sleeve", "tea tree", "essential oils", "easy assemble", "for kids"]
VALUES = ["Red", "deep navy", "Stone/Grey", "x-large", "small", "Pack of 2", "9.5", "crème", 'the "big" one', "a & b", "description", "buy now", "next >"]


def item(number):
    asin = "B0%08d" % rng.randrange(10**8)
    title = " ".join(rng.sample(ADJECTIVES, 2) + [rng.choice(HEADS), "for", rng.choice(["Home", "the Garden", "Men's Work"])])
    options = {}
    for name in rng.sample(["Color", "Size", "Style Name"], rng.randrange(3)):
        options[name] = [{"value": v, "image": None} for v in rng.sample(VALUES, rng.randint(1, 5))]
    if rng.random() < 0.1:
        options["Flavor"] = None
    price = lambda: "$%.2f" % (rng.random() * rng.choice([20, 100, 1200]))
    return {
        "asin": asin,
        "name": title,
        "full_description": rng.choice(["", "Made by hand. Essential oils inside.", "Zeile eins\nline two", "   "]),
        "small_description": rng.choice([["Machine Wash only", "second point"], ["one"], "a single text"]),
        "pricing": rng.choice([price(), price() + price(), None, ""]),
        "customization_options": options if rng.random() < 0.9 else "",
        "category": rng.choice(["fashion", "grocery"]),
        "query": rng.choice(["Shirts ", "lamps", "tea"]),
        "product_category": rng.choice(["A › B › C", "A › B", "D › E", "A"]),
        "images": ["https://example.org/x.jpg"],
    }


ITEMS = [item(i) for i in range(23)]
about, human = {}, {}
for thing in ITEMS:
    known = rng.sample(ATTRIBUTES, rng.randint(1, 4))
    entry = {"attributes": known, "instruction": None, "instruction_attributes": None}
    if rng.random() < 0.5:
        entry["instruction"] = "Find me " + " ".join(known[:2])
        entry["instruction_attributes"] = known[:2]
    about[thing["asin"]] = entry
    if rng.random() < 0.6:
        values = [v["value"].strip().replace("/", " | ").lower() for vs in (thing["customization_options"] or {}).values() for v in vs or []]
        human[thing["asin"]] = [
            {
                "asin": thing["asin"],
                "instruction": "i want " + ", ".join(known[:2]) + ".",
                "instruction_attributes": rng.sample(known + ["of oak"], rng.randint(0, 2)),
                "instruction_options": rng.sample(values, min(len(values), rng.randrange(3))),
            }
            for _ in range(rng.randint(1, 3))
        ]

folder = out.parent / "webshop-files"
folder.mkdir(parents=True, exist_ok=True)
for name, content in [("items_shuffle_1000.json", ITEMS), ("items_ins_v2_1000.json", about), ("items_human_ins.json", human)]:
    (folder / name).write_text(json.dumps(content))

import web_agent_site.engine.engine as engine

engine.DEFAULT_ATTR_PATH = str(folder / "items_ins_v2_1000.json")
engine.HUMAN_ATTR_PATH = str(folder / "items_human_ins.json")
engine.print = lambda *_: None
import web_agent_site.envs.web_agent_text_env as text_env
import web_agent_site.engine.goal as goal_module

goal_module.print = lambda *_: None
text_env.print = lambda *_: None
engine.tqdm = lambda things, **_: things


def visit(env, number):
    env.reset(session=number)
    steps = [{"action": None, "text": env.observation, "reward": 0, "done": False, "clickables": None}]
    for turn in range(rng.randint(5, 12)):
        clickables = env.get_available_actions()["clickables"]
        kind = rng.random()
        if kind < 0.12 or not [c for c in clickables if c != "search"]:
            action = "search[%s]" % rng.choice(["Red Shirt", 'a "description" b', "tea", "search_no results"])
        elif kind < 0.2:
            action = rng.choice(["click[nothing]", "buy", "click[]", "click[search]", "search[]", "click[a][b]", " search[x]", "click[Buy Now]"])
        else:
            asins = [c for c in clickables if c.startswith("b0")]
            action = "click[%s]" % rng.choice(asins if asins and rng.random() < 0.7 else clickables)
        if rng.random() < 0.2:
            action = action.replace("click[", "click[").upper().replace("CLICK", "click").replace("SEARCH", "search")
        # What comes of an action is not told where the action cannot be carried out at all.
        _, reward, done, _ = env.step(action)
        after = env.get_available_actions()["clickables"]
        steps.append({"action": action, "text": env.observation, "reward": reward, "done": done, "clickables": after})
        if done:
            break
    return steps


recording = {"items": ITEMS, "attributes": about, "instructions": human, "suites": []}
for is_human in [True, False]:
    random.seed(seed + 1)
    server = text_env.SimServer("http://127.0.0.1:3000", str(folder / "items_shuffle_1000.json"), human_goals=is_human)
    suite = {
        "human": is_human,
        "prices": server.product_prices,
        "goals": [{k: g[k] for k in ["asin", "instruction_text", "attributes", "price_upper"]} for g in server.goals],
        "visits": [],
    }
    for number in range(visits):
        mode = ["text", "text_rich"][number % 2]
        server.show_attrs = number % 4 >= 2
        env = text_env.WebAgentTextEnv(observation_mode=mode, server=server)
        goal = rng.randrange(len(server.goals))
        server.user_sessions.clear()
        suite["visits"].append({"goal": goal, "mode": mode, "attributes": server.show_attrs, "steps": visit(env, goal)})
    recording["suites"].append(suite)

for path in folder.iterdir():
    path.unlink()
folder.rmdir()
out.write_text(json.dumps(recording, ensure_ascii=False, separators=(",", ":")) + "\n")
print(out, out.stat().st_size, "bytes")
