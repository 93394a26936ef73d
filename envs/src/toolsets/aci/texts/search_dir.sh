# Lines in the files of a folder, counted by file: search_dir TERM [FOLDER].
case $# in
1) set -- "$1" . ;;
2) [ -d "$2" ] || { echo "Directory $2 not found"; exit 0; } ;;
*) echo "Usage: search_dir <search_term> [<dir>]"; exit 0 ;;
esac
folder=$(realpath "$2")
# File and count, for each file that is not hidden.
counts=$(find "$folder" -type f ! -path '*/.*' -exec grep -cIH -- "$1" {} + | grep -v ':0$' | sort)
if [ -z "$counts" ]; then
    printf 'No matches found for "%s" in %s\n' "$1" "$folder"
    exit 0
fi
files=$(printf '%s\n' "$counts" | wc -l)
if [ "$files" -gt 100 ]; then
    printf 'More than %d files matched for "%s" in %s. Please narrow your search.\n' "$files" "$1" "$folder"
    exit 0
fi
printf '%s\n' "$counts" | awk -F: -v term="$1" -v folder="$folder" '
    { sum += $NF; name = substr($0, 1, length($0) - length($NF) - 1); lines = lines name " (" $NF " matches)\n" }
    END { printf "Found %d matches for \"%s\" in %s:\n%sEnd of matches for \"%s\" in %s\n", sum, term, folder, lines, term, folder }'
