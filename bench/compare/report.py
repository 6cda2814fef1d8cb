# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as tables for people: text, pictures, and the pages of the documentation."""

import json
import shutil
import statistics
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    row: str
    title: str
    unit: str
    scale: float = 1
    less_is_better: bool = True


KINDS = [
    Kind("latency", "a message one way: half a ping-pong", "us", 1e6),
    Kind("stream", "one way, a stream of messages", "MB/s", 1e-6, False),
    Kind("both", "both ways at once, each of them", "MB/s", 1e-6, False),
    Kind("rate", "messages of 8 bytes", "thousand/s", 1e-3, False),
    Kind("behind", "8 bytes right behind a long message of that size: half a round trip", "ms", 1e3),
    Kind("overlap-send", "left to the sender's calculation while a message is sent", "%", 100, False),
    Kind("overlap-receive", "left to the receiver's calculation while a message is received", "%", 100, False),
    Kind("heat-alone", "the heat equation's calculation, alone in both ranks", "ms", 1e3),
    Kind("heat-blocking", "a step of the heat equation's exchange, then the calculation", "ms", 1e3),
    Kind("heat-hidden", "the same, calculated while it is under way", "ms", 1e3),
    Kind("heat-over-ideal", "of the longer of calculation and exchange", "times", 1),
    Kind("cpu", "processor time, ranks and daemons of both hosts, a GiB one way", "s", 1),
    Kind("beside-loss", "a calculation beside messages both ways loses", "%", 100),
    Kind("beside-left", "and what of their time is left behind it", "%", 100),
    Kind("ticks-longest", "a link that is cut for a second: the longest pause", "ms", 1e3),
]
least_share = -9.99  # of an overlap: a library that begins behind the calculation may be as far below 0 as it likes


def derive(place):
    """What is put together from several rows."""
    rows = place["rows"]
    for size, ways in rows.get("cpu-ranks", {}).items():
        for way, ranks in ways.items():
            daemons = rows.get("cpu-daemons", {}).get(size, {}).get(way, {"values": [0.0] * len(ranks["values"])})
            values = [a + b for a, b in zip(ranks["values"], daemons["values"])]
            rows.setdefault("cpu", {}).setdefault(size, {})[way] = {"values": values, "busy": ranks["busy"]}
    for size, ways in rows.get("heat-hidden", {}).items():
        for way, hidden in ways.items():
            ideal = max(float(size), place.get("exchange_ms", 0)) / 1e3
            values = [each / ideal for each in hidden["values"]]
            if place.get("exchange_ms", 0) > 0:
                rows.setdefault("heat-over-ideal", {}).setdefault(size, {})[way] = {"values": values, "busy": hidden["busy"]}


def size_words(size, kind):
    size = float(size)
    if kind.row.startswith("heat"):
        return f"{size:g} ms"
    if kind.row in ("cpu", "ticks-longest") or size == 0:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit < unit / 100:
            return f"{size / unit:.0f} {name}"
    return f"{size:.0f} B" if size < 10000 else f"{size / (1 << 20):.0f} MiB"


def number(value, kind):
    value *= kind.scale
    if kind.unit == "%":
        return f"{max(value, 100 * least_share):.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cell(measured, kind):
    """A median, and how far the runs were apart, in per cent of it."""
    values = measured["values"]
    middle = statistics.median(values)
    text = number(middle, kind)
    if len(values) > 1 and kind.unit == "%":
        text += f" ±{50 * (max(values) - max(min(values), least_share)):.0f}"
    elif len(values) > 1:
        text += f" ±{100 * spread(measured):.0f}%"
    return text + ("?" if is_busy(measured) else "")


def best_of(ways, kind):
    """The best, and those that are as good within what the runs are apart, 10 per cent at most."""
    quiet = {way: each for way, each in ways.items() if not is_busy(each)} or ways
    middle = {way: statistics.median(each["values"]) for way, each in quiet.items()}
    best = (min if kind.less_is_better else max)(middle, key=middle.get)
    apart = max(spread(quiet[best]), 0.01 if len(quiet[best]["values"]) == 1 else 0)
    reach = min(max(apart, 0.02), 0.1) * abs(middle[best])
    return {way for way, value in middle.items() if abs(value - middle[best]) <= reach}


def is_busy(measured):
    return measured["busy"] * 2 >= len(measured["values"])


def spread(measured):
    """Half of the range, as a share of the median."""
    values = measured["values"]
    middle = statistics.median(values)
    return (max(values) - min(values)) / 2 / abs(middle) if middle else 0


def tables(whole):
    """(place's name, place, kind, sizes, {way: [cell or None]}, {size's index: best ways})."""
    order = [way["name"] for way in whole["ways"]]
    for name, place in whole["places"].items():
        derive(place)
        for kind in KINDS:
            rows = place["rows"].get(kind.row)
            if not rows:
                continue
            sizes = sorted(rows, key=float)
            known = [way for way in order if any(way in rows[size] for size in sizes)]
            lines = {way: [cell(rows[size][way], kind) if way in rows[size] else None for size in sizes] for way in known}
            yield name, place, kind, sizes, lines, [best_of(rows[size], kind) for size in sizes]


