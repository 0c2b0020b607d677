"""Bar charts as SVG: geometry is worked out here, colours come from the style sheet, and no script is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.functional import Promise

Text = str | Promise

#: The coordinate system; the picture itself scales with its place.
WIDTH, HEIGHT = 900.0, 240.0
_LEFT, _BOTTOM, _TOP = 56.0, 24.0, 10.0


@dataclass(frozen=True)
class Bar:
    """One bar: where it is, and what it says when it is pointed at. `expected` bars are drawn lighter."""

    x: float
    y: float
    width: float
    height: float
    label: str
    expected: bool = False


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Everything that the template draws."""

    title: Text
    bars: Sequence[Bar]
    ticks: Sequence[Tick]
    names: Sequence[Tick]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    base: float = field(default=HEIGHT - _BOTTOM)


@dataclass(frozen=True)
class Point:
    """A value with its short name (below the bar) and its sentence."""

    name: str
    value: float
    label: str
    expected: bool = False


def bars(title: Text, points: Sequence[Point]) -> Chart | None:
    """A bar for each point; None without any."""
    if not points:
        return None
    step = _nice(max(point.value for point in points))
    top = step * max(1, math.ceil(max(point.value for point in points) / step)) if step else 1.0
    room, base = WIDTH - _LEFT, HEIGHT - _BOTTOM
    slot = room / len(points)
    width = max(1.0, min(slot * 0.72, 42.0))

    def height(value: float) -> float:
        return (base - _TOP) * value / top

    drawn = [
        Bar(
            round(_LEFT + slot * index + (slot - width) / 2, 2),
            round(base - height(point.value), 2),
            round(width, 2),
            round(height(point.value), 2),
            point.label,
            point.expected,
        )
        for index, point in enumerate(points)
    ]
    ticks = [
        Tick(round(base - height(step * n), 2), _short(step * n))
        for n in range(round(top / step) + 1 if step else 1)
    ]
    every = max(1, math.ceil(len(points) / 12))
    names = [
        Tick(round(_LEFT + slot * (index + 0.5), 2), point.name)
        for index, point in enumerate(points)
        if index % every == 0
    ]
    return Chart(title, drawn, ticks, names)


def _nice(largest: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, so that about four of them reach `largest`."""
    if largest <= 0:
        return 0.0
    rough = largest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1, 2, 5, 10):
        if rough <= factor * power:
            return factor * power
    return 10 * power


def _short(value: float) -> str:
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{suffix}"
    return f"{value:g}"
