"""Draws a table as dots on a logarithmic axis: a line for each number, a ring for the paper's value, a dot for ours."""
import html
import math

LABEL_PX, PLOT_PX, LINE_PX, TOP_PX = 380, 560, 17, 40
STYLE = "font-family:sans-serif;font-size:12px"


def ticks(lowest, highest):
    """1, 2, 5, 10... from below the lowest to above the highest value; only powers of ten where these are many."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    begin = max((value for value in found if value <= lowest), default=found[0])
    end = min((value for value in found if value >= highest), default=found[-1])
    return [value for value in found if begin <= value <= end]


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def dot_plot(entries, unit, source):
    """SVG of [(label, the paper's value or None, ours)]; a picture needs a positive number. `source` names the rings."""
    values = [value for _, paper, ours in entries for value in (paper, ours) if value is not None and value > 0]
    if not values:
        return ""
    marks = ticks(min(values), max(values))
    if len(marks) == 1:
        marks = [marks[0] / 10, marks[0] * 10]
    low, high = math.log10(marks[0]), math.log10(marks[-1])
    height = TOP_PX + LINE_PX * len(entries) + 8

    def across(value):
        return LABEL_PX + PLOT_PX * (math.log10(value) - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL_PX + PLOT_PX + 60}" height="{height}" style="{STYLE}">']
    for value in marks:
        parts.append(f'<line x1="{across(value):.1f}" x2="{across(value):.1f}" y1="{TOP_PX - 8}" y2="{height}" stroke="#ddd"/>')
        parts.append(text(across(value), TOP_PX - 12, f"{value:g}", "middle"))
    parts.append(text(LABEL_PX, 12, f"{unit}; ring: {source}, dot: ours"))
    for number, (label, paper, ours) in enumerate(entries):
        y = TOP_PX + LINE_PX * (number + 0.5)
        parts.append(text(LABEL_PX - 12, y + 4, label, "end"))
        if paper is not None and paper > 0:
            parts.append(f'<circle cx="{across(paper):.1f}" cy="{y:.1f}" r="5" fill="none" stroke="#888" stroke-width="2"/>')
        if ours > 0:
            parts.append(f'<circle cx="{across(ours):.1f}" cy="{y:.1f}" r="4" fill="#2060c0"/>')
    return "\n".join(parts + ["</svg>"]) + "\n"
