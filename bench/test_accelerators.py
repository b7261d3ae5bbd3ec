"""Kernels, loops and bytes of compiled programs: of texts written by hand, and of presets."""

import re
from pathlib import Path

import pytest

from bench.accelerators import model
from bench.accelerators.__main__ import compile_case
from bench.accelerators.chips import CHIPS
from bench.accelerators.environment import ROOT, is_made, python_with_compilers
from bench.accelerators.kernels import Counts, count
from bench.tables import scaling
from bench.tables.accelerators import two_digits

TEXT = """
HloModule by_hand

%fused (p.0: f32[100,4], p.1: s32[]) -> f32[1,4] {
  %p.0 = f32[100,4]{1,0} parameter(0)
  %p.1 = s32[] parameter(1)
  ROOT %slice = f32[1,4]{1,0} dynamic-slice(%p.0, %p.1, %p.1), dynamic_slice_sizes={1,4}
}

%body (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %double = f32[4]{0} fusion(%x), kind=kLoop, calls=%pure
  ROOT %sum = f32[4]{0} all-reduce(%double), to_apply=%add
}

%pure (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %twice = f32[4]{0} add(%x, %x)
}

%counted (x: f32[4]) -> pred[] {
  %most = s32[] constant(7)
  %i = s32[] get-tuple-element(%x), index=0
  ROOT %less = pred[] compare(%i, %most), direction=LT
}

%open (x: f32[4]) -> pred[] {
  ROOT %any = pred[] fusion(%x), kind=kLoop, calls=%pure
}

%small (x: f32[4]) -> f32[4] {
  ROOT %copied = f32[4]{0} copy(%x)
}

%large (x: f32[4]) -> f32[4] {
  %one = f32[4]{0} copy(%x)
  ROOT %two = f32[4]{0} copy(%one)
}

ENTRY %main (x: f32[4], table: f32[100,4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %table = f32[100,4]{1,0} parameter(1)
  %i = s32[] parameter(2)
  %row = f32[1,4]{1,0} fusion(%table, %i), kind=kLoop, calls=%fused
  %a = f32[4]{0} while(%x), condition=%open, body=%body, config={"known_trip_count":{"n":"5"}}
  %b = f32[4]{0} while(%a), condition=%counted, body=%body
  %c = f32[4]{0} while(%b), condition=%open, body=%body
  ROOT %d = f32[4]{0} conditional(%i, %c, %c), branch_computations={%small, %large}
}
"""


def test_loops_are_multiplied_out_and_branches_told_apart():
    counts = count(TEXT)
    # One slice, 5 + 7 + 1 rounds of a kernel, the open condition, and the larger branch's two.
    assert counts.kernels == 1 + 13 + 1 + 2
    assert counts.branches == 1
    assert counts.rounds == 12
    assert counts.open_loops == 1
    assert counts.exchanges == 13


def test_bytes_are_those_that_kernels_read_and_write():
    row, vector = 16, 16
    # The slice reads a row of the table and its index; a copy or sum reads and writes a vector.
    expected = (row + row + 4) + 13 * 2 * vector
    branch = 2 * vector + vector  # the first copy's operand is a parameter without a size here
    condition = 1
    assert count(TEXT).bytes == expected + branch + condition


def test_a_text_without_an_entry_is_refused():
    with pytest.raises(ValueError, match="names its ENTRY"):
        count("HloModule empty\n")


def test_the_model_is_launches_or_bytes_and_waits():
    many = Counts(kernels=1000, bytes=8)._asdict()
    assert model.seconds("h100", many) == pytest.approx(1000 * model.LAUNCH)
    wide = Counts(kernels=1, bytes=CHIPS["t4"].bandwidth)._asdict()
    assert model.seconds("t4", wide) == pytest.approx(1 / model.MEMORY_SHARE)
    waits = Counts(kernels=1, open_loops=10)._asdict()
    assert model.seconds("h100", waits) == pytest.approx(model.LAUNCH + 10 * model.ROUND)
    assert model.seconds("v5e", waits) == pytest.approx(model.TPU_KERNEL)


