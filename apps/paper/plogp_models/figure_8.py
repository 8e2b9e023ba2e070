"""Figure 8: the flat scatter."""
from plogp_models.comparisons import figure_cells, figure_claims
from plogp_models.network import ITS_NAME

TITLE = "the flat scatter and its model, by machines and size"
CLAIM = "the time is linear in the number of machines, as in the model"
SOURCE = f"{ITS_NAME}, Figure 8"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = "g(64 KB) has a handshake, and those of the flat tree overlap with other messages: this makes the model up to 1.2 times as long."
CLAIMS = figure_claims("scatter")


def cells(quick):
    return figure_cells("scatter", "flat tree", quick)
