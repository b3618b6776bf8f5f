#!/bin/sh
# use-packages.sh DIR: lets apt install packages from the directory. Makes an index if the directory has none.
set -eu
index=$1/Packages
if [ ! -e "$index" ] || [ -e "$index.by-host" ]; then
  touch "$index.by-host"
  for file in "$1"/*.deb; do
    dpkg-deb --field "$file"
    echo "Filename: ./${file##*/}"
    echo "Size: $(stat --format %s "$file")"
    echo "SHA256: $(sha256sum "$file" | cut -d ' ' -f 1)"
    echo
  done > "$index.partial"
  mv "$index.partial" "$index"
fi
echo "deb [trusted=yes] file:$1 ./" > /etc/apt/sources.list.d/forage.list
apt-get -qq update
