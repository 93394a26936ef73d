#!/usr/bin/env bash
# Published methods side by side on one household, from the same imitation, at equal numbers of episodes.
#
#   scripts/compare_methods.sh [FLAGS] OUT_FOLDER
#
#   --seeds LIST         seeds, one warm start each (default 0,1,2,3,4)
#   --methods LIST       recipes of recipes/methods (default grpo,rloo,ppo,gigpo,hgpo,salt,treeps,arpo,r3l,spa,archer,epo)
#   --iterations NUMBER  iterations of reinforcement learning (default 40)
#   --test-tasks NUMBER  tasks of the test split (default 200)
#   --jobs NUMBER        runs at a time, of one thread each (default 2)
#
# The household is the smallest rooms, shown 24 demonstrations; what the recipes have in common is the same for all (rate, tasks, turns, schedule), so that
# they differ by their method alone. A run of each method goes on from the warm start of its seed. Runs that are finished are not run again; interrupted ones
# are resumed. Prints what `spar compare` finds, with paired differences, and leaves it in OUT_FOLDER: compare.txt, compare.json, methods.svg.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
seeds=0,1,2,3,4 methods=grpo,rloo,ppo,gigpo,hgpo,salt,treeps,arpo,r3l,spa,archer,epo iterations=40 test_tasks=200 jobs=2 out=""

refuse() {
    echo "$1; see the head of $0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case "$1" in
    --seeds | --methods | --iterations | --test-tasks | --jobs)
        [ $# -ge 2 ] || refuse "$1 needs a value"
        name="${1#--}"
        printf -v "${name//-/_}" %s "$2"
        shift 2
        ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
        exit 0
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
for number in "$iterations" "$test_tasks" "$jobs"; do
    [[ $number =~ ^[1-9][0-9]{0,8}$ ]] || refuse "\`$number\` is no number from 1"
done
spar="${SPAR:-$root/target/release/spar}"
[ -x "$spar" ] || (cd "$root" && cargo build --release)
# Before hours of training, not within them.
for method in ${methods//,/ }; do
    "$spar" train "$root/recipes/methods/$method.toml" --dry-run >/dev/null
done
mkdir -p "$out"

common=(
    --set data.train=train_smallest --set data.dev=dev_smallest --set 'data.test=["unseen_smallest"]'
    --set 'reinforce.shapers=[]' --set reinforce.tasks=16 --set reinforce.group_size=4 --set reinforce.max_turns=30
    --set "reinforce.iterations=$iterations" --set "evaluation.test_tasks=$test_tasks" --set evaluation.dev_tasks=100
    --set evaluation.every=10 --set evaluation.max_turns=30
)

# NAME RECIPE SEED SETTINGS...: trains the run, or goes on with it.
train() {
    local run="$out/$1" name="$1" recipe="$2" seed="$3"
    shift 3
    if [ -d "$run" ]; then
        "$spar" resume "$run" --runs "$out" --threads 1 >>"$run.log" 2>&1
    else
        "$spar" train "$recipe" --name "$name" --runs "$out" --seed "$seed" --threads 1 "$@" >"$run.log" 2>&1
    fi || {
        echo "$name failed, see $run.log" >&2
        return 1
    }
}

# Imitation of few demonstrations, which all methods of a seed go on from.
warm() {
    train "warm-$1" household-few "$1" "${common[@]}" --set reinforce.iterations=0 --set 'data.test=[]' --set warm_start.tasks=24
}

learn() {
    local method="$1" seed="$2" checkpoint
    checkpoint="$(ls -d "$out/warm-$seed/checkpoints/iteration-"* | tail -n 1)"
    train "$method-$seed" "$root/recipes/methods/$method.toml" "$seed" "${common[@]}" --set warm_start.iterations=0 --set "start_from='$checkpoint'"
}

# So many jobs at a time. Where one fails the others go on, and this ends when they have.
rm -f "$out/failed"
in_turn() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n || true
    done
    { "$@" || touch "$out/failed"; } &
}
all_done() {
    wait
    [ ! -e "$out/failed" ] || exit 1
}

for seed in ${seeds//,/ }; do
    in_turn warm "$seed"
done
all_done
for seed in ${seeds//,/ }; do
    for method in ${methods//,/ }; do
        in_turn learn "$method" "$seed"
    done
done
all_done

series=()
for method in ${methods//,/ }; do
    runs=""
    for seed in ${seeds//,/ }; do
        runs="$runs${runs:+,}$out/$method-$seed"
    done
    series+=(--series "$method=$runs")
done
"$spar" compare "${series[@]}" --json >"$out/compare.json"
"$spar" compare "${series[@]}" --out "$out/methods.svg" | tee "$out/compare.txt"
