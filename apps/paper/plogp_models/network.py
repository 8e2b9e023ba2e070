"""The network of the paper: PCs on a switched Ethernet of 1 Gb/s (section 2).

The paper does not give the delay and the buffers of its switch. A delay of 50 us is that of such a switch with the
kernels of the time. The senders are those of LAM/MPI 7 on TCP.
"""
LINKS = "rate=1Gbps,delay=50us"
TCP = (("CAUSEWAY_CONGESTION", "loss"),)
ITS_NAME = "Barchet-Estefanel and Mounie 2004"
SEGMENT = 8192  # the longest segment that travels without a handshake
NOT_REBUILT = {
    "figure 6": "it shows short messages that the acknowledgements of Linux 2.4's TCP delay, and our senders do not have that fault",
}
