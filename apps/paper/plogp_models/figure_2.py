"""Figure 2: the segmented chain."""
from plogp_models.comparisons import figure_cells, figure_claims
from plogp_models.network import ITS_NAME

TITLE = "the segmented chain broadcast and its model, by machines and size"
CLAIM = "the model follows the measurement, with variations"
SOURCE = f"{ITS_NAME}, Figure 2"
UNIT = "ms"
VALUES = "model"
DIFFERENCE = (
    "A model of the pipeline has g(8 KB), 92 us, for each segment. By its definition g(m) contains the way of the last packet through the switch; here "
    "a segment leaves each 74 us, so that long broadcasts are faster than the model."
)
CLAIMS = figure_claims("bcast")


def cells(quick):
    return figure_cells("bcast", "segmented chain", quick)
