#!/usr/bin/env bash
# Installs what spar is compared with from PyPI into a virtual environment.
#
#   benches/compare/set_up.sh [FOLDER]        (default .cache/compare)
#
# PyTorch and transformers take 1.5 GB. llama.cpp is built from the source package of llama-cpp-python, which
# needs a C++ compiler and, on two cores, a quarter of an hour; without it its lines are left out of the tables.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../.cache/compare}
mkdir -p "$folder"
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
pip="$folder/bin/pip --quiet --disable-pip-version-check"

# PyTorch without its CUDA libraries, for which stand-ins are made; all of it where that does not work.
$pip install filelock typing_extensions sympy networkx jinja2 fsspec numpy
$pip install --no-deps torch
site=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
"$folder/bin/python" "$here/stub_cuda.py" "$site"
if ! "$folder/bin/python" -c 'import torch; torch.ones(2).sum()'; then
    echo "PyTorch does not run with stand-ins for CUDA: installing all that it asks for" >&2
    $pip install --force-reinstall torch
fi
$pip install transformers safetensors

# PyTorch's guide to tuning recommends jemalloc on CPUs.
jemalloc() {
    { ldconfig -p || /sbin/ldconfig -p || true; } 2>/dev/null | sed -n 's/.*libjemalloc\.so\.2 .* => //p' | head -n 1
}
if [ -z "$(jemalloc)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y -qq libjemalloc2 >/dev/null || true
fi
jemalloc >"$folder/jemalloc.path"
[ -s "$folder/jemalloc.path" ] || echo "jemalloc was not found: PyTorch is measured without it alone" >&2

if ! "$folder/bin/python" -c 'import llama_cpp' 2>/dev/null; then
    if ! $pip install --no-binary llama-cpp-python llama-cpp-python gguf; then
        echo "llama.cpp could not be built: comparisons with it will be left out" >&2
    fi
fi
"$folder/bin/python" - <<'PYTHON'
from importlib.metadata import PackageNotFoundError, version

for name in ["torch", "transformers", "safetensors", "llama-cpp-python", "gguf"]:
    try:
        print(f"{name} {version(name)}")
    except PackageNotFoundError:
        print(f"{name} is not installed")
PYTHON
