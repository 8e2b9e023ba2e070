#!/usr/bin/env python3
"""Makes the table of routines that walk.c walks through, from the lists that the library itself is made from.

    generate.py ABI_FOLDER PROTOTYPES MPIX_TEMPLATE OUT KINDS SOURCE...

Each implemented routine becomes a function that takes its arguments as numbers, and a row: for each parameter the kind
of value that it takes. The first row of KINDS that fits routine, type and name of the parameter tells the kind.
A new routine is walked by itself; parameters that fit no row are ANY. KINDS becomes a header with all kinds.
"""
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from generate import implemented, shared  # noqa: E402
from prototypes import read  # noqa: E402

# They begin or end the program, or have no wrong arguments by design: conversions of handles, arithmetic, clocks.
NOT_WALKED = re.compile(r"MPI_(Init|Init_thread|Finalize|Abort|Pcontrol|.*_(to|from)int)")

ANY = "ANY"  # no value is wrong
OUT_IF_GET = "OUT_IF_GET"  # OUT or ANY, by the routine
# (routine, type, parameter, kind); the first that fits counts.
KINDS = [
    # routines with values of their own
    (r"MPI_Comm_(get_name)", "MPI_Comm", "comm", "COMM_OR_NULL"),  # the null handle has a name (7.8)
    (r"MPI_Type_get_name", "MPI_Datatype", "datatype", "TYPE_OR_NULL"),
    (r"MPI_Cart_(get|rank|coords|shift|sub)|MPI_Cartdim_get", "MPI_Comm", "comm", "GRID"),
    (r"MPI_Comm_(free|disconnect)", r"MPI_Comm \*", "comm", "COMM_TO_FREE"),
    (r"MPI_Group_free", r"MPI_Group \*", "group", "GROUP_TO_FREE"),
    (r"MPI_Type_free", r"MPI_Datatype \*", "datatype", "TYPE_TO_FREE"),
    (r"MPI_Type_commit", r"MPI_Datatype \*", "datatype", "TYPE_TO_COMMIT"),
    (r"MPI_Op_commutative", "MPI_Op", "op", "OP_ANY"),
    (r"MPI_Op_free", r"MPI_Op \*", "op", "OP_TO_FREE"),
    (r"MPI_Info_free", r"MPI_Info \*", "info", "INFO_TO_FREE"),
    (r"MPI_Errhandler_free", r"MPI_Errhandler \*", "errhandler", "ERRHANDLER_TO_FREE"),
    (r"MPI_(Comm_free_keyval|Keyval_free)", r"int \*", r"(comm_)?keyval", "COMM_KEY_TO_FREE"),
    (r"MPI_Type_free_keyval", r"int \*", "type_keyval", "TYPE_KEY_TO_FREE"),
    (r"MPI_(Wait|Test)", r"MPI_Request \*", "request", "REQUEST_TO_WAIT"),
    (r"MPI_(Start|Cancel|Request_free)", r"MPI_Request \*", "request", "REQUEST_TO_USE"),
    (r"MPI_Startall", "MPI_Request", "array_of_requests", "REQUESTS_TO_START"),
    (r"MPI_Grequest_complete", "MPI_Request", "request", "REQUEST_GENERAL"),
    (r"MPI_(M|Im)recv(_c)?", r"MPI_Message \*", "message", "MESSAGE"),
    (r"MPI_Info_(set|delete)", "MPI_Info", "info", "INFO_TO_CHANGE"),
    (r"MPI_(Info_.*|Comm_set_info)", "MPI_Info", "info", "INFO"),
    (r"MPI_Info_get_nthkey", "int", "n", "NTH_KEY"),
    (r"MPI_Info_.*", r"const char \*", "key", "KEY"),
    (r"MPI_Info_set", r"const char \*", "value", "VALUE"),
    (r"MPI_Info_get_string", r"int \*", "buflen", "LENGTH_CELL"),
    (r"MPI_Info_get", "int", "valuelen", "LENGTH"),
    (r"MPI_(Type_.*|Get_(count|elements).*|Status_set_elements.*)", "MPI_Datatype",
     "datatype|value_type|index_type", "TYPE_ANY"),
    (r"MPI_Type_get_contents.*", ".*", "max_(integers|datatypes)", "ROOM"),
    (r"MPI_Type_get_contents.*", ".*", "max_(addresses|large_counts)", "NO_ROOM"),
    (r"MPI_Type_get_contents.*", ".*", "array_of_(addresses|large_counts)", "ARRAY"),
    (r"MPI_Type_create_subarray.*", "int", "order", "ORDER"),
    (r"MPI_Type_create_subarray.*", "int", "ndims", "DIMENSIONS"),
    (r"MPI_Type_create_subarray.*", "const .*", "array_of_(sub)?sizes", "SIZES"),
    (r"MPI_Type_create_subarray.*", "const .*", "array_of_starts", "DISPLACEMENTS"),
    (r"MPI_Type_(indexed|create_hindexed|create_struct).*", "const .*", "array_of_blocklengths", "BLOCKLENGTHS"),
    # a long one runs out of the arrays
    (r"MPI_Type_(indexed|create_h?indexed|create_struct).*", ".*", "count", "ARRAY_LENGTH"),
    (r"MPI_Type_.*", "MPI_Count", "count|blocklength", "ELEMENTS_LARGE"),
    (r"MPI_Type_match_size", "int", "(typeclass|size)", "TYPE_CLASS"),
    (r"MPI_Type_create_f90_.*", "int", "[pr]", "PRECISION"),
    (r"MPI_(Dims_create|Cart_create|Cart_map)", "int", "ndims", "DIMENSIONS"),
    (r"MPI_Dims_create", "int", "nnodes", "NODES"),
    (r"MPI_Dims_create", "int", "dims", "SIZES_TO_FIND"),
    (r"MPI_Cart_(create|map)", "const int", "dims", "GRID_SIZES"),
    (r"MPI_Cart_rank", "const int", "coords", "COORDINATES"),
    (r"MPI_Cart_sub", "const int", "remain_dims", "ARRAY"),
    (r"MPI_Cart_shift", "int", "direction", "DIRECTION"),
    (r"MPI_Cart_(get|coords)", "int", "maxdims", "ROOM"),
    (r"MPI_Cart_coords", "int", "rank", "RANK"),
    (r"MPI_Comm_split", "int", "color", "COLOR"),
    (r"MPI_Comm_split_type", "int", "split_type", "SPLIT_TYPE"),
    (r"MPI_Comm_create_group", "int", "tag", "TAG"),
    (r"MPI_Group_.*", "int", "n", "GROUP_COUNT"),
    (r"MPI_Group_translate_ranks", "const int", "ranks1", "RANKS"),
    (r"MPI_Group_(incl|excl)", "const int", "ranks", "DIFFERENT_RANKS"),
    (r"MPI_(Buffer|Comm)_attach_buffer.*|MPI_Buffer_attach.*|MPI_Alloc_mem", ".*", "size", "LENGTH"),
    (r"MPI_Buffer_attach.*|MPI_Comm_attach_buffer.*", r"void \*", "buffer", "BUFFER"),
    (r"MPI_Errhandler.*|MPI_Comm_set_errhandler", "MPI_Errhandler", "errhandler", "ERRHANDLER"),
    (r"MPI_(Comm_(set|delete)_attr|Attr_(put|delete))", "int", "(comm_)?keyval", "COMM_KEY_TO_SET"),
    (r"MPI_(Comm_get_attr|Attr_get)", "int", "(comm_)?keyval", "COMM_KEY"),
    (r"MPI_Type_.*_attr", "int", "type_keyval", "TYPE_KEY"),
    (r"MPI_.*|MPIX_.*", r"void \*", "attribute_val", OUT_IF_GET),
    (r"MPI_Error_(class|string)", "int", "errorcode", "ERROR_CODE"),
    (r"MPI_Add_error_code", "int", "errorclass", "ERROR_CODE"),
    (r"MPI_(Add_error_string|Remove_error_.*)", "int", "error(code|class)", "ADDED_CODE"),
    (r"MPI_(Un)?[Pp]ack(_c)?", ".*", "(in|out)size", "LENGTH"),
    (r"MPI_(Un)?[Pp]ack(_c)?", r"(int|MPI_Count) \*", "position", "POSITION"),
    (r"MPI_(Un)?[Pp]ack(_size)?(_c)?", "MPI_Count", "(in|out)count", "PACKED_LARGE"),
    (r"MPI_.*_create_errhandler|MPI_Op_create(_c)?", r".*_function(_c)? \*", ".*", "FUNCTION"),
    (r".*", r".*_function(_c)? \*", ".*", ANY),  # NULL: nothing is to be called
    # MPIX: all within MPI_COMM_SELF, since its collectives tell the other ranks of a wrong argument
    (r"MPIX_.*", "MPI_Comm", "comm", "COMM_SELF"),
    (r"MPIX_.*", "int", "root", "ROOT_SELF"),
    (r"MPIX_.*", "MPIX_Alltoallv_phases", "phases", "PHASES"),
    (r"MPIX_Alltoallv_phases_free", r"MPIX_Alltoallv_phases \*", "phases", "PHASES_TO_FREE"),
    (r"MPIX_.*", "MPIX_Scatterv_group", "group", "SCATTER_GROUP"),
    (r"MPIX_Scatterv_close_group", r"MPIX_Scatterv_group \*", "group", "SCATTER_GROUP_TO_FREE"),
    (r"MPIX_.*", "const int", "(send|recv)?counts", "COUNTS_SELF"),
    (r"MPIX_.*", "const MPI_Count", "(send|recv)?counts", "COUNTS_SELF_LARGE"),
    # statuses; what a program puts into its own is not looked at
    (r"MPI_Status_set_(source|tag)", "int", ".*", ANY),
    (r"MPI_Status_.*", r"(const )?MPI_Status \*", ".*", "OUT"),
    (r".*", r"const MPI_Status \*", ".*", "OUT"),
    (r".*", r"MPI_Status ?\*?", ".*", ANY),  # MPI_STATUS_IGNORE
    # by type
    (r".*", "MPI_Comm", ".*", "COMM"),
    (r".*", "MPI_Datatype", "array_of_datatypes", "ARRAY"),
    (r".*", "MPI_Datatype", ".*", "TYPE"),
    (r".*", "const MPI_Datatype", "array_of_types", "TYPES_ANY"),
    (r".*", "const MPI_Datatype", ".*", "TYPES"),
    (r".*", "MPI_Op", ".*", "OP"),
    (r".*", "MPI_Group", ".*", "GROUP"),
    (r".*", "MPI_Info", ".*", "HINTS"),
    (r".*", "(const )?MPI_Request", "array_of_requests", "REQUESTS"),
    (r".*", "MPI_Request", ".*", "REQUEST"),
    (r".*", "int", "dest", "DEST"),
    (r".*", "int", "source", "SOURCE"),
    (r".*", "int", "root", "ROOT"),
    (r"MPI_(Recv|Irecv|Precv|Recv_init|Probe|Iprobe|Mprobe|Improbe).*", "int", "tag", "TAG_OR_ANY"),
    (r".*", "int", "recvtag", "TAG_OR_ANY"),
    (r".*", "int", "(send)?tag", "TAG"),
    (r"MPI_(Wait|Test|Start|Request_get_status).*", "int", "(in)?count", "LIST_LENGTH"),
    (r".*", "int", "(send|recv|in|out)?count|blocklength", "ELEMENTS"),
    (r".*", "MPI_Count", "(send|recv)?count", "ELEMENTS_LARGE"),
    (r".*", "const int", "(send|recv)counts", "COUNTS"),
    (r".*", "const MPI_Count", "(send|recv)counts", "COUNTS_LARGE"),
    (r".*", "const .*", "[sr]?displs|array_of_displacements", "DISPLACEMENTS"),
    (r".*", "int", "ranges", "RANGES"),
    (r".*", "(const )?int", r"array_of_(indices|integers)|ranks2|dims|periods|coords", "ARRAY"),
    (r".*", r"(const )?void \*", "(sendbuf|recvbuf)", "BUFFER_OR_IN_PLACE"),
    (r".*", r"(const )?void \*", "(buf|inbuf|outbuf|inoutbuf|buffer)", "BUFFER"),
    (r".*", r"void \*", "(baseptr|buffer_addr)", "OUT"),
    (r".*", r"const char \*", "filename", "FILE_NAME"),
    (r".*", r"const char \*", ".*", "OUT"),
    (r".*", r"(?!const |void |.*\*\*).*\*", "(?!argc$|argv$).*", "OUT"),
]

