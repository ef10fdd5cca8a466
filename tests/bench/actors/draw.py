"""Small multiples as SVG, from the standard library alone: a panel a program, a line a peer and thread count.

Colours are middle tones on no background, so that a page may be light or dark.
"""
import math
from html import escape

INK, GRID = "#7d8590", "#7d859044"
COLOURS = {"weir": "#2f81f7", "weir, newest first": "#3fa45b", "caf": "#e3742f", "asio": "#8b949e"}
WIDTH, HEIGHT, COLUMNS = 300, 220, 3
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 34, 36


def label(value):
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{suffix}"
    return f"{value:g}"


def ticks(low, high):
    """Powers of ten, with 2s and 5s where those would be few."""
    all_of = [m * 10.0**e for e in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
              for m in (1, 2, 5)]
    inside = [t for t in all_of if low <= t <= high]
    tens = [t for t in inside if math.log10(t) == round(math.log10(t))]
    return tens if len(tens) >= 3 else inside


class Panel:
    def __init__(self, x, y, lines):
        self.x, self.y = x, y
        xs = [p[0] for points in lines.values() for p in points]
        ys = [p[1] for points in lines.values() for p in points]
        self.xs = self.span(xs, 1.15)
        self.ys = self.span(ys, 1.3)

    @staticmethod
    def span(values, margin):
        low, high = min(values) / margin, max(values) * margin
        widen = max(1.0, 5 / (high / low)) ** 0.5  # room for two ticks
        return low / widen, high * widen

    def at(self, px, py):
        def part(value, span):
            return (math.log(value) - math.log(span[0])) / (math.log(span[1]) - math.log(span[0]))
        return (self.x + LEFT + part(px, self.xs) * (WIDTH - LEFT - RIGHT),
                self.y + HEIGHT - BOTTOM - part(py, self.ys) * (HEIGHT - TOP - BOTTOM))

    def frame(self, title, x_unit, y_unit, xs):
        left, right = self.x + LEFT, self.x + WIDTH - RIGHT
        bottom = self.y + HEIGHT - BOTTOM
        out = [text(left, self.y + 16, title, weight=600, size=12, fill=None),
               text(left, self.y + 29, y_unit, size=10),
               text(right, self.y + HEIGHT - 6, x_unit, size=10, anchor="end")]
        for t in ticks(*self.ys):
            _, y = self.at(self.xs[0], t)
            out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
            out.append(text(left - 5, y + 3.5, label(t), size=10, anchor="end"))
        for v in sorted(set(xs)):
            x, _ = self.at(v, self.ys[0])
            out.append(text(x, bottom + 14, short(v), size=10, anchor="middle"))
        return out

    def line(self, peer, threads, points, most):
        points = sorted(points)
        at = [self.at(*p) for p in points]
        dash = ' stroke-dasharray="5 4"' if threads < most else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        colour = COLOURS[peer]
        out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
        hollow = f'fill="none" stroke="{colour}" stroke-width="1.5"' if threads < most else f'fill="{colour}"'
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" {hollow}/>' for x, y in at]
        return out


def short(value):
    """An operation count as the eye wants it: 66k, 1.05M."""
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:g}"


def text(x, y, what, size=11, anchor="start", weight=400, fill=INK):
    colour = fill or "#6e7f96"
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{colour}">{escape(what)}</text>')


def legend(names, threads):
    entries = [(COLOURS[peer], "", name) for peer, name in names.items()]
    for t in threads:
        dash = ' stroke-dasharray="5 4"' if t < max(threads) else ""
        entries.append((INK, dash, f"{t} thread" + ("s" if t > 1 else "")))
    out, x = [], LEFT
    for colour, dash, what in entries:
        out.append(f'<line x1="{x:.0f}" x2="{x + 28:.0f}" y1="14" y2="14" stroke="{colour}" '
                   f'stroke-width="2"{dash}/>')
        out.append(text(x + 34, 18, what))
        x += 62 + 6.5 * len(what)
    return out


def page(panels, names):
    """panels: {(title, x unit, y unit): {(peer, threads): [(x, y)]}}; both axes are logarithmic."""
    threads = sorted({t for lines in panels.values() for _, t in lines})
    used = {p: n for p, n in names.items() if any(p == q for lines in panels.values() for q, _ in lines)}
    rows = math.ceil(len(panels) / COLUMNS)
    width, height = COLUMNS * WIDTH, 30 + rows * HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="system-ui, sans-serif">']
    out += legend(used, threads)
    for i, ((title, x_unit, y_unit), lines) in enumerate(panels.items()):
        panel = Panel(i % COLUMNS * WIDTH, 30 + i // COLUMNS * HEIGHT, lines)
        out += panel.frame(title, x_unit, y_unit, [p[0] for points in lines.values() for p in points])
        for (peer, t), points in sorted(lines.items()):
            out += panel.line(peer, t, points, max(threads))
    return "\n".join(out + ["</svg>"]) + "\n"
