"""How surely something always holds that was never seen to fail."""

from math import sqrt

Z = 1.96
"""Of the normal distribution: 95 % confidence, two-sided."""
LEAST = 0.8
"""The least lower bound that is learned from, unless another is asked for: reached by 16 cases without a failure."""


def wilson(holds: int, fails: int) -> float:
    """The lower bound of the share of cases in which something holds, from 0 to 1; 0 where there is no case.

    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    """
    cases = holds + fails
    if not cases:
        return 0.0
    share, square = holds / cases, Z * Z
    middle = share + square / (2 * cases)
    spread = Z * sqrt(share * (1 - share) / cases + square / (4 * cases * cases))
    return (middle - spread) / (1 + square / cases)
