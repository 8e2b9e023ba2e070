"""Reads mpi/abi/prototypes.txt and mpix.h.in, for the generators of the C and of the Fortran side, and breaks long lines for both."""
import re
import textwrap


class Prototype:
    def __init__(self, line):
        self.result, self.name, parameters = re.fullmatch(r"(\w+) (\w+)\((.*)\);", line).groups()
        self.parameters = [] if parameters == "void" else [split_parameter(p) for p in parameters.split(", ")]
        self.text = parameters
        self.chapter = None  # of MPI 5.0: (number, title)

    def implementation(self):
        return self.name.lower()


def split_parameter(text):
    """'const int counts[]' -> ('const int', 'counts', '[]'); '...' -> None"""
    if text == "...":
        return None
    kind, name, array = re.fullmatch(r"(.*?)(\w+)((?:\[\w*\])*)", text).groups()
    return kind.strip(), name, array


def is_prototype(line):
    return re.match(r"\w+ MPIX?_\w+\(.*\);$", line) is not None


def read(path):
    """Of a list of prototypes, or of a header that holds each in a line of its own. In a list, lines such as "# 3 Point-to-point communication" say the chapter."""
    found, chapter = {}, None
    for line in open(path).read().split("\n"):
        heading = re.fullmatch(r"# (\d+) (.+)", line)
        if heading:
            chapter = int(heading.group(1)), heading.group(2)
        if is_prototype(line):
            prototype = Prototype(line)
            prototype.chapter = chapter
            found[prototype.name] = prototype
    return found


def declare(kind, name, array):
    return f"{kind}{name}{array}" if kind.endswith("*") else f"{kind} {name}{array}"


def wrap(text):
    """Breaks long lines between parameters."""
    glued = re.sub(r"(?<!,) ", "\0", text.lstrip(" "))
    indent = " " * (len(text) - len(text.lstrip(" ")))
    lines = textwrap.wrap(glued, 120, initial_indent=indent, subsequent_indent=indent + "    ", break_long_words=False)
    return "\n".join(lines).replace("\0", " ")
