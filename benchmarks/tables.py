"""What all reports share: Markdown tables, and means."""

import math
import statistics
from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def geometric_mean(values: Iterable[float]) -> float:
    """Returns the geometric mean of positive numbers."""
    return math.exp(statistics.mean(map(math.log, values)))
