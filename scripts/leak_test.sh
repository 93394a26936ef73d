#!/usr/bin/env bash
# Kills spar in the middle of its work, starts it again, and counts what is left.
#
#   scripts/leak_test.sh                                # 50 rounds on every backend that works here
#   scripts/leak_test.sh --backend docker --rounds 3 --seed 7
#   scripts/leak_test.sh --spar target/release/spar     # this program in place of a new build
#
# A round: three processes of spar begin to work (two shells that run commands, fork, go back, keep
# states and go on from them; one long command), all are killed with SIGKILL at a random moment, and
# `spar sandbox run -- true` is started. When that has ended, everything that the killed ones and the
# new one made has to be gone: containers, volumes, networks, images of snapshots, mounts, control
# groups, temporary files and folders, processes. Prints a table and exits with 1 if anything is left.
#
# Only what belongs to the processes of this script is looked at, by number and start time of its
# owner, so that others may use the same engine meanwhile. Not counted: the volume spar-helper-*,
# which all sandboxes of an engine share and which stays by design, and images that were unpacked or
# compiled whole, which are caches.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=50
backends=all
seed=1
spar=""
while [ "$#" -gt 0 ]; do
    case "$1" in
    --rounds | --backend | --seed | --spar)
        [ "$#" -ge 2 ] || die "$1 needs a value"
        case "$1" in
        --rounds) rounds="$2" ;;
        --backend) backends="$2" ;;
        --seed) seed="$2" ;;
        --spar) spar="$2" ;;
        esac
        shift 2
        ;;
    *) die "\`$1\` is none of --rounds, --backend, --seed, --spar" ;;
    esac
done
[[ "$rounds" =~ ^[1-9][0-9]*$ && "$seed" =~ ^[0-9]+$ ]] || die "rounds and seed are numbers"
case "$backends" in
all) backends="docker local wasm" ;;
docker | local | wasm) ;;
*) die "\`$backends\` is none of docker, local, wasm, all" ;;
esac
if [ -z "$spar" ]; then
    cargo build --locked --bin spar
    spar="${CARGO_TARGET_DIR:-target}/debug/spar"
fi
spar="$(readlink -f "$spar")"
[ -x "$spar" ] || die "there is no program $spar"

base="$(mktemp -d)"
image="spar-leak-$$"
killed=()
finish() {
    trap - EXIT
    [ "${#killed[@]}" -eq 0 ] || kill -9 "${killed[@]}" 2>/dev/null || true
    if has docker; then
        docker rmi -f "$image" >/dev/null 2>&1 || true
    fi
    rm -rf "$base"
}
trap finish EXIT
trap 'echo "error: line $LINENO failed" >&2' ERR
trap 'exit 130' INT TERM

# What spar uses in this test alone. The guests of the wasm backend are those of the user.
guests="${SPAR_GUESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/spar/guests}"
export SPAR_GUESTS="$guests" XDG_CACHE_HOME="$base/cache" TMPDIR="$base/tmp"
mkdir -p "$TMPDIR" "$XDG_CACHE_HOME" "$base/share" "$base/root"

RANDOM="$seed"
# A number below the argument.
chance() { echo $(((RANDOM * 32768 + RANDOM) % $1)); }

