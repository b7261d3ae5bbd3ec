"""Names say what a thing is: no function is called by a bare participle, no variable `found`.

A function is a verb or the noun of its result, a variable what it holds, and a docstring begins
with a subject or a verb. Names that are exceptions stand below with their reasons.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("jaxrl", "envs", "train", "bench", "tests")
PARTICIPLE = re.compile(
    "begun|chosen|drawn|found|given|grown|held|kept|known|leapt|left|made|said|seen|shown|taken|"
    "told|worn|written|[a-z]+ed"
)
VAGUE = re.compile("asked|found|given|kept|known|made|said|seen|shown|told|wanted")
IN_MID_AIR = ("As", "For", "Like", "Of", "That", "Those", "With")
VERBS_AND_NOUNS = {"embed", "feed", "need", "seed", "speed"}
TERMS = {"masked", "reversed", "sorted"}
"""Participles that NumPy and Python call their own functions by."""
SAVED = {  # file: fields of saved states and of flags, which keep their names for what is on disk
    "jaxrl/dynamics/learners/field_model.py": {"known"},
    "jaxrl/dynamics/learners/sequence_vae.py": {"known"},
    "jaxrl/dynamics/learners/state_space_learner.py": {"known"},
    "jaxrl/dynamics/planning/distillation.py": {"seen"},
    "jaxrl/dynamics/state_space/fitting/fit.py": {"known"},
}


def offenders(source: str) -> Iterator[str]:
    """Names of a source that say how instead of what, and docstrings without a subject or verb."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            if is_participle(node.name.strip("_")):
                yield f"{node.name}()"
            first = (ast.get_docstring(node) or "").partition(" ")[0]
            if first in IN_MID_AIR:
                yield f'{node.name}: "{first} ..."'
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) if VAGUE.fullmatch(name):
                yield name


def is_participle(name: str) -> bool:
    return bool(PARTICIPLE.fullmatch(name)) and name not in VERBS_AND_NOUNS | TERMS


def test_names_say_what_things_are():
    wrong = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        names = set(offenders(path.read_text(encoding="utf-8"))) - SAVED.get(name, set())
        if names:
            wrong[name] = sorted(names)
    assert wrong == {}


def test_exceptions_are_needed():
    for name, exceptions in SAVED.items():
        assert exceptions <= set(offenders((ROOT / name).read_text(encoding="utf-8"))), name


def test_offenders_are_seen():
    source = 'def told(found):\n    """Of a run."""\n    kept = [made for made in found]\n'
    assert list(offenders(source)) == ["told()", 'told: "Of ..."', "found", "kept", "made"]
    assert list(offenders("def tell(text):\n    seed = is_known = text\n")) == []
