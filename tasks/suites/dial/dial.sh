# Turn a dial from 0 to 9 to the number that the task's seed names: the protocol in plain sh, several sessions in one
# program. spar writes `id` first, then `call` and `env`, without spaces; see docs/process-environments.md.
between() { # TEXT BEFORE: what follows BEFORE in TEXT, up to a comma or a brace
    rest=${1#*"$2"}
    found=${rest%%[,\}]*}
}
show() { # what the session shows, and a solution's next move
    if [ "$at" -lt "$goal" ]; then oracle='"up"'; elif [ "$at" -gt "$goal" ]; then oracle='"down"'; else oracle=null; fi
    shown="\"observation\":{\"text\":\"The dial stands at $at. Turn it to $goal.\",\"admissible\":[\"down\",\"up\"]},\"oracle\":$oracle"
}
while IFS= read -r line; do
    case $line in '{"id":'[0-9]*) ;; *) continue ;; esac # what is no request is not answered
    between "$line" '"id":'
    id=$found
    between "$line" '"env":'
    env=$found
    case $line in
    *'"call":"hello"'*)
        echo "{\"id\":$id,\"protocol\":1,\"name\":\"dial\",\"concurrent\":64,\"fork\":true}"
        ;;
    *'"call":"reset"'*)
        between "$line" '"task":'
        between "$rest" '"seed":'
        goal=$((found % 10)) at=$(((found / 10 + 5) % 10))
        if [ "$at" = "$goal" ]; then at=$(((at + 1) % 10)); fi
        eval "at_$env=$at goal_$env=$goal"
        show
        echo "{\"id\":$id,$shown}"
        ;;
    *'"call":"step"'*)
        eval "at=\${at_$env-} goal=\${goal_$env-}"
        if [ -z "$at" ]; then
            echo "{\"id\":$id,\"error\":\"there is no session $env\"}"
            continue
        fi
        valid=true
        case $line in
        *'"action":{"text":"up"}'*) at=$(((at + 1) % 10)) ;;
        *'"action":{"text":"down"}'*) at=$(((at + 9) % 10)) ;;
        *) valid=false ;;
        esac
        eval "at_$env=$at"
        show
        success=false rewards=''
        if [ "$at" = "$goal" ]; then success=true rewards='"rewards":{"success":1},'; fi
        echo "{\"id\":$id,$shown,$rewards\"terminated\":$success,\"success\":$success,\"valid\":$valid}"
        ;;
    *'"call":"fork"'*)
        between "$line" '"to":'
        eval "at_$found=\$at_$env goal_$found=\$goal_$env"
        echo "{\"id\":$id}"
        ;;
    *'"call":"close"'*)
        unset "at_$env" "goal_$env"
        echo "{\"id\":$id}"
        ;;
    *) echo "{\"id\":$id,\"error\":\"this call is not known\"}" ;;
    esac
done
