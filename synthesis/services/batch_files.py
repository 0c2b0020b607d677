"""Files of a batch, CSV or JSON Lines, read into rows: every value of the type that a submission wants.

What is wrong is gathered rather than raised one by one, so that whoever made the file mends it in one go.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from accounts import strict_json
from accounts.errors import ChorusError, InvalidInput

#: Bytes of a file, and rows in it. 10,000 rows are a day of speech on one GPU.
FILE_BYTES = 16 * 1024 * 1024
MOST_ROWS = 10_000
#: Problems that one answer tells; all are counted.
MOST_PROBLEMS = 50
KINDS = ("csv", "jsonl")
#: Columns of a CSV, fields of a JSON line.
COLUMNS = ("voice", "text", "format", "speed", "language", "instruction", "seed", "title")
#: What can be said once for all rows.
DEFAULTS = ("voice", "format", "speed", "language", "instruction", "seed")
_WORDS = ("voice", "text", "format", "language", "instruction", "title")
#: Half of a pair: JSON can say it, and nobody can write it down again.
_LONE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[+-]?(\d{1,9}(\.\d{0,17})?|\.\d{1,17})", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """One text: its number without empty lines, the line of the file where it begins, what is said in it."""

    number: int
    line: int
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in one place; row 0 is the line of column names."""

    row: int
    line: int
    column: str
    code: str
    message: str

    def __str__(self) -> str:
        if not self.row:
            return _("Line %(line)d: %(message)s") % {"line": self.line, "message": self.message}
        place = _("Row %(row)d (line %(line)d)") % {"row": self.row, "line": self.line}
        return f"{place}, {self.column}: {self.message}" if self.column else f"{place}: {self.message}"


@dataclass
class Problems:
    """The first MOST_PROBLEMS that were found, and how many there are."""

    first: list[Problem] = field(default_factory=list)
    count: int = 0
    rows: set[int] = field(default_factory=set)

    def add(self, row: int, line: int, column: str, error: ChorusError) -> None:
        """Note one."""
        self.count += 1
        self.rows.add(row)
        if len(self.first) < MOST_PROBLEMS:
            self.first.append(Problem(row, line, column, error.code, str(error)))

    def raise_any(self) -> None:
        """InvalidInput (`batch_invalid`) that tells them, if there are any."""
        if not self.first:
            return
        # Some are found while the file is read, others when each row is looked at.
        self.first.sort(key=lambda one: (one.row, one.line))
        first = self.first[0]
        message = str(first)
        if self.count > 1:
            message = _("%(first)s There are %(count)d problems in all; nothing was queued.") % {
                "first": message,
                "count": self.count,
            }
        raise InvalidInput(
            message,
            code="batch_invalid",
            param=first.column or "file",
            row=first.row,
            line=first.line,
            problems_total=self.count,
            problems=[
                {
                    "row": one.row,
                    "line": one.line,
                    "column": one.column or None,
                    "code": one.code,
                    "message": one.message,
                }
                for one in self.first
            ],
        )


