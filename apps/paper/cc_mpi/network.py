"""The network of the paper: PCs with 100 Mb/s Ethernet on small switches (section 5)."""
LINKS = "rate=100Mbps,delay=100us"
ITS_NAME = "Karwande, Yuan and Lowenthal, PPoPP 2003"
