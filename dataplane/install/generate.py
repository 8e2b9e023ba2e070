#!/usr/bin/env python3
"""What programs outside of this tree get of the library, from its public headers.

    generate.py header SOURCE OUT              the header as it is installed: what it includes lies beside it in causeway/
    generate.py symbols VERSION OUT SOURCE...  the linker's version script: functions that the headers declare, and nothing else.
                                               Fails if a comment names a function or a header that is not installed
"""
import os
import re
import sys

FUNCTION = re.compile(r"^(?!static)[\w *]*?\b(cw_\w+)\([^;{]*\);", re.M)

COMMENT = re.compile(r"/\*.*?\*/", re.S)


def unknown(sources):
    """A line for each name in a comment that no program can find."""
    texts = {source: open(source).read() for source in sources}
    known = {name for text in texts.values() for name in re.findall(r"\bcw_\w+", COMMENT.sub("", text))}
    known |= {os.path.basename(source) for source in sources}
    for source, text in texts.items():
        for comment in COMMENT.finditer(text):
            for name in re.findall(r"\bcw_\w*[a-z]\b|[\w/]+\.h\b", comment.group()):
                if os.path.basename(name) not in known:
                    yield f"{source}:{text.count(chr(10), 0, comment.start()) + 1}: names {name}, which is not installed"


def main():
    command, first, out, *sources = sys.argv[1:]
    if command == "header":
        text = re.sub(r'#include "(?:dataplane|mcast)/(?:\w+/)*(\w+\.h)"', r"#include <causeway/\1>", open(first).read())
    elif command == "symbols":
        if wrong := list(unknown(sources)):
            sys.exit("\n".join(wrong))
        code = [COMMENT.sub("", open(source).read()) for source in sources]
        names = sorted({name for text in code for name in FUNCTION.findall(text)})
        text = f"CAUSEWAY_{first} {{\nglobal:\n" + "".join(f"    {name};\n" for name in names) + "local:\n    *;\n};\n"
    else:
        sys.exit(__doc__)
    with open(out, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
