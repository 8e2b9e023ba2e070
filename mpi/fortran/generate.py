#!/usr/bin/env python3
"""Makes the Fortran side from mpi/abi/prototypes.txt and mpi/abi/mpi.h.in; arguments.py has what does not follow from them.

    generate.py entries PROTOTYPES OUT                              C: mpi_send_ or pmpi_send_ (entry.h says which), which call MPI_Send or PMPI_Send
    generate.py module PROTOTYPES HEADER TEMPLATE ADDRESSES OUT     the module mpi, with explicit interfaces, from mpi.f90.in and addresses.inc
    generate.py include PROTOTYPES HEADER TEMPLATE ADDRESSES OUT    mpif.h, in lines that are right in fixed and in free form, from mpif.h.in
    generate.py names PROTOTYPES OUT                                the names of all functions that Fortran has, for tests
"""
import re
import sys

sys.dont_write_bytecode = True  # no cache among the sources

from arguments import STRING_BYTES, WITH_C_POINTER, constants, functions, wrap  # noqa: E402

# After what a communicator may have come into being that MPI_Comm_idup promised.
COMPLETES = re.compile(r"MPI_(Wait|Test|Request_get_status)(all|any|some|_all|_any|_some)?")

POINTERS = {"integer": "MPI_Fint *", "logical": "MPI_Fint *", "weights": "MPI_Fint *", "errcodes": "MPI_Fint *", "index": "MPI_Fint *",
            "indices": "MPI_Fint *", "handle": "MPI_Fint *", "status": "MPI_Fint *", "string": "char *", "buffer": "void *",
            "base": "void *", "detached": "void *"}


def declaration(argument):
    """Of a parameter of an entry point."""
    if argument.kind == "procedure":
        return f"{argument.c_type}{argument.name}"
    kind = (argument.base if argument.base != "void" else "MPI_Aint") + " *" if argument.kind == "wide" else POINTERS[argument.kind]
    is_const = argument.is_const or not argument.is_output and argument.kind not in ("buffer", "base", "detached")
    return f"{'const ' if is_const else ''}{kind}{argument.name}"


def parameters(function):
    found = [declaration(a) for a in function.arguments]
    found += ["MPI_Fint *ierror"] if function.has_ierror else []
    return found + [f"size_t {a.name}_length" for a in function.arguments if a.kind == "string"]


def pass_handle(a):
    if a.shape:
        before = [f"void *{a.name}_few[FORTRAN_FEW];", f"void **{a.name}_c = fortran_handles({a.name}, {a.count()}, {a.name}_few);"]
        back = "fortran_handles_back" if not a.is_const else "fortran_handles_drop"
        target = f"{a.name}, {a.count()}, " if not a.is_const else ""
        return f"(MPI_{a.base.removeprefix('MPI_')} *)(void *){a.name}_c", before, [f"{back}({target}{a.name}_c, {a.name}_few);"]
    if not a.is_output:
        return f"FORTRAN_HANDLE({a.base}, {a.name})", [], []
    return f"&{a.name}_c", [f"{a.base} {a.name}_c = FORTRAN_HANDLE({a.base}, {a.name});"], [f"*{a.name} = FORTRAN_NUMBER({a.name}_c);"]


def pass_string(a):
    if a.is_output:
        before = [f"char {a.name}_c[{STRING_BYTES[a.name]}];"]
        return f"{a.name}_c", before, [f"fortran_pad({a.name}, {a.name}_length, *ierror == MPI_SUCCESS ? {a.name}_c : NULL);"]
    both = "true" if "_Info_" in a.function else "false"
    before = [f"char *{a.name}_c = fortran_text({a.name}, {a.name}_length, {both});"]
    return f"{a.name}_c", before, [f"free({a.name}_c);"]


