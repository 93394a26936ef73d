#!/usr/bin/env bash
# Builds the WebAssembly guests of the sandbox: python.wasm, javascript.wasm and shell.wasm.
#
#   scripts/build_guests.sh [GUEST...]     default: all three; what is up to date is left alone
#
# They land in $SPAR_GUESTS, else ${XDG_CACHE_HOME:-~/.cache}/spar/guests, each with a NAME.stamp that
# holds the versions and hashes it was built from. Needs Python 3 with venv, cargo, and the registries
# PyPI and crates.io; no C compiler, no Rust target, no Wasm tools of the system.
set -euo pipefail

ziglang=0.17.0          # the C compiler, with a C library for WASI
componentize_py=0.25.1  # bundles a CPython with state from build time
quickjs=0.14.0          # the crate rquickjs-sys, which carries the sources of QuickJS-NG

here=$(cd "$(dirname "$0")/.." && pwd)
sources=$here/sandbox/guests
out=${SPAR_GUESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/spar/guests}
work=$out/build
guests=("$@")
[ ${#guests[@]} -gt 0 ] || guests=(shell javascript python)
mkdir -p "$work"
chmod 700 "$out"

# One build at a time.
exec 9>"$work/lock"
if command -v flock >/dev/null; then flock 9; fi

# What NAME is built from: the versions it depends on and the hash of its sources.
recipe_of() {
    case $1 in
        shell) echo "ziglang $ziglang" ;;
        javascript) echo "ziglang $ziglang, rquickjs-sys $quickjs" ;;
        python) echo "componentize-py $componentize_py, ziglang $ziglang" ;;
        *) echo "could not build guest \`$1\`: there are python, javascript and shell" >&2; exit 2 ;;
    esac
    (cd "$sources" && find "$1" common -type f | LC_ALL=C sort | xargs sha256sum | sha256sum)
    sha256sum <"$0"
}

# A virtual environment with PACKAGE VERSION in it.
need_python_package() {
    if [ ! -x "$work/venv/bin/python" ]; then python3 -m venv "$work/venv"; fi
    if ! "$work/venv/bin/pip" show "$1" 2>/dev/null | grep -qx "Version: $2"; then
        "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$1==$2"
    fi
}

# Sets $crate to the unpacked sources of CRATE VERSION, which cargo keeps in its registry folder.
need_crate() {
    local manifest=$work/crates/$1-$2/Cargo.toml
    mkdir -p "$(dirname "$manifest")"
    printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[workspace]\n[dependencies]\n%s = { version = "=%s", default-features = false }\n' \
        "$1" "$2" >"$manifest"
    : >"$(dirname "$manifest")/lib.rs"
    cargo fetch --quiet --manifest-path "$manifest"
    crate=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 2 -type d -name "$1-$2" | head -n 1)
    [ -n "$crate" ] || { echo "could not find the sources of $1 $2 in cargo's registry folder" >&2; exit 1; }
}

compile_c() {
    "$work/venv/bin/python" -m ziglang cc -target wasm32-wasi -O2 -s -I"$sources/common" \
        -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS -Wl,-z,stack-size=1048576 \
        -Wl,--export=session_open -Wl,--export=session_buffer -Wl,--export=session_run -Wl,--export=session_cwd \
        -Wl,--export=__stack_pointer "$@"
}

build_shell() {
    need_python_package ziglang "$ziglang"
    compile_c -Wall -Wextra -D_GNU_SOURCE -o "$1" "$sources"/shell/*.c
}

build_javascript() {
    need_python_package ziglang "$ziglang"
    need_crate rquickjs-sys "$quickjs"
    local js=$crate/quickjs
    compile_c -w -D_GNU_SOURCE -I"$js" -o "$1" "$sources"/javascript/*.c \
        "$js"/{quickjs,libregexp,libunicode,dtoa,quickjs-libc}.c \
        -lwasi-emulated-signal -lwasi-emulated-process-clocks
}

# componentize-py makes a component of a dozen modules that speak preview 2; what is built of it is one
# module that speaks preview 1, so that its state can be copied and its instances start fast.
build_python() {
    need_python_package componentize-py "$componentize_py"
    need_python_package ziglang "$ziglang"
    local folder=$work/python link=$work/link/debug/link
    cargo build --quiet --locked --manifest-path "$sources/python/link/Cargo.toml" --target-dir "$work/link"
    # A copy: running it writes beside it.
    rm -rf "$folder" && mkdir -p "$folder/wit" && cp "$sources/python/app.py" "$folder/"
    cp "$sources/python/guest.wit" "$folder/wit/"
    (cd "$folder" && "$work/venv/bin/componentize-py" --quiet -d wit -w guest componentize app -o component.wasm)
    # The adapter's data lies behind everything that the component has.
    "$work/venv/bin/python" -m ziglang cc -target wasm32-freestanding -O2 -Wall -Wextra -nostdlib -mbulk-memory \
        -I"$sources/common" -Wl,--no-entry -Wl,--export=__stack_pointer \
        -Wl,--global-base="$("$link" --memory "$folder/component.wasm")" \
        -o "$folder/adapter.wasm" "$sources/python/adapter.c"
    "$link" "$folder/component.wasm" "$folder/adapter.wasm" "$1"
    rm "$folder/component.wasm"
}

for guest in "${guests[@]}"; do
    recipe=$(recipe_of "$guest")
    if [ -s "$out/$guest.wasm" ] && [ "$(cat "$out/$guest.stamp" 2>/dev/null)" = "$recipe" ]; then
        echo "$guest: up to date"
        continue
    fi
    echo "$guest: building"
    "build_$guest" "$work/$guest.wasm"
    rm -f "$out/$guest.stamp"
    mv "$work/$guest.wasm" "$out/$guest.wasm"
    printf '%s\n' "$recipe" >"$out/$guest.stamp"
    echo "$guest: $(wc -c <"$out/$guest.wasm") bytes at $out/$guest.wasm"
done
