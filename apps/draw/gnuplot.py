"""Runs gnuplot on a script, and writes the picture where it is wanted only if gnuplot has made it."""
import subprocess

from table import Refused, file_write

ENDINGS = (".svg", ".png")


def path_check(path):
    if not path.lower().endswith(ENDINGS) or path.lower() in ENDINGS:
        raise Refused("no such kind of picture", path, "its name must end with .svg or .png")


def text(words):
    """A text of a script."""
    return "'" + "".join(" " if letter < " " else letter for letter in words).replace("'", "''") + "'"


def picture_make(path, width, height, lines):
    """`width` and `height` in points; `lines` is the script but for the terminal."""
    path_check(path)
    is_svg = path.lower().endswith(".svg")
    terminal = "svg" if is_svg else "pngcairo"
    font = "sans-serif,13" if is_svg else "Sans,10"
    script = "\n".join([f"set terminal {terminal} size {width},{height} font '{font}' background 'white' noenhanced", *lines, ""])
    try:
        done = subprocess.run(["gnuplot", "-"], input=script.encode(), stdout=subprocess.PIPE, check=False)
    except FileNotFoundError as error:
        raise Refused("gnuplot is missing", path, "apt-get install gnuplot-nox", code=3) from error
    if done.returncode != 0:
        raise Refused("gnuplot has failed", path, "its own words, if there are any, are above", code=1)
    file_write("the picture", path, done.stdout)
