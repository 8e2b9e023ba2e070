#!/usr/bin/env python3
"""rdma_multicast.py BUILD NAME=PROGRAM...: multicasts of a job by datagrams of RDMA devices, among three guests (rdma_guests.py): on a good network, where
packets get lost, where the network drops them, and where one cannot. The programs verify what they move."""
import json
import re
import sys

from expectation import PATIENT, exit_code, expect
from guest import with_guests
from rdma_guests import CAUSEWAY, PROGRAMS, Devices, told

ALGORITHMS = {"CAUSEWAY_ALGORITHM": "bcast=multicast,scatter=multicast,allgather=multicasts,barrier=tree-multicast"}
BY_DEVICES, BY_NETWORK = "group of MPI_COMM_WORLD: multicast by datagrams of RDMA devices\n", "group of MPI_COMM_WORLD: multicast\n"
DATAGRAMS = re.compile(r"(\d+) packets to groups and (\d+) from them by datagrams")
MULTICAST = re.compile(r"multicast: (\d+) packets, (\d+) repairs to all, (\d+) to one member, (\d+) forwarded; .*; naks: (\d+) sent, (\d+) received; (\d+) state packets")
LOSSES = {"0.1%": 0.001, "1%": 0.01}
GROUPS_DROPPED = ("for each in sch_prio cls_u32 act_gact; do /run/guest/modprobe $each; done; tc qdisc add dev nic0 root handle 1: prio && "
                  "tc filter add dev nic0 parent 1: protocol ip u32 match ip dst 239.0.0.0/8 match ip dport 4791 0xffff action drop")


def counts(pattern, result):
    found = pattern.search(result.err)
    return [int(each) for each in found.groups()] if found else []


def run(machines, name, where, says):
    result = machines.job_run(PROGRAMS[name], environment=ALGORITHMS)
    expect(result.code == 0 and says in result.err, f"{name} {where}: {told(result)}")
    return result


def work():
    with Devices(3, modules=["rdma_ucm"]) as machines:
        result = run(machines, "collective_move", "on a good network", BY_DEVICES)
        (out, received), (packets, again, _, passed_on, _, _, _) = counts(DATAGRAMS, result), counts(MULTICAST, result)
        print(f"{packets} packets of rank 0's, {again} of them again: {out} datagrams", flush=True)
        expect(packets > 100 and received > 0 and packets + again <= out and passed_on == 0, f"a packet is one datagram, whoever wants it: {told(result)}")
        expect(again <= packets // 20, f"where nothing is lost little goes twice: {told(result)}")
        measured = machines.run("a", [CAUSEWAY, "plogp", "--concurrency", "--hosts", "a,b,c", "--path", "rdma", "--launcher", "remote", "--sizes", "8,4096", "--time", "3s",
                                      "--json"], {"CAUSEWAY_FAILURE_TIMEOUT": PATIENT, "CAUSEWAY_TRANSPORT": "udp:10.9.0.0/24"})
        rows = [json.loads(line) for line in measured.out.splitlines()]
        expect(measured.code == 0 and {row["path"] for row in rows} == {"rdma"}, f"queue pairs are a path of their own: {told(measured)}")
        for loss, share in LOSSES.items():
            machines.everywhere(f"/run/guest/modprobe sch_netem; tc qdisc replace dev nic0 root netem loss {loss}")
            result = run(machines, "collective_move", f"where {loss} gets lost", "group of MPI_COMM_WORLD: multicast")
            packets, again, to_one, _, _, requests, _ = counts(MULTICAST, result)
            print(f"loss of {loss}: {packets} packets, {again} again to all, {to_one} to one, {requests} requests", flush=True)
            expect(requests <= 20 + 20 * share * 2 * packets, f"requests are bounded where {loss} gets lost: {told(result)}")
        machines.everywhere("tc qdisc del dev nic0 root")
        machines.everywhere(GROUPS_DROPPED)
        result = run(machines, "collective_move", "where the network drops groups", "do not reach rank")
        expect(counts(DATAGRAMS, result)[0] < counts(MULTICAST, result)[0] // 2, f"members pass on what devices do not bring: {told(result)}")
        machines.everywhere("tc qdisc del dev nic0 root")
        machines.run("c", ["sh", "-c", "rmmod rdma_ucm || rm /dev/infiniband/rdma_cm"])
        run(machines, "scatter_groups", "where one cannot join", BY_NETWORK)  # groups without it go by devices still
        result = machines.job_run("--rdma", "off", PROGRAMS["scatter_groups"], environment=ALGORITHMS)
        expect(result.code == 0 and BY_NETWORK in result.err, f"without devices: {told(result)}")
    return exit_code()


sys.exit(with_guests(work))
