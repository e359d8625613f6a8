#!/usr/bin/env bash
# release.sh VERSION DIRECTORY [OS/ARCH...] builds the archives of a release, their
# checksums, and the manifest for krew. With GOWORK=off, the same commit and the same versions
# of Go, tar, and gzip create the same bytes. It needs GNU tar, or gtar.
set -euo pipefail

version=$1
directory=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "$0")"
shift 2
platforms=("$@")
if [ ${#platforms[@]} -eq 0 ]; then
	platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
fi
go=${GO:-go}
url=https://github.com/eventseries/eventseries/releases/download/cmd%2Fkubectl-series%2F$version
manifest=$directory/series.yaml

tar=$(command -v gtar || command -v tar)
date=@$(git log -1 --format=%ct)

sum() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

sed "s/VERSION/$version/" krew.yaml >"$manifest"
: >"$directory/checksums.txt"
for platform in "${platforms[@]}"; do
	os=${platform%/*} arch=${platform#*/}
	program=kubectl-series
	if [ "$os" = windows ]; then program=kubectl-series.exe; fi
	archive=kubectl-series_${version}_${os}_${arch}.tar.gz
	content=$(mktemp -d)
	echo "$archive"
	GOOS=$os GOARCH=$arch CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o "$content/$program" .
	cp ../../LICENSE "$content"
	chmod 755 "$content/$program"
	chmod 644 "$content/LICENSE"
	"$tar" -c --mtime="$date" --owner=0 --group=0 --numeric-owner --format=ustar -C "$content" "$program" LICENSE |
		gzip -n >"$directory/$archive"
	rm -r "$content"
	(cd "$directory" && sum "$archive" >>checksums.txt)
	cat >>"$manifest" <<-END
	    - selector:
	        matchLabels:
	          os: $os
	          arch: $arch
	      uri: $url/$archive
	      sha256: $(cut -d' ' -f1 <<<"$(tail -n 1 "$directory/checksums.txt")")
	      bin: $program
	END
done
