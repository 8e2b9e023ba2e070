#!/usr/bin/env python3
"""The manual page of section 3 of a public header, made of its comments and declarations.

usage: library.py VERSION OUT HEADER
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../dataplane/install"))
from generate import COMMENT, FUNCTION
from pages import roff


def plain(comment):
    """Lines of a comment without its frame."""
    return re.sub(r"^ \* ?", "", comment.strip().removeprefix("/*").removesuffix("*/").strip(), flags=re.M).strip()


def described(text):
    """The comment that opens a header: a paragraph, then titles and what stands below each of them."""
    for part in re.split(r"\n\s*\n", text):
        title, _, rest = part.partition("\n")
        if re.search(r"^ +\S.*\S {2,}\S", part, re.M):  # a table
            yield f".PP\n.nf\n{roff(part)}\n.fi"
            continue
        rest = "\n".join(line.strip() for line in rest.split("\n"))
        if re.fullmatch(r"[A-Z][\w ]+", title) and rest:
            yield f".SH {roff(title).upper()}"
            if title == "Order of calls":
                yield f".nf\n{roff(rest)}\n.fi"
                continue
            for item in re.split(r"\n(?=- )", rest):
                yield f".IP \\(bu 2\n{roff(item[2:])}" if item.startswith("- ") else f".PP\n{roff(item)}"
        else:
            yield f".PP\n{roff(part)}"


def page(version, source, text):
    """A section for each part of the header; in it each declaration, and below it the comment that precedes it."""
    name = os.path.basename(source)
    first, rest = COMMENT.search(text), text[COMMENT.search(text).end():]
    rest = re.sub(r"^\s*#\s*(?:include|pragma|if|ifdef|ifndef|else|endif)\b.*\n|^#define CW_\w+_H\n|^extern \"C\" \{\n|^\}\n(?=#endif|$)", "", rest, flags=re.M)
    opening = plain(first.group()).partition(": ")[2]
    functions = FUNCTION.findall(COMMENT.sub("", text))
    yield f'.TH CAUSEWAY_{name.removesuffix(".h").upper()} 3 "" "causeway {version}" "Causeway"'
    yield ".SH NAME\n" + roff(", ".join([name, *functions])) + " \\- " + roff(re.split(r"[.;:,](?=\s|$)", " ".join(opening.split()))[0])
    yield f".SH SYNOPSIS\n.B #include <causeway/{roff(name)}>\n.br\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs causeway)"
    yield ".SH DESCRIPTION"
    yield from described(opening)
    yield ".SH DECLARATIONS"
    for block in re.split(r"\n\n(?=/\*|\S)", rest.strip()):
        title = re.fullmatch(r"/\* -+ (.*?) -+ \*/", block.strip())
        comment = re.match(r"/\*.*?\*/\n", block, re.S)
        if title:
            yield f".SS {roff(title[1])}"
            continue
        code = block[comment.end():] if comment else block
        if code.strip():
            yield f".PP\n.nf\n{roff(code.rstrip())}\n.fi"
        if comment:
            yield f".RS 4\n{roff(plain(comment.group()))}\n.RE"
    yield ".SH SEE ALSO\n.BR causeway\\-put (7),\n.BR causeway\\-multicast (7),\n.BR causeway\\-transports (7)"


def main(version, out, source):
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(page(version, source, text)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
