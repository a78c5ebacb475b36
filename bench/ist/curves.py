"""Accuracy over seconds, as an SVG file: a panel for each network and number of ranks."""

WIDTH, HEIGHT, GAP, LEFT = 300, 190, 60, 50
COLOURS = {"data parallel": "#1b6ca8", "local SGD": "#d98b2b", "subnets": "#b3323e", "subnets of dense units": "#5a8f3c"}
LOW, HIGH = 0.7, 0.95


def panel(runs, left, top):
    longest = max(run.last["seconds"] for run in runs)

    def place(epoch):
        share = (min(max(epoch["test"]["accuracy"], LOW), HIGH) - LOW) / (HIGH - LOW)
        return f"{left + WIDTH * epoch['seconds'] / longest:.1f},{top + HEIGHT * (1 - share):.1f}"

    yield f'<text x="{left}" y="{top - 8}" font-weight="bold">{runs[0].network}, {runs[0].ranks} ranks</text>'
    for tenths in (70, 75, 80, 85, 90, 95):
        y = top + HEIGHT * (1 - (tenths / 100 - LOW) / (HIGH - LOW))
        yield f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tenths} %</text>'
    yield f'<text x="{left + WIDTH}" y="{top + HEIGHT + 16}" text-anchor="end">{longest:.0f} s</text>'
    for run in runs:
        points = " ".join(map(place, run.epochs))
        yield f'<polyline fill="none" stroke="{COLOURS[run.method]}" stroke-width="1.8" points="{points}"/>'


def write_svg(runs, file):
    networks = list(dict.fromkeys(run.network for run in runs))
    ranks = sorted({run.ranks for run in runs if run.ranks > 1})
    parts = []
    for row, network in enumerate(networks):
        for column, count in enumerate(ranks):
            chosen = [run for run in runs if run.network == network and run.ranks == count]
            if chosen:  # not before they are measured
                parts += panel(chosen, LEFT + column * (WIDTH + GAP), 60 + row * (HEIGHT + GAP))
    legend = "".join(f'<tspan fill="{colour}">{method}</tspan>  ' for method, colour in COLOURS.items())
    width, height = LEFT + len(ranks) * (WIDTH + GAP), 60 + len(networks) * (HEIGHT + GAP)
    file.write_text("\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20">Accuracy on the test images over seconds of training: {legend}</text>', *parts, "</svg>\n"]),
        encoding="utf-8")
