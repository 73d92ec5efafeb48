"""What is counted in batches of token ids, where they lie: each a tensor of one number."""

from typing import Any

import torch
from torch import Tensor

from ta_runtime.facts import Markers, Rows, SpecialTokens
from ta_runtime.measure.scalars import Readings

IGNORED = -100


def add(found: Rows, counts: dict[str, Tensor], readings: Readings) -> None:
    """Add counts to the fields of their names, when they have arrived."""

    def deliver(values: list[float]) -> None:
        for name, value in zip(counts, values, strict=True):
            setattr(found, name, getattr(found, name) + int(value))

    if counts:
        readings.scalars(list(counts.values()), deliver)


def add_markers(found: Markers, rows: int, holding: dict[str, Tensor], readings: Readings) -> None:
    """Add to the rows that hold markers, when the counts have arrived."""

    def deliver(values: list[float]) -> None:
        found.rows += rows
        for marker, value in zip(holding, values, strict=True):
            found.holding[marker] += int(value)

    if holding:
        readings.scalars(list(holding.values()), deliver)


def attended(ids: Tensor, mask: Any, special: SpecialTokens) -> Tensor | None:
    """Which tokens of each row are attended to; None where the mask says more than that.

    Without a mask it is all that is not padding; the end token, where it pads too, is then the end of its row as well.
    """
    if type(mask) is Tensor and mask.shape == ids.shape:
        return mask.ne(0)
    if mask is not None:
        return None
    if special.pad is None or special.pad == special.end:
        return torch.ones_like(ids, dtype=torch.bool)
    return ids.ne(special.pad)


def compared(ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The labels beside the tokens at their own positions, and beside those after."""
    own, after, given = ids[:, :-1], ids[:, 1:], labels[:, :-1]
    live = given != IGNORED
    return {
        "live": live.sum(),
        "live_as_same": (live & (given == own)).sum(),
        "live_as_next": (live & (given == after)).sum(),
    }


def ends(ids: Tensor, labels: Tensor, attended: Tensor, end: int) -> dict[str, Tensor]:
    """The rows that end in the end token, and how often it is a label."""
    places = torch.arange(1, ids.shape[1] + 1, device=ids.device)
    last = (places * attended).argmax(dim=1, keepdim=True)
    return {"ended": (ids.gather(1, last) == end).sum(), "end_labels": (labels == end).sum()}


def begins(ids: Tensor, attended: Tensor, begin: int) -> dict[str, Tensor]:
    """The rows that begin with the begin token, and those that begin with two of it."""
    first = attended.int().argmax(dim=1, keepdim=True)
    second = (first + 1).clamp(max=ids.shape[1] - 1)
    begun = ids.gather(1, first) == begin
    doubled = begun & (ids.gather(1, second) == begin) & (second > first)
    return {"begun": begun.sum(), "doubled": doubled.sum()}


def opened(ids: Tensor, attended: Tensor, markers: dict[int, str]) -> dict[str, Tensor]:
    """The rows that have a marker among their first two tokens."""
    first = attended.int().argmax(dim=1, keepdim=True)
    second = (first + 1).clamp(max=ids.shape[1] - 1)
    both = ids.gather(1, torch.cat([first, second], dim=1))
    return holding(both, attended.new_ones(()), markers)


def holding(ids: Tensor, attended: Tensor, markers: dict[int, str]) -> dict[str, Tensor]:
    """The rows that have a marker anywhere."""
    return {text: ((ids == marker) & attended).any(dim=1).sum() for marker, text in markers.items()}


def joints(ids: Tensor, attended: Tensor, end: int, positions: Any) -> dict[str, Tensor]:
    """The rows in which another text follows an end token, and those of them whose positions go on there."""
    inside = attended[:, :-1] & attended[:, 1:] & (ids[:, :-1] == end) & (ids[:, 1:] != end)
    joined = inside.any(dim=1)
    goes_on = torch.ones_like(joined)
    if type(positions) is Tensor and positions.dim() == 2 and positions.shape[1] == ids.shape[1]:
        goes_on &= ~(positions[:, 1:] <= positions[:, :-1]).any(dim=1)
    return {"joined": joined.sum(), "leaking": (joined & goes_on).sum()}
