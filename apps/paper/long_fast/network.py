"""The network of the paper: two clusters of 16 PCs (sections 3.3 and 3.6, Figure 5).

Each PC has a link of 1 Gb/s, and a link of 10 Gb/s and 10 ms joins the clusters, or one without delay. The paper does not
give the buffers of the switches: 512 KB for a PC and 1 MB for the long link are ours. Packets have 9,000 bytes, since a
simulation of packets of 1,500 bytes takes six times as long. Headers are 1 % of them, not 5 %.
"""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
PACKETS = "mtu=9000"


def links_of(file):
    return f"topology={os.path.join(HERE, file)},{PACKETS}"


LINKS = links_of("two_clusters.json")
NO_DELAY = links_of("no_delay.json")
UNEQUAL = links_of("unequal.json")  # 16 and 8 nodes
RANKS = 32
UNEQUAL_RANKS = 24
UNSEALED = (("CAUSEWAY_ENCRYPT", "off"),)  # as the paper's TCP
TCP = UNSEALED + (("CAUSEWAY_CONGESTION", "loss"),)
ITS_NAME = "Matsuda, Kudoh, Kodama, Takano and Ishikawa, Cluster 2006"
NOT_REBUILT = {
    "figure 1": "it draws which data moves in a broadcast, and has no numbers",
    "figure 2": "it is the program of the broadcast: collectives/algorithms/clusters_bcast.c is ours",
    "figure 3": "it draws which data moves in an all-reduce, and has no numbers",
    "figure 4": "it is the program of the all-reduce: collectives/algorithms/clusters_allreduce.c is ours",
    "table 2": "it lists the hardware of the nodes",
}
