"""The network of the paper: PCs with 100 Mb/s Ethernet on small switches (section 5).

The paper does not give the buffers of its switches. Those of the time had some 64 to 512 KB for all ports together.
"""
LINKS = "rate=100Mbps,delay=100us,shared=128KB"
TCP = (("CAUSEWAY_CONGESTION", "loss"),)  # senders of LAM/MPI and MPICH: slow start, losses, time-outs of 200 ms
ITS_NAME = "Karwande, Yuan and Lowenthal, PPoPP 2003"
NOT_REBUILT = {
    "figure 1": "an example of two groups in a program, without numbers",
    "figure 2": "a drawing of the phases for 6 nodes; `causeway plan draw` draws those of any number",
    "figure 3": "an example of two schedules, without measurements",
    "figure 4": "the text of an algorithm, which is collectives/phases/greedy.c",
    "figure 5": "a drawing of the machines",
    "figure 6": "the text of a measuring loop, which is apps/measure/collective_measure.c",
}
