"""Pictures that are written as SVG directly: colours, texts and the frame that they share."""
from html import escape

from table import Refused, file_write

# Neighbours are far apart. They come again after the last one.
COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#e7ba52", "#17becf", "#8c564b", "#e377c2", "#637939", "#3182bd", "#d6616b", "#7b4173"]
COPIES, COMBINES = "#7f7f7f", "#111111"


def colour(number):
    return COLOURS[number % len(COLOURS)]


def scaled(amount, base, units, digits):
    unit = 0
    while unit + 1 < len(units) and float(f"{amount:.{digits}g}") >= base:
        amount /= base
        unit += 1
    return f"{amount:.{digits}g} {units[unit]}"


def time_text(time_ns):
    return scaled(time_ns, 1000, ("ns", "us", "ms", "s"), 3)


def bytes_text(count):
    return scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"), 4)


def rect(x, y, width, height, look, title=None):
    inside = f"><title>{title}</title></rect>" if title else "/>"
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" {look}{inside}'


def text(x, y, words, look=""):
    return f'<text x="{x:.2f}" y="{y:.2f}" {look}>{escape(words)}</text>'


def picture_write(path, width, height, title, subtitle, parts):
    """A whole picture below two lines of text; "-" is standard output."""
    if path != "-" and not path.lower().endswith(".svg"):
        raise Refused("a plan is drawn as SVG only", path, "its name must end with .svg")
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">']
    lines += [rect(0, 0, width, height, 'fill="#ffffff"'), text(10, 20, title, 'font-size="15" font-weight="bold"')]
    lines += [text(10, 38, subtitle, 'fill="#555555"'), *parts, "</svg>", ""]
    file_write("the picture", path, "\n".join(lines).encode())
