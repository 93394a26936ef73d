#!/usr/bin/env python3
"""Records what sacrebleu says of texts, for the tests of the grader `bleu`.

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0
    venv/bin/python scripts/record_bleu.py > tasks/tests/fixtures/bleu.json

`--fresh SEED COUNT` prints texts of another seed, to be compared once and thrown away.
"""

import json
import logging
import random
import sys

from sacrebleu.metrics import BLEU

WORDS = "the cat sat on mat a dog, ran. 3.5 1,000 x-ray (it's) U.S. &amp; fünf 日本 end-\nline \"q\" a/b 7- -7 .5 5. ,".split(" ")
HAND = [
    ("", [""]),
    ("a", ["a"]),
    ("the cat sat on the mat", ["the cat sat on the mat"]),
    ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"]),
    ("It costs $3.50, or 4,000.", ["It costs $ 3.50 , or 4,000 ."]),
    ("a\u2028b\x1cc", ["a b c"]),
    ("x &lt; y &quot;z&quot; <skipped>", ['x < y "z"']),
    ("...,,,", ["... ,,,"]),
]


def texts(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        reference = [rng.choice(WORDS) for _ in range(rng.randint(1, 14))]
        text = [word if rng.random() < 0.7 else rng.choice(WORDS) for word in reference]
        text = text[: rng.randint(1, len(text))] if rng.random() < 0.4 else text
        more = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 14)))] * rng.randint(0, 1)
        yield " ".join(text), [" ".join(reference), *more]


def recorded(text, references):
    def score(smoothing, effective_order):
        bleu = BLEU(smooth_method=smoothing, effective_order=effective_order)
        return bleu.sentence_score(text, references).score

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    kinds = ["none", "floor", "add-k", "exp"]
    scores = {kind: [score(kind, True), score(kind, False)] for kind in kinds}
    return {"text": text, "references": references, "scores": scores}


def main():
    seed, count = (int(sys.argv[2]), int(sys.argv[3])) if "--fresh" in sys.argv else (1, 40)
    cases = [*HAND, *texts(seed, count)]
    print(json.dumps([recorded(*case) for case in cases], ensure_ascii=False, indent=1))


main()
