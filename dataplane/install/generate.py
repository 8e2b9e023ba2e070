#!/usr/bin/env python3
"""What programs outside of this tree get of the library, from its public headers.

    generate.py header SOURCE OUT              the header as it is installed: what it includes lies beside it in causeway/
    generate.py symbols VERSION OUT SOURCE...  the linker's version script: functions that the headers declare, and nothing else
"""
import re
import sys

FUNCTION = re.compile(r"^(?!static)[\w *]*?\b(cw_\w+)\([^;{]*\);", re.M)


def main():
    command, first, out, *sources = sys.argv[1:]
    if command == "header":
        text = re.sub(r'#include "(?:dataplane|mcast)/(?:\w+/)*(\w+\.h)"', r"#include <causeway/\1>", open(first).read())
    elif command == "symbols":
        code = [re.sub(r"/\*.*?\*/", "", open(source).read(), flags=re.S) for source in sources]
        names = sorted({name for text in code for name in FUNCTION.findall(text)})
        text = f"CAUSEWAY_{first} {{\nglobal:\n" + "".join(f"    {name};\n" for name in names) + "local:\n    *;\n};\n"
    else:
        sys.exit(__doc__)
    with open(out, "w") as file:
        file.write(text)


main()
