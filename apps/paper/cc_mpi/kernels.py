"""What Tables 4 and 5 share: run times of a NAS kernel by problem size, library and number of nodes."""
from cc_mpi.network import LINKS, TCP
from runner import Cell, Claim, Job, number_after

CC_MPI, LAM, MPICH = "CC-MPI", "LAM/MPI", "MPICH"
ALGORITHMS = {
    LAM: "alltoall=direct,alltoallv=pairs",
    MPICH: "alltoall=rotated,alltoallv=rotated",
    CC_MPI: "alltoall=phased-barriers,alltoallv=all-to-all-based-barriers",
}
NODES = (4, 8, 16)
SECONDS = number_after(r"ranks, ([0-9.]+) s,")


def row_of(size, nodes):
    return f"class {size}, {nodes} nodes"


def kernel_cells(program, papers, sizes, nodes_used):
    """`papers` has the seconds of 4, 8 and 16 nodes by problem size and library."""
    found = []
    for size in sizes:
        for nodes in nodes_used:
            for library, algorithms in ALGORITHMS.items():
                environment = TCP + (("CAUSEWAY_ALGORITHM", algorithms), ("CAUSEWAY_COMPRESSION", "off"))
                job = Job(nodes, LINKS, program, (size,), environment)
                found.append(Cell(row_of(size, nodes), library, papers[size][library][NODES.index(nodes)], job, SECONDS))
    return found


def ahead(size, nodes, other):
    return Claim(f"class {size}, {nodes} nodes: phases are ahead of {other}", (row_of(size, nodes), CC_MPI), (row_of(size, nodes), other))