def read(data: bytes, *, kind: str = "", problems: Problems) -> list[Row]:
    """The rows of a file; what is wrong in them goes to `problems`. `kind` is one of KINDS, or empty: as it looks.

    Raises InvalidInput for what is no such file at all: `batch_too_large`, `batch_not_utf8`, `batch_empty`,
    `batch_too_many_rows`.
    """
    if len(data) > FILE_BYTES:
        raise InvalidInput(
            _("The file is larger than %(max)d MiB. Split it.") % {"max": FILE_BYTES // 2**20},
            code="batch_too_large",
            param="file",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(
            _("The file is not UTF-8. In a spreadsheet program, save it as “CSV UTF-8”."),
            code="batch_not_utf8",
            param="file",
        ) from None
    kind = kind or ("jsonl" if text.lstrip().startswith("{") else "csv")
    rows = []
    for row in (_read_jsonl if kind == "jsonl" else _read_csv)(text, problems):
        rows.append(row)
        if len(rows) > MOST_ROWS:
            raise InvalidInput(
                _("The file has more than %(max)d rows. Split it.") % {"max": MOST_ROWS},
                code="batch_too_many_rows",
                param="file",
            )
    if not rows and not problems.count:
        raise InvalidInput(_("There is no row in the file."), code="batch_empty", param="file")
    return rows


def read_defaults(given: dict[str, str]) -> dict[str, Any]:
    """What is said once for all rows, from a form or an address, as a submission wants it. InvalidInput."""
    problems = Problems()
    values = _from_cells(given, 0, 0, problems)
    if problems.first:
        first = problems.first[0]
        raise InvalidInput(first.message, code=first.code, param=first.column)
    return values


# --- CSV (RFC 4180) -----------------------------------------------------------------------------------------------


def _read_csv(text: str, problems: Problems) -> Iterator[Row]:
    # Lines end as the file has them: a line break inside of quotes belongs to the text.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    names: list[str] | None = None
    number, line = 0, 1
    try:
        for cells in reader:
            begins, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = [cell.strip().lower() for cell in cells]
                if not _check_names(names, begins, problems):
                    return
                continue
            number += 1
            if any(cell.strip() for cell in cells[len(names) :]):
                problems.add(number, begins, "", _too_many_cells(len(cells), len(names)))
                continue
            given = dict(zip(names, cells, strict=False))
            yield Row(number, begins, _from_cells(given, number, begins, problems))
    except csv.Error as error:
        if "field limit" in str(error):
            problem = InvalidInput(
                _("A cell has more than %(max)d characters. Split its text, or check the quotation marks.")
                % {"max": csv.field_size_limit()},
                code="csv_cell_too_long",
            )
        else:
            problem = InvalidInput(
                _("This is no CSV: %(reason)s. Check the quotation marks.") % {"reason": error},
                code="csv_malformed",
            )
        problems.add(number + 1 if names else 0, line, "", problem)


def _delimiter(text: str) -> str:
    """Comma; or what spreadsheets write elsewhere: semicolon, tab."""
    first = text.lstrip().partition("\n")[0]
    return max(",;\t", key=first.count)


def _check_names(names: Sequence[str], line: int, problems: Problems) -> bool:
    before = problems.count
    for name in dict.fromkeys(names):
        if name and name not in COLUMNS:
            problems.add(0, line, name, _unknown(name))
        elif name and list(names).count(name) > 1:
            message = _("The column “%(name)s” is there twice.") % {"name": name}
            problems.add(0, line, name, InvalidInput(message, code="column_twice"))
    if "text" not in names:
        message = _("There is no column “text”. The first line names the columns: %(all)s.") % {
            "all": ", ".join(COLUMNS)
        }
        problems.add(0, line, "text", InvalidInput(message, code="missing_field"))
    return problems.count == before


def _too_many_cells(found: int, names: int) -> InvalidInput:
    return InvalidInput(
        _("It has %(found)d cells for %(names)d columns. A text with commas needs quotation marks around it.")
        % {"found": found, "names": names},
        code="csv_too_many_cells",
    )


def _from_cells(given: dict[str, str], row: int, line: int, problems: Problems) -> dict[str, Any]:
    """Strings as numbers where a number belongs. An empty cell says nothing."""
    values: dict[str, Any] = {}
    for name, cell in given.items():
        if not cell.strip() or not name:
            continue
        if name == "text":
            values[name] = cell
        elif name == "speed" and _NUMBER.fullmatch(cell.strip()):
            values[name] = float(cell)
        elif name == "seed" and _WHOLE.fullmatch(cell.strip()):
            values[name] = int(cell)
        elif name in _WORDS:
            values[name] = cell.strip()
        else:
            problems.add(row, line, name, _not_a(name))
    return values


# --- JSON Lines ---------------------------------------------------------------------------------------------------


def _read_jsonl(text: str, problems: Problems) -> Iterator[Row]:
    number = 0
    # Not `splitlines`: U+2028 and its like are allowed inside of JSON strings.
    for line, entry in enumerate(text.split("\n"), start=1):
        if not entry.strip():
            continue
        number += 1
        try:
            value = strict_json.loads(entry)
        except ValueError as error:
            message = _("This is no JSON: %(reason)s.") % {"reason": error}
            problems.add(number, line, "", InvalidInput(message, code="malformed_json"))
            yield Row(number, line, {})
            continue
        if not isinstance(value, dict):
            message = _("Each line holds one object: {…}.")
            problems.add(number, line, "", InvalidInput(message, code="malformed_json"))
            yield Row(number, line, {})
            continue
        yield Row(number, line, _from_object(value, number, line, problems))


def _from_object(given: dict[str, Any], row: int, line: int, problems: Problems) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name == "voice" and isinstance(value, dict):
            value = value.get("id")
        if name not in COLUMNS:
            shown = name[:64].encode(errors="replace").decode()
            problems.add(row, line, shown, _unknown(shown))
        elif value is None:
            continue
        elif not _fits(name, value):
            problems.add(row, line, name, _not_a(name))
        else:
            values[name] = float(value) if name == "speed" else value
    return values


def _fits(name: str, value: Any) -> bool:
    if name == "text":  # whose characters `submission.plan` looks at
        return isinstance(value, str)
    if name in _WORDS:
        return isinstance(value, str) and "\0" not in value and _LONE.search(value) is None
    if isinstance(value, bool):
        return False
    if name == "seed":
        return isinstance(value, int)
    return isinstance(value, float | int) and abs(value) < 1e9 and math.isfinite(value)


def _unknown(name: str) -> InvalidInput:
    return InvalidInput(
        _("“%(name)s” is not known here. There are: %(all)s.") % {"name": name, "all": ", ".join(COLUMNS)},
        code="column_unknown",
    )


def _not_a(name: str) -> InvalidInput:
    if name in _WORDS:
        return InvalidInput(_("This must be text."), code="invalid_value")
    if name == "seed":
        return InvalidInput(_("This must be a whole number."), code="invalid_value")
    return InvalidInput(_("This must be a number, such as 1.25."), code="invalid_value")