# Number and start time of a process, as labels of its containers have them.
identity() {
    local stat
    stat="$(cat "/proc/$1/stat" 2>/dev/null)" || return 1
    # shellcheck disable=SC2086 # the fields behind the name
    set -- "$1" ${stat##*) }
    echo "\"pid\":$1,\"started\":${21},"
}

# All processes below the given ones, as `PID START`.
descendants() {
    ps -eo pid=,ppid= | awk -v roots="$*" '
        BEGIN { split(roots, list, " "); for (i in list) below[list[i]] = 1 }
        { parent[$1] = $2 }
        END {
            do {
                changed = 0
                for (pid in parent)
                    if (!(pid in below) && (parent[pid] in below)) {
                        below[pid] = changed = 1
                        print pid
                    }
            } while (changed)
        }' | while read -r pid; do
        fields="$(cat "/proc/$pid/stat" 2>/dev/null)" || continue
        # shellcheck disable=SC2086
        set -- ${fields##*) }
        [ "$1" = Z ] || echo "$pid ${20}"
    done
}

# How many of the lines `PID START` are processes that still run.
alive() {
    local pid start count=0
    while read -r pid start; do
        fields="$(cat "/proc/$pid/stat" 2>/dev/null)" || continue
        # shellcheck disable=SC2086
        set -- ${fields##*) }
        if [ "$1" != Z ] && [ "${20}" = "$start" ]; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

lines() { grep -c . || true; }

# The lines of standard input that name one of the owners.
owned() { grep -F -f "$base/owners" || true; }

# Ids of what carries the label of one of the owners. Others remove theirs meanwhile, which makes the
# command line fail and takes nothing away here.
labelled() {
    local format="$1"
    shift
    { xargs -r docker "$@" --format "$format" 2>/dev/null || true; } | owned | cut -d' ' -f1
}
containers() {
    docker ps -aq --no-trunc --filter label=spar.owner |
        labelled '{{.Id}} {{index .Config.Labels "spar.owner"}}' inspect
}
images() {
    docker images -aq --no-trunc --filter label=spar.owner | sort -u |
        labelled '{{.Id}} {{index .Config.Labels "spar.owner"}}' image inspect
}
networks() {
    docker network ls -q --filter label=spar.owner |
        labelled '{{.Id}} {{index .Labels "spar.owner"}}' network inspect
}
volumes() {
    docker volume ls -q --filter label=spar.owner |
        labelled '{{.Name}} {{index .Labels "spar.owner"}}' volume inspect
}

# Temporary files and folders: everything but the folders of the local backend themselves, and what
# is half written in the caches.
files() {
    find "$TMPDIR" -mindepth 1 2>/dev/null |
        grep -vE "^$TMPDIR/spar-local-v[0-9]+-[0-9]+(/(lock|sandboxes|layers|snapshots))?\$" || true
    find "$XDG_CACHE_HOME" \( -name '*.part' -o -name '*.tmp' \) 2>/dev/null || true
}

# What there is just after the kill, written down so that it is found again.
remember() {
    local pid fields
    : >"$base/volumes"
    : >"$base/mounts"
    : >"$base/groups"
    if [ "$1" = docker ]; then
        containers >"$base/containers"
        xargs -r docker inspect --format \
            '{{range .Mounts}}{{if eq .Type "volume"}}volume {{.Name}}
{{end}}{{end}}{{with .GraphDriver.Data}}mount {{.MergedDir}}{{end}}
main {{.State.Pid}}' <"$base/containers" 2>/dev/null >"$base/inspected" || true
        grep -vF 'volume spar-helper-' "$base/inspected" | sed -n 's/^volume //p' >"$base/volumes" || true
        sed -n 's/^mount //p' "$base/inspected" >"$base/mounts"
        sed -n 's/^main //p' "$base/inspected" | grep -v '^0$' >"$base/mains" || true
        for pid in $(cat "$base/mains"); do
            fields="$(cat "/proc/$pid/stat" 2>/dev/null)" || continue
            # shellcheck disable=SC2086
            set -- ${fields##*) }
            echo "$pid ${20}"
        done >>"$base/processes"
        # shellcheck disable=SC2046
        descendants $(cat "$base/mains") >>"$base/processes"
        cp "$base/containers" "$base/groups"
    elif [ "$1" = local ]; then
        find "$TMPDIR" -path '*/sandboxes/*' -prune -printf 'spar-local-%f\n' >"$base/groups"
    fi
}

groups() {
    [ -s "$base/groups" ] || return 0
    find /sys/fs/cgroup -type d 2>/dev/null | grep -F -f "$base/groups" || true
}

mounts() {
    { grep -F "$base" /proc/self/mountinfo || true
      [ ! -s "$base/mounts" ] || grep -F -f "$base/mounts" /proc/self/mountinfo || true; } | sort -u
}

all_volumes() {
    volumes
    [ ! -s "$base/volumes" ] || docker volume ls -q | grep -Fx -f "$base/volumes" || true
}

things="containers volumes networks images mounts groups files processes"
count() {
    case "$1" in
    containers | images | networks) [ "$2" != docker ] || "$1" | lines ;;
    volumes) [ "$2" != docker ] || all_volumes | lines ;;
    mounts | groups | files) "$1" | lines ;;
    processes) alive <"$base/processes" ;;
    esac
}

# What a shell is told to do, at random; more than it can do before it is killed.
script() {
    local states=0 depth=0
    for _ in $(seq 400); do
        case "$(chance 10)" in
        0 | 1)
            if [ "$depth" -lt 4 ]; then echo ":fork"; depth=$((depth + 1)); fi
            ;;
        2)
            if [ "$depth" -gt 0 ]; then echo ":back"; depth=$((depth - 1)); fi
            ;;
        3)
            if [ "$states" -lt 6 ]; then echo ":snapshot"; states=$((states + 1)); fi
            ;;
        4)
            if [ "$states" -gt 0 ] && [ "$depth" -lt 4 ]; then
                echo ":restore $((1 + $(chance "$states")))"
                depth=$((depth + 1))
            fi
            ;;
        5) echo "$2" ;;
        6) echo ":stats" ;;
        *) echo "echo $RANDOM > $1/f$RANDOM" ;;
        esac
    done
}

