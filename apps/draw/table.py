"""CSV files of `causeway draw`: statistics of links (apps/links/rows.h), times, and other tables. Bad input is refused with
the file, the line and the column. A last line that does not end is left out: the file may be growing, or its writer was killed."""


class Refused(Exception):
    """Bad input or usage: what, where, and what to do."""

    def __init__(self, what, where, todo=None, code=2):
        super().__init__(": ".join(part for part in (what, where, todo) if part))
        self.code = code


def file_write(what, path, content):
    """`content` is bytes, "-" standard output. A path that cannot be opened is bad input; a disk that is full is not."""
    try:
        file = open(1 if path == "-" else path, "wb", closefd=path != "-")
    except OSError as error:
        raise Refused(f"{what} cannot be written there", path, error.strerror) from error
    try:
        with file:
            file.write(content)
    except OSError as error:
        raise Refused(f"{what} cannot be written", path, error.strerror, code=3) from error


class Table:
    """The named columns of a CSV file, line by line."""

    def __init__(self, path, names, source):
        self.path, self.names, self.number = path, names, 1
        try:
            with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
                self.lines = file.readlines()
        except OSError as error:
            raise Refused("the file cannot be read", path, error.strerror) from error
        if not self.lines:
            raise Refused("the file is empty", path, source)
        self.head = self.lines[0].rstrip("\r\n").split(",")
        for name in names:
            if name not in self.head:
                raise Refused("this file cannot be drawn", path, f"its first line has no column {name}; {source}")
        self.places = [self.head.index(name) for name in names]

    def rows(self):
        """The texts of the named columns of each line."""
        for self.number, line in enumerate(self.lines[1:], 2):
            if not line.endswith("\n"):
                return
            cells = line.rstrip("\r\n").split(",")
            if len(cells) != len(self.head):
                raise Refused(f"line {self.number} has {len(cells)} cells, the first line {len(self.head)}", self.path, "is it damaged?")
            yield [cells[place] for place in self.places]

    def refuse(self, name, wanted, cell):
        raise Refused(f"line {self.number}, column {name} is {wanted}: '{cell[:64]}'", self.path, "is it damaged?")

    def count(self, name, cell):
        """A whole number of 64 bits."""
        if not (cell.isascii() and cell.isdigit() and int(cell) < 1 << 64):
            self.refuse(name, "no number", cell)
        return int(cell)

    def below(self, name, cell, limit):
        """A whole number from 0 to `limit` - 1."""
        if self.count(name, cell) >= limit:
            self.refuse(name, f"no number below {limit}", cell)
        return int(cell)

    def time(self, name, cell):
        try:
            value = float(cell)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            self.refuse(name, "no time", cell)
        return value

    def positive(self, name, cell):
        try:
            value = float(cell)
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            self.refuse(name, "no number above 0", cell)
        return value
