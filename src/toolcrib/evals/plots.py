"""Small plots as inline SVG: a line with marks, a histogram, a bar. No scripts, no fonts, no colours of their own.

Above: `page.py`, whose style sheet has the classes. A plot is 360 units wide, which is a phone; it grows with the page.

Invariants
1. Every text is escaped here. Everything is told by position, length or shape as well as by colour: a printer has none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from toolcrib.review.text import show

WIDTH, HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 12, 14, 34
_CHAR = 6.2
"""Width of a character of an 11 unit font, to keep labels inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A named point beside a line. `x`: tokens, above 0. `y`: 0 to 1."""

    name: str
    x: float
    y: float


def text(value: object) -> str:
    """Any value as text for HTML: hidden characters shown, the rest escaped."""
    return escape(show(str(value)), quote=True)


def breaking(value: object) -> str:
    """As `text`, for ids: a line may break after a dot, slash, dash or underscore."""
    return re.sub(r"([._/-])(?=\w)", r"\1<wbr>", text(value))


def curve(
    points: Sequence[tuple[float, float]],
    marks: Sequence[Mark],
    *,
    others: Sequence[Sequence[tuple[float, float]]] = (),
    title: str,
    x_label: str,
) -> str:
    """Shares over a logarithmic axis, with marks, each numbered; the page lists their names.

    Args:
        points: (x, y), x above 0 and rising, y from 0 to 1. others: lines to compare with, over the same x.
    """
    every_x = [x for x, _y in points] + [mark.x for mark in marks if mark.x > 0]
    low, high = math.log10(min(every_x)), math.log10(max(every_x))
    span = max(high - low, 0.3)

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (math.log10(x) - low) / span * (WIDTH - _LEFT - _RIGHT)
        return across, HEIGHT - _BOTTOM - y * (HEIGHT - _TOP - _BOTTOM)

    parts = _shares_axis()
    last = -math.inf
    for decade in _ticks(low, low + span):
        across, _ = at(decade, 0)
        if across - last < 34 or across > WIDTH - _RIGHT + 1:
            continue
        last = across
        parts.append(f'<line class="grid" x1="{across:.1f}" y1="{_TOP}" x2="{across:.1f}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(_label(across, HEIGHT - _BOTTOM + 14, _short(decade), anchor="middle"))
    parts.append(_label((WIDTH + _LEFT) / 2, HEIGHT - 4, x_label, anchor="middle"))
    for line in others:
        placed = [at(x, y) for x, y in line]
        parts.append(f'<polyline class="other" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>')
    placed = [at(x, y) for x, y in points]
    parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>')
    for (x, y), (given, height) in zip(placed, points, strict=True):
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>')
        parts.append(f"{text(_short(given))}: {100 * height:.1f} %</title></circle>")
    for number, mark in enumerate((m for m in marks if m.x > 0), start=1):
        x, y = at(mark.x, mark.y)
        parts.append(f'<rect class="mark" x="{x - 7:.1f}" y="{y - 7:.1f}" width="14" height="14">')
        parts.append(f"<title>{text(mark.name)}: {100 * mark.y:.1f} %</title></rect>")
        parts.append(f'<text class="in-mark" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number}</text>')
    return _svg(parts, title=title)


def histogram(values: Sequence[float], *, title: str, x_label: str, n_bars: int = 24) -> str:
    """How often values fall where; the last bar holds all from the 99th percentile on.

    Args:
        values: 0 or more, at least one.
    """
    ordered = sorted(values)
    end = max(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1e-9)
    counts = [0] * n_bars
    for value in ordered:
        counts[min(n_bars - 1, int(value / end * n_bars))] += 1
    most = max(counts)
    wide = (WIDTH - _LEFT - _RIGHT) / n_bars
    parts = [
        _label(_LEFT - 5, _TOP + 4, str(most), anchor="end"),
        _label(_LEFT - 5, HEIGHT - _BOTTOM, "0", anchor="end"),
    ]
    for place, count in enumerate(counts):
        high = count / most * (HEIGHT - _TOP - _BOTTOM)
        parts.append(
            f'<rect class="bar" x="{_LEFT + place * wide + 0.5:.1f}" y="{HEIGHT - _BOTTOM - high:.1f}" '
            f'width="{wide - 1:.1f}" height="{high:.1f}"><title>{count} from {place * end / n_bars:.2f}</title></rect>'
        )
    parts.append(
        f'<line class="axis" x1="{_LEFT}" y1="{HEIGHT - _BOTTOM}" x2="{WIDTH - _RIGHT}" y2="{HEIGHT - _BOTTOM}"/>'
    )
    for part in (0.0, 0.5, 1.0):
        x = _LEFT + part * (WIDTH - _LEFT - _RIGHT)
        anchor = "start" if part == 0 else "end" if part == 1 else "middle"
        parts.append(_label(x, HEIGHT - _BOTTOM + 14, f"{part * end:.2g}", anchor=anchor))
    parts.append(_label((WIDTH + _LEFT) / 2, HEIGHT - 4, x_label, anchor="middle"))
    return _svg(parts, title=title)


def bar(share: float, *, low: float | None = None, high: float | None = None) -> str:
    """A share as a bar of a table's cell, 0 to 1, with its interval as a thin line over it."""
    parts = [
        '<rect class="track" x="0" y="3" width="100" height="8"/>',
        f'<rect class="bar" x="0" y="3" width="{100 * max(0.0, min(1.0, share)):.1f}" height="8"/>',
    ]
    if low is not None and high is not None:
        left, right = (100 * max(0.0, min(1.0, end)) for end in (low, high))
        parts.append(f'<line class="whisker" x1="{left:.1f}" y1="7" x2="{right:.1f}" y2="7"/>')
        parts += [f'<line class="whisker" x1="{x:.1f}" y1="3" x2="{x:.1f}" y2="11"/>' for x in (left, right)]
    return (
        f'<svg class="cell" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">{"".join(parts)}</svg>'
    )


def _shares_axis() -> list[str]:
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)
        kind = "axis" if share == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        parts.append(_label(_LEFT - 5, y + 4, f"{100 * share:.0f}", anchor="end"))
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between two logarithms."""
    decades = range(math.floor(low), math.ceil(high) + 1)
    every = [step * 10.0**decade for decade in decades for step in (1, 2.5, 5)]
    return [value for value in every if low - 1e-9 <= math.log10(value) <= high + 1e-9]


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.3g}M"
    return f"{value / 1_000:.3g}k" if value >= 1_000 else f"{value:.3g}"


def _label(x: float, y: float, words: str, *, anchor: str) -> str:
    most = int(WIDTH / _CHAR)
    shown = words if len(words) <= most else words[: most - 1] + "…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(shown)}</text>'


def _svg(parts: Sequence[str], *, title: str) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}">{"".join(parts)}</svg>'
    )
