# Keeps a shell for PosixShell; see shell/posix.rs for the protocol.
# Standard input: a line with the name of the session, then what the shell is to read.
read -r name || exit 1
say() { printf '\036%s\036' "$1"; }
for tool in sh cat mkfifo rm mkdir; do
    command -v "$tool" >/dev/null || { say "N$name $tool"; exit 1; }
done
sh=$(command -v sh) cat=$(command -v cat) mkfifo=$(command -v mkfifo) rm=$(command -v rm)
for folder in "${TMPDIR:-/dev/shm}" /dev/shm /tmp /var/tmp "$PWD" ''; do
    [ -n "$folder" ] || { say "N$name -"; exit 1; }
    folder=$folder/.shell-$name
    mkdir -m 700 "$folder" 2>/dev/null || continue
    "$mkfifo" "$folder/o" "$folder/os" "$folder/or" \
        "$folder/e" "$folder/es" "$folder/er" 2>/dev/null && break
    "$rm" -rf "$folder"
done

# Hands on what commands write into the pipe $1, one `cat` for each command, so that what a process
# left in the background writes later is told apart: that goes nowhere, and the pipe is replaced.
# Told through the pipe $1s: `c` a command has begun, `s` its end was seen, `f` its shell is gone.
# Answers through $1r. No open here ever waits: in some shells a child that ends interrupts it.
pump() {
    exec 6<>"$1s" 7<>"$1r"
    exec 5<>"$1"
    exec 3<"$1"
    pumping=
    while :; do
        read -r how <&6 || continue
        left=0
        case $how in
        c)
            "$cat" <&3 3<&- 5<&- 6<&- 7<&- &
            pumping=$!
            # From here on the pipe ends with its last writer.
            exec 5<&-
            continue
            ;;
        f)
            if [ -n "$pumping" ]; then
                { sleep 1; kill "$pumping"; } >/dev/null 3<&- 5<&- 6<&- 7<&- &
                waiting=$!
                wait "$pumping"
                left=$?
                kill "$waiting"
            fi
            ;;
        s)
            kill "$pumping"
            wait "$pumping"
            left=$?
            ;;
        *) continue ;;
        esac
        pumping=
        if [ "$left" != 0 ]; then
            "$cat" <&3 3<&- 5<&- 6<&- 7<&- >/dev/null &
            "$rm" -f "$1"
            "$mkfifo" "$1"
        fi
        exec 5<>"$1"
        exec 3<"$1"
        echo >&7
        [ "$how" != f ] || say "F$name"
    done
}
pump "$folder/o" 2>/dev/null &
first=$!
pump "$folder/e" >&2 2>/dev/null &
second=$!
say "B$name $$ $first $second $folder"
while "$sh"; code=$?; say "X$name $code"; read -r go; do
    # Anything else was meant for a shell that had ended unnoticed.
    [ "$go" = "go $name" ] || break
done
kill "$first" "$second"
"$rm" -rf "$folder"
