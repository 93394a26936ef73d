#!/usr/bin/env bash
# Runs fuzz targets of fuzz/: one, or all in turn.
#
#   scripts/fuzz.sh --list
#   scripts/fuzz.sh [TARGET|all] [SECONDS] [FOLDER OF SEEDS...]
#
# SECONDS are of each target; default 60. What is found to be of interest is kept in fuzz/corpus/TARGET and is where the next run begins, and
# inputs that break something are written to fuzz/artifacts/TARGET; the exit status is that of libFuzzer, not 0 where one was found. Only what
# the target needs is compiled. With a nightly toolchain and cargo-fuzz that is done by these, which adds AddressSanitizer; otherwise by the stable
# toolchain with the same instrumentation and no sanitizer, which needs a C++ compiler for libFuzzer itself.
set -euo pipefail
exec </dev/null
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

targets() { sed -n 's/^name = "\(.*\)"$/\1/p' fuzz/Cargo.toml | tail -n +2; }

case "${1:-all}" in
    --list) targets; exit ;;
    -*) sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed -n 's/^# \{0,1\}//p'; exit 1 ;;
esac
chosen="${1:-all}" seconds="${2:-60}"
shift $(($# < 2 ? $# : 2))
seeds=("$@")
if [ "$chosen" = all ]; then
    mapfile -t list < <(targets)
else
    targets | grep -qx "$chosen" || die "there is no target \`$chosen\`; known are $(targets | paste -sd ' ')"
    list=("$chosen")
fi

# A unit that takes longer than ten seconds is a finding, and so is one that takes two gigabytes.
options=("-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048)
host="$(rustc -vV | sed -n 's/^host: //p')"

# What cargo-fuzz asks of the compiler, but for the sanitizer; `RUSTC_BOOTSTRAP` has the stable one take it.
build_by_stable() {
    local flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
    flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
    flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1"
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" CARGO_TARGET_DIR="$folder" cargo build --release \
        --manifest-path fuzz/Cargo.toml --target "$host" --no-default-features --features "$1" --bin "$1"
}

by_nightly=false
if cargo +nightly fuzz --version >/dev/null 2>&1; then
    by_nightly=true
fi
folder="${CARGO_TARGET_DIR:-$PWD/fuzz/target}"
for target in "${list[@]}"; do
    say "$target, $seconds s"
    corpus="fuzz/corpus/$target" artifacts="fuzz/artifacts/$target" dictionary="fuzz/dictionaries/$target.dict"
    mkdir -p "$corpus" "$artifacts"
    own=("${options[@]}")
    [ ! -f "$dictionary" ] || own+=("-dict=$dictionary")
    if $by_nightly; then
        cargo +nightly fuzz run --no-default-features --features "$target" "$target" "$corpus" ${seeds[@]+"${seeds[@]}"} -- "${own[@]}"
    else
        build_by_stable "$target"
        "$folder/$host/release/$target" "${own[@]}" "-artifact_prefix=$artifacts/" "$corpus" ${seeds[@]+"${seeds[@]}"}
    fi
done
