#!/usr/bin/env python3
"""Man pages and shell completion: each command has a page without a warning of groff's, each option is in page and completion, and a shell completes what it should.

usage: pages_usage.py CAUSEWAY PAGES SOURCES
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import HANG_S, execute, expect

causeway, pages, sources = sys.argv[1:]

# What is typed, the last word being completed; what is offered (None: nothing, so that the shell offers file names).
CASES = [
    (["sw"], ["switch"]),
    (["help", "pl"], ["plan", "plogp"]),
    (["plan", "ch"], ["check", "choose"]),
    (["plan", "draw", "--n"], ["--network"]),
    (["plogp", "--path", "m"], ["memif"]),
    (["bench", "put", "--fabric", "=", "s"], ["switch"]),
    (["plogp", "-n", "4", "--pa"], ["--path"]),
    (["plogp", "--hosts", "x"], None),
    (["run", "--bind-to", ""], ["core", "numa", "hwthread", "none"]),
    (["run", "-n", "2", "--rec"], ["--record"]),
    (["run", "-n", "2", ""], None),
    (["run", "-n", "2", "./program", "--rec"], None),
    (["run", "-n", "2", "plan", ":", "--rec"], ["--record"]),
]
GATEWAY = [(["gateway", "--multicast", "f"], ["flood"])]


def text_of(*command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, **how).stdout


def rows_of(text, section):
    """First words of the rows of a section of help."""
    found = re.search(rf"^{section}:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (?! )(\S+)", found[1], re.M) if found else []


def bash(words):
    script = 'source "$1"; shift; COMP_WORDS=(causeway "$@"); COMP_CWORD=$#; _causeway; printf "%s\\n" "${COMPREPLY[@]}"'
    return text_of("bash", "-c", script, "bash", os.path.join(pages, "causeway"), *words).split()


def options_check(words, page):
    """Each option that the help of a command, or of a kind of it, begins a line with."""
    names = {name for row in re.findall(r"^  (-.*)", text_of(causeway, *words, "--help"), re.M) for name in re.findall(r"(?:^|, )(-[\w-]+)", row)}
    expect("--help" in names, f"{words}: --help lists options")
    missing = {name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", page)}
    expect(not missing, f"{words}: the page has {missing}")
    expect(names == set(bash([*words, "-"])), f"{words}: completed are {names}, not {bash([*words, '-'])}")
    return names


def page_check(title, path=None, sections=frozenset({"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"})):
    path = path or os.path.join(pages, title + ".1")
    shown = execute(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", path])
    expect(shown.returncode == 0 and not shown.stderr, f"{path}: no warnings: {shown.stderr}")
    heads = re.findall(r"^[A-Z][A-Z ]+$", shown.stdout, re.M)
    expect(sections <= set(heads), f"{path} has its sections: {heads}")
    return shown.stdout.replace("\u2010\n", "").replace("\u2010", "-").replace("\u2212", "-")


if not shutil.which("groff"):
    print("SKIPPED: groff is not there: ./setup develop")
    sys.exit(77)
commands = [name for name in rows_of(text_of(causeway, "help"), "commands") if name != "help"]
options_check([], page_check("causeway"))
everything = set()
for command in commands:
    page = page_check(f"causeway-{command}")
    kinds = rows_of(text_of(causeway, command, "--help"), "subcommands")
    expect(kinds or command not in ("bench", "plan"), f"{command} has subcommands")
    for words in [[command, kind] for kind in kinds] or [[command]]:
        everything |= options_check(words, page)

# Pages of the C interface, and of concepts. Each page that another one names is there.
others = glob.glob(os.path.join(pages, "*.3")) + glob.glob(os.path.join(sources, "docs/man/*.7"))
there = {re.sub(r"(.*)\.(\d)", r"\1(\2)", os.path.basename(path)) for path in others} | {f"causeway-{command}(1)" for command in commands}
functions = set()
for path in others:
    page_check(None, path, {"NAME", "DESCRIPTION", "SEE ALSO"} | ({"SYNOPSIS", "DECLARATIONS"} if path.endswith(".3") else set()))
    with open(path) as file:
        functions |= set(re.findall(r"\bcw_\w+", file.read().partition(".SH SYNOPSIS")[0])) if path.endswith(".3") else set()
with open(os.path.join(pages, "causeway_dataplane.3")) as file:
    text = file.read()
expect("#define CW_SHAPER_NONE" in text and "#define CW_COUNTERS(X)" in text and "#include \"" not in text, "a page has the macros of its header")
expect(len(functions) > 100 and len(others) >= 10, f"pages of sections 3 and 7: {others}")
for path in others:
    with open(path) as file:
        named = {f"{name}({section})".replace("\\-", "-") for name, section in re.findall(r"^\.BR (\S+) \((\d)\)", file.read(), re.M)}
    missing = {name for name in named - there if name.removesuffix("(3)") not in functions}
    expect("node" not in commands or not missing, f"{path} names {missing}")

# The tables that the options are parsed by, which `run` has apart from its help.
for path in glob.glob(os.path.join(sources, "apps", "*", "*.c")):
    with open(path) as file:
        table = file.read()
    ours = re.findall(r'^ +\{"([a-z][\w-]*)",\s+(?:"[A-Z\[][^"]*"|NULL),\s+"', table, re.M)
    ours += re.findall(r"^    \{\"([\w-]+)\", [012], (?:'\w'|0), \w+\},", table, re.M) if path.endswith("run/options.c") else []
    missing = [name for name in ours if not {"-" + name, "--" + name} & everything]
    expect(not missing or "switch" not in commands, f"{path}: in pages and completion: {missing}")

for words, offered in CASES + (GATEWAY if "gateway" in commands else []):
    offered = [name for name in offered or [] if name in commands or len(words) > 1]
    expect(bash(words) == offered, f"causeway {' '.join(words)}: {offered}, not {bash(words)}")
if shutil.which("fish"):
    script = f"source {os.path.join(pages, 'causeway.fish')}; complete -C $argv[1]"
    for typed, offered in (("causeway plan ch", ["check", "choose"]), ("causeway plogp --path m", ["memif"])):
        found = [line.split("\t")[0] for line in text_of("fish", "-N", "-c", script, typed).splitlines()]
        expect(found == offered, f"fish: {typed}: {offered}, not {found}")
for shell, name in (("zsh", "_causeway"), ("bash", "causeway"), ("fish", "causeway.fish")):
    if shutil.which(shell):
        wrong = text_of(shell, "-n", os.path.join(pages, name))
        expect(not wrong, f"{shell} reads {name}: {wrong}")
