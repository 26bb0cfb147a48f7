"""What all timings share: contestants that run in turn, and ratios taken round by round."""

import statistics
import time
from collections.abc import Callable

import jax

ROUND_SECONDS = 0.4
ROUNDS = (5, 15)
Thunk = Callable[[], object]


def elapsed(thunk: Thunk) -> float:
    """Returns the seconds of one call, its results waited for."""
    start = time.perf_counter()
    jax.block_until_ready(thunk())
    return time.perf_counter() - start


def race(contestants: dict[str, Thunk]) -> dict[str, list[float]]:
    """Returns each contestant's times, one a round, all run in turn in every round.

    A contestant's first call in a round is not timed: torch's threads spin for a while after
    theirs, and whoever comes next would pay for it with a core (7.1 ms where 4.4 are its own).
    """
    longest = sum(elapsed(thunk) for thunk in contestants.values())  # and warms up
    longest = min(longest, sum(elapsed(thunk) for thunk in contestants.values()))
    rounds = min(max(int(ROUND_SECONDS / longest), ROUNDS[0]), ROUNDS[1])
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, thunk in contestants.items():
            elapsed(thunk)
            times[name].append(elapsed(thunk))
    return times


def ratio(times: dict[str, list[float]], rival: str, ours: str) -> float:
    """Returns the median over rounds of rival's time over ours: above 1, we are faster."""
    return statistics.median(a / b for a, b in zip(times[rival], times[ours], strict=True))


def compiled(fn: Callable, *args: jax.Array) -> tuple[Callable, float, int]:
    """Returns a compiled function, the seconds to trace and compile it, and its temporaries."""
    jax.clear_caches()
    start = time.perf_counter()
    executable = jax.jit(fn).lower(*args).compile()
    seconds = time.perf_counter() - start
    return executable, seconds, executable.memory_analysis().temp_size_in_bytes
