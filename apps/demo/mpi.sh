#!/bin/bash
# mpi.sh BUILD [--verbose]: sorts integers with MPI, on four emulated hosts and on one, and prints a summary. With --verbose it prints the whole
# output of `causeway run --explain`, which is always in BUILD/demo-mpi.log. Used by ./demo. Exit code: 0, or that of the job that failed.
set -u
causeway=$1/causeway sort=$1/apps/kernels/is log=$1/demo-mpi.log verbose=${2:-}
: >"$log" || exit 3

# measure WHERE OPTION...: runs the program and prints its results, one per line.
measure() {
    local where=$1 output code
    shift
    output=$("$causeway" run -n 8 "$@" --explain "$sort" S 2>&1)
    code=$?
    echo "$output" >>"$log"
    [ $code = 0 ] || {
        echo "$output" >&2
        exit $code
    }
    if [ "$verbose" = --verbose ]; then
        printf '\n%s\n' "$output"
        return
    fi
    awk -v where="$where" '
        / verified$/ { sub(/,/, "", $5); printf "  %-10s %s million keys per second, in %s s, verified\n", where, $(NF - 2), $5 }
        / path to rank .*: shared memory/ { near++ }
        / path to rank .*: packets/ { far++ }
        / messages sent, / { sent = $4; received = $7 }
        match($0, / [0-9]+ calls/) {
            calls = substr($0, RSTART + 1) + 0
            name = $0
            sub(/.* ranks: /, "", name)
            sub(/ \(.*/, "", name)
            if (name == "host") shared += calls; else { others += calls; count[name] += calls }
        }
        END {
            printf "    paths        rank 0 reaches %d rank%s over shared memory, %d over the switch\n", near, near == 1 ? "" : "s", far
            printf "    messages     %d sent and %d received by rank 0\n", sent, received
            line = sprintf("    collectives  %d steps in shared memory, %d with messages", shared, others)
            while (length(count) > 0) {
                best = ""
                for (name in count) if (best == "" || count[name] > count[best] || count[name] == count[best] && name < best) best = name
                listed++
                longer = sprintf("%s%s%s %d", line, listed == 1 ? ": " : ", ", best, count[best])
                if (listed <= 3 && length(longer) <= 100) line = longer
                delete count[best]
            }
            print line
        }' <<<"$output"
}

echo "An MPI program with 8 processes (ranks) sorts 65536 integers ten times (NAS benchmark IS)."
measure "on 4 hosts" --emulate 4,memif
measure "on 1 host"
