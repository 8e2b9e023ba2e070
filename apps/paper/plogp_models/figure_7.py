"""Figure 7: the binomial scatter."""
from plogp_models.comparisons import figure_cells, figure_claims
from plogp_models.network import ITS_NAME

TITLE = "the binomial scatter and its model, by machines and size"
CLAIM = "the model follows the stairs of the measurement"
SOURCE = f"{ITS_NAME}, Figure 7"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "Our tree sends a machine only the blocks of its subtree, and 24 machines are no full tree: the root sends 23 blocks, where the form has 31. With "
    "4, 8 and 16 machines the form is exact."
)
CLAIMS = figure_claims("scatter")


def cells(quick):
    return figure_cells("scatter", "binomial tree", quick)
