"""The card of a policy: what it is, how it was trained, its scores and its limits."""

import json
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from train.host.command_line.command import idle_fields
from train.host.command_line.repetition import training_command
from train.host.files import policy_files
from train.host.files.provenance import files_of
from train.host.numbers import digits_text, quantity
from train.host.plain_config import plain
from train.host.program import Run

CARD = """# {name}

A policy of `{program}` with {count:,} parameters ({size:,.1f} kB). The file
`{name}.safetensors` holds the parameters that the trained agent acts with, and no state of training
such as optimizer or replay.

{looks}

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

{limits}

## Licence

{licence}
"""
ACTING = """```python
import train

policy = train.load({policy})
action, memory = policy.act(obs, memory)  # memory None begins an episode; policy.env is its world
```"""
OF_OURS = "Apache-2.0, as the code that trained it."
OPEN = "None is named here: whoever trained the policy chooses it."
MEASURES = ("score", "won", "arrived", "similarity", "return", "length", "steps_per_food")
"""The measures that a card shows after the program's own score, as far as a run has them."""


class Source(NamedTuple):
    """Where a policy comes from."""

    run: Run
    counters: dict[str, Any]  # of its checkpoint
    hardware: str = ""  # that it was trained on; empty: the device that the run recorded
    licence: str = OPEN
    is_best: bool = False  # of the run, while it trained


def card(path: Path, source: Source, content: dict[str, Any], arrays: dict[str, Any]) -> str:
    """The card as Markdown, for the file at `path` with the metadata `content` and the `arrays`."""
    run, name = source.run, path.stem
    policy = name if path.parent == policy_files.TRAINED else str(path)
    return CARD.format(
        name=name,
        program=run.program.command.removeprefix("python -m "),
        count=sum(x.size for x in arrays.values()),
        size=sum(x.nbytes for x in arrays.values()) / 1000,
        looks=usage(policy, run),
        game=bullets(game(run)),
        command=training_command(run, content["preset"]),
        facts=bullets(facts(source, content)),
        scores="\n\n".join([*score(run, content["scores"]), *transfer(run, content)]),
        limits=textwrap.fill(" ".join(limits(run)), 100, break_on_hyphens=False),
        licence=source.licence,
    )


def facts(source: Source, content: dict[str, Any]) -> dict[str, Any]:
    """How a policy was trained, as far as that is known."""
    run, trained = source.run, content["trained"]
    program, training = run.program, run.program.training(run.config)
    unit, updates = training.unit, content["updates"]
    steps = f"{updates * training.steps_per_update:,} in {quantity(updates, 'updates')}"
    seed, count = content["config"]["run"]["seed"], run.config.run.num_seeds
    seconds = f"{duration(source.counters['seconds'])}, without compilation"
    git = (trained["git"] or "").replace("-dirty", ", with local changes")
    return {
        "Seed": f"{seed}, of {count} side by side" if count > 1 else seed,
        unit[0].upper() + unit[1:]: steps,
        "Chosen": "the best of the scores while training" if source.is_best else "",
        "Training time": f"{seconds}, of the whole run" if source.is_best else seconds,
        "Hardware": source.hardware or trained["device"],
        "Versions": ", ".join(f"{package} {x}" for package, x in trained["versions"].items()),
        "Commit of the library": git,
        "Program": "" if program.is_ours else f"`{program.address}`, of unknown version",
    }


def game(run: Run) -> dict[str, Any]:
    """What a configuration says of the environment; without a part `env`, all but the run.

    What has no effect is left out; files of data that take its place are named.
    """
    config, idle = run.config, idle_fields(run.program, run.config)
    place = "env." if hasattr(config, "env") else ""
    files = files_of(config) if place else {}
    data = {name: text for name, text in files.items() if not name.startswith(place)}
    others = {"run", "agent", "loop"}
    return data | {
        name: value
        for name, value in plain(getattr(config, "env", config)).items()
        if name not in others and f"{place}{name}" not in idle
    }


