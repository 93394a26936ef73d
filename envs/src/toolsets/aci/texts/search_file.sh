# Lines of a file: search_file TERM FILE.
usage="Usage: search_file <search_term> [<file>]"
if [ -z "${1:-}" ]; then
    echo "$usage"
    exit 0
fi
if [ $# -lt 2 ]; then
    echo "No file open. Use the open command first."
    exit 0
fi
if [ ! -f "$2" ]; then
    printf '%s\nError: File name %s not found. Please provide a valid file name.\n' "$usage" "$2"
    exit 0
fi
file=$(realpath "$2")
lines=$(grep -n -- "$1" "$file")
if [ -z "$lines" ]; then
    printf 'No matches found for "%s" in %s\n' "$1" "$file"
    exit 0
fi
count=$(printf '%s\n' "$lines" | wc -l)
printf 'Found %d matches for "%s" in %s:\n' "$count" "$1" "$file"
printf '%s\n' "$lines" | sed 's/^/Line /'
printf 'End of matches for "%s" in %s\n' "$1" "$file"
