"""What Figures 2 to 5 and 7 to 9 share: some algorithms on some numbers of machines."""
from plogp_models.equations import BROADCASTS, SCATTERS, by_machines, forms_named, places
from runner import Within

COMPARED_BROADCASTS = forms_named(BROADCASTS, ("flat tree", "segmented chain", "binomial tree"))
COMPARED_SCATTERS = forms_named(SCATTERS, ("flat tree", "binomial tree"))
BROADCAST_SIZES = (8192, 65536, 262144, 1048576)
SCATTER_SIZES = (8192, 65536, 262144)
MACHINES = (4, 8, 16, 24)


def sizes_of(what):
    return BROADCAST_SIZES if what == "bcast" else SCATTER_SIZES


def compared(what):
    return COMPARED_BROADCASTS if what == "bcast" else COMPARED_SCATTERS


def figure_cells(what, name, quick):
    form = forms_named(compared(what), (name,))[0]
    sizes = sizes_of(what)
    return by_machines(what, form, compared(what), MACHINES[1::2] if quick else MACHINES, sizes[:2] if quick else sizes)


def figure_claims(what):
    return [
        Within(f"{ranks} machines: model / 1.5 to model * 1.5", places((f"{ranks} machines",), sizes_of(what)), 0.67, 1.5)
        for ranks in MACHINES
    ]