def pass_argument(a):
    """How an argument goes to C: (expression, statements before, statements after)."""
    if a.kind == "handle":
        return pass_handle(a)
    if a.kind == "string":
        return pass_string(a)
    if a.kind == "logical" and a.is_output and not a.shape:
        return f"&{a.name}_c", [f"int {a.name}_c = *{a.name};"], [f"*{a.name} = {a.name}_c != 0;"]
    if a.kind == "index":
        return f"&{a.name}_c", [f"int {a.name}_c = MPI_UNDEFINED;"], [f"*{a.name} = fortran_index({a.name}_c);"]
    if a.kind == "indices":
        return a.name, ["*outcount = MPI_UNDEFINED;"], [f"fortran_indices({a.name}, *outcount);"]
    if a.kind == "detached":
        return f"&{a.name}_c", ["void *buffer_addr_c = NULL;"], ["(void)buffer_addr; /* Fortran cannot be given an address there (MPI 5.0, 3.6) */"]
    special = {"buffer": f"fortran_buffer({a.name})", "status": f"fortran_status({a.name})", "weights": f"fortran_weights({a.name})"}
    if a.kind in special:
        return special[a.kind], [], []
    by_value = not a.is_output and not a.shape and a.kind in ("integer", "logical", "wide")
    if a.shape == "3,*":
        return f"(int(*)[3])(uintptr_t){a.name}", [], []
    return f"*{a.name}" if by_value else a.name, [], []


def entry(function, name):
    values, before, after = [], [], []
    for argument in function.arguments:
        value, first, last = pass_argument(argument)
        values.append(value)
        before += first
        after += last
    call = f"FORTRAN_CALL({function.short})({', '.join(values)})"
    result = "void" if not function.is_function else function.result
    lines = [wrap(f"{result} FORTRAN_ENTRY({name})({', '.join(parameters(function)) or 'void'})"), "{"]
    texts = [f"{a.name}_c == NULL" for a in function.arguments if a.kind == "string" and not a.is_output]
    lines += [wrap("    " + line) for line in before]
    if function.is_function:
        lines.append(f"    return {call};")
    else:
        guard = f"{' || '.join(texts)} ? MPI_ERR_NO_MEM : " if texts else ""
        lines.append(wrap(f"    *ierror = {guard}{call};"))
    lines += [wrap("    " + line) for line in after]
    lines += ["    fortran_finish();"] if COMPLETES.fullmatch(function.name) else []
    return "\n".join(lines + ["}", ""])


def write_entries(prototypes_path, out):
    text = ["/* Generated by mpi/fortran/generate.py: what Fortran programs call. */", "#include <stdint.h>", "#include <stdlib.h>", "",
            '#include "mpi/fortran/entry.h"', ""]
    for function in functions(prototypes_path):
        if not function.by_hand:
            text.append(entry(function, function.short.lower()))
        if function.name in WITH_C_POINTER:
            text.append(entry(function, function.short.lower() + "_cptr"))
    open(out, "w").write("\n".join(text))


def fortran_type(argument):
    return {"logical": "logical", "string": "character(len=*)", "wide": "integer(kind=8)", "base": "integer(kind=8)"}.get(argument.kind, "integer")