def usage(policy: str, run: Run) -> str:
    """How to use the policy, a name or a path: commands and, if it acts, a few lines of Python."""
    name = shlex.quote(policy)
    film, score = (f"python -m train.{x} --policy {name}" for x in ("render", "evaluate"))
    width = len(score) + 2
    comment = "# its score in a thousand games" if run.plays_games else "# its score"
    lines = [f"{film:<{width}}# a film"] if run.program.views.film else []
    commands = "\n".join(["```", *lines, f"{score:<{width}}{comment}", "```"])
    blocks = [commands]
    if run.program.training(run.config).player is not None:
        blocks.append(ACTING.format(policy=json.dumps(policy, ensure_ascii=False)))
    if not run.program.is_ours:
        blocks.append(f"All this needs jaxrl, and the module `{run.program.address}`.")
    return "\n\n".join(blocks)


def limits(run: Run) -> Iterator[str]:
    """Sentences on what is not known of the policy, and what it does not do."""
    yield "The scores hold only for the settings above;"
    yield "for others nothing is known but what a table here says."
    if not run.plays_games:
        return
    yield "The policy acts greedily and does not explore."
    yield "It has no state of training: `--run.policy` starts a new training from its parameters,"
    yield "and does not continue the old one."


def duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def bullets(facts: dict[str, Any]) -> str:
    """A Markdown list, a line for each fact; nested facts share a line.

    What is empty is left out.
    """
    lines = {name: one_line(value) for name, value in facts.items()}
    return "\n".join(f"- {name}: {line}" for name, line in lines.items() if line)


def one_line(value: Any) -> str:
    """Plain data as readable text in one line."""
    if isinstance(value, dict):
        lines = {name: one_line(x) for name, x in value.items()}
        return ", ".join(f"{name} {line}" for name, line in lines.items() if line)
    if isinstance(value, list):
        return " ".join(map(one_line, value))
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def score(run: Run, evaluation: dict[str, Any] | None) -> list[str]:
    """The scores in `eval.json`, as Markdown."""
    if evaluation is None:
        how = " greedily" if run.plays_games else ""
        return [f"No evaluation of these parameters acting{how} is known."]
    games = [f"{quantity(evaluation['games'], 'complete games')}."] if "games" in evaluation else []
    return [*games, score_table(run, {"": evaluation}, "")]


def transfer(run: Run, content: dict[str, Any]) -> list[str]:
    """The scores on other boards in `transfer.json`, if they are of this agent acting greedily."""
    path, seed = run.directory / "transfer.json", content["config"]["run"]["seed"]
    result = json.loads(path.read_bytes()) if path.is_file() else {}
    if result.get("updates") != run.updates or not result["greedy"]:
        return []
    boards = {
        f"{board['rows']}×{board['cols']}, {quantity(board['max_steps'], 'steps')} at most": row
        for board in result["boards"]
        for row in board["seeds"]
        if row["seed"] == seed
    }
    about = f"On other boards, {result['rules']} rules, {quantity(result['games'], 'games')} each:"
    return [about, score_table(run, boards, "board")]


def score_table(run: Run, rows: dict[str, dict[str, Any]], heading: str) -> str:
    """Markdown: measures with their 95 % intervals, a line for each row."""
    measures = dict.fromkeys((run.program.training(run.config).score.name, *MEASURES))
    columns = [name for name in measures if all(name in row for row in rows.values())]
    lines = [[heading, *(f"{name.replace('_', ' ')} (95 % interval)" for name in columns)]]
    lines += [["---"] * len(lines[0])]
    lines += [[label, *(cell(row[name]) for name in columns)] for label, row in rows.items()]
    if not heading:  # one row needs no name
        lines = [line[1:] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: dict[str, float] | float | None) -> str:
    """A number, or a summary as `scores.summary` makes it."""
    if not isinstance(value, dict):
        return "" if value is None else digits_text(value)
    text = cell(value["mean"])
    if value.get("low") is not None:
        text += f" ({digits_text(value['low'])} to {digits_text(value['high'])})"
    if "median" in value:
        text += f", median {digits_text(value['median'])}, most {digits_text(value['max'])}"
    return text
