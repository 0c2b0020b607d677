"""What a bench says: numbers beside their references and aims, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Aim:
    """A bound: on the value itself, on value / reference, or on value − reference."""

    of: Literal["value", "ratio", "difference"]
    most: float | None = None
    least: float | None = None

    def __str__(self) -> str:
        sign, bound = ("≤", self.most) if self.most is not None else ("≥", self.least)
        return f"{'' if self.of == 'value' else self.of + ' '}{sign} {bound:g}"


@dataclass(frozen=True, slots=True)
class Line:
    """`value` in `unit`; `reference` in the same unit is what `against` names."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    against: str = ""
    aim: Aim | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Value by reference."""
        return self.value / self.reference if self.reference else None

    @property
    def met(self) -> bool | None:
        """Whether the aim is reached; None without one."""
        if self.aim is None:
            return None
        found = {
            "value": self.value,
            "ratio": self.ratio,
            "difference": None if self.reference is None else self.value - self.reference,
        }[self.aim.of]
        if found is None:
            return None
        return found <= self.aim.most if self.aim.most is not None else found >= (self.aim.least or 0)

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "against": self.against,
            "ratio": self.ratio,
            "aim": asdict(self.aim) if self.aim else None,
            "met": self.met,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Line:
        """The line of which `as_json` made `fields`."""
        given = {name: fields[name] for name in ("name", "value", "unit", "reference", "against", "note")}
        return cls(aim=Aim(**fields["aim"]) if fields["aim"] else None, **given)


def table(rows: Sequence[tuple[str, Line]]) -> str:
    """(bench, line) as a Markdown table."""
    head = ("bench", "measured", "value", "reference", "ratio", "aim", "")
    body = [
        (
            bench,
            line.name,
            _number(line.value, line.unit),
            f"{_number(line.reference, line.unit)} ({line.against})" if line.reference is not None else "",
            "" if line.ratio is None else f"{line.ratio:.3g}",
            str(line.aim or ""),
            {True: "met", False: "MISSED", None: ""}[line.met],
        )
        for bench, line in rows
    ]
    widths = [max(len(row[column]) for row in (head, *body)) for column in range(len(head))]
    lines = [_row(head, widths), _row(["-" * width for width in widths], widths)]
    return "\n".join([*lines, *(_row(row, widths) for row in body)])


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f} {unit}".strip() if abs(value) >= 1000 else f"{value:.3g} {unit}".strip()
