"""Figure 3: the binomial broadcast."""
from plogp_models.comparisons import figure_cells, figure_claims
from plogp_models.network import ITS_NAME

TITLE = "the binomial broadcast and its model, by machines and size"
CLAIM = "the model follows the measurement, with variations"
SOURCE = f"{ITS_NAME}, Figure 3"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "The tree of 24 machines has five levels, and the root sends five times; the printed form has floor(log2 P) = 4 gaps, so that it is below our "
    "times there. For 4, 8 and 16 machines floor and ceiling are equal."
)
CLAIMS = figure_claims("bcast")


def cells(quick):
    return figure_cells("bcast", "binomial tree", quick)
