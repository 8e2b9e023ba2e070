"""Figure 9: two scatters."""
from plogp_models.comparisons import compared, sizes_of
from plogp_models.equations import by_size, places, size_name
from plogp_models.network import ITS_NAME
from runner import Claim, Within

TITLE = "two scatters of 24 machines and their models, by size"
CLAIM = "a binomial scatter may be faster than a flat one, and the binomial model is the less exact one"
SOURCE = f"{ITS_NAME}, Figure 9"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "The root's link carries the blocks of all others in either tree, and is busy all the time in both. A binomial scatter can be faster only where "
    "sending a message takes processing, and it takes none here."
)
SIZES = sizes_of("scatter")
CLAIMS = [Within("all models, model / 1.5 to model * 1.5", places([name for name, _, _ in compared("scatter")], SIZES), 0.67, 1.5)]
for size in SIZES[1:]:
    column = size_name(size)
    CLAIMS.append(Claim(f"{column}: the binomial tree is ahead of the flat one", ("binomial tree", column), ("flat tree", column)))


def cells(quick):
    return by_size("scatter", compared("scatter"), 24, SIZES[:2] if quick else SIZES)
