# Fetches Debian's linux-source and keeps fs, include and net of it as part.tar: some 9,900 files in 490 directories,
# 121 MB, much like the whole kernel of the time when this question was first asked.
set -eu
package=$(apt-cache depends linux-source 2>/dev/null | sed -n 's/.*Depends: \(linux-source-[0-9.]*\).*/\1/p' | head -n 1)
if [ -z "$package" ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get; then
        apt-get update
        package=$(apt-cache depends linux-source | sed -n 's/.*Depends: \(linux-source-[0-9.]*\).*/\1/p' | head -n 1)
    fi
    if [ -z "$package" ]; then
        echo "apt knows no linux-source: this needs Debian and its package lists (apt-get update)"
        exit 3
    fi
fi
fetch() { apt-get -o Acquire::Retries=5 download "$package"; }
# Lists that are older than what the mirror has name files that are gone.
fetch || { apt-get update && fetch; }
mkdir unpacked
dpkg-deb --fsys-tarfile ./*.deb | tar -xO "./usr/src/$package.tar.xz" |
    tar -xJ -C unpacked "$package/fs" "$package/include" "$package/net"
tar -c --sort=name -f part.tar -C unpacked "$package"
rm -rf unpacked ./*.deb
