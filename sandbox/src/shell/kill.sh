# Ends what a command in the shell $shell started since the clock tick $since, what left its family
# included as far as it is in the session, the process group, or holds the pipes in $folder.
# Set before: shell supervisor first second folder since
stat_of() {
    line=
    while IFS= read -r part || [ -n "$part" ]; do line="$line $part"; done 2>/dev/null <"/proc/$1/stat"
    line=${line##*) }
    set -- $line
    [ $# -ge 20 ] || return 1
    state=$1 parent=$2 group=$3 session=$4
    shift 19
    start=$1
}
holds() {
    for num in 1 2; do
        for pipe in o e; do
            [ "/proc/$1/fd/$num" -ef "$folder/$pipe" ] && return 0
        done
    done 2>/dev/null
    return 1
}
set -f
round=0
while [ $round -lt 8 ]; do
    round=$((round + 1))
    set +f; all=$(cd /proc && echo [0-9]*); set -f
    victims= family=" $shell " grown=1
    while [ $grown = 1 ]; do
        grown=0
        for pid in $all; do
            case "$family " in *" $pid "*) continue ;; esac
            case " $$ $supervisor $first $second " in *" $pid "*) continue ;; esac
            stat_of "$pid" || continue
            case " Z X " in *" $state "*) continue ;; esac
            [ "$start" -ge "$since" ] || continue
            case " $first $second $$ " in *" $parent "*) continue ;; esac
            case "$family" in
                *" $parent "*) ;;
                *)
                    [ "$session" = "$supervisor" ] || [ "$group" = "$supervisor" ] ||
                        holds "$pid" || continue
                    ;;
            esac
            family="$family$pid "
            victims="$victims $pid"
            grown=1
        done
    done
    [ -n "$victims" ] || break
    kill -STOP $victims 2>/dev/null
    kill -KILL $victims 2>/dev/null
done
