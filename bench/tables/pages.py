"""The pages of the documentation, and the tables that belong between their marks."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.tables import (
    accelerators,
    allo,
    common_ground,
    durotaxis,
    modules,
    random_numbers,
    recordings,
    rig,
    scaling,
    snake,
    vector_field,
)

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLES: dict[str, Callable[[], str]] = {
    "accelerators": accelerators.compilations,
    "accelerators_devices": accelerators.several_devices,
    "accelerators_members": accelerators.members,
    "allo_accuracy": allo.accuracy,
    "allo_barrier": allo.barrier,
    "allo_directed": allo.directed_accuracy,
    "allo_directed_mazes": allo.directed_mazes,
    "allo_exploring": allo.exploring_accuracy,
    "allo_sampled": allo.sampled_accuracy,
    "allo_speed": allo.speed,
    "common_ground": common_ground.scores,
    "durotaxis_learning": durotaxis.learning,
    "durotaxis_speed": durotaxis.speed,
    "durotaxis_tracks": durotaxis.tracks,
    "durotaxis_training_speed": durotaxis.training_speed,
    "faults": common_ground.faults,
    **{
        name: partial(modules.folder_directives, folder)
        for name, folder in modules.tables().items()
    },
    "modules_envs": lambda: modules.folder_directives("envs", inner=True),
    "modules_host": lambda: modules.folder_directives("train/host", inner=True),
    "modules_programs": lambda: modules.directives(
        f"train.{name}.config" for name in modules.PROGRAMS
    ),
    "peers": common_ground.peers,
    "random_numbers": random_numbers.speed,
    "recordings_calibration": recordings.calibration,
    "recordings_peers": recordings.peers,
    "recordings_sessions": recordings.sessions,
    "recordings_shares": recordings.shares,
    "scaling_blocks": scaling.blocks,
    "scaling_cores": scaling.cores,
    "scaling_communication": scaling.communication,
    "scaling_growth": scaling.growth,
    "scaling_links": scaling.links,
    "scaling_memory": scaling.memory,
    "snake_scores_episodes": lambda: snake.scores_of("episodes"),
    "snake_scores_steps": lambda: snake.scores_of("steps"),
    "snake_scores_summary": snake.scores_summary,
    "snake_speed": snake.speed,
    "snake_speed_ratios": snake.speed_ratios,
    "snake_training_speed": snake.training_speed,
    "rig_latency": rig.latency,
    "vector_field_basis": vector_field.chosen_basis,
    "vector_field_latent": vector_field.unknown_observation,
    "vector_field_authority": vector_field.authority,
    "vector_field_filtered": vector_field.filtered_state,
    "vector_field_ratios": vector_field.ratios,
    "vector_field_seen": vector_field.seen_state,
    "vector_field_space": vector_field.space,
    "vector_field_speed": vector_field.speed,
    "vector_field_vae": vector_field.vae,
    "vector_field_baselines": vector_field.baselines,
    "vector_field_vae_others": vector_field.vae_others,
}


def all_pages() -> list[Path]:
    """Every page that may hold tables."""
    return sorted((ROOT / "docs").rglob("*.md"))


def fill_tables(text: str) -> str:
    """A page with all its tables up to date. Raises KeyError for an unknown table."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[4]}"

    return MARKED.sub(fill, text)


def changed_pages() -> dict[Path, str]:
    """Pages that differ from the measurements, and what they should be."""
    texts = {path: path.read_text(encoding="utf-8") for path in all_pages()}
    return {path: new for path, text in texts.items() if (new := fill_tables(text)) != text}
