"""The matrix of an all-to-all: a row for each sender, a column for each receiver, in colours of phases; beside it a bar for
each phase, as long as its longest message: together they are the time that all take."""
from svg import bytes_text, colour, picture_write, rect, text

COLUMNS = ("sender", "receiver", "phase", "bytes")
MARGIN, TOP, SIDE, LIST_WIDE, LIST_LINE = 60, 60, 800, 330, 16
CELL_TEXT_MIN = 16  # smaller cells have no number in them
LIST_MAX = 100  # phases in the list; more would be taller than any screen


def cells_draw(cells, side):
    """The parts of a message that is split are side by side in its cell."""
    parts = []
    for (sender, receiver), messages in cells.items():
        width = side / len(messages)
        for i, (phase, count) in enumerate(messages):
            x, y = MARGIN + side * receiver + width * i, TOP + side * sender
            what = f"{sender} to {receiver}: {bytes_text(count)} in phase {phase}"
            parts.append(rect(x, y, width, side, f'fill="{colour(phase)}"', what))
            if width >= CELL_TEXT_MIN:
                look = 'text-anchor="middle" dominant-baseline="middle" fill="#ffffff"'
                parts.append(text(x + width / 2, y + side / 2, str(phase), look))
    return parts


def frame_draw(ranks, side):
    parts = [rect(MARGIN, TOP, side * ranks, side * ranks, 'fill="none" stroke="#444444"')]
    for rank in range(0, ranks, 1 if side >= 14 else int(14 / side) + 1):
        middle = side * (rank + 0.5)
        parts.append(text(MARGIN - 5, TOP + middle, str(rank), 'text-anchor="end" dominant-baseline="middle"'))
        parts.append(text(MARGIN + middle, TOP - 5, str(rank), 'text-anchor="middle"'))
    return parts


def list_draw(phases, x):
    parts, longest = [], max((max(counts) for counts in phases.values()), default=1)
    for i, (phase, counts) in enumerate(sorted(phases.items())[:LIST_MAX]):
        y = TOP + LIST_LINE * i
        parts.append(rect(x, y, 100 * max(counts) / longest, LIST_LINE - 3, f'fill="{colour(phase)}"'))
        parts.append(text(x + 106, y + 10, f"phase {phase}: {len(counts)} messages, longest {bytes_text(max(counts))}"))
    if len(phases) > LIST_MAX:
        parts.append(text(x, TOP + LIST_LINE * LIST_MAX + 10, f"... and {len(phases) - LIST_MAX} more phases"))
    return parts


def matrix_draw(table, title, output):
    """Lines without bytes are of ranks that have nothing for another one."""
    cells, phases, ranks = {}, {}, 0
    for row in table.rows():
        sender, receiver, phase, count = map(int, row)
        ranks = max(ranks, sender + 1, receiver + 1)
        if count > 0:
            cells.setdefault((sender, receiver), []).append((phase, count))
            phases.setdefault(phase, []).append(count)
    side = min(SIDE / max(ranks, 1), 40)
    height = max(TOP + side * ranks, TOP + LIST_LINE * min(len(phases), LIST_MAX + 1)) + 20
    parts = cells_draw(cells, side) + frame_draw(ranks, side) + list_draw(phases, MARGIN + side * ranks + 30)
    words = "rows: senders; columns: receivers; number and colour: the phase"
    picture_write(output, MARGIN + side * ranks + 30 + LIST_WIDE, height, f"{title}, {ranks} ranks: phases", words, parts)