round() {
    local backend="$1" moment="$2" options=("${@:3}") pid number
    local pids=()
    : >"$base/owners"
    : >"$base/processes"
    for number in 1 2; do
        "$spar" sandbox shell --backend "$backend" "${shell_options[@]}" \
            <"$base/script$number" >"$base/log$number" 2>&1 &
        pids+=("$!")
        # So that the shell does not report its end.
        disown "$!"
    done
    "$spar" sandbox run --backend "$backend" "${options[@]}" -- "${long[@]}" \
        </dev/null >"$base/log3" 2>&1 &
    pids+=("$!")
    disown "$!"
    killed=("${pids[@]}")
    for pid in "${pids[@]}"; do
        identity "$pid" >>"$base/owners" || die "spar ended at once: $(cat "$base"/log?)"
    done
    sleep "$moment"
    descendants "${pids[@]}" >"$base/processes"
    kill -9 "${pids[@]}" 2>/dev/null || true
    # At once, as a supervisor would: what the killed ones asked for may still come to be.
    local begun="${EPOCHREALTIME/./}"
    "$spar" sandbox run --backend "$backend" "${options[@]}" -- "${short[@]}" \
        </dev/null >"$base/log4" 2>&1 &
    pid="$!"
    identity "$pid" >>"$base/owners" || true
    remember "$backend"
    for thing in $things; do
        before[$thing]="$(count "$thing" "$backend")"
    done
    # Most of them end with their owner.
    before[processes]="$(lines <"$base/processes")"
    local code=0
    wait "$pid" || code="$?"
    took=$(((${EPOCHREALTIME/./} - begun) / 1000))
    killed=()
    [ "$code" = 0 ] || die "the next start failed with $code: $(cat "$base/log4")"
    # Whatever comes to be later than that has to be seen as well.
    sleep 1
    for thing in $things; do
        after[$thing]="$(count "$thing" "$backend")"
    done
}

declare -A before after least most sum left
is_clean=true
table="| backend | rounds | kind | at the kill: least | most | sum | after the next start: sum |
| --- | --- | --- | --- | --- | --- | --- |"
for backend in $backends; do
    if ! probed="$("$spar" sandbox ls --backend "$backend" 2>&1)"; then
        [ "$backends" != "$backend" ] || die "$backend does not work here: $probed"
        say "$backend does not work here, and is left out: $probed"
        continue
    fi
    folder=/kept
    busy='(sleep 1000 &) ; sleep 0.2'
    long=(sh -c '(sleep 1000 &); sleep 1000')
    short=(true)
    case "$backend" in
    docker)
        docker/build-images.sh busybox
        # With a volume of its own that has no name.
        container="$(docker create spar-busybox true)"
        docker commit --change 'VOLUME ["/volume"]' "$container" "$image" >/dev/null
        docker rm -f "$container" >/dev/null
        options=(--image "$image" --mount "$base/share:/share:rw" --network bridge)
        # A sandbox with a volume of its own cannot be forked.
        shell_options=(--mount "$base/share:/share:rw" --network bridge)
        longest=12000
        ;;
    local)
        tar -C "$base/root" -cf "$base/root.tar" .
        options=(--mount "$base/share:/share:rw")
        shell_options=("${options[@]}")
        longest=3000
        ;;
    wasm)
        options=(--image shell)
        shell_options=("${options[@]}")
        folder=/tmp
        busy='for i in 1 2 3; do echo $i; done'
        long=(-c 'while true; do echo x > /dev/null; done')
        short=(-c true)
        longest=4000
        ;;
    esac
    say "$backend: $rounds rounds"
    for thing in $things; do
        least[$thing]="" most[$thing]=0 sum[$thing]=0 left[$thing]=0
    done
    slowest=0
    for number in $(seq "$rounds"); do
        # Every third round begins with empty caches.
        [ $((number % 3)) != 1 ] || rm -rf "${XDG_CACHE_HOME:?}"/*
        for which in 1 2; do
            script "$folder" "$busy" >"$base/script$which"
        done
        moment="$(chance "$longest")"
        # Unpacking and compiling is what such a round begins with.
        [ $((number % 3)) != 1 ] || moment=$((moment / 3))
        round "$backend" "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))" "${options[@]}"
        [ "$took" -le "$slowest" ] || slowest="$took"
        line="round $number, killed after $moment ms, clean after $took ms:"
        for thing in $things; do
            there="${before[$thing]}" rest="${after[$thing]}"
            [ -n "$there" ] || continue
            line+=" $thing $there>$rest"
            [ -n "${least[$thing]}" ] && [ "${least[$thing]}" -le "$there" ] || least[$thing]="$there"
            [ "${most[$thing]}" -ge "$there" ] || most[$thing]="$there"
            sum[$thing]=$((sum[$thing] + there))
            left[$thing]=$((left[$thing] + rest))
            if [ "$rest" -gt 0 ]; then
                is_clean=false
                line+=" LEFT"
            fi
        done
        echo "$line"
        if [[ "$line" == *LEFT* ]]; then
            { files; mounts; groups; } | head -n 20
            if [ "$backend" = docker ]; then
                { containers; images; all_volumes; networks; } | head -n 20
            fi
            "$spar" reap --backend "$backend" || true
        fi
    done
    for thing in $things; do
        [ -n "${least[$thing]}" ] || continue
        table+="
| $backend | $rounds | $thing | ${least[$thing]} | ${most[$thing]} | ${sum[$thing]} | ${left[$thing]} |"
    done
    echo "$backend: the slowest start took $slowest ms"
    rm -rf "$TMPDIR" "${XDG_CACHE_HOME:?}"
    mkdir -p "$TMPDIR" "$XDG_CACHE_HOME"
done

say "what was left of killed processes (seed $seed)"
printf '%s\n' "$table"
$is_clean || die "something is left"
