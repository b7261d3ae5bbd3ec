"""What goes out keeps to all limits, whatever is near_request for and whatever happens."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from train.vector_field.stream.guard import Account, RigLimits

number = lambda low, high: st.floats(low, high, allow_subnormal=False)
requests = st.lists(
    st.one_of(number(-3, 3), st.sampled_from([math.nan, math.inf, -1e300])), max_size=3
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), requests),
        st.tuples(st.just("miss"), st.integers(1, 4)),
        st.tuples(st.just("lose client"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


@st.composite
def rig_limits(draw) -> RigLimits:
    """One or two inputs; some limits as wide as can be, or as narrow."""
    count, window = draw(st.integers(1, 2)), draw(st.integers(1, 12))
    dt = draw(st.sampled_from([0.1, 1.0, 7.0]))
    low = [draw(st.sampled_from([-1.0, -0.3, 0.0, 0.2])) for _ in range(count)]
    high = [draw(number(max(x, 0.25), 2)) for x in low]
    rate = [draw(st.one_of(number(1e-3, 1), st.just(math.inf))) for _ in range(count)]
    least = window * dt * sum(max(x, 0.0) for x in low)
    charge = draw(st.one_of(st.just(math.inf), number(least * 1.001, least + 3 * window * dt)))
    return RigLimits(tuple(low), tuple(high), tuple(rate), charge, window, dt)


def quiet_steps(limits: RigLimits, u: tuple[float, ...], count: int) -> list[list[Fraction]]:
    """The oracle's quiet path: exact arithmetic, one input after the other."""
    path, now = [], [Fraction(x) for x in u]
    for _ in range(count):
        for i, x in enumerate(now):
            goal = Fraction(min(max(0.0, limits.low[i]), limits.high[i]))
            way = goal - x
            if math.isfinite(limits.rate[i]) and abs(way) > Fraction(limits.rate[i]):
                way = Fraction(limits.rate[i]) * (1 if way > 0 else -1)
            now[i] = x + way
        path.append(list(now))
    return path


def worst(limits: RigLimits, outputs: list) -> dict[str, Fraction]:
    """By how much inputs that went out are beyond each limit, exactly; at most 0 if they are not.

    Before the first one there were quiet ones.
    """
    quiet = [Fraction(min(max(0.0, x), y)) for x, y in zip(limits.low, limits.high, strict=True)]
    inputs = [quiet, *[[Fraction(x) for x in u] for u in outputs]]
    beyond = {"box": Fraction(-1), "change": Fraction(-1), "charge": Fraction(-1)}
    for before, u in pairwise(inputs):
        for i, x in enumerate(u):
            outside = max(x - Fraction(limits.high[i]), Fraction(limits.low[i]) - x)
            beyond["box"] = max(beyond["box"], outside)
            if math.isfinite(limits.rate[i]):
                beyond["change"] = max(
                    beyond["change"], abs(x - before[i]) - Fraction(limits.rate[i])
                )
    if math.isfinite(limits.charge):
        amounts = [sum(map(abs, u)) * Fraction(limits.dt) for u in inputs[1:]]
        for end in range(1, len(amounts) + 1):
            total = sum(amounts[max(0, end - limits.window) : end])
            beyond["charge"] = max(beyond["charge"], total - Fraction(limits.charge))
    return beyond


@settings(deadline=None, max_examples=150)
@given(limits=rig_limits(), happenings=events)
@example(
    limits=RigLimits((-1.0,), (1.0,), (0.1,), 3.0, 10, 1.0),
    happenings=[("ask", [1.0])] * 30 + [("restart", None)] + [("ask", [-1.0])] * 9,
)
def test_all_limits_hold_whatever_happens(limits, happenings):
    account, outputs = Account(limits), []
    for kind, what in happenings:
        if kind == "ask":
            outputs.append(account.project(what))
        elif kind == "miss":
            outputs += account.fall_silent(what)
        else:
            if kind == "restart":  # with what is on the disk: the newest window
                account = Account(limits, outputs[-limits.window :])
            outputs += account.fall_silent(account.samples_to_quiet())
            assert outputs == [] or outputs[-1] == limits.quiet
    assert {name: x for name, x in worst(limits, outputs).items() if x > 0} == {}
    # And it can be kept to from here on, too, without another word.
    silent = outputs + account.fall_silent(limits.window + 1)
    assert {name: x for name, x in worst(limits, silent).items() if x > 0} == {}


@settings(deadline=None, max_examples=100)
@given(limits=rig_limits(), before=st.lists(requests, max_size=15), request=requests)
def test_the_input_is_the_nearest_one_on_the_way_to_quiet(limits, before, request):
    """What is within all limits, with the quiet path after it, goes out as it is asked for."""
    account = Account(limits)
    outputs = [account.project(x) for x in before]
    last = outputs[-1] if outputs else limits.quiet
    usable = len(request) == len(last) and all(map(math.isfinite, request))
    quiet = [float(x) for x in quiet_steps(limits, last, 1)[0]]
    u = account.project(request)
    if not usable:
        assert u == pytest.approx(quiet, abs=1e-6)
        return
    near = [min(max(x, y - r), y + r) for x, y, r in zip(request, last, limits.rate, strict=True)]
    boxes = zip(near, limits.low, limits.high, strict=True)
    near_request = [min(max(x, low), high) for x, low, high in boxes]

    def excess(share: float) -> Fraction:
        """The charge beyond its limit, that far on the way from quiet to what is asked for."""
        point = tuple(q + share * (a - q) for q, a in zip(quiet, near_request, strict=True))
        path = [*outputs, point, *quiet_steps(limits, point, limits.window)]
        return worst(limits, path)["charge"]

    ends = zip(u, quiet, near_request, strict=True)
    shares = [(x - q) / (a - q) for x, q, a in ends if abs(a - q) > 1e-3]
    if not shares:
        return
    assert max(shares) - min(shares) < 1e-3  # it lies on the line
    assert excess(max(0.0, shares[0] - 1e-3)) <= Fraction(1, 10**6)
    if shares[0] < 1 - 1e-3:
        assert excess(shares[0] + 1e-3) > -Fraction(1, 10**3) * max(1, Fraction(limits.dt))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": (1.0,), "high": (0.5,)}, "the smallest first"),
        ({"rate": (0.0,)}, "a rate above 0"),
        ({"rate": (1e-5,)}, "more than 10,000 samples"),
        ({"rate": (1.0, 1.0)}, "one each for every input"),
        ({"window": 0}, "one sample"),
        ({"low": (0.2,), "charge": 0.5, "window": 5}, "is less than 1, that of the smallest input"),
        ({"high": (math.nan,)}, "expected finite numbers"),
    ],
)
def test_limits_that_nothing_could_keep_to_are_refused(change, message):
    settings = {"low": (-1.0,), "high": (1.0,), "rate": (0.5,), "charge": 5.0, "window": 3}
    with pytest.raises(ValueError, match=message):
        RigLimits(**(settings | change))
