"""Bars of seconds, as an SVG file: a panel for each case and number of processes."""
from html import escape

COLUMNS = 3
WIDTH, BAR, HEAD, GAP = 440, 16, 26, 22  # of a panel; of a bar; of a title; between panels
NAMES = 190  # what the names of bars take of the width
MARGIN = 8
FIGURES = 60  # and the figures behind them
COLOURS = {"automatic": "#1b6ca8", "ours": "#8fbbd9", "others": "#c9c9c9"}


def write_svg(heading, tables, title, file):
    rows = [tables[at:at + COLUMNS] for at in range(0, len(tables), COLUMNS)]
    parts, top = [], HEAD + GAP
    for panels in rows:
        for column, table in enumerate(panels):
            parts += panel(table, title(table), column * (WIDTH + GAP), top)
        top += HEAD + GAP + BAR * max(len(table.rows) for table in panels)
    width = COLUMNS * (WIDTH + GAP)
    legend = "median seconds; a line marks the least. Dark: the automatic plan; light: Einrel's other plans; grey: others"
    file.write_text("\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-{MARGIN} 0 {width + MARGIN} {top}" font-family="sans-serif" font-size="11">',
        f'<rect x="-{MARGIN}" width="100%" height="100%" fill="white"/>', text(0, 16, heading, "14"), text(0, 34, legend),
        *parts, "</svg>\n"]), encoding="utf-8")


def panel(table, heading, left, top):
    longest = max(row.median for row in table.rows)
    yield text(left, top + 14, heading.split(" (")[0], weight="bold")
    for at, row in enumerate(table.rows):
        y = top + HEAD + at * BAR
        kind = "automatic" if at == 0 else "ours" if row.is_ours else "others"
        room = WIDTH - NAMES - FIGURES
        length, least = (room * value / longest for value in (row.median, row.least))
        yield text(left, y + 11, row.name)
        yield f'<rect x="{left + NAMES}" y="{y + 2}" width="{length:.1f}" height="{BAR - 4}" fill="{COLOURS[kind]}"/>'
        yield f'<path d="M{left + NAMES + least:.1f} {y + 1}v{BAR - 2}" stroke="black"/>'
        yield text(left + NAMES + round(length) + 4, y + 11, f"{row.median:.3g}")


def text(x, y, content, size=None, weight=None):
    style = (f' font-size="{size}"' if size else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x}" y="{y}"{style}>{escape(content)}</text>'
