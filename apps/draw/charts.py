"""A chart of codecs, by gnuplot."""
from gnuplot import picture_make, text
from panels import COLOURS
from table import Refused

CODECS = ("field", "codec", "ratio", "break_even_bps")
NAME_MAX = 14


def some(table, found):
    if not found:
        raise Refused("there is nothing behind the first line", table.path, "let the command that wrote it finish")


def codecs_draw(table, _title, output):
    """A group of bars for each field: ratios above, below the links for which codecs pay."""
    fields, codecs = {}, {}
    for field, codec, ratio, pays in table.rows():
        ratio, gbps = table.positive("ratio", ratio), table.positive("break_even_bps", pays) / 1e9 if pays else "NaN"
        codecs.setdefault(codec, []).append((fields.setdefault(field, len(fields)), ratio, gbps))
    some(table, fields)
    lines, width = [], 0.8 / len(codecs)
    for i, bars in enumerate(codecs.values()):
        places = (f"{field + width * (i - (len(codecs) - 1) / 2):.4f} {ratio} {gbps}" for field, ratio, gbps in bars)
        lines += [f"$d{i} << EOD", *places, "EOD"]
    names = ", ".join(f"{text(field.rpartition('/')[2][-NAME_MAX:])} {i}" for field, i in fields.items())
    lines += [f"set xtics scale 0 ({names})", f"set xrange [-0.6:{len(fields) - 0.4}]", f"set boxwidth {width * 0.94:.4f}", "set grid ytics"]
    lines += ["set logscale y", "set format y '%g'", "set key outside bottom center horizontal", "set lmargin 9", "set multiplot layout 2,1"]
    for column, title, axis, span in (
        (2, "ratios (bars of zeros continue)", "bytes before / bytes sent", "0.9:100"),
        (3, "links for which a codec pays: those slower than", "Gb/s", "0.01:200"),
    ):
        look = "with boxes fillstyle solid linecolor rgb"
        plots = [f"$d{i} using 1:{column} {look} '{COLOURS[i % len(COLOURS)]}' title {text(codec)}" for i, codec in enumerate(codecs)]
        lines += [f"set title '{title}'", f"set ylabel '{axis}'", f"set yrange [{span}]", "plot " + ", ".join(plots)]
    picture_make(output, max(95 * len(fields) + 150, 700), 900, lines + ["unset multiplot"])
