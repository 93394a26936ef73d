#!/usr/bin/env bash
# Builds the images that spar's own tasks and tests use, with no registry.
#
#   docker/build-images.sh              # spar-busybox: what the tests need, in a second
#   docker/build-images.sh base         # spar-base: Debian with Python and git, in minutes
#   docker/build-images.sh busybox base --force
#
# An image that is there is left alone without --force. Its archive is kept in
# $SPAR_CACHE_DIR (default ~/.cache/spar)/images for other machines: `docker import` takes it.
# Where there is a registry, docker/base.Dockerfile builds the same base with `docker build`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

docker="${DOCKER:-docker}"
cache="${SPAR_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/spar}/images"
suite="${SPAR_BASE_SUITE:-bookworm}"
mirror="${SPAR_BASE_MIRROR:-http://deb.debian.org/debian}"

say() { printf 'build-images: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

force=false
wanted=()
for argument in "$@"; do
    case "$argument" in
        --force) force=true ;;
        busybox | base) wanted+=("$argument") ;;
        *) die "\`$argument\` is not one of busybox, base, --force" ;;
    esac
done
[ "${#wanted[@]}" -gt 0 ] || wanted=(busybox)

command -v "$docker" >/dev/null 2>&1 || die "there is no \`$docker\`; run docker/start-engine.sh"
mkdir -p "$cache"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

has_image() { "$docker" image inspect "$1" >/dev/null 2>&1; }

# busybox with all its applets as links, and the few files that programs look for.
build_busybox() {
    local busybox root="$work/busybox" applet
    busybox="$(command -v busybox || true)"
    if [ -z "$busybox" ] || ldd "$busybox" >/dev/null 2>&1; then
        [ "$(id -u)" = 0 ] || die "a static busybox is needed: install busybox-static"
        apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends busybox-static >/dev/null ||
            { apt-get update -qq && apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends busybox-static >/dev/null; }
        busybox="$(command -v busybox)"
    fi
    mkdir -p "$root"/{bin,sbin,etc,tmp,root,usr/bin,usr/sbin,var/tmp,home/user,proc,sys,dev}
    chmod 1777 "$root/tmp" "$root/var/tmp"
    cp "$busybox" "$root/bin/busybox"
    for applet in $("$busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
    done
    printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
    printf 'root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n' >"$root/etc/group"
    tar -C "$root" --numeric-owner --owner=0 --group=0 -cf "$cache/busybox.tar.part" .
    mv "$cache/busybox.tar.part" "$cache/busybox.tar"
    "$docker" import --change 'CMD ["sh"]' "$cache/busybox.tar" spar-busybox:latest >/dev/null
}

# Debian with what tasks of code need.
build_base() {
    local archive="$cache/base-$suite.tar" packages=ca-certificates,git,python3,python3-pip,python3-pytest,python3-venv
    if [ ! -f "$archive" ] || $force; then
        [ "$(id -u)" = 0 ] || die "debootstrap needs root; or run \`docker build -f docker/base.Dockerfile\`"
        if command -v mmdebstrap >/dev/null 2>&1; then
            mmdebstrap --variant=minbase --include="$packages" "$suite" "$archive.part" "$mirror"
        else
            command -v debootstrap >/dev/null 2>&1 ||
                apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends debootstrap >/dev/null
            debootstrap --variant=minbase --include="$packages" "$suite" "$work/base" "$mirror" >&2
            rm -rf "$work/base/var/cache/apt/archives" "$work/base/var/lib/apt/lists"
            mkdir -p "$work/base/var/lib/apt/lists"
            tar -C "$work/base" --numeric-owner -cf "$archive.part" --exclude='./dev/*' .
        fi
        mv "$archive.part" "$archive"
    fi
    "$docker" import --change 'ENV LANG=C.UTF-8' --change 'CMD ["bash"]' "$archive" spar-base:latest >/dev/null
}

for image in "${wanted[@]}"; do
    if has_image "spar-$image:latest" && ! $force; then
        say "spar-$image is there"
        continue
    fi
    "build_$image"
    say "spar-$image is built"
done
