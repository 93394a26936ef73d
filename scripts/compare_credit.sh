#!/usr/bin/env bash
# GRPO, GiGPO and SALT side by side: the same recipe, seeds and numbers of episodes.
#
#   scripts/compare_credit.sh OUT_FOLDER [SEEDS] [ITERATIONS]
#
# One warm start per seed (default 5 seeds), from which one run per estimator goes on for ITERATIONS
# (default 40), two at a time with one thread each; then prints the table and draws
# OUT_FOLDER/credit.svg. Runs that are finished are not run again; interrupted ones are resumed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="${1:?usage: scripts/compare_credit.sh OUT_FOLDER [SEEDS] [ITERATIONS]}"
seeds="${2:-5}"
iterations="${3:-40}"
spar="${SPAR:-$root/target/release/spar}"
[ -x "$spar" ] || (cd "$root" && cargo build --release)
mkdir -p "$out"

# NAME SEED SETTINGS...: trains the run, or goes on with it.
train() {
    local name="$1" seed="$2" run="$out/$1"
    shift 2
    if [ -d "$run" ]; then
        "$spar" resume "$run" --runs "$out" --threads 1 >"$run.log" 2>&1
        return
    fi
    "$spar" train household --name "$name" --runs "$out" --seed "$seed" --threads 1 \
        --set evaluation.every=10 "$@" >"$run.log" 2>&1
}

warm() {
    train "warm-$1" "$1" --set reinforce.iterations=0 --set 'data.test=[]'
}

reinforce() {
    local method="$1" seed="$2" checkpoint
    checkpoint="$(ls -d "$out/warm-$seed/checkpoints/iteration-"* | tail -n 1)"
    train "$method-$seed" "$seed" --set "reinforce.credit={kind='$method'}" \
        --set "reinforce.iterations=$iterations" --set warm_start.iterations=0 \
        --set "start_from='$checkpoint'" --set evaluation.test_tasks=200
}
export -f train warm reinforce
export out spar iterations

seq 0 $((seeds - 1)) | xargs -P 2 -L 1 bash -c 'warm "$0"'
for seed in $(seq 0 $((seeds - 1))); do
    for method in grpo gigpo salt; do
        echo "$method $seed"
    done
done | xargs -P 2 -L 1 bash -c 'reinforce "$0" "$1"'

series=()
for method in grpo gigpo salt; do
    runs=""
    for seed in $(seq 0 $((seeds - 1))); do
        runs="$runs${runs:+,}$out/$method-$seed"
    done
    series+=(--series "$method=$runs")
done
"$spar" compare "${series[@]}" --out "$out/credit.svg"
