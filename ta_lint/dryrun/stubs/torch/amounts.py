"""What operations on tensors make of numbers of a batch: its mean, its sum, and totals over batches."""

import ast

from ta_lint.dryrun.machine.amounts import averaged, computed, gone_over, side_by_side
from ta_lint.dryrun.machine.batches import Amount, amount, of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.values import Known, Sequence, Value

_KINDS: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "subtract": ast.Sub(), "mul": ast.Mult(), "multiply": ast.Mult(), "div": ast.Div(), "divide": ast.Div(),
    "truediv": ast.Div(), "true_divide": ast.Div(),
}  # fmt: skip
_DIVISIONS = frozenset(name for name, kind in _KINDS.items() if isinstance(kind, ast.Div))
_SUMS = frozenset({"sum", "nansum"})
_REDUCTIONS = _SUMS | {"mean", "nanmean"}
_LISTS = frozenset("stack cat concat concatenate hstack".split())


def of_operation(made: Call) -> Amount | None:
    """What the result of an operation is made of."""
    given, name = [*made.values()], made.name
    plain = name.strip("_")
    if given and plain in _REDUCTIONS:
        return _reduced(made, given[0], grows=plain in _SUMS)
    if given and plain in _LISTS:
        gone_over(made.machine, given[0], made.node)
        return side_by_side(given[0])
    if all(amount(one) is None for one in given):
        return None
    reverse = name.startswith("__r") and plain[1:] in _KINDS
    kind = _KINDS.get(plain[1:] if reverse else plain.removeprefix("i") if name.startswith("__i") else plain)
    if kind is not None and len(given) > 1:
        left, right = (given[1], given[0]) if reverse else (given[0], given[1])
        return computed(made.machine, kind, left, right, made.node)
    own = amount(given[0])
    return own if own is not None and len(given) == 1 and not own.grows else None


def _reduced(made: Call, given: Value, *, grows: bool) -> Amount | None:
    """The sum or the mean of a tensor: over the batch, or over what a list holds for each of them."""
    own, is_whole = amount(given), _is_over_samples(made)
    if own is not None and own.is_list:
        return averaged(made.machine, own, None, made.node, is_sum=grows) if is_whole else None
    if own is not None:
        return own
    return of_batch(made.machine, grows=grows) if is_whole and _is_of_data(given) else None


def _is_over_samples(made: Call) -> bool:
    """Whether a reduction goes over the first dimension too."""
    dims = made.given(1, "dim") or made.kwargs.get("axis")
    return dims is None or Known(0) in (dims.items if isinstance(dims, Sequence) else [dims])


def _is_of_data(given: Value) -> bool:
    facts = getattr(given, "facts", None)
    return facts is not None and bool(facts.outputs or facts.source is not None or facts.batch_of is not None)


def grows_with_samples(number: Value) -> bool:
    """Whether a number counts samples, such as the size of a batch."""
    own = amount(number)
    return own is not None and own.counts and own.grows > 0


def growth(made: Call, before: bool | None) -> bool | None:
    """Whether twice as many samples make the result twice as large, and `before` says it of what it is computed from; None if nobody knows."""
    given, plain = [*made.values()], made.name.strip("_")
    if plain in _REDUCTIONS and given and _is_over_samples(made):
        facts = getattr(given[0], "facts", None)
        return plain in _SUMS and (_is_of_data(given[0]) or facts is None or bool(facts.open))
    if plain.removeprefix("i") in _DIVISIONS and len(given) > 1 and grows_with_samples(given[1]):
        return False
    return before
