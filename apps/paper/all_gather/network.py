"""The networks of the paper: two clusters, one process on each node (section 4).

Rates are those of the links: InfiniBand 4x carries 8 Gb/s of data, a link of Elan-4 1.3 GB/s. The paper prints no latencies.
Its first points (Figure 5) and the MPI libraries of the time have some 6 us on InfiniBand and 3 us on Elan-4. Both networks
hold packets back where a switch has no room, and their senders have no congestion control. So buffers here are larger than
anything in flight, and nothing is ever lost (CAUSEWAY_CONGESTION=loss then limits no sender). Processing takes no time.
"""
INFINIBAND = "rate=8Gbps,delay=6us,mtu=2048,buffer=64MB"
ELAN = "rate=10.4Gbps,delay=3us,mtu=4096,buffer=64MB"
NETWORKS = (("InfiniBand", INFINIBAND), ("Elan-4", ELAN))
CREDITS = (("CAUSEWAY_CONGESTION", "loss"),)
ITS_NAME = "Tipparaju and Nieplocha, SC'05"
NOT_REBUILT = {
    "figure 1": "a drawing of two NICs",
    "figure 2": "a drawing of who sends to whom; `causeway plan dump` prints the same of our plans",
    "figure 3": "a drawing of the steps with concurrency index 2; `causeway plan draw` makes it of our plans",
    "figure 4": "a drawing of the steps with message splitting; `causeway plan draw` makes it of our plans",
    "NAS CG": "the paper names the program and prints no numbers of it",
}
