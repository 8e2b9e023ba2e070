"""Table 2: the scatters."""
from plogp_models.equations import SCATTERS, by_size, places
from plogp_models.network import ITS_NAME
from runner import Within

TITLE = "four models of scatters, and the scatters of 24 machines"
CLAIM = "pLogP predicts scatters, the binomial one less exactly"
SOURCE = f"{ITS_NAME}, Table 2"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "g(1 KB) contains the way of the packet through the switch, so that the flat tree sends its short blocks in half of that time. The root of the binomial tree sends "
    "23 blocks, where the form has 31. Senders that find their rate by lost packets keep the pipelined chain waiting: with 64 KB it takes 15 ms with "
    "CAUSEWAY_CONGESTION=delay, where the form has 17 ms."
)
SIZES = (1024, 8192, 65536, 262144)
LONG = SIZES[1:]
NAMES = [name for name, _, _ in SCATTERS]
CLAIMS = [Within(f"from 8 KB on: {name}, model / 1.5 to model * 1.5", places((name,), LONG), 0.67, 1.5) for name in NAMES]
CLAIMS.append(Within("1 KB: all forms", places(NAMES, SIZES[:1]), 0.67, 1.5))


def cells(quick):
    return by_size("scatter", SCATTERS, 24, (8192, 65536) if quick else SIZES)