def test_sums_over_devices_cost_their_latency_and_their_way_around_the_ring():
    link = CHIPS["h100"].links[8]
    expected = 3 * link.latency + 2 * 7 / 8 * 1e6 / link.bandwidth
    assert model.exchange_seconds("h100", 8, 3, 1e6) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("chip", "beginning", "end"),
    [
        ("h100", "of H100 a latency", "; of T4"),
        ("t4", "; of T4", "; of v5e"),
        ("v5e", "; of v5e", "."),
    ],
)
def test_the_page_tells_the_links_that_the_model_assumes(chip: str, beginning: str, end: str):
    text = " ".join((ROOT / "docs" / "accelerators.md").read_text(encoding="utf-8").split())
    numbers_text = text.partition(beginning)[2].partition(f"{end} ")[0]
    links = CHIPS[chip].links.values()
    numbers = (*(1e6 * x.latency for x in links), *(1e-9 * x.bandwidth for x in links))  # µs, GB/s
    expected = dict.fromkeys(f"{x:g}" for x in numbers)  # once, where both are as wide
    assert re.findall(r"[\d.]+(?= |$)", numbers_text) == list(expected)


@pytest.mark.parametrize(
    ("name", "row"), [("NVLink", "| NVLink,"), ("Ethernet", "| Ethernet,"), ("ICI", "| ICI,")]
)
def test_the_page_on_scale_assumes_the_same_links(name: str, row: str):
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    cells = page.partition(row)[2].partition("\n")[0].split("|")[1:]
    link, rate = scaling.LINKS[name]
    assert cells[0].split()[:2] == [f"{1e-9 * link.bandwidth:g}", "GB/s" + "," * (name == "ICI")]
    assert cells[1].split()[:2] == [f"{1e6 * link.latency:g}", "µs,"]
    if "same" not in cells[2]:
        assert cells[2].split()[0] == f"{1e-12 * rate:g}"
    assert cells[3].split()[0] == f"{round(rate / link.bandwidth):,}"


@pytest.fixture(scope="module")
def compilers() -> Path:
    """The Python of the environment that compiles for absent chips; no test downloads it."""
    if not is_made():
        pytest.skip("no compilers of other chips: `python -m bench.accelerators` downloads them")
    return python_with_compilers()


CEILINGS = {  # kernels a step of an environment, on one H100
    "gymnax:ppo": 2.0,
    "gymnax:ppo_wide": 0.15,
    "snake:ppo": 0.13,
    "gymnax:recurrent_wide": 0.4,
    "snake:ppo_wide": 0.0135,
    "two_snake:curriculum_wide": 0.05,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CEILINGS)
def test_an_update_for_an_h100_starts_no_more_kernels_and_no_loop_of_unknown_length(
    case: str, compilers: Path
):
    row = compile_case(compilers, (case, "h100", 1), parts=["update"])
    counts = row["update"]["counts"]
    assert counts["open_loops"] == 0
    assert counts["kernels"] / row["steps"] <= CEILINGS[case]


WIDE = (
    "snake:ppo_wide",
    "snake:pqn_wide",
    "two_snake:curriculum_wide",
    "durotaxis:linear_wide",
    "gymnax:ppo_wide",
    "gymnax:ppo_minatar_wide",
    "gymnax:recurrent_wide",
)


@pytest.mark.slow
@pytest.mark.parametrize("case", WIDE)
@pytest.mark.parametrize("chip", ["h100", "v5e"])
def test_eight_devices_exchange_nothing_but_sums(case: str, chip: str, compilers: Path):
    row = compile_case(compilers, (case, chip, 8), parts=["update"])
    assert row["update"]["counts"]["open_loops"] == 0
    assert row["update"]["exchanged_bytes"].keys() == {"all-reduce"}


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.0562, "0.056"), (0.5, "0.5"), (5.62, "5.6"), (98.7, "99"), (1234, "1,200")],
)
def test_rates_have_two_digits_also_below_one(rate: float, text: str):
    assert two_digits(rate) == text
