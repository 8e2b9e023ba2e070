"""Table 1: the broadcasts."""
from plogp_models.equations import BROADCASTS, by_size, places
from plogp_models.network import ITS_NAME
from runner import Within

TITLE = "ten models of broadcasts, and the broadcasts of 16 machines"
CLAIM = "pLogP predicts broadcasts; the form of the binary tree is an upper bound"
SOURCE = f"{ITS_NAME}, Table 1"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "plogp measures g(m) by round trips, as the paper does. A message of one packet is sent twice on its way, by the host and by the switch, so that g(1 KB) is "
    "23 us, while a flat tree sends a message each 10.5 us. From 8 KB on the second packet leaves the host while the switch sends the first one. The form of the "
    "chain with rendezvous has a handshake for each machine; here all handshakes but the first one end before the data arrives, so that it is an upper bound. The "
    "segmented flat tree sends the same bytes as the flat tree in shorter messages, so that it cannot be faster."
)
SIZES = (1024, 8192, 65536, 262144, 1048576)
LONG = SIZES[1:]
ALL = [name for name, _, _ in BROADCASTS]
CLAIMS = [
    Within("from 8 KB on: flat tree, chain and binomial tree, model / 1.5 to model * 1.5", places(("flat tree", "chain", "binomial tree"), LONG), 0.67, 1.5),
    Within("from 8 KB on: the segmented forms", places([name for name in ALL if name.startswith("segmented")], LONG), 0.67, 1.5),
    Within("from 8 KB on: the forms with rendezvous", places([name for name in ALL if name.endswith("rendezvous")], LONG), 0.67, 1.5),
    Within("1 KB: all forms", places(ALL, SIZES[:1]), 0.67, 1.5),
    Within("the chain with rendezvous takes at most the time of its form", places(("chain rendezvous",), SIZES), 0, 1),
    Within("the binary tree takes at most the time of its form", places(("binary tree",), SIZES), 0, 1),
]


def cells(quick):
    return by_size("bcast", BROADCASTS, 16, (8192, 65536) if quick else SIZES)
