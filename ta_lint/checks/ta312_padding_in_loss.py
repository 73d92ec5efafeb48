"""TA312: the loss is averaged over padding because the criterion has no `ignore_index` for it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (
    ("pad_sequence", "padding_idx"),
    ("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"),
    ("view", "reshape", "flatten", "transpose", "permute"),
)

_LOSSES = (
    ("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"),
    ("torch.nn.NLLLoss", "torch.nn.functional.nll_loss"),
)
_FLATTENS = frozenset({"view", "reshape", "flatten"})
_IGNORED = -100.0  # the default `ignore_index` of these losses


def check(module: FileFacts) -> Iterator[Suspicion]:
    padding = _padding(module)
    if padding is None:
        return
    for criterion, function in _LOSSES:
        for call in module.loss_calls(criterion, function):
            decides = (
                call if module.qualified(call.func) == function else module.kinds.construction(call.func)
            )
            if decides is None or spreads(decides) or not _is_over_tokens(module, call):
                continue
            if any(argument(decides, name) is not None for name in ("ignore_index", "reduction", "weight")):
                continue
            edit = add_argument(decides, f"ignore_index={padding}")
            message = f"the mean loss counts padding labels too: set `ignore_index={padding}`"
            fix = ProposedFix("ignore the padding", (edit,)) if edit is not None else None
            yield Suspicion(call, message, fix=fix)


def _padding(module: FileFacts) -> str | None:
    """The token that this file pads sequences with, None if it is unknown."""
    found: set[float | None] = set()
    for call in module.tree.all(cst.Call):
        if module.qualified(call.func) == "torch.nn.utils.rnn.pad_sequence":
            value = argument(call, "padding_value", 2)
            found.add(_token(module, value) if value is not None else 0.0)
        elif called_name(call) == "Embedding" and (index := argument(call, "padding_idx", 2)) is not None:
            found.add(_token(module, index))
    number = found.pop() if len(found) == 1 else None
    if number is None or number == _IGNORED or not number.is_integer():
        return None
    return str(int(number))


def _token(module: FileFacts, value: Node) -> float | None:
    """The number that a call pads with: a literal or a variable; not a layer's attribute, which others may set."""
    return module.number(value) if not isinstance(value, cst.Attribute) else None


def _is_over_tokens(module: FileFacts, call: cst.Call) -> bool:
    """Whether a loss is taken over every token of every sequence: scores and targets are flattened together."""
    scores, target = argument(call, "input", 0), argument(call, "target", 1)
    return (
        all(
            isinstance(origin := module.kinds.origin(value), cst.Call) and called_name(origin) in _FLATTENS
            for value in (scores, target)
            if value is not None
        )
        and scores is not None
        and target is not None
    )
