#!/usr/bin/env python3
"""Man pages and shell completion of the `causeway` command, made of what its --help prints.

usage: pages.py CAUSEWAY VERSION FOLDER [COMMAND...]      writes FOLDER/causeway.1, a page for each COMMAND, and the completion of bash, zsh, fish

A help text is paragraphs, with an empty line between two. The first is "usage: SYNOPSIS". One whose first line is a word or two and
a colon is a section of rows, which begin in column 2; the text of an option begins in column 31. The others describe. Whatever else
is found ends this program with an error, and so the build.
"""
import os
import re
import subprocess
import sys

SECTIONS = {"options:", "commands:", "subcommands:", "units:", "exit codes:"}
TEXT_COLUMN = 31


class Help:
    """What one command says of itself: synopsis (lines), texts (paragraphs), rows by section: [left, text]."""

    def __init__(self, program, words):
        self.words = words
        self.name = " ".join(["causeway", *words])
        done = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True)
        usage, *paragraphs = done.stdout.rstrip("\n").split("\n\n")
        self.synopsis = [line.removeprefix("usage:").strip() for line in usage.split("\n")]
        self.rows = {name: [] for name in SECTIONS}
        self.texts = []
        for paragraph in paragraphs:
            head, _, rows = paragraph.partition("\n")
            if head in SECTIONS:
                self.rows[head] = [self.row(head, row) for row in re.split(r"\n(?=  \S)", rows)]
            else:
                self.texts.append(paragraph)
        self.require(all(line.startswith(self.name) for line in self.synopsis), "each line of the synopsis begins with the command")
        self.require(self.texts, "an empty line and a description follow the synopsis")
        self.require(self.rows["options:"] or self.rows["subcommands:"], "there are options or subcommands")
        self.options = [Option(self, left) for left, _ in self.rows["options:"]]
        self.subcommands = [left for left, _ in self.rows["commands:"] + self.rows["subcommands:"] if left != "help"]
        self.kinds = [] if not words or not self.subcommands else [Help(program, [*words, kind]) for kind in self.subcommands]

    def require(self, condition, what):
        if not condition:
            sys.exit(f"pages.py: {self.name} --help is irregular: {what}")

    def row(self, head, row):
        if head == "options:":
            first, *rest = row.split("\n")
            if first[TEXT_COLUMN - 1:TEXT_COLUMN] == " ":
                first, rest = first[:TEXT_COLUMN], [" " * TEXT_COLUMN + first[TEXT_COLUMN:], *rest]
            self.require(rest and all(line[:TEXT_COLUMN].isspace() for line in rest), f"the text of {first.strip()} is in column {TEXT_COLUMN}")
            return first.strip(), " ".join(line.strip() for line in rest)
        left, _, text = row.strip().partition(" ")
        self.require(text, f"{left} has a text")
        return left, text.strip()


class Option:
    """names: as they are written; argument: "" for a flag; values: that the argument can have, if they are few."""

    def __init__(self, owner, left):
        words = re.fullmatch(r"(-[\w-]+(?:, -[\w-]+)*)(?: (.+))?", left)
        owner.require(words, f"{left} is names and an argument")
        self.names = words[1].split(", ")
        self.argument = words[2] or ""
        words = re.sub(r"\[[^]]*\]", "", self.argument).split("|")
        self.values = [word for word in words if re.fullmatch(r"[a-z_][a-z_-]*", word)] if len(words) > 1 or "|" not in self.argument else []


# ---- man pages ----

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def described(texts):
    """Paragraphs; lines that are indented stay as they are."""
    for number, text in enumerate(texts):
        yield from [".PP"] if number else []
        for lines in re.findall(r"(?:^  .*\n?)+|(?:^(?!  ).*\n?)+", text, re.M):
            lines = lines.rstrip("\n")
            yield f".nf\n{roff(lines)}\n.fi" if lines.startswith("  ") else roff(lines)


def listed(rows):
    for left, text in rows:
        yield f".TP\n\\fB{roff(left)}\\fR\n{roff(text)}"


def variables(helps):
    """Settings of the environment that options name."""
    for help in helps:
        for left, text in help.rows["options:"]:
            for name in re.findall(r"CAUSEWAY_[A-Z_]+(?:=\w+)?", text):
                yield name, f"as {left.split()[0].rstrip(',')} of {help.name}"


def page(help, summary, version, codes, others):
    title = "-".join(["causeway", *help.words])
    yield f'.TH {roff(title).upper()} 1 "" "causeway {version}" "Causeway"'
    yield f".SH NAME\n{roff(title)} \\- {roff(summary)}"
    yield ".SH SYNOPSIS\n.nf\n" + "\n".join(map(roff, help.synopsis)) + "\n.fi"
    yield ".SH DESCRIPTION"
    yield from described(help.texts)
    for section in ("commands:", "subcommands:", "units:", "options:"):
        if help.rows[section]:
            yield f".SH {section[:-1].upper()}"
            yield from listed(help.rows[section])
    for kind in help.kinds:
        yield f".SH {roff(kind.name).upper()}\n.nf\n" + "\n".join(map(roff, kind.synopsis)) + "\n.fi"
        yield from described(kind.texts)
        yield from listed(kind.rows["options:"])
    yield ".SH EXIT STATUS"
    yield from listed(help.rows["exit codes:"] or codes)
    environment = list(variables([help, *help.kinds]))
    if environment:
        yield ".SH ENVIRONMENT"
        yield from listed(environment)
    yield ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(other)} (1)" for other in others if other != title).replace(",\n", " ,\n")


