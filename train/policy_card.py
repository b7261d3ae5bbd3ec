"""The card of a policy: what it is, how it was trained, how good it is, and what it is not."""

import json
import shlex
from typing import Any

from train.config import plain
from train.runs import Run, with_evaluation

CARD = """# {name}

A policy of `train.{entry_point}` with {count:,} parameters ({size:,.0f} kB). Of the trained agent
the file `{name}.safetensors` holds what it acts by, and nothing that it learned with.

```
python -m train.render --policy {name}      # a film of its best game of a hundred
python -m train.evaluate --policy {name}    # its score in a thousand games
```

## The game

{game}

## Training

```
{command}
```

{facts}

## Score

{scores}

## Limits

It plays as well as this card says only in the game above: of other boards and rules nothing is
promised but what a table here tells. It takes the best action that it knows and does not explore.
What it learned with is not kept: `--run.policy` begins a new training with its parameters, and does
not go on with the old one.

## Licence

Apache-2.0, as the code that trained it.
"""
MEASURES = ("score", "won", "length", "steps_per_food")
"""What cards tell, of what a run has."""


def card(
    name: str, run: Run, content: dict[str, Any], counters: dict[str, Any], size: int, hardware: str
) -> str:
    """Markdown. `content` is that of the file, `counters` are those of its checkpoint.

    `size` is in bytes; `hardware` may be empty.
    """
    trained = content["trained"]
    steps = run.updates * run.entry.make_training(run.config).steps_per_update
    versions = ", ".join(f"{package} {version}" for package, version in trained["versions"].items())
    facts = {
        "Seed": f"{content['config']['run']['seed']}, of {run.config.run.num_seeds} side by side",
        "Environment steps": f"{steps:,} in {run.updates:,} updates",
        "Training time": f"{counters['seconds']:,.0f} s, without compilation",
        "Hardware": hardware or trained["device"],
        "Versions": versions,
        "Commit": trained["git"] or "unknown",
    }
    return CARD.format(
        name=name,
        entry_point=content["entry_point"],
        count=size // 4,
        size=size / 1000,
        game=bullets(plain(run.config.env)),
        command=command(run, content),
        facts=bullets(facts),
        scores="\n\n".join([*score(content["scores"]), *transfer(run, content)]),
    )


def bullets(facts: dict[str, Any]) -> str:
    """A line each; what is nested in one line."""
    nested = lambda x: ", ".join(f"{k} {v:g}" for k, v in x.items()) if isinstance(x, dict) else x
    return "\n".join(f"- {name}: {nested(value)}" for name, value in facts.items())


def command(run: Run, content: dict[str, Any]) -> str:
    """The command line that trains the run anew, in a directory of its own."""
    entry_point, preset = content["entry_point"], content["preset"]
    config = with_evaluation(run.config, directory="", resume="")
    changes = flags(plain(config), plain(run.entry.PRESETS[preset]))
    return shlex.join(["python", "-m", f"train.{entry_point}", preset, *changes])


def flags(value: Any, default: Any, name: str = "") -> list[str]:
    """What turns a plain `default` into `value` on the command line."""
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return [x for key in value for x in flags(value[key], default[key], f"{prefix}{key}")]
    if value == default:
        return []
    if isinstance(value, bool):
        *path, switch = name.split(".")
        return ["--" + ".".join([*path, switch if value else f"no-{switch}"])]
    return [f"--{name}", *map(str, value if isinstance(value, list) else [value])]


def score(found: dict[str, Any] | None) -> list[str]:
    """What was found at the end of the run, or later."""
    if found is None:
        return ["It has not been evaluated."]
    return [f"{found['games']:,} complete games.", score_table({"": found}, "")]


def transfer(run: Run, content: dict[str, Any]) -> list[str]:
    """What `transfer.json` says of other boards, if found by the same agent at its best."""
    path, seed = run.directory / "transfer.json", content["config"]["run"]["seed"]
    found = json.loads(path.read_text()) if path.is_file() else {}
    if found.get("updates") != run.updates or not found["greedy"]:
        return []
    boards = {
        f"{board['rows']}×{board['cols']}, {board['max_steps']:,} steps at most": row
        for board in found["boards"]
        for row in board["seeds"]
        if row["seed"] == seed
    }
    about = f"On other boards, {found['rules']} rules, {found['games']:,} games each:"
    return [about, score_table(boards, "board")]


def score_table(rows: dict[str, dict[str, Any]], heading: str) -> str:
    """Markdown: measures with their 95 % intervals, a line for each row."""
    found = [name for name in MEASURES if all(name in row for row in rows.values())]
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
