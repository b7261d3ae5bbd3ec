"""What a measurement makes of the records of a run, by hand."""

from bench.common_ground import late_return, training_seconds


def rows(seconds: list[float]) -> list[dict]:
    """A row of each of two seeds after every chunk of 100 steps; returns grow by 1 a chunk."""
    return [
        {
            "seed": seed,
            "steps": 100 * (i + 1),
            "seconds": end,
            "episodes": 1 + i % 2,
            "finished": {"return": float(i)},
        }
        for i, end in enumerate(seconds)
        for seed in (0, 1)
    ]


def test_a_pause_does_not_count_as_training():
    assert training_seconds(rows([2.0, 4.0, 6.0, 508.0, 510.0])) == 5 * 2.0


def test_the_late_return_weighs_chunks_by_their_episodes():
    twenty = rows([float(i) for i in range(1, 21)])
    # of 2,000 steps the last tenth, after 1,800: chunks 18 (1 episode) and 19 (2)
    assert late_return(twenty, seed=1, last=2_000) == (18.0 + 2 * 19.0) / 3
    assert late_return([], seed=1, last=2_000) is None
