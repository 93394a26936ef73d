#!/usr/bin/env bash
# GRPO, GiGPO and SALT side by side: the same recipe, seeds and numbers of episodes.
#
#   scripts/compare_credit.sh OUT_FOLDER [SEEDS] [ITERATIONS]
#
# Trains one run per estimator and seed (default 5 seeds, 40 iterations), two at a time with one
# thread each, then prints the table and draws OUT_FOLDER/credit.svg. Runs that are finished are not
# run again; interrupted ones are resumed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="${1:?usage: scripts/compare_credit.sh OUT_FOLDER [SEEDS] [ITERATIONS]}"
seeds="${2:-5}"
iterations="${3:-40}"
spar="${SPAR:-$root/target/release/spar}"
[ -x "$spar" ] || (cd "$root" && cargo build --release)
mkdir -p "$out"

one() {
    local method="$1" seed="$2" run="$out/$1-$2"
    if [ -d "$run" ]; then
        "$spar" resume "$run" --runs "$out" --threads 1 >"$run.log" 2>&1
        return
    fi
    "$spar" train household --name "$method-$seed" --runs "$out" --seed "$seed" --threads 1 \
        --set "reinforce.credit={kind='$method'}" --set "reinforce.iterations=$iterations" \
        --set evaluation.every=10 --set evaluation.test_tasks=200 >"$run.log" 2>&1
}
export -f one
export out spar iterations

for seed in $(seq 0 $((seeds - 1))); do
    for method in grpo gigpo salt; do
        echo "$method $seed"
    done
done | xargs -P 2 -L 1 bash -c 'one "$0" "$1"'

series=()
for method in grpo gigpo salt; do
    runs=""
    for seed in $(seq 0 $((seeds - 1))); do
        runs="$runs${runs:+,}$out/$method-$seed"
    done
    series+=(--series "$method=$runs")
done
"$spar" compare "${series[@]}" --out "$out/credit.svg"
