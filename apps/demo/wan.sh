#!/bin/bash
# wan.sh BUILD PICTURE: runs an all-reduce across two emulated clusters, paced and not paced, compares it with the cost model, and draws it.
# Used by ./demo --wan. Exit code: 0, or that of the command that failed.
set -u
causeway=$1/causeway program=$1/apps/kernels/allreduce picture=$2
topology=$(dirname "${BASH_SOURCE[0]}")/../examples/two_clusters.json
algorithm=clusters-rabenseifner
bytes=8388608
runs=3
folder=$(mktemp -d "${TMPDIR:-/tmp}/causeway-demo-XXXXXX") || exit 3
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# Name, nanoseconds.
say() { awk -v name="$1" -v ns="$2" 'BEGIN { printf "  %-28s %6.2f s\n", name, ns / 1e9 }'; }

# note OUTPUT LABEL: adds the median of a program's times to times.csv.
note() {
    took=$(awk '/verified/ { printf "%.0f\n", $(NF - 2) * 1e9 }' "$1" | sort -n | sed -n "$(((runs + 1) / 2))p")
    say "$2" "$took"
    echo "$2,$predicted,$took" >>"$folder/times.csv"
}

# measure CAUSEWAY_PACING FILES LABEL
measure() {
    CAUSEWAY_PACING=$1 CAUSEWAY_COMPRESSION=off CAUSEWAY_ALGORITHM=allreduce=$algorithm "$causeway" run -n 8 --timeout "$bound" \
        --emulate "topology=$topology,memif,stats=$folder/$2.csv" "$program" --bytes $bytes --runs $runs >"$folder/$2.txt" || return
    note "$folder/$2.txt" "$3"
}

echo "Two emulated clusters have 4 hosts each, with 100 Mb/s per host. The link between them has 250 Mb/s and 10 ms."
echo "8 ranks sum vectors of 8 MiB with an all-reduce (modified Rabenseifner, Matsuda et al. 2006)."
echo "Every element is verified. Times are medians of $runs runs."
# The paper's Table 1 for 4 senders and the links of the topology file: 100 Mb/s per host, 250 Mb/s and 10 ms between the
# clusters, of which packets of 1,440 bytes leave 94 % for data.
predicted=$(awk -v bytes=$bytes 'BEGIN { bits = 8 * bytes / (1440 / 1538); printf "%.0f\n", (2 * bits / 100e6 + bits / 250e6 + 0.01) * 1e9 }')
echo "name,predicted_ns,measured_ns" >"$folder/times.csv"
say "predicted by the cost model" "$predicted"
# ends a hang; 200 times the prediction, for busy machines
bound=$(awk -v ns="$predicted" -v runs=$runs 'BEGIN { s = 200 * runs * ns / 1e9; printf "%d", s < 60 ? 60 : s }')
simulate() {
    CAUSEWAY_COMPRESSION=off CAUSEWAY_ALGORITHM=allreduce=$algorithm "$causeway" run -n 8 --timeout "$bound" \
        --simulate "topology=$topology,cpu=0" "$program" --bytes $bytes --runs $runs >"$folder/simulated.txt" 2>"$folder/errors.txt" || {
        status=$?
        cat "$folder/errors.txt" >&2
        return $status
    }
    note "$folder/simulated.txt" "in virtual time"
}
simulate || exit
measure on paced "paced" || exit
measure off unpaced "not paced" || exit
"$causeway" draw "$folder/paced.csv" "$folder/unpaced.csv" --label "paced" --label "not paced" --times "$folder/times.csv" -o "$picture" || exit
echo "Picture: $picture"
echo "It shows the share of each host in the long link, the queue in front of the link, and predicted and measured times."
