"""What `collectstatic` makes of the small files: one sheet and one script, under names that are kept for good."""

from __future__ import annotations

import json
import re

import pytest
from django.core.management import call_command

from config.static import join_modules

FILES = {
    "js/app.js": 'import { hello } from "./b.js";\nimport "./c.js";\nhello();\n',
    "js/b.js": "let greeted = 0;\n\nexport function hello() {\n  greeted += 1;\n}\n",
    "js/c.js": 'import { hello } from "./b.js";\nconst greeted = hello;\nexport class Other {}\n',
}


def test_modules_keep_names_of_their_own():
    joined = join_modules("js/app.js", FILES.__getitem__)
    assert re.findall(r'^modules\["(\w)', joined, re.MULTILINE) == ["b", "c", "a"], (
        "what is needed comes first, once"
    )
    assert 'const { hello } = modules["b.js"];' in joined
    assert "return { Other };" in joined
    assert "export" not in joined
    assert "import" not in joined


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('import * as b from "./b.js";\n', "cannot be joined"),
        ('export default 1;\nimport "./b.js";\n', "cannot be joined"),
        ('await import("./b.js");\n', "cannot be joined"),
        ('import "./d.js";\n', "need each other: app.js → d.js → app.js"),
    ],
)
def test_what_it_does_not_know_is_refused(source, words):
    files = FILES | {"js/app.js": source, "js/d.js": 'import "./app.js";\n'}
    with pytest.raises(ValueError, match=words):
        join_modules("js/app.js", files.__getitem__)


def test_collected(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "config.static.Storage"}}
    for _time in range(2):  # over what an earlier version left as well
        call_command("collectstatic", "--noinput", verbosity=0)
    names = json.loads((tmp_path / "staticfiles.json").read_text())["paths"]
    script = (tmp_path / names["chorus/js/app.js"]).read_text()
    assert "recorder.js" in script
    sheet = (tmp_path / names["chorus/css/app.css"]).read_text()
    assert "@media" in sheet
    assert not re.search(r"url\(\"?\.\./chevron\.svg", sheet), "what it refers to has a digest as well"
    assert (tmp_path / f"{names['chorus/css/app.css']}.gz").exists()
