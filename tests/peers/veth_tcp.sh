#!/bin/bash
# Runs a program of MPICH or Open MPI, one rank on each of some emulated hosts, over the kernel's TCP between them:
#
#   causeway run -n 1 --emulate 2,veth[,mtu=N] tests/peers/veth_tcp.sh mpich|openmpi PROGRAM [ARGUMENT...] : -n 1 true
#
# VETH_OFFLOAD=off: without segmentation offload (TSO, GSO). Rank 0 stands on the first host and starts mpiexec there; the library's own launcher enters the others by this script again.
set -eu
: "${CAUSEWAY_NETWORKS:?is set by causeway run --emulate 2,veth}"
script=$(realpath "$0")

# enter HOST COMMAND...: a process of that host, numbered from 1, sees its interfaces in /sys, where UCX looks for them, and has its name: by one name
# Open MPI takes both for the same host
enter() {
    local host=$1
    shift
    IFS=: read -ra networks <<<"$CAUSEWAY_NETWORKS"
    exec nsenter --net="${networks[host - 1]}" unshare --uts --mount \
        sh -c 'mount -t sysfs sysfs /sys && hostname host'"$host"' && exec "$@"' sh "$@"
}

if [ "$1" = agent ]; then
    # what mpiexec calls instead of ssh: [OPTION...] HOST COMMAND..., the command for a shell
    shift
    while [ "${1#-}" != "$1" ]; do shift; done
    host=${1##*.}
    shift
    enter "$host" sh -c "$*"
elif [ "$1" != mpiexec ]; then
    if [ "${VETH_OFFLOAD:-on}" = off ]; then
        IFS=: read -ra networks <<<"$CAUSEWAY_NETWORKS"
        for network in "${networks[@]}"; do
            nsenter --net="$network" python3 "${script%_tcp.sh}.py" --offload-off
        done
    fi
    for variable in PMI_FD PMI_RANK PMI_SIZE; do unset $variable; done # of causeway run, none of theirs
    enter 1 "$script" mpiexec "$@"
fi

shift
library=$1
shift
IFS=: read -ra networks <<<"$CAUSEWAY_NETWORKS"
count=${#networks[@]}
hosts=$(seq -s , -f '10.0.0.%g' "$count")
agent=$(mktemp)
trap 'rm -f "$agent"' EXIT
printf '#!/bin/sh\nexec %q agent "$@"\n' "$script" >"$agent"
chmod +x "$agent"
case $library in
mpich)
    # Debian's is built on UCX, others on libfabric; both are held to TCP, since processes of one kernel would find shared memory
    export UCX_TLS=tcp,self FI_PROVIDER=tcp UCX_WARN_UNUSED_ENV_VARS=n
    mpiexec.mpich -launcher ssh -launcher-exec "$agent" -hosts "$hosts" -ppn 1 -n "$count" "$@"
    ;;
openmpi)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # unbound: each host would bind its rank to its first core, which is the same one
    mpiexec.openmpi --bind-to none --mca plm_rsh_agent "$agent" --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include 10.0.0.0/24 \
        --mca oob_tcp_if_include 10.0.0.0/24 --host "${hosts//,/:1,}:1" -n "$count" "$@"
    ;;
*)
    echo "veth_tcp.sh: mpich or openmpi?" >&2
    exit 2
    ;;
esac