def text_of(whole):
    about = whole["about"]
    out = [f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}; "
           f"{about['repeats']} repeats, in turn; {about.get('took_s', 0) // 60} minutes.",
           "Medians; ±: half of the range of the repeats; *: the best, or as good within what the runs are apart; "
           "?: the machine was busy with something else.", ""]
    last = ""
    for name, place, kind, sizes, lines, best in tables(whole):
        if name != last:
            out += [place["title"].upper(), ""]
            out += [f"  {way}: {why}" for way, why in place["failures"].items()] + ([""] if place["failures"] else [])
            last = name
        out.append(f"{kind.title}, {kind.unit} ({'less' if kind.less_is_better else 'more'} is better)")
        heads = [size_words(size, kind) for size in sizes]
        width = max(11, *(len(each or "") + 3 for cells in lines.values() for each in cells))
        if any(heads):
            out.append(" " * 18 + "".join(f"{head:>{width}}" for head in heads).rstrip())
        for way, cells in lines.items():
            marked = [(each or "-") + ("*" if way in best[i] and each else " ") for i, each in enumerate(cells)]
            out.append(f"{way:<18}" + "".join(f"{each:>{width}}" for each in marked).rstrip())
        out.append("")
    for peer, why in whole["missing"].items():
        out.append(f"{peer} was left out: {why}")
    out.append("Best settings:")
    for way in whole["ways"]:
        if way["settings"] == "best":
            out.append(f"  {way['name']}: {way['why']} ({way['page']})")
    return "\n".join(out) + "\n"


def markdown_of(whole):
    """docs/comparison.md's tables."""
    about = whole["about"]
    versions = sorted({way["version"] for way in whole["ways"] if way["version"]})
    out = [f"{about['date']}: {about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, {about['system']}; "
           f"{about['repeats']} repeats. {', '.join(versions)}.", ""]
    last = ""
    for name, place, kind, sizes, lines, best in tables(whole):
        if name != last:
            out += [f"## {place['title'][0].upper()}{place['title'][1:]}", ""]
            out += [f"{way}: {why}." for way, why in place["failures"].items()] + ([""] if place["failures"] else [])
            last = name
        keep = list(range(len(sizes))) if len(sizes) <= 6 else [i for i in range(len(sizes)) if i % 2 == 0 or i == len(sizes) - 1]
        out += [f"{kind.title[0].upper()}{kind.title[1:]}, {kind.unit}"
                f" ({'less' if kind.less_is_better else 'more'} is better):", ""]
        out.append("| | " + " | ".join(size_words(sizes[i], kind) or kind.unit for i in keep) + " |")
        out.append("| --- |" + " ---: |" * len(keep))
        for way, cells in lines.items():
            shown = [f"**{cells[i]}**" if cells[i] and way in best[i] else cells[i] or "-" for i in keep]
            out.append(f"| {way} | " + " | ".join(shown) + " |")
        out.append("")
    return "\n".join(out)


# ---- Pictures

PICTURES = {"latency": ("us", True, True), "stream": ("MB/s", True, True), "overlap-send": ("%", True, False),
            "overlap-receive": ("%", True, False), "heat-over-ideal": ("times the ideal", False, False)}


def draw(whole, output):
    if shutil.which("gnuplot") is None:
        print("compare: no pictures: there is no gnuplot (gnuplot-nox)")
        return
    order = [way["name"] for way in whole["ways"]]
    for name, place in whole["places"].items():
        for row, (unit, log_x, log_y) in PICTURES.items():
            rows = place["rows"].get(row)
            if not rows or len(rows) < 2:
                continue
            kind = next(kind for kind in KINDS if kind.row == row)
            lines = ["set terminal svg size 900,560 font 'sans,13' background 'white'",
                     f"set output '{output / f'{name}-{row}.svg'}'", f'set title "{place["title"]}: {kind.title}"',
                     f"set ylabel '{unit}'", "set key outside right", "set grid",
                     f"set xlabel '{'calculation, ms' if row.startswith('heat') else 'bytes'}'"]
            lines += ["set logscale x 2"] if log_x else []
            lines += ["set logscale y"] if log_y else []
            lines += ["set yrange [-20:105]"] if unit == "%" else []
            plots = []
            for i, way in enumerate(order):
                points = [(float(size), statistics.median(rows[size][way]["values"]) * kind.scale)
                          for size in sorted(rows, key=float) if way in rows[size]]
                if not points:
                    continue
                lines += [f"$d{i} << EOD", *[f"{x:g} {y:g}" for x, y in points], "EOD"]
                plots.append(f"$d{i} with linespoints lw {3 if way.startswith('parc') else 1.5} title '{way}'")
            lines.append("plot " + ", ".join(plots))
            subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=False)


def write(text, output):
    whole = json.loads(text)
    (output / "comparison.json").write_text(text + "\n")
    table = text_of(whole)
    (output / "comparison.txt").write_text(table)
    draw(whole, output)
    print(table)
    print(f"compare: all of it is in {output.resolve()}")
    return 0
