"""A report inside a notebook: `show(RUN)` as the last line of a cell."""

from pathlib import Path
from typing import Any

from train.report import __main__ as report


class InlinePage:
    """A page that notebooks show in a frame of its own."""

    def __init__(self, html: str, height: int):
        self.html, self.height = html, height

    def _repr_html_(self) -> str:
        page = self.html.replace("&", "&amp;").replace('"', "&quot;")
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe title="report" style="{style}" srcdoc="{page}"></iframe>'


def show(
    *runs: str | Path, policies: tuple[str, ...] = (), height: int = 900, **options: Any
) -> InlinePage:
    """The report of run directories and policies; `options` are those of `python -m train.report`.

    Raises UsageError for what cannot be shown.
    """
    report_options = report.Options(tuple(map(str, runs)), policies, **options)
    report.check_options(report_options)
    return InlinePage(report.build_page(report.load_runs(report_options), report_options), height)
