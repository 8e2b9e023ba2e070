"""Figure 5: three broadcasts."""
from plogp_models.comparisons import compared, sizes_of
from plogp_models.equations import by_size, places, size_name
from plogp_models.network import ITS_NAME
from runner import Claim, Within

TITLE = "three broadcasts of 16 machines and their models, by size"
CLAIM = "the segmented chain is the fastest, then the binomial tree, and the models say so"
SOURCE = f"{ITS_NAME}, Figure 5"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "The models choose the same algorithm as the measurement. The segmented chain is 0.8 to 1.0 times its model, as g(8 KB) contains the way of the "
    "last packet through the switch."
)
SIZES = sizes_of("bcast")
CLAIMS = [Within("all models, model / 1.5 to model * 1.5", places([name for name, _, _ in compared("bcast")], SIZES), 0.67, 1.5)]
for size in SIZES[1:]:
    column = size_name(size)
    CLAIMS.append(Claim(f"{column}: the segmented chain is ahead of the binomial tree", ("segmented chain", column), ("binomial tree", column)))
    CLAIMS.append(Claim(f"{column}: the binomial tree is ahead of the flat one", ("binomial tree", column), ("flat tree", column)))


def cells(quick):
    return by_size("bcast", compared("bcast"), 16, SIZES[:2] if quick else SIZES)
