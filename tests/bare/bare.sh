#!/bin/bash
# bare.sh [--long] [--keep]: what a new user meets. Makes Debian 12 roots with nothing but apt in them (mmdebstrap, as root).
# In the first, a copy of this checkout runs ./demo, from nothing; the second, with `./setup run` only, runs what the first has built.
# --long: with optimization, as users build; also ./demo --wan and the benchmarks that docs/ lists; and in a third root the Debian package
# is installed, used and purged. --keep: leaves the roots in build/bare.
# Exit codes: 0 all of it ran, 1 something did not (its output is shown), 2 wrong arguments, 3 this machine cannot make a root.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

long=no keep=no
for argument; do
    case $argument in
    --long) long=yes ;;
    --keep) keep=yes ;;
    --help)
        sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        sed -n 's/^# \(bare.sh .*\)/usage: \1/p' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
done
if [ "$(id -u)" != 0 ]; then
    echo "bare.sh: a root is made by root only: sudo tests/bare/bare.sh" >&2
    exit 3
fi
if ! command -v mmdebstrap >/dev/null; then
    echo "bare.sh: mmdebstrap is not there: ./setup develop" >&2
    exit 3
fi

folder=$PWD/build/bare
cache=$PWD/build/packages # downloaded packages: kept, and shared by the roots
builder=$folder/builder node=$folder/node user=$folder/user
rm -rf --one-file-system "$folder"
mkdir -p "$folder" "$cache/partial"
[ $keep = yes ] || trap 'rm -rf --one-file-system "$folder"' EXIT
failures=0

# step NAME COMMAND...: a line; the end of its output if it fails.
step() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$folder/log" 2>&1 </dev/null; then
        printf 'passed   %4d s  %s\n' $((SECONDS - start)) "$name"
        return 0
    fi
    printf 'failed   %4d s  %s\n' $((SECONDS - start)) "$name"
    tail -n 25 "$folder/log" | sed 's/^/    /'
    failures=$((failures + 1))
    return 1
}

# within ROOT COMMAND: by a shell in the checkout there, with processes and mounts of its own, which end with it.
within() {
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" &&
            mount --bind "$3" "$1/var/cache/apt/archives" || exit
        exec chroot "$1" env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy"} \
            bash -c "cd /causeway && $2"' within "$1" "$2" "$cache"
}

checkout() {
    mkdir "$1/causeway"
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard | tar c --null -T - | tar x -C "$1/causeway"
    else
        tar c --exclude='./build*' . | tar x -C "$1/causeway"
    fi
}

# The benchmarks that the pages of docs/ list, without what is said of them.
benchmarks() {
    grep -hoE '^build/causeway bench .*' docs/*.md | sed 's/   .*//'
}

step "bare Debian 12" mmdebstrap --variant=minbase bookworm "$builder" || exit 1
step "... and a second one" cp -a "$builder" "$node" || exit 1
[ $long = no ] || step "... and a third" cp -a "$builder" "$user" || exit 1
step "copy of the checkout" checkout "$builder" || exit 1
if [ $long = no ]; then # ./demo finds a build folder: without optimization, which takes a third of the time
    step "./setup build" within "$builder" ./setup build || exit 1
    step "meson setup" within "$builder" "CC=gcc meson setup build -Doptimization=0 -Ddebug=false" || exit 1
fi
step "./demo" within "$builder" ./demo || exit 1
step "./demo again" within "$builder" ./demo
if [ $long = yes ]; then
    step "./demo --wan" within "$builder" "./demo --wan"
    while read -r command; do
        case $command in
        *" --device "* | *" --rdma "*) continue ;; # of NICs: bench_put_usage, metal_pci_doctor and metal_rdma have them
        *"bench codec sweep.bin"*) continue ;; # of what is recorded first: bench_codec_usage
        esac
        step "$command" within "$builder" "$command"
    done < <(benchmarks)
fi

cp -a "$builder/causeway" "$node/causeway"
step "./setup run, in the second" within "$node" "./setup run"
step "a job there" within "$node" "build/causeway run -n 4 build/apps/kernels/is S"
step "... on emulated hosts" within "$node" "build/causeway run -n 4 --emulate 4,memif build/apps/kernels/is S"

# Last in the first root: it brings packages that nothing above may rely on. The third has nothing but what the package itself asks for.
if [ $long = yes ] && step "a Debian package is built" within "$builder" "tests/bare/package.sh built"; then
    checkout "$user"
    mkdir -p "$user/causeway/build"
    cp -a "$builder/causeway/build/packages" "$user/causeway/build/"
    step "... and used in the third" within "$user" "tests/bare/package.sh used"
fi
[ $failures = 0 ]
