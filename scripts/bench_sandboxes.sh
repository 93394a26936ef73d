#!/usr/bin/env bash
# Measures what sandboxes cost: one table with targets, and the same as JSON.
#
#   scripts/bench_sandboxes.sh [BACKEND...]     default: docker local wasm
#
# Builds the benches in release first; while they run nothing else should. Figures are medians of one run.
# JSON, one array, lands in $SPAR_BENCH_JSON, else target/sandboxes.json. MEASURE, if set, is a command
# that each bench is run under. A backend that does not work here is named at the end, and the exit
# code is 1; a target that is not met changes only its row.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

backends=("$@")
[ ${#backends[@]} -gt 0 ] || backends=(docker local wasm)
json="${SPAR_BENCH_JSON:-target/sandboxes.json}"
read -ra measure <<<"${MEASURE:-}"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
missing=()

# 1. What they need.
say "preparing" >&2
for backend in "${backends[@]}"; do
    case "$backend" in
    docker) (docker/start-engine.sh && docker/build-images.sh) >"$folder/log" 2>&1 || tail -n 5 "$folder/log" >&2 ;;
    wasm) scripts/build_guests.sh >&2 ;;
    local) ;;
    *) die "there is no bench of \`$backend\`: use docker, local or wasm" ;;
    esac
done

# 2. All benches in one build, so that they share their dependencies.
benches=()
for backend in "${backends[@]}"; do benches+=(--bench "$backend"); done
cargo bench --locked -p spar-sandbox "${benches[@]}" --no-run --message-format=json >"$folder/build"
executable_of() {
    grep -F "\"name\":\"$1\"" "$folder/build" | grep -oE '"executable":"[^"]+' | tail -n 1 | cut -d'"' -f4
}

# 3. One after the other, under one heading.
printf '%s, %s, %s cores of %s\n\n' "$(date -u +%F)" "$(uname -sr)" "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
heading=1
for backend in "${backends[@]}"; do
    if "${measure[@]}" "$(executable_of "$backend")" --json "$folder/$backend.json" >"$folder/rows" 2>"$folder/log"; then
        tail -n "+$heading" "$folder/rows"
        heading=3
    else
        missing+=("$backend: $(tail -n 1 "$folder/log")")
    fi
done
mkdir -p "$(dirname "$json")"
{
    echo '['
    cat "$folder"/*.json 2>/dev/null | sed '$!s/$/,/'
    echo ']'
} >"$json"
printf '\nas JSON: %s\n' "$json"
for line in "${missing[@]}"; do printf 'not measured: %s\n' "$line"; done
[ ${#missing[@]} -eq 0 ]
