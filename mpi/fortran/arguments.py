"""How a function of prototypes.txt looks from Fortran: which functions there are, and the kind of each argument.

Nearly all follows from the C types and from the names of parameters, which the standard uses alike everywhere; the tables here are what does not.
"""
import os
import re
import sys

sys.dont_write_bytecode = True  # no cache among the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))

from prototypes import read, wrap  # noqa: E402,F401

# C only: tools, handles as integers, large counts (which Fortran has in the module mpi_f08 alone), and what tells the C side about Fortran.
C_ONLY = re.compile(r"MPI_(T_.*|.*_c|.*_toint|.*_fromint|Abi_.*_fortran_.*)")

# Written by hand in the C files of this folder; what is generated is their interfaces.
BY_HAND = {
    "MPI_Init", "MPI_Init_thread", "MPI_Pcontrol", "MPI_Info_create_env", "MPI_Info_get", "MPI_Info_get_string",
    "MPI_Session_get_nth_pset", "MPI_Comm_idup", "MPI_Comm_idup_with_info", "MPI_Grequest_start", "MPI_Register_datarep",
    "MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_Keyval_create", "MPI_Attr_put", "MPI_Attr_get",
} | {f"MPI_{kind}_{verb}" for kind in ("Comm", "Type", "Win") for verb in ("create_keyval", "set_attr", "get_attr")}

# Parameters of C that Fortran does not have.
NO_PARAMETERS = {"MPI_Init": {"argc", "argv"}, "MPI_Init_thread": {"argc", "argv"}, "MPI_Info_create_env": {"argc", "argv"}}
NO_IERROR = {"MPI_Pcontrol"}
# The same under a second name, for a pointer of the type C_PTR instead of an address.
WITH_C_POINTER = {"MPI_Alloc_mem", "MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Win_shared_query"}

LOGICALS = {"flag", "reorder", "commute", "high", "weighted", "periods", "remain_dims"}
# Read before they are written; and of what functions all handles and keys are.
IN_AND_OUT = {"position", "buflen", "pset_len", "message", "attribute_val"}
UPDATES = re.compile(r"MPI_(\w+_free|\w+_free_keyval|Wait|Test|Start|Cancel|\w+_commit|Comm_disconnect|File_close|Session_finalize)")
# Not const in C, though the call does not change them.
UNCHANGED = {"ranges", "argv", "array_of_commands", "array_of_argv"}
WIDE = {"MPI_Aint", "MPI_Count", "MPI_Offset"}
WEIGHTS = {"weights", "sourceweights", "destweights"}
# How many elements an array of handles has, in C.
HANDLE_COUNTS = {
    "array_of_types": "*count", "array_of_datatypes": "*max_datatypes", "array_of_info": "*count",
    "sendtypes": "fortran_peers({comm}, {neighbor}, true, sendbuf)", "recvtypes": "fortran_peers({comm}, {neighbor}, false, NULL)",
}
# How long a string can be that C returns.
STRING_BYTES = {
    "comm_name": "MPI_MAX_OBJECT_NAME", "type_name": "MPI_MAX_OBJECT_NAME", "win_name": "MPI_MAX_OBJECT_NAME",
    "string": "MPI_MAX_ERROR_STRING", "version": "MPI_MAX_LIBRARY_VERSION_STRING", "name": "MPI_MAX_PROCESSOR_NAME",
    "key": "MPI_MAX_INFO_KEY", "value": "MPI_MAX_INFO_VAL", "port_name": "MPI_MAX_PORT_NAME", "datarep": "MPI_MAX_DATAREP_STRING",
    "pset_name": "MPI_MAX_PSET_NAME_LEN",
}


