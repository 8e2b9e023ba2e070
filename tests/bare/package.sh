#!/bin/bash
# package.sh built|used: the Debian package, within a root of bare.sh, from the checkout there.
# built: makes it in a copy (dpkg-buildpackage writes beside the checkout) and leaves it in build/packages.
# used: installs it as a stranger does, uses command, library and MPI, purges it; what is left behind is an error.
set -eu

built() {
    apt-get -q -y install --no-install-recommends build-essential debhelper
    rm -rf /package && mkdir -p /package/causeway build/packages
    tar c --exclude='./build*' . | tar x -C /package/causeway
    (cd /package/causeway && DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage -b -us -uc)
    mv /package/*.deb build/packages/
    rm -r /package
}

# expect WORDS COMMAND...: it succeeds.
expect() {
    local words=$1
    shift
    "$@" >/tmp/package.log 2>&1 || {
        cat /tmp/package.log
        echo "package.sh: failed: $words"
        exit 1
    }
}

# Files outside of what apt and running programs keep; a group that a dependency adds leaves /etc/group- and the like.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /causeway -o -path /var -o -path /root -o -path /run -o -path "/etc/*-" \) -prune -o -print | sort
}

used() {
    local names="causeway libcauseway0 libcauseway-dev libcauseway-mpi1 libcauseway-mpi-dev" there=/tmp/package work=/tmp/package-work
    rm -rf $work && mkdir $work
    apt-get -q update
    apt-get -q -y install --no-install-recommends gcc libc6-dev pkg-config
    files >$there.before
    apt-get -q -y install --no-install-recommends ./build/packages/*.deb
    cd $work
    expect "the command starts" causeway --help
    expect "the doctor finds what is there" causeway doctor
    expect "pages and completion are packed" bash -c "dpkg -L causeway | grep -c -e /man1/causeway-run.1.gz -e /completions/causeway -e /_causeway -e /causeway.fish | grep -x 4"
    # shellcheck disable=SC2046
    expect "the example compiles" cc /causeway/apps/examples/put.c $(pkg-config --cflags --libs causeway) -o put
    expect "... and runs" ./put
    printf '%s\n' '#include <mpi.h>' 'int main(void) { int size = 0, sum = 1; MPI_Init(0, 0); MPI_Comm_size(MPI_COMM_WORLD, &size);' \
        'MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); MPI_Finalize(); return sum != 2 || size != 2; }' >sum.c
    expect "an MPI program compiles" mpicc.causeway sum.c -o sum
    expect "... and runs" causeway run -n 2 ./sum
    expect "... and by the other name, over emulated hosts" mpiexec.causeway -n 2 --emulate 2,memif ./sum
    cd /
    # shellcheck disable=SC2086
    apt-get -q -y --autoremove purge $names
    files >$there.after
    expect "nothing is left behind" diff $there.before $there.after
}

"$1"
