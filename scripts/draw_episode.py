#!/usr/bin/env python3
"""Draws what `spar show` prints of an episode as a picture for documents.

    spar show FOLDER --episode 1 | scripts/draw_episode.py docs/game.svg [--columns 96] [--lines 24]

Reads standard input and writes an SVG file: what the policy did in one colour, what it was shown in another, what came of it in a third. Lines that are too
long are broken, and of what is too high the middle is left out, with a line that counts it.
"""

import argparse
import re
import sys
from xml.sax.saxutils import escape

CHARACTER = 7.8  # pixels of a character of 13 pixels in the usual monospaced fonts
LINE = 18
MARGIN = 14
COLOURS = {"head": "#f0f6fc", "action": "#79c0ff", "shown": "#c9d1d9", "end": "#7ee787", "aside": "#8b949e"}


def kind_of(line, is_first):
    """What a line of `spar show` is, which tells its colour."""
    if line.startswith("━━"):
        return "head"
    if re.match(r"\s*\d+ > ", line):
        return "action"
    if re.match(r"\s+\[(right|wrong|resolved|solved|failed|\d+ of)", line) or re.match(r"\s+\d+ of \d+ tests", line):
        return "end"
    return "head" if is_first else "shown"


def broken(line, columns):
    """The line in pieces that fit, indented as it is."""
    indent = " " * min(len(line) - len(line.lstrip()) + 2, columns // 2)
    pieces = []
    while len(line) > columns:
        cut = line.rfind(" ", columns // 2, columns)
        cut = cut if cut > 0 else columns
        pieces.append(line[:cut])
        line = indent + line[cut:].lstrip()
    return [*pieces, line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the SVG file to write")
    parser.add_argument("--columns", type=int, default=96, help="characters of a line (default 96)")
    parser.add_argument("--lines", type=int, default=24, help="lines at the most (default 24)")
    arguments = parser.parse_args()
    if arguments.columns < 20 or arguments.lines < 5:
        parser.error("a picture has at least 20 columns and 5 lines")

    text = sys.stdin.read().rstrip("\n")
    if not text.strip():
        sys.exit("draw_episode.py: nothing came on standard input")
    rows = []
    # What the policy wrote is told by the call that was read in it.
    lines = [line for line in text.split("\n") if not line.startswith("    | ")]
    for number, line in enumerate(lines):
        # State keys say nothing to a reader.
        line = re.sub(r"\s+\[state [^\]]*?(, reward [+-][\d.]+)?\]$", lambda found: f"   [{found[1][2:]}]" if found[1] else "", line.rstrip())
        line = re.sub(r" · iteration \d+, group \d+$", "", line)
        kind = kind_of(line, number == 0)
        rows += [(kind, piece) for piece in broken(line, arguments.columns)]
    while rows and (not rows[-1][1].strip() or re.fullmatch(r"\d+ of \d+ shown, \d+ in all", rows[-1][1])):
        rows.pop()
    if len(rows) > arguments.lines:
        behind = arguments.lines // 3
        before = arguments.lines - behind - 1
        left_out = len(rows) - before - behind
        rows = [*rows[:before], ("aside", f"      … {left_out} lines …"), *rows[-behind:]]

    width = round(max(len(piece) for _, piece in rows) * CHARACTER + 2 * MARGIN)
    height = len(rows) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="13" xml:space="preserve">',
    ]
    for number, (kind, piece) in enumerate(rows):
        weight = ' font-weight="bold"' if kind == "head" else ""
        y = MARGIN + number * LINE + 13
        length = f' textLength="{len(piece) * CHARACTER:.1f}"' if piece.strip() else ""
        # Blanks that are no break keep their places in every viewer.
        shown = escape(piece).replace(" ", "\u00a0")
        parts.append(f'<text x="{MARGIN}" y="{y}" fill="{COLOURS[kind]}"{weight}{length}>{shown}</text>')
    parts.append("</g></svg>")
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
