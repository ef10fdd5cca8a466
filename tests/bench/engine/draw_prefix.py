#!/usr/bin/env python3
"""draw_prefix.py CSV SVG: the curve of bench_engine_prefix_trace.

The curve is the share of prompt tokens found, by the size of the pool.
"""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 320, 60, 48, 24, 20


def main(source, target):
    with open(source) as f:
        rows = [(int(r["pages"]), float(r["found"]), int(r["refused"])) for r in csv.DictReader(f)]
    infinite = rows[-1][1]
    low, high = math.log2(rows[0][0]), math.log2(rows[-1][0])
    top = math.ceil(infinite * 10) / 10

    def x(pages):
        return LEFT + (math.log2(pages) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(found):
        return HEIGHT - BOTTOM - found / top * (HEIGHT - BOTTOM - TOP)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12" fill="#7d8590">',
    ]
    for i in range(int(round(top * 10)) + 1):
        at = y(i / 10)
        out.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#7d859044"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{i * 10} %</text>')
    for pages, _, _ in rows[:-1:2]:
        out.append(f'<text x="{x(pages):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                   f'{pages * 64 / 1e6:.2g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
               'pool, million tokens</text>')
    points = " ".join(f"{x(p):.1f},{y(f):.1f}" for p, f, _ in rows)
    out.append(f'<line x1="{LEFT}" y1="{y(infinite):.1f}" x2="{WIDTH - RIGHT}" y2="{y(infinite):.1f}" '
               'stroke="#7d8590" stroke-dasharray="4 3"/>')
    out.append(f'<text x="{LEFT + 6}" y="{y(infinite) - 6:.1f}">an infinite pool finds {infinite:.1%}</text>')
    out.append(f'<polyline points="{points}" fill="none" stroke="#2f81f7" stroke-width="2"/>')
    out += [f'<circle cx="{x(p):.1f}" cy="{y(f):.1f}" r="3" fill="#2f81f7"/>' for p, f, _ in rows]
    out.append("</svg>")
    with open(target, "w") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
