"""The page of a report: one file with its style, its scripts and its data."""

import json
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

from train.host.files.whole_files import finite_or_null

PARTS = Path(__file__).parent / "page"
REPORT = PARTS / "report.js"
SHARED = ("elements", "arrays", "charts", "bars", "player")
"""Scripts in the order in which they need each other; those of programs and the last one follow."""


def html(title: str, content: dict[str, Any], scripts: Iterable[Path], last: Path = REPORT) -> str:
    """The whole page. `scripts` draw the episodes of `content`; `last` puts the page together."""
    names = [*(PARTS / f"{name}.js" for name in SHARED), *dict.fromkeys(scripts)]
    code = "\n".join(path.read_text(encoding="utf-8") for path in [*names, last])
    return Template((PARTS / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape_html(title),
        style=(PARTS / "style.css").read_text(encoding="utf-8"),
        data=as_json(content),
        script=code,
    )


def as_json(content: dict[str, Any]) -> str:
    """JSON that cannot end the element of a page that holds it."""
    return json.dumps(finite_or_null(content), separators=(",", ":")).replace("<", "\\u003c")


def escape_html(text: str) -> str:
    """Text for HTML; what is no text, as in the name of a folder of another encoding, is `?`."""
    text = text.encode(errors="replace").decode()
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
