# Files by name or pattern: find_file NAME [FOLDER].
case $# in
1) set -- "$1" . ;;
2) [ -d "$2" ] || { echo "Directory $2 not found"; exit 0; } ;;
*) echo "Usage: find_file <file_name> [<dir>]"; exit 0 ;;
esac
folder=$(realpath "$2")
found=$(find "$folder" -type f -name "$1")
if [ -n "$found" ]; then
    printf 'Found %d matches for "%s" in %s:\n%s\n' "$(printf '%s\n' "$found" | wc -l)" "$1" "$folder" "$found"
else
    printf 'No matches found for "%s" in %s\n' "$1" "$folder"
fi
