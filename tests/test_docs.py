"""The pages agree with the measurements, their links lead somewhere, and nothing is left out."""

import importlib
import json
import re
from pathlib import Path
from statistics import median

import pytest

from bench.tables import __main__ as tables
from bench.tables import modules, pages

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
PAGE_OF = {  # the page of each program that has presets
    "snake": "snake",
    "two_snake": "two_snakes",
    "durotaxis": "durotaxis",
    "allo": "allo",
    "vector_field": "active_dynamics",
    "gymnax": "common_ground",
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NOT_OURS = ("http://", "https://", "mailto:")


def anchors(page: Path) -> set[str]:
    """Where a page's headings can be linked to: an identifier of their own, or their words."""
    identifiers = set()
    for heading in re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE):
        identifier = re.search(r"\{ *#([\w-]+) *\}", heading)
        words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
        identifiers.add(identifier[1] if identifier else re.sub(r"\s+", "-", words))
    return identifiers


def test_tables_agree_with_the_measurements():
    differing_pages = [str(page.relative_to(ROOT)) for page in pages.changed_pages()]
    assert not differing_pages, "write them anew: python -m bench.tables"


def test_every_table_stands_on_a_page_and_every_mark_is_closed():
    text = "".join(page.read_text() for page in pages.all_pages())
    table_names = [name for _, name, _, _ in pages.MARKED.findall(text)]
    assert sorted(table_names) == sorted(pages.TABLES)
    assert text.count("<!-- table: ") == text.count("<!-- end -->") == len(table_names)


def test_check_reports_a_page_that_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text("before\n<!-- table: some -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "TABLES", {"some": lambda: "| new |"})
    assert tables.main(["--check"]) == 1
    assert "old" in page.read_text()
    assert tables.main([]) == 0
    assert page.read_text() == ("before\n<!-- table: some -->\n\n| new |\n\n<!-- end -->\nafter\n")
    assert tables.main(["--check"]) == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path):
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if link.startswith(NOT_OURS):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link} names no heading"


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_numbers_of_the_front_page_stand_on_the_page_that_it_names():
    """The column "here" of its results, each range with the number before it."""
    results = (ROOT / "README.md").read_text().partition("## Results")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in results.splitlines() if line.count(" | ") == 4]
    for _, _, here, _, details in rows[1:]:
        (path,) = re.findall(r"\((docs/\w+\.md)", details)
        page = re.sub(r"\s+", " ", (ROOT / path).read_text())
        ranges = re.findall(r"[\d.]+ \([\d.]+ to [\d.]+", here)
        numbers = re.findall(r"\d[\d.,]*\d", here)
        missing = [number for number in (*ranges, *numbers) if number not in page]
        assert not missing, f"{details} has no {missing}"
    assert len(rows) > 5


def test_kernels_of_the_wide_presets_are_those_of_the_table_of_all_presets():
    """Rounded there: half of the last digit that is shown may be between them."""
    page = (DOCS / "accelerators.md").read_text()
    lines = page.partition("<!-- table: accelerators -->")[2].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if "| NVIDIA H100" in line]
    kernels = {row[0].strip("`"): float(row[4]) for row in cells if len(row) > 4 and row[4]}
    rows = re.findall(r"^\| `(\w+:\w+)_wide`.* ([\d.]+) for ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) > 5
    for preset, *numbers in rows:
        for number, name in zip(numbers, (f"{preset}_wide", preset), strict=True):
            unit = 10.0 ** -len(number.partition(".")[2])
            assert abs(float(number) - kernels[name]) < 0.51 * unit, f"{name}: {number}"


def test_a_plan_of_the_sequence_vae_takes_what_was_measured_last():
    record = json.loads((ROOT / "bench/results/vector_field_speed.json").read_text())[-1]
    cases = [case for value in record.values() if isinstance(value, list) for case in value]
    rates = {(x["name"], x["experiments"]): median(x["steps_per_second"]) for x in cases}
    plan, every_step = rates["plan", 1], rates["sequence VAE, d_optimal, every step", 1]
    sentence = re.search(
        r"takes ([\d.]+) ms, so with one at [\w\s]+ ([\d,]+) steps a second",
        (DOCS / "speed.md").read_text(),
    )
    assert sentence
    assert sentence.groups() == (f"{1_000 / plan:.1f}", f"{every_step:,.0f}")


def test_commands_name_runs_that_a_reader_can_have():
    """A run is RUN or `runs/...`, not a folder of the author's."""
    named = re.compile(
        r"(?:--learned|--resume|train\.(?:render|report|evaluate)) ([^\s`|.-][^\s`]*)"
    )
    for page in PAGES:
        for run in named.findall(page.read_text()):
            assert re.match(r"runs/|\$|[A-Z]{2}|\[", run), f"{page.name}: {run} is no run"


@pytest.mark.parametrize("name", PAGE_OF)
def test_every_preset_is_explained_on_its_page(name: str):
    presets = importlib.import_module(f"train.{name}.program").PROGRAM.presets
    page = (DOCS / f"{PAGE_OF[name]}.md").read_text()
    section = page.partition("\n## Presets\n")[2].partition("\n## ")[0]
    explained_presets = re.findall(r"^\| `(\w+)`(?: \(default\))? \| \S", section, re.MULTILINE)
    assert explained_presets == list(presets)


def test_every_package_of_the_library_is_in_the_reference():
    reference_text = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    missing = [name for name in modules.tables() if f"<!-- table: {name} -->" not in reference_text]
    assert not missing, "give them a page in docs/api"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    names = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert not [page for page in names if f" {page}\n" not in navigation]