class Argument:
    """One argument: `kind` says what it is for Fortran, `base` the type of C without const and *; shape "" or "*" or "3,*"."""

    def __init__(self, function, c_type, name, array):
        self.function, self.c_type, self.name, self.array = function, c_type, name, array
        self.base = c_type.removeprefix("const ").rstrip(" *")
        self.is_const = c_type.startswith("const ")
        self.is_pointer = c_type.endswith("*")
        self.shape = "3,*" if array == "[][3]" else "*" if array else ""
        self.kind = self.find_kind()
        if name == "datarep":
            self.shape = ""
        takes = self.is_const or name in UNCHANGED or self.kind in ("buffer", "procedure") or name == "extra_state"
        takes = takes or name == "attribute_val" and "get" not in function.lower()
        self.is_output = not takes and (self.is_pointer or bool(array))

    def find_kind(self):
        base, name = self.base, self.name
        if base.endswith(("_function", "_function_c")):
            return "procedure"
        if base == "void":
            if name in ("attribute_val", "extra_state"):
                return "integer" if self.function in ("MPI_Attr_put", "MPI_Attr_get", "MPI_Keyval_create") else "wide"
            return {"baseptr": "base", "buffer_addr": "detached"}.get(name, "buffer")
        if base == "char":
            return "string"
        if base in WIDE:
            return "wide"
        if base == "MPI_Status":
            return "status"
        if base == "int":
            return ("logical" if name in LOGICALS else "weights" if name in WEIGHTS else "errcodes" if name == "array_of_errcodes"
                    else "index" if name == "index" and self.is_pointer else "indices" if name == "array_of_indices" else "integer")
        return "handle"

    def is_updated(self):
        """Read and written."""
        if self.shape or self.kind in ("string", "status") or self.name in IN_AND_OUT:
            return True
        return (self.kind == "handle" or "keyval" in self.name) and bool(UPDATES.fullmatch(self.function))

    def count(self):
        """Of an array of handles."""
        if self.name == "array_of_requests":
            return "*incount" if self.function.endswith("some") else "*count"
        neighbor = "true" if "eighbor" in self.function else "false"
        return HANDLE_COUNTS[self.name].format(comm="FORTRAN_HANDLE(MPI_Comm, comm)", neighbor=neighbor)


class Function:
    """A function that Fortran has."""

    def __init__(self, prototype):
        self.name, self.result = prototype.name, prototype.result
        dropped = NO_PARAMETERS.get(self.name, set())
        self.arguments = [Argument(self.name, *p) for p in prototype.parameters if p is not None and p[1] not in dropped]
        self.is_function = self.result != "int"
        self.has_ierror = not self.is_function and self.name not in NO_IERROR
        self.by_hand = self.name in BY_HAND
        self.short = self.name.removeprefix("MPI_")

    def has_buffers(self):
        return any(a.kind in ("buffer", "detached") for a in self.arguments)


def functions(prototypes_path):
    return [Function(p) for p in read(prototypes_path).values() if not C_ONLY.fullmatch(p.name)]


# Constants of mpi.h that Fortran has otherwise, or not at all.
NO_CONSTANTS = re.compile(r"MPI_(T_\w+|F_\w+|\w+_FN|CONVERSION_FN_NULL\w*|ABI_\w+_H|H_ABI)")
ADDRESSES = {
    "MPI_BOTTOM", "MPI_IN_PLACE", "MPI_BUFFER_AUTOMATIC", "MPI_ARGV_NULL", "MPI_ARGVS_NULL", "MPI_ERRCODES_IGNORE", "MPI_STATUS_IGNORE",
    "MPI_STATUSES_IGNORE", "MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY",
}
STRING_LENGTH = re.compile(r"MPI_MAX_\w+")


def constants(template_path):
    """(name, value, kind of integer or "") of all named constants; the lengths of strings are one less than in C, which counts the NUL."""
    found = [("MPI_ADDRESS_KIND", 8, ""), ("MPI_COUNT_KIND", 8, ""), ("MPI_INTEGER_KIND", 4, ""), ("MPI_OFFSET_KIND", 8, ""),
             ("MPI_STATUS_SIZE", 8, ""), ("MPI_SOURCE", 1, ""), ("MPI_TAG", 2, ""), ("MPI_ERROR", 3, "")]
    for name, text in re.findall(r"^#define (MPI_\w+) +(.+)$", open(template_path).read(), re.M):
        if name in ADDRESSES or NO_CONSTANTS.fullmatch(name):
            continue
        value = int(re.search(r"-?(0x[0-9a-fA-F]+|\d+)(?=\)*$)", text).group(0), 0)
        value -= 1 if STRING_LENGTH.fullmatch(name) else 0
        found.append((name, value, "8" if name == "MPI_DISPLACEMENT_CURRENT" else ""))
    return found
