"""Reads the rows that a language model is given as text: what the loss learns from, what is masked, and what is padding."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ta_runtime.measure.tree import tensors
from ta_runtime.observers import tokens
from ta_runtime.observers.language import base, named, predicts_tokens, shifts
from ta_runtime.observers.tokenizers import Tokenizers, decoded, special_of
from ta_runtime.observers.tokens import IGNORED
from ta_runtime.preflight.watching import LossCall, ModelCall

_NAMES = {"input_ids", "labels", "shift_labels", "attention_mask", "position_ids"}
_ROWS = 3
"""Rows that are shown."""
_TOKENS = 240
"""Of a row."""
_HEAD, _TAIL = 32, 16
"""Tokens of a long stretch that are shown, from its begin and its end."""
_SIMILAR = 0.5
"""Of targets, that are tokens of the rows: then it is known which token each is for."""


class SeveralReaders(Exception):
    """Tokenizers of the script would read the rows in different ways."""


@dataclass(slots=True)
class Piece:
    """Tokens side by side in a row that are alike, as text."""

    text: str
    tokens: int = 1
    learned: bool = False
    padding: bool = False
    special: bool = False
    """Whether it is one special token, or several of the same."""
    begins: bool = False
    """Whether another text of the row begins here."""
    label: str = ""
    """What is to be learned in its place, where that is something else."""
    left_out: bool = False
    """Whether its text is not shown."""

    @property
    def role(self) -> str:
        """What the loss makes of it: `learned`, `masked`, `padding`, or `leaking`, which is padding that it learns from."""
        if self.padding:
            return "leaking" if self.learned else "padding"
        return "learned" if self.learned else "masked"


@dataclass(slots=True)
class Reading:
    """A tensor of token ids, in counts of its tokens and some of its rows as text."""

    name: str
    tokenizer: str
    """The name that its tokenizer was loaded by; empty where it has none."""
    rows: int
    tokens: int
    labelled: bool
    """Whether it is known which tokens the loss learns from."""
    learned: int = 0
    padding: int = 0
    learned_padding: int = 0
    """Padding that is learned from."""
    special: int = 0
    """Special tokens that are no padding."""
    joints: int = 0
    """Where inside a row another text begins."""
    idle: int = 0
    """Rows with nothing to learn."""
    shown: dict[int, list[Piece]] = field(default_factory=dict)
    """Some rows, by number."""


@dataclass(slots=True)
class _Rows:
    """Token ids with what is known of each of them."""

    name: str
    ids: Tensor
    padding: Tensor
    begins: Tensor
    labels: Tensor | None
    """What is to be predicted in the place of each."""


def read(call: ModelCall, losses: list[LossCall], tokenizers: Tokenizers) -> list[Reading]:
    """What a call gives a language model to read; nothing where it has no ids, no mask and no labels, or nobody reads them.

    Waits for the device.

    Raises:
        SeveralReaders: it is not known whose ids these are.
    """
    given = _given(call)
    ids = given.get("input_ids")
    if ids is None or ids.dim() != 2 or not ids.numel() or ids.is_floating_point():
        return []
    model = base(call.module)
    decodes_apart = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    labels = None if decodes_apart else _labels(ids, given, shifts_labels=shifts(model), losses=losses)
    if labels is None and given.keys().isdisjoint({"labels", "attention_mask"}):
        return []
    if labels is not None and not predicts_tokens(model):
        labels = ids.where(labels != IGNORED, IGNORED)
    tokenizer = tokenizers.reader(model, ids[0].tolist())
    if tokenizer is None:
        if tokenizers.living:
            raise SeveralReaders
        return []
    special = special_of(tokenizer)
    attended = tokens.attended(ids, given.get("attention_mask"), special)
    if attended is None:  # the mask says of pairs of tokens who attends to whom
        attended = tokens.attended(ids, None, special)
    assert attended is not None
    begins = _begins(ids, attended, given.get("position_ids"), special.begin, special.end)
    rows = [_Rows("input_ids", ids, ~attended, begins, labels)]
    answers = given.get("labels")
    if decodes_apart and answers is not None and answers.dim() == 2:
        ignored = answers == IGNORED
        rows.append(_Rows("labels", answers, ignored, torch.zeros_like(ignored), answers))
    return [_reading(each, tokenizer) for each in rows]


# -- what each token is ---------------------------------------------------------------------------------------


def _given(call: ModelCall) -> dict[str, Tensor]:
    """What says how the rows of a call are read, by name, as far as it lies beside its first `input_ids`."""
    given = dict(tensors(named(call.module, call.args, call.kwargs)))
    beside = next((path[: -len("input_ids")] for path in given if path.split(".")[-1] == "input_ids"), "")
    found = {name: given[path] for name in _NAMES if (path := beside + name) in given}
    return {name: tensor.detach().cpu() for name, tensor in found.items() if not tensor.is_meta}


def _labels(
    ids: Tensor, given: dict[str, Tensor], *, shifts_labels: bool, losses: list[LossCall]
) -> Tensor | None:
    """What is to be predicted in the place of each token; None where nothing tells."""
    labels, shifted = given.get("labels"), given.get("shift_labels")
    if shifted is not None and shifted.shape == ids.shape:
        return _placed(ids, shifted, 1)
    if labels is not None and labels.shape == ids.shape:
        if shifts_labels:
            return _placed(ids, labels[:, 1:], 1)
        aligned = _aligned(ids, labels)
        return labels if aligned is None else aligned
    found = (_aligned(ids, targets) for loss in losses if (targets := _targets(loss, len(ids))) is not None)
    return next((labels for labels in found if labels is not None), None)


def _targets(loss: LossCall, rows: int) -> Tensor | None:
    """The targets of a loss in so many rows; None where there are none of that kind."""
    target: Tensor = loss.given(1, "target").detach().cpu()
    if target.is_floating_point() or not target.numel() or target.numel() % rows:
        return None
    ignored = target == loss.given(4, "ignore_index", IGNORED)
    return target.masked_fill(ignored, IGNORED).reshape(rows, -1)


def _aligned(ids: Tensor, targets: Tensor) -> Tensor | None:
    """Targets as labels, each in the place of its token, or of that after it; None where they are not tokens of these rows."""
    width = ids.shape[1]
    for first in {width: (0, 1), width - 1: (1,)}.get(targets.shape[1], ()):
        labels = _placed(ids, targets, first)
        live = labels != IGNORED
        if (labels == ids)[live].count_nonzero() >= _SIMILAR * live.count_nonzero():
            return labels
    return None


def _placed(ids: Tensor, targets: Tensor, first: int) -> Tensor:
    """Targets as labels, the first of which is that of this token; what is past the end of the rows is left out."""
    labels = torch.full_like(ids, IGNORED)
    targets = targets[:, : ids.shape[1] - first]
    labels[:, first : first + targets.shape[1]] = targets
    return labels


def _begins(
    ids: Tensor, attended: Tensor, positions: Tensor | None, begin: int | None, end: int | None
) -> Tensor:
    """Where inside its row another text begins: where positions begin anew or, without those, after an end token and at a begin token."""
    before, here = ids[:, :-1], ids[:, 1:]
    if positions is not None and positions.shape == ids.shape:
        anew = positions[:, 1:] <= positions[:, :-1]
    else:
        anew = torch.zeros_like(here, dtype=torch.bool)
        if end is not None:
            anew |= (before == end) & (here != end)
        if begin is not None and begin != end:
            anew |= (here == begin) & (before != begin)
    begins = torch.zeros_like(attended)
    begins[:, 1:] = anew & attended[:, :-1] & attended[:, 1:]
    return begins


# -- what is shown of them ------------------------------------------------------------------------------------


class _Token(NamedTuple):
    id: int
    label: int
    padding: bool
    special: bool
    begins: bool

    @property
    def learned(self) -> bool:
        return self.label != IGNORED

    @property
    def kind(self) -> tuple[object, ...]:
        """What tokens side by side have in common if they are shown as one piece: special ones and padding are the same."""
        own = self.id if self.special or self.padding else None
        return self.learned, self.learned and self.label != self.id, self.padding, own


def _reading(rows: _Rows, tokenizer: Any) -> Reading:
    ids, padding = rows.ids, rows.padding
    labels = torch.full_like(ids, IGNORED) if rows.labels is None else rows.labels
    learned = labels != IGNORED
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    special = torch.isin(ids, torch.tensor([*added, *tokenizer.all_special_ids]))
    idle = ~learned.any(dim=1) if rows.labels is not None else torch.zeros(len(ids), dtype=torch.bool)
    reading = Reading(
        rows.name,
        str(getattr(tokenizer, "name_or_path", "") or ""),
        rows=len(ids),
        tokens=ids.numel(),
        labelled=rows.labels is not None,
        learned=int((learned & ~padding).sum()),
        padding=int((padding & ~learned).sum()),
        learned_padding=int((learned & padding).sum()),
        special=int((special & ~padding).sum()),
        joints=int(rows.begins.sum()),
        idle=int(idle.sum()),
    )
    parts = [part.tolist() for part in (ids, labels, padding, special, rows.begins)]
    for number in _shown(idle.tolist()):
        row = [_Token(*values) for values in zip(*(part[number] for part in parts), strict=True)]
        reading.shown[number] = list(_pieces(tokenizer, row))
    return reading


def _shown(idle: list[bool]) -> list[int]:
    """The first rows; the last of them gives its place to one with nothing to learn."""
    first = list(range(min(_ROWS, len(idle))))
    if any(idle) and not any(idle[: len(first)]):
        first[-1] = idle.index(True)
    return first


def _pieces(tokenizer: Any, row: list[_Token]) -> Iterator[Piece]:
    """A row in pieces; the middle of a long one, and the end of a long row, are left out."""
    shown = 0
    for first, last in _stretches(row):
        if shown >= _TOKENS:
            yield Piece("", len(row) - first, left_out=True)
            return
        cuts = [first, last]
        if row[first].kind[-1] is None and last - first > _HEAD + 2 * _TAIL:
            cuts = [first, first + _HEAD, last - _TAIL, last]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            yield _piece(tokenizer, row, start, stop, left_out=number == 1)
        shown += min(last - first, _HEAD + _TAIL)


def _stretches(row: list[_Token]) -> Iterator[tuple[int, int]]:
    """The first and past-the-last tokens of what is one piece."""
    first = 0
    for place in range(1, len(row) + 1):
        if place == len(row) or row[place].begins or row[place].kind != row[first].kind:
            yield first, place
            first = place


def _piece(tokenizer: Any, row: list[_Token], start: int, stop: int, *, left_out: bool) -> Piece:
    token = row[start]
    piece = Piece(
        "", stop - start, token.learned, token.padding, token.special, token.begins, left_out=left_out
    )
    if not left_out:
        ids = [each.id for each in row[max(start - 1, 0) : stop]]
        alone = token.special or token.padding
        piece.text = decoded(tokenizer, [token.id]) if alone else _continued(tokenizer, ids, stop - start)
        if token.learned and token.label != token.id:
            piece.label = decoded(tokenizer, [each.label for each in row[start:stop]])
    return piece


def _continued(tokenizer: Any, ids: list[int], count: int) -> str:
    """The last ids as text, with the space that parts them from the one before."""
    before, both = decoded(tokenizer, ids[:-count]), decoded(tokenizer, ids)
    return both[len(before) :] if both.startswith(before) else decoded(tokenizer, ids[-count:])