# Where arguments say something (MPI 5.0, 6.5, 6.6, 6.9.1, 6.11.2); others do so everywhere.
SIGNIFICANT = [
    (r"MPI_I?gatherv?(_init)?(_c)?", r"recv.*|displs", "WALK_AT_ROOT"),
    (r"MPI_I?scatterv?(_init)?(_c)?", r"send.*|displs", "WALK_AT_ROOT"),
    (r"MPI_I?reduce(_init)?(_c)?", "recvbuf", "WALK_AT_ROOT"),
    (r"MPI_I?exscan(_init)?(_c)?", "recvbuf", "WALK_BEHIND_FIRST"),
]
# Arrays of int, or of MPI_Count or MPI_Aint.
BY_WIDTH = ("DISPLACEMENTS", "BLOCKLENGTHS", "SIZES", "POSITION")


def kind_of(prototype, parameter):
    kind, name, _ = parameter
    for routine, kinds, names, found in KINDS:
        if re.fullmatch(routine, prototype.name) and re.fullmatch(kinds, kind) and re.fullmatch(names, name):
            break
    else:
        return ANY
    if found == OUT_IF_GET:
        return "OUT" if re.search(r"_[gG]et(_attr)?$", prototype.name) else ANY
    if found in BY_WIDTH and re.search("MPI_(Count|Aint)", kind):
        return found + "_LARGE"
    return found


