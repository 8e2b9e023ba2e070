"""Figure 4: the flat broadcast."""
from plogp_models.comparisons import figure_cells, figure_claims
from plogp_models.network import ITS_NAME

TITLE = "the flat broadcast and its model, by machines and size"
CLAIM = "the model is more accurate than those of Figures 2 and 3"
SOURCE = f"{ITS_NAME}, Figure 4"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "No machine is late on a simulated network, so that all three models are about equally accurate. g(64 KB) has a handshake, and those of the flat "
    "tree overlap with other messages."
)
CLAIMS = figure_claims("bcast")


def cells(quick):
    return figure_cells("bcast", "flat tree", quick)
