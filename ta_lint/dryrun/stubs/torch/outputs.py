"""What becomes of the outputs of models: whether they are compared with something, read, handed over, or gone back through."""

from collections.abc import Iterable
from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import method
from ta_lint.dryrun.stubs.torch.tensors import FACTS, MOST_CALLS, TENSOR, ModelCall, Tensor, tensors_in
from ta_lint.dryrun.values import FALSE, Object, Sequence, Table, Unknown, Value, options

USED = "used"
"""The event: something is done with what was computed from outputs."""
COMPARED = "compared"
"""With what they should be: by a loss, by `==`, by a metric."""
READ = "read"
"""Numbers leave them: `item()`, `print`, `numpy()`."""
SHOWN = "shown"
"""They are printed, logged or saved, for people to look at."""
HANDED_OVER = "hand over"
"""Code out of sight gets them, for what it gives."""
LEFT = "left to others"
"""Code out of sight gets them, for what it does."""
NUMBERS = "given as numbers"
"""Others get them without their graph."""
GATHERED = "gathered"
"""An entry gives them, all passes of a loop together, to callers that nobody knows."""
RETURNED = "returned"
"""It gives those of one pass to such callers."""
BACK = "gone back through"


def mark(made: Call, value: Value, output: ModelCall) -> None:
    """A call of a model gives this value."""
    for one in tensors_in(with_fields(value)):
        if not one.takes_gradient and output not in one.facts.outputs:
            outputs = (output, *one.facts.outputs)[:MOST_CALLS]
            made.machine.state.write(one.fields, FACTS, replace(one.facts, outputs=outputs))


def used(made: Call, how: str, values: Iterable[Value]) -> None:
    """These are used here."""
    outputs = {output for one in tensors_in(sources(values)) for output in one.facts.outputs}
    if outputs:
        made.emit(USED, None, how=how, outputs=outputs)


def show(made: Call, value: Value) -> None:
    """People see this, or what it was computed from: an array, or what code out of sight makes of a tensor, such as a picture."""
    if isinstance(value, Unknown):
        outputs = {output for cut in value.cuts for output in cut.outputs}
        if outputs:
            made.emit(USED, None, how=SHOWN, outputs=outputs)
        used(made, READ, value.got)
    used(made, SHOWN, [value])


def sources(values: Iterable[Value]) -> list[Value]:
    """These values, and what code out of sight got that gave one of them."""
    found: dict[int, Value] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if id(value) not in found:
            found[id(value)] = value
            pending += value.got if isinstance(value, Unknown) else ()
    return list(found.values())


def with_fields(value: Value) -> list[Value]:
    """A value, and what it holds if it is an object of the program, such as one with `logits`."""
    found = [value]
    for one in options(value):
        if isinstance(one, Object) and not isinstance(one, Tensor | Sequence | Table):
            found += [part for part in one.fields.values() if isinstance(part, Value)]
    return found


@method(TENSOR, "__hasattr__")
def _hasattr(made: Call) -> Value:
    """Whether it has an attribute that is none of a tensor: what a model gives that has one is no tensor."""
    return FALSE if made.own(Tensor).facts.outputs else Unknown("an attribute")
