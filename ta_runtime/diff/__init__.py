"""Where two runs part: the first thing that differs, in the order in which cause comes before effect."""

from ta_runtime.diff.comparing import compare, compare_ranks
from ta_runtime.diff.comparison import Comparison

__all__ = ["Comparison", "compare", "compare_ranks"]
