#!/usr/bin/env bash
# Fetches the package miniwob 1.1.0 (MiniWoB++, MIT) from PyPI, whose pages the environment `miniwob` plays. Prints where its
# wheel is. Running it again does no harm.
#
# It lands in ${XDG_CACHE_HOME:-~/.cache}/spar/miniwob, where spar looks for it. Needs Python 3 with pip or venv.
set -euo pipefail

version=1.1.0
out=${XDG_CACHE_HOME:-$HOME/.cache}/spar/miniwob
wheel=$out/miniwob-$version-py3-none-any.whl
mkdir -p "$out"
exec 9>"$out/.lock"
if command -v flock >/dev/null; then flock 9; fi
if ! python3 -m zipfile -t "$wheel" >/dev/null 2>&1; then
    work=$(mktemp -d "$out/.get.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        python3 -m venv "$work/venv"
        python=$work/venv/bin/python
    fi
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" \
        "miniwob==$version" >&2
    mv "$work"/miniwob-"$version"-*.whl "$wheel"
fi
printf '%s\n' "$wheel"
