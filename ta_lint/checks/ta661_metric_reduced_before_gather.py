"""TA661: a metric under Accelerate counts duplicates in the last batch, or weights short batches like full ones."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.torch.preparing import Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument, literal_key

KEYWORDS = (("gather", "gather_for_metrics"),)
AROUND = (("Accelerator", "accelerate"), "*prepare*")

_REDUCTIONS = frozenset({"mean", "sum"})
_LOOPS_OVER = frozenset({"enumerate", "tqdm"})
# Names and options with which a program removes the duplicates of the last batch, or has none.
_CUTS = ("remainder", "samples_seen", "even_batches", "end_of_dataloader", "drop_last")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        name = called_name(call)
        if (
            name not in ("gather", "gather_for_metrics")
            or not call.args
            or not _is_of_accelerate(call, module)
        ):
            continue
        loop = _evaluation(call, module)
        if loop is None:
            continue
        values = _values(call.args[0].value)
        if name == "gather_for_metrics":
            number = next((value for value in values if _is_number(value, module)), None)
            if number is not None:
                code = module.code(number)
                message = f"`{code}` is one number for each batch, so a short last batch counts too much: gather the samples"
                yield Suspicion(call, message)
        elif any(_is_per_sample(value, loop, module) for value in values) and not _is_cut(call, module):
            assert isinstance(call.func, cst.Attribute)
            message = (
                "`gather` keeps copies that pad the last batch, so they count twice: use `gather_for_metrics`"
            )
            fix = ProposedFix("call `gather_for_metrics`", (replace(call.func.attr, "gather_for_metrics"),))
            yield Suspicion(call, message, ((loop.iter, "the loader that is prepared"),), fix)


def _is_of_accelerate(call: cst.Call, module: FileFacts) -> bool:
    func = call.func
    return isinstance(func, cst.Attribute) and module.preparing.preparer(func.value) is Preparer.ACCELERATE


def _evaluation(call: cst.Call, module: FileFacts) -> cst.For | None:
    """The loop over a prepared loader around a call, if nothing in it trains."""
    loops = [loop for loop in module.tree.loops(call) if isinstance(loop, cst.For)]
    loop = next((one for one in loops if _goes_over_prepared(one, module)), None)
    return loop if loop is not None and not module.loops.trains(loop) else None


def _goes_over_prepared(loop: cst.For, module: FileFacts) -> bool:
    prepared = module.preparing.of(_iterated(loop))
    return prepared is not None and prepared.preparer is Preparer.ACCELERATE


def _iterated(loop: cst.For) -> cst.BaseExpression:
    found = loop.iter
    while isinstance(found, cst.Call) and found.args and called_name(found) in _LOOPS_OVER:
        found = found.args[0].value
    return found


def _values(given: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(given, (cst.Tuple, cst.List)):
        return [element.value for element in given.elements]
    return [given]


def _is_number(value: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether a value is certainly one number: the mean or sum of a batch, or the loss that a model of a hub returns."""
    if module.losses.means(value):
        return True
    origins = module.flow.of(unwrapped(value, module.names)).origins
    return bool(origins) and all(_is_full_reduction(o.node) or _is_loss_of_output(o, module) for o in origins)


def _is_full_reduction(node: Node) -> bool:
    if not isinstance(node, cst.Call) or called_name(node) not in _REDUCTIONS:
        return False
    is_method = isinstance(node.func, cst.Attribute) and not node.args
    return is_method and argument(node, "dim") is None


def _is_loss_of_output(origin: Origin, module: FileFacts) -> bool:
    """`model(**batch).loss`, or that of `model(ids, labels=ids)`."""
    node = origin.node
    if not isinstance(node, cst.Call) or origin.path != ("loss",) or not module.languages.takes_labels(node):
        return False
    return any(True for _ in module.preparing.bare(node.func))


def _is_per_sample(value: cst.BaseExpression, loop: cst.For, module: FileFacts) -> bool:
    """Whether a value is made of the batch of the loop, sample by sample as far as the source shows."""
    calls = [call for part in module.parts.of(value) for call in module.tree.within(part, cst.Call)]
    if any(called_name(call) in ("repeat", "expand", *_REDUCTIONS) for call in calls):
        return False
    if _is_number(value, module):
        return False
    is_choice = any(called_name(call) in ("argmax", "generate", "topk") for call in calls)
    return is_choice or _is_of_batch(value, loop, module)


def _is_of_batch(value: cst.BaseExpression, loop: cst.For, module: FileFacts) -> bool:
    """Whether a value is the batch or a part of it: `y`, `batch["labels"]`."""
    targets = {name.value for name in module.tree.within(loop.target, cst.Name)}
    origins = module.flow.of(value).origins
    base = value.value if isinstance(value, cst.Subscript) else value
    names_batch = isinstance(base, cst.Name) and base.value in targets
    is_label = isinstance(value, cst.Subscript) and literal_key(value) is not None
    return bool(origins) and names_batch and (is_label or isinstance(value, cst.Name))


def _is_cut(call: cst.Call, module: FileFacts) -> bool:
    """Whether code around a call may remove the duplicates of the last batch: `predictions[:len(dataset)]`."""
    names = (name.value for name in module.tree.all(cst.Name))
    if any(word in name for name in names for word in _CUTS):
        return True
    home = module.tree.home(call)
    return any(_cuts(part) and module.tree.before(call, part) for part in module.tree.own(home, cst.Slice))


def _cuts(part: cst.Slice) -> bool:
    """`[:n]` of a number that is computed."""
    is_literal = isinstance(part.upper, (cst.Integer, cst.UnaryOperation))
    return part.lower is None and part.upper is not None and not is_literal
