#!/usr/bin/env python3
"""What programs outside of this tree get of the library, from its public headers.

    generate.py header SOURCE OUT              the header as it is installed: what it includes lies beside it in causeway/
    generate.py symbols VERSION OUT SOURCE...  the linker's version script: functions that the headers declare, and nothing else.
                                               Fails if a comment names a function or a header that is not installed
    generate.py page VERSION OUT SOURCE        the manual page of section 3: the comments and declarations of the header
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


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


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
    elif command == "page":
        text = "\n".join(page(first, sources[0], open(sources[0]).read())) + "\n"
    else:
        sys.exit(__doc__)
    with open(out, "w") as file:
        file.write(text)


main()
