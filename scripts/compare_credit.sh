#!/usr/bin/env bash
# Credit estimators side by side: the same recipe, seeds, warm starts and numbers of episodes.
#
#   scripts/compare_credit.sh [FLAGS] OUT_FOLDER
#
#   --recipe NAME        what is trained, beside the credit (default household-few)
#   --seeds LIST         seeds, one warm start each (default 0,1,2,3,4)
#   --methods LIST       estimators (default grpo,gigpo,salt)
#   --iterations NUMBER  iterations of reinforcement learning (default 200)
#   --test-tasks NUMBER  tasks of each test split (default 400)
#   --jobs NUMBER        runs at a time, of one thread each (default 2)
#
# Rewards are not shaped: the recipe's length discount is off. One run per seed and estimator goes on
# from the warm start of its seed. Runs that are finished are not run again; interrupted ones are resumed.
# Prints what `spar compare` finds, with paired differences, and leaves it in OUT_FOLDER: compare.txt,
# compare.json, credit.svg.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
recipe=household-few seeds=0,1,2,3,4 methods=grpo,gigpo,salt iterations=200 test_tasks=400 jobs=2 out=""

refuse() {
    echo "$1; see the head of $0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case "$1" in
    --recipe | --seeds | --methods | --iterations | --test-tasks | --jobs)
        [ $# -ge 2 ] || refuse "$1 needs a value"
        name="${1#--}"
        printf -v "${name//-/_}" %s "$2"
        shift 2
        ;;
    -*) refuse "there is no flag $1" ;;
    *)
        [ -z "$out" ] || refuse "there is one folder, not $out and $1"
        out="$1"
        shift
        ;;
    esac
done
[ -n "$out" ] || refuse "name the folder that the runs go to"
spar="${SPAR:-$root/target/release/spar}"
[ -x "$spar" ] || (cd "$root" && cargo build --release)
# Before hours of training, not within them.
"$spar" train "$recipe" --dry-run >/dev/null
mkdir -p "$out"

# NAME SEED SETTINGS...: trains the run, or goes on with it.
train() {
    local run="$out/$1" name="$1" seed="$2"
    shift 2
    if [ -d "$run" ]; then
        "$spar" resume "$run" --runs "$out" --threads 1 >>"$run.log" 2>&1
    else
        "$spar" train "$recipe" --name "$name" --runs "$out" --seed "$seed" --threads 1 "$@" >"$run.log" 2>&1
    fi || {
        echo "$name failed, see $run.log" >&2
        return 1
    }
}

warm() {
    train "warm-$1" "$1" --set reinforce.iterations=0 --set 'data.test=[]'
}

reinforce() {
    local method="$1" seed="$2" checkpoint
    checkpoint="$(ls -d "$out/warm-$seed/checkpoints/iteration-"* | tail -n 1)"
    train "$method-$seed" "$seed" --set "reinforce.credit={kind='$method'}" --set 'reinforce.shapers=[]' \
        --set "reinforce.iterations=$iterations" --set warm_start.iterations=0 \
        --set "start_from='$checkpoint'" --set "evaluation.test_tasks=$test_tasks"
}
export -f train warm reinforce
export out spar recipe iterations test_tasks

each_seed() {
    tr ',' '\n' <<<"$seeds"
}
each_seed | xargs -P "$jobs" -L 1 bash -c 'warm "$0"'
for seed in $(each_seed); do
    for method in ${methods//,/ }; do
        echo "$method $seed"
    done
done | xargs -P "$jobs" -L 1 bash -c 'reinforce "$0" "$1"'

series=()
for method in ${methods//,/ }; do
    runs=""
    for seed in $(each_seed); do
        runs="$runs${runs:+,}$out/$method-$seed"
    done
    series+=(--series "$method=$runs")
done
"$spar" compare "${series[@]}" --json >"$out/compare.json"
"$spar" compare "${series[@]}" --out "$out/credit.svg" | tee "$out/compare.txt"