# ---- completion ----

def leaves(helps):
    for help in helps:
        yield help
        yield from help.kinds


BASH = """# bash completion of causeway, made by apps/pages/pages.py of what --help prints. Where it has nothing to say, file names are offered.

# Sets `words` to what may follow a command: subcommands, then options.
__causeway_words() {
    case $1 in
@WORDS@
    *) words="" ;;
    esac
}

# Fails unless the option takes an argument; else sets `words` to those of its values that are known.
__causeway_values() {
    case $1 in
@VALUES@
    *) return 1 ;;
    esac
}

_causeway() {
    local current=${COMP_WORDS[COMP_CWORD]} command="" wanted="" word words at
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        [[ $word == "=" ]] && continue
        __causeway_words "$command"
        if [[ $wanted != "" ]]; then
            wanted=""
        elif [[ $word == -* ]]; then
            __causeway_values "$command $word" && wanted=$word
        elif [[ $word == : ]]; then
            command=${command% PROGRAM}
        elif [[ " $words " == *" $word "* ]]; then
            command="$command${command:+ }$word"
        elif [[ $command == run ]]; then
            command="run PROGRAM"
        fi
    done
    if [[ $wanted != "" ]]; then
        [[ $current == "=" ]] && current=""
        __causeway_values "$command $wanted"
    else
        __causeway_words "$command"
        [[ $current == -* ]] || words=" $words"
        [[ $current == -* ]] || words=${words%% -*}
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -o default -F _causeway causeway
"""


def bash(overview, helps):
    words, values = [], {}
    for help in [overview, *leaves(helps)]:
        command = " ".join(help.words)
        names = [name for option in help.options for name in option.names]
        words.append(f"    '{command}') words='{' '.join([*help.subcommands, *([] if command else ['help']), *dict.fromkeys(names)])}' ;;")
        of = {}
        for option in help.options:
            for name in option.names if option.argument else []:
                of.setdefault(name, []).extend(option.values)
        for name, found in of.items():
            values.setdefault(" ".join(found), []).append(f"'{command} {name}'")
    words.append(f"    help) words='{' '.join(overview.subcommands)}' ;;")
    values = [f"    {' | '.join(options)}) words='{found}' ;;" for found, options in values.items()]
    return BASH.replace("@WORDS@", "\n".join(words)).replace("@VALUES@", "\n".join(values))


def zsh(completion):
    """zsh carries functions of bash out."""
    return "#compdef causeway\n" + completion.replace("_causeway()", "_causeway_of_bash()").replace(
        "complete -o default -F _causeway causeway", "autoload -U +X bashcompinit && bashcompinit\n_bash_complete -o default -F _causeway_of_bash")


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(overview, helps):
    yield "# fish completion of causeway, made by apps/pages/pages.py of what --help prints."
    for help in [overview, *leaves(helps)]:
        seen = "".join(f"; and __fish_seen_subcommand_from {word}" for word in help.words).removeprefix("; and ")
        seen = seen or "__fish_use_subcommand"
        none = f"; and not __fish_seen_subcommand_from {' '.join(help.subcommands)}" if help.words and help.subcommands else ""
        for left, text in help.rows["commands:"] + help.rows["subcommands:"]:
            yield f"complete -c causeway -n '{seen}{none}' -f -a {left} -d {quoted(text)}"
        for option, (_, text) in zip(help.options, help.rows["options:"]):
            names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}" for name in option.names]
            argument = f" -x -a '{' '.join(option.values)}'" if option.values else " -r" if option.argument else ""
            yield f"complete -c causeway -n '{seen}{none}' {' '.join(names)}{argument} -d {quoted(text)}"


def main(program, version, folder, *expected):
    def write(name, text):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)

    overview = Help(program, [])
    summaries = dict(overview.rows["commands:"])
    overview.require(set(overview.subcommands) == set(expected), f"the build names {' '.join(expected)}")
    helps = [Help(program, [command]) for command in overview.subcommands]
    titles = ["causeway", *(f"causeway-{command}" for command in overview.subcommands)]
    codes = overview.rows["exit codes:"]
    for title, help in zip(titles, [overview, *helps]):
        summary = summaries[help.words[0]] if help.words else "a networking runtime for clusters"
        write(title + ".1", "\n".join(page(help, summary, version, codes, titles)) + "\n")
    completion = bash(overview, helps)
    write("causeway", completion)
    write("_causeway", zsh(completion))
    write("causeway.fish", "\n".join(fish(overview, helps)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
