"""The card of a policy: what it is, how it was trained, its scores and its limits."""

import json
import shlex
from pathlib import Path
from typing import Any

from train.host import policy_files
from train.host.config import flag, plain
from train.host.defaults import beginning
from train.host.numbers import quantity
from train.host.program import Program, Run
from train.host.runs import with_evaluation

CARD = """# {name}

A policy of `{program}` with {count:,} parameters ({size:,.1f} kB). The file
`{name}.safetensors` holds the parameters that the trained agent acts with, and no state of training
such as optimizer or replay.

```
{looks}
```

## What it was trained on

{game}

## Training

```
{command}
```

{facts}

## Score

{scores}

## Limits

The scores hold only for the settings above; for others nothing is known but what a table here
says. The policy acts greedily and does not explore. It has no state of training: `--run.policy`
starts a new training from its parameters, and does not continue the old one.

## Licence

{licence}
"""
OF_OURS = "Apache-2.0, as the code that trained it."
OF_OTHERS = (
    "That of the code that trained it, a program outside of this library, whose author may choose."
)
MEASURES = ("score", "won", "arrived", "similarity", "return", "length", "steps_per_food")
"""The measures that a card shows after the program's own score, as far as a run has them."""


def card(
    path: Path,
    run: Run,
    content: dict[str, Any],
    counters: dict[str, Any],
    size: int,
    hardware: str,
) -> str:
    """The card as Markdown, for the file at `path`.

    `content` is the metadata of the file, `counters` are those of its checkpoint, `size` is in
    bytes; `hardware` may be empty.
    """
    program, name = run.program, path.stem
    trained, training = content["trained"], run.program.training(run.config)
    steps, unit = run.updates * training.steps_per_update, training.unit
    versions = ", ".join(f"{package} {version}" for package, version in trained["versions"].items())
    facts = {
        "Seed": f"{content['config']['run']['seed']}, of {run.config.run.num_seeds} side by side",
        unit[0].upper() + unit[1:]: f"{steps:,} in {quantity(run.updates, 'updates')}",
        "Training time": f"{duration(counters['seconds'])}, without compilation",
        "Hardware": hardware or trained["device"],
        "Versions": versions,
        **commit(program, trained["git"]),
    }
    return CARD.format(
        name=name,
        program=program.command.removeprefix("python -m "),
        count=size // 4,
        size=size / 1000,
        looks=looks(name if path.parent == policy_files.TRAINED else str(path), run),
        game=bullets(game(run.config)),
        command=command(run, content),
        facts=bullets(facts),
        scores="\n\n".join([*score(run, content["scores"]), *transfer(run, content)]),
        licence=OF_OURS if program.is_ours else OF_OTHERS,
    )


def game(config: Any) -> dict[str, Any]:
    """What a configuration says of the environment; without a part `env`, all but the run."""
    found = plain(getattr(config, "env", config))
    return {name: x for name, x in found.items() if name not in ("run", "agent", "loop")}


def commit(program: Program, git: str | None) -> dict[str, str]:
    """The commit of the library, as a fact; of a program elsewhere nothing is known."""
    known = (git or "unknown").replace("-dirty", ", with local changes")
    if program.is_ours:
        return {"Commit": known}
    return {"Commit of the library": known, "Program": f"`{program.address}`, of unknown version"}


def looks(policy: str, run: Run) -> str:
    """The commands that show what the policy, a name or a path, can do."""
    name = shlex.quote(policy)
    film, score = (
        f"python -m train.render --policy {name}",
        f"python -m train.evaluate --policy {name}",
    )
    width = len(score) + 2
    lines = [f"{film:<{width}}# a film"] if run.program.film else []
    return "\n".join([*lines, f"{score:<{width}}# its score in a thousand games"])


def duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def bullets(facts: dict[str, Any]) -> str:
    """A Markdown list, a line for each fact; nested facts share a line."""
    return "\n".join(f"- {name}: {in_a_line(value)}" for name, value in facts.items())


def in_a_line(value: Any) -> str:
    """Plain data as readable text in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_a_line(x)}" for name, x in value.items())
    if isinstance(value, list):
        return " ".join(map(in_a_line, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def command(run: Run, content: dict[str, Any]) -> str:
    """The command line that repeats the training, in a new directory."""
    config = with_evaluation(run.config, directory="", resume="")
    preset, default = beginning(run.program, content["preset"], config)
    changes = flags(plain(config), plain(default))
    return shlex.join([*run.program.command.split(), preset, *changes])


def flags(value: Any, default: Any, name: str = "") -> list[str]:
    """The flags that turn `default` into `value`, both plain data."""
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return [x for key in value for x in flags(value[key], default[key], f"{prefix}{key}")]
    if value == default:
        return []
    if isinstance(value, bool):
        *path, switch = name.split(".")
        return [flag(".".join([*path, switch if value else f"no-{switch}"]))]
    return [flag(name), *map(str, value if isinstance(value, list) else [value])]


def score(run: Run, found: dict[str, Any] | None) -> list[str]:
    """The scores in `eval.json`, as Markdown."""
    if found is None:
        how = " greedily" if run.plays_games else ""
        return [f"Its newest evaluation, if any, was not of these parameters acting{how}."]
    games = [f"{quantity(found['games'], 'complete games')}."] if "games" in found else []
    return [*games, score_table(run, {"": found}, "")]


def transfer(run: Run, content: dict[str, Any]) -> list[str]:
    """The scores on other boards in `transfer.json`, if they are of this agent acting greedily."""
    path, seed = run.directory / "transfer.json", content["config"]["run"]["seed"]
    found = json.loads(path.read_bytes()) if path.is_file() else {}
    if found.get("updates") != run.updates or not found["greedy"]:
        return []
    boards = {
        f"{board['rows']}×{board['cols']}, {quantity(board['max_steps'], 'steps')} at most": row
        for board in found["boards"]
        for row in board["seeds"]
        if row["seed"] == seed
    }
    about = f"On other boards, {found['rules']} rules, {quantity(found['games'], 'games')} each:"
    return [about, score_table(run, boards, "board")]


def score_table(run: Run, rows: dict[str, dict[str, Any]], heading: str) -> str:
    """Markdown: measures with their 95 % intervals, a line for each row."""
    measures = dict.fromkeys((run.program.training(run.config).score, *MEASURES))
    found = [name for name in measures if all(name in row for row in rows.values())]
    lines = [[heading, *(f"{name.replace('_', ' ')} (95 % interval)" for name in found)]]
    lines += [["---"] * len(lines[0])]
    lines += [[label, *(cell(row[name]) for name in found)] for label, row in rows.items()]
    if not heading:  # one row needs no name
        lines = [line[1:] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: dict[str, float] | float | None) -> str:
    """A number, or a summary as `scores.summary` makes it."""
    if not isinstance(value, dict):
        return "" if value is None else f"{value:.4g}"
    text = cell(value["mean"])
    if value.get("low") is not None:
        text += f" ({value['low']:.4g} to {value['high']:.4g})"
    if "median" in value:
        text += f", median {value['median']:.4g}, most {value['max']:.4g}"
    return text
