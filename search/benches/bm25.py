"""Queries per second of Python's BM25 libraries over a corpus: bm25.py CORPUS QUERIES [RATE to compare with]."""

import json
import re
import sys
import time


def main():
    corpus = [json.loads(line)["contents"] for line in open(sys.argv[1])]
    queries = open(sys.argv[2]).read().splitlines()
    other = float(sys.argv[3]) if len(sys.argv) > 3 else None
    words = lambda text: re.findall(r"\w+", text.lower())
    split_corpus = [words(text) for text in corpus]

    def tell(name, count, seconds):
        rate = count / seconds
        print(f"{name}: {rate:.0f} queries/s" + (f", {other / rate:.1f} times slower" if other else ""), flush=True)

    try:
        import rank_bm25
    except ImportError:
        print("rank_bm25 is not installed")
    else:
        index = rank_bm25.BM25Okapi(split_corpus)
        some = queries[::20]
        began = time.perf_counter()
        for query in some:
            index.get_top_n(words(query), corpus, n=3)
        tell("rank_bm25", len(some), time.perf_counter() - began)
    try:
        import bm25s
    except ImportError:
        print("bm25s is not installed")
    else:
        index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        index.index(split_corpus, show_progress=False)
        began = time.perf_counter()
        for query in queries:
            index.retrieve([words(query)], k=3, show_progress=False, n_threads=0)
        tell("bm25s", len(queries), time.perf_counter() - began)


main()
