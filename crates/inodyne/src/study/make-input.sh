# Makes an input of a study: cache, directory to make and log, then names and contents of files, the script first.
set -eu
cache=$1 target=$2 log=$3
shift 3
umask 022
mkdir -p "$cache"
for left in "$cache"/making.*; do # by one that was killed
    if [ -d "$left" ] && [ ! -e "/proc/${left##*.}" ]; then rm -rf "$left"; fi
done
work=$cache/making.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
rm -rf "$work"
mkdir "$work"
cd "$work"
script=$1
while [ $# -gt 0 ]; do
    printf %s "$2" >"$1"
    shift 2
done
sh -eu "./$script" >"$log" 2>&1 </dev/null
cd /
mv -T "$work" "$target" 2>/dev/null || [ -d "$target" ] # another may have been faster
