"""Generated secrets outlive the process, whoever made them."""

from __future__ import annotations

import stat
from pathlib import Path

from launcher.files import Secrets


def test_two_objects_on_one_file_keep_each_others_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first, second = Secrets(path), Secrets(path)
    values = {"a": first.get("a"), "b": second.get("b"), "c": first.get("c")}
    again = Secrets(path)
    assert {name: again.get(name) for name in values} == values
    assert len(set(values.values())) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