def significance(prototype, parameter):
    for routine, names, where in SIGNIFICANT:
        if re.fullmatch(routine, prototype.name, re.I) and re.fullmatch(names, parameter[1]):
            return where
    return "WALK_EVERYWHERE"


def argument(parameter, index):
    kind, _, array = parameter
    kind += " *" if kind.endswith("_function") else ""  # a parameter of a function's type is a pointer
    cast = kind if not array else "int (*)[3]" if array == "[][3]" else kind + " *"
    return f"({cast})values[{index}]"


def kinds_write(path):
    kinds = dict.fromkeys([ANY, *(row[3] for row in KINDS), *(kind + "_LARGE" for kind in BY_WIDTH), "KIND_COUNT"])
    names = "".join(f"    WALK_{kind},\n" for kind in kinds if kind != OUT_IF_GET)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"/* Generated by tests/mpi/arguments/generate.py. */\nenum walk_kind {{\n{names}}};\n")


def main():
    _, prototypes_path, mpix_path, out, kinds_path, *sources = sys.argv[1:]
    kinds_write(kinds_path)
    lines = ["/* Generated by tests/mpi/arguments/generate.py. */", '#include "mpix.h"',
             '#include "tests/mpi/arguments/walk.h"', ""]
    rows = []
    for path in (prototypes_path, mpix_path):
        prototypes = read(path)
        known = implemented(prototypes, sources)
        for prototype in prototypes.values():
            both = shared(prototypes, prototype)
            name, parameters = prototype.name, prototype.parameters
            is_known = (both[0] if both else prototype).implementation() in known
            if not is_known or prototype.result != "int" or NOT_WALKED.fullmatch(name) or not parameters:
                continue
            values = ", ".join(argument(p, i) for i, p in enumerate(parameters))
            lines += [f"static int call_{name}(const walk_value *values)", "{", f"    return {name}({values});"]
            lines += ["}", ""]
            kinds = [f'{{"{p[1]}", WALK_{kind_of(prototype, p)}, {significance(prototype, p)}}}' for p in parameters]
            rows.append(f'    {{"{name}", call_{name}, {len(kinds)}, {{{", ".join(kinds)}}}}},')
    lines += ["const struct walk_routine walk_routines[] = {"] + rows + ["};", ""]
    lines += ["const int walk_routine_count = sizeof(walk_routines) / sizeof(walk_routines[0]);", ""]
    open(out, "w").write("\n".join(lines))


main()
