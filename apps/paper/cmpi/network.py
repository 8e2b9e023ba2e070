"""The networks and programs of the paper: a cluster with 100 Mb/s Ethernet (section 3.1), and the 1 Gb/s of Table 1.

The CPU time of each rank counts as it is (cpu=1): equation 3 compares it with the time of the link. So results vary from run
to run, and figures of four ranks are medians of three runs. The programs are kernels with the same kind of messages, of class S
on 4 and 16 ranks: their problems are far smaller than the paper's, and 64 ranks take minutes to simulate.
"""
FAST_ETHERNET = "cpu=1,rate=100Mbps,delay=100us"
GIGABIT = "cpu=1,rate=1Gbps,delay=50us"
ITS_NAME = "Ke, Burtscher and Speight, SC'04"
KERNELS = {"BT": "adi", "SP": "adi", "LU": "ssor", "sPPM": "ppm", "Sweep3D": "sweep", "AZTEC": "krylov"}
FEW, MANY = 4, 16  # ranks
NOT_REBUILT = {
    "figure 1": "a drawing of the codec, which is dataplane/codec's dfcm",
    "figure 2": "it compares with MPI-Pro, a commercial library for Windows; tests/peers/hosts.py compares with MPICH and Open MPI",
    "table 2": "a list of programs; the kernels adi (BT, SP), ssor (LU), ppm (sPPM), sweep (Sweep3D) and krylov (AZTEC) take their places",
}