def dummy(argument, c_pointer):
    """The declaration of a dummy argument in the module."""
    a = argument
    if a.kind in ("buffer", "detached"):
        return [f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {a.name}", f"type(*), dimension(*) :: {a.name}"]
    if a.kind == "procedure":
        return [f"external :: {a.name}"]
    if a.kind == "base" and c_pointer:
        return [f"type(c_ptr), intent(out) :: {a.name}"]
    shape = "(8,*)" if a.kind == "status" and a.shape else "(8)" if a.kind == "status" else f"({a.shape})" if a.shape else ""
    if a.function.startswith("MPI_Comm_spawn") and a.name in ("argv", "array_of_commands"):
        shape = "(*)"
    elif a.name == "array_of_argv":
        shape = "(count,*)"
    intent = "in" if not a.is_output else "inout" if a.is_updated() else "out"
    return [f"{fortran_type(a)}, intent({intent}) :: {a.name}{shape}"]


def interface(function, prefix, name, c_pointer=False):
    names = [a.name for a in function.arguments] + (["ierror"] if function.has_ierror else [])
    kind = "function" if function.is_function else "subroutine"
    lines = [f"    {kind} {prefix}{name}(" + ", ".join(names) + ")"]
    lines += ["      use, intrinsic :: iso_c_binding, only: c_ptr"] if c_pointer else []
    result = {"double": "double precision", "MPI_Aint": "integer(kind=8)"}.get(function.result)
    declared = [line for a in sorted(function.arguments, key=lambda a: a.name == "array_of_argv") for line in dummy(a, c_pointer)]
    declared += ["integer, intent(out) :: ierror"] if function.has_ierror else []
    declared += [f"{result} :: {prefix}{name}"] if result else []
    lines += [line if line.startswith("!") else "      " + line for line in declared]
    lines.append(f"    end {kind}")
    return [broken for line in lines for broken in break_free(line)]


def break_free(line):
    """Breaks a long line of free form between arguments."""
    if len(line) <= 120 or line.startswith("!"):
        return [line]
    cut = line.rindex(", ", 0, 118) + 1
    return [line[:cut] + " &"] + break_free("        " + line[cut + 1:])


def fill(template_path, addresses_path, **parts):
    text = open(template_path).read()
    for name, lines in dict(parts, addresses=[open(addresses_path).read().rstrip("\n")]).items():
        text = text.replace(f"@{name.upper()}@", "\n".join(lines))
    return text


def write_module(prototypes_path, header_path, template_path, addresses_path, out):
    declared = [f"  integer{f'(kind={kind})' if kind else ''}, parameter :: {name} = {value}" for name, value, kind in constants(header_path)]
    # Kinds are numbers here: an interface does not see the constants around it.
    lines = ["  interface"]
    for prefix in ("MPI_", "PMPI_"):
        for function in functions(prototypes_path):
            if function.name not in WITH_C_POINTER:
                lines += interface(function, prefix, function.short)
    lines += ["  end interface", ""]
    for prefix in ("MPI_", "PMPI_"):
        for function in (f for f in functions(prototypes_path) if f.name in WITH_C_POINTER):
            lines += [f"  interface {prefix}{function.short}"] + interface(function, prefix, function.short)
            lines += interface(function, prefix, function.short + "_cptr", c_pointer=True) + ["  end interface"]
    open(out, "w").write(fill(template_path, addresses_path, constants=declared, interfaces=lines))


def include_interface(function, prefix):
    """Of a routine that takes buffers of any type: nothing is checked but the number of arguments, as without any interface; without one compilers complain of
    two calls whose types differ. One letter an argument, so that no line is too long for fixed form."""
    letters = [chr(ord("a") + i) for i in range(len(function.arguments) + 1)]
    strings = [letter for letter, a in zip(letters, function.arguments) if a.kind == "string"]
    others = [letter for letter in letters if letter not in strings]
    lines = [f"      SUBROUTINE {prefix}{function.short}({','.join(letters)})", f"!GCC$ ATTRIBUTES NO_ARG_CHECK :: {','.join(others)}"]
    lines += [f"      INTEGER {letter}(*)" for letter in others] + [f"      CHARACTER*(*) {letter}" for letter in strings]
    return lines + ["      END"]


def write_include(prototypes_path, header_path, template_path, addresses_path, out):
    declared = []
    for name, value, kind in constants(header_path):
        declared += [f"      INTEGER{f'(KIND={kind})' if kind else ''} {name}", f"      PARAMETER ({name}={value})"]
    interfaces = [include_interface(f, prefix) for prefix in ("MPI_", "PMPI_") for f in functions(prototypes_path) if f.has_buffers()]
    text = fill(template_path, addresses_path, constants=declared, interfaces=sum(interfaces, []))
    too_long = [line for line in text.split("\n") if len(line) > 72]
    if too_long:
        sys.exit(f"too long for fixed form: {too_long[0]}")
    open(out, "w").write(text)


def write_names(prototypes_path, out):
    open(out, "w").write("".join(f.name + "\n" for f in functions(prototypes_path)))


def main():
    commands = {"entries": write_entries, "module": write_module, "include": write_include, "names": write_names}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])


main()
