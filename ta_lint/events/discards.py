"""Results of tensor operations that nobody takes."""

from dataclasses import dataclass

from ta_lint.events.place import Place

GIVE_ANOTHER = frozenset("""
    abs add bfloat16 bool byte ceil clamp clamp_max clamp_min clip contiguous cpu cuda detach div double dropout elu exp expand expand_as
    flatten flip float floor gelu half index_add index_copy index_fill int leaky_relu log log_softmax long masked_fill masked_scatter
    movedim mul nan_to_num neg normalize permute pow relu repeat reshape reshape_as roll round scatter scatter_add short sigmoid silu softmax
    sqrt square squeeze sub swapaxes t tanh to transpose tril triu type type_as unflatten unsqueeze view view_as
""".split())  # fmt: skip
"""Conversions, other views, and functions of each number; what takes longer is also called to measure its time."""


@dataclass(frozen=True, slots=True)
class Discard:
    """A statement that calls an operation and drops the tensor that it gives. A run does not see it."""

    place: Place
    code: str
    """The call,"""
    of: str
    """and what it leaves as it is."""
