"""TA658: a loss is divided by the number of accumulated batches, and the framework divides it again."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.vocabulary import PREPARER_NAMES
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (("*backward", "training_step"), "/")
AROUND = (("accelerate", "lightning", "pytorch_lightning"), ("*accum*", "*num_steps*"))

_ACCELERATOR = regex(r"accelerate\.(\w+\.)*Accelerator")
_OF_ACCELERATE = "gradient_accumulation_steps"
_OF_LIGHTNING = "accumulate_grad_batches"


def check(module: FileFacts) -> Iterator[Suspicion]:
    if any(name.startswith("deepspeed") for name in module.names.imported):
        return  # its engine divides by a number of its own
    yield from _under_accelerate(module)
    yield from _under_lightning(module)


def _under_accelerate(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward" or not call.args:
            continue
        receiver = call.func.value
        for division, number in _divisions(module, call.args[0].value):
            if _is_setting_of_accelerator(module, receiver, number):
                message = (
                    f"gradients are too small, as `backward` divides too: leave out `/ {module.code(number)}`"
                )
                yield Suspicion(call, message, _related(module, division, call))
                break


def _is_setting_of_accelerator(module: FileFacts, receiver: Node, number: Node) -> bool:
    """Whether a number counts the batches that an accelerator accumulates."""
    name = dotted(receiver) or ""
    is_accelerator = name.rpartition(".")[2] in PREPARER_NAMES and "fabric" not in name
    if is_accelerator and dotted(number) == f"{name}.{_OF_ACCELERATE}":
        return any(one.startswith("accelerate") for one in module.names.imported)
    made = module.kinds.construction(receiver)
    if made is None or not _ACCELERATOR.fullmatch(module.qualified(made.func) or ""):
        return False
    if argument(made, "deepspeed_plugin") is not None:
        return False
    setting = argument(made, _OF_ACCELERATE)
    plugin = argument(made, "gradient_accumulation_plugin")
    if setting is None and plugin is not None and (built := module.kinds.construction(plugin)) is not None:
        setting = argument(built, "num_steps", 0)
    return setting is not None and _is_same(module, setting, number)


def _under_lightning(module: FileFacts) -> Iterator[Suspicion]:
    given = [argument(trainer, _OF_LIGHTNING) for trainer in module.lightning.trainers]
    for klass in module.lightning.modules:
        hook = module.lightning.hook(klass, "training_step")
        if hook is None or module.lightning.automatic(klass) is not True:
            continue
        for statement in module.tree.own(hook, cst.Return):
            for division, number in (
                _divisions(module, statement.value) if statement.value is not None else ()
            ):
                is_named = (dotted(number) or "").rpartition(".")[2] == _OF_LIGHTNING
                if is_named or any(one is not None and _is_same(module, one, number) for one in given):
                    message = f"gradients are too small, as Lightning divides too: leave out `/ {module.code(number)}`"
                    yield Suspicion(statement, message, _related(module, division, statement))
                    break


def _divisions(module: FileFacts, loss: Node) -> Iterator[tuple[Node, Node]]:
    """Where a loss, or a dictionary entry, is last divided on every path to it, and by what."""
    origins = module.flow.of(loss).origins
    if any(isinstance(origin.node, cst.Dict) for origin in origins):
        origins = module.flow.of(loss, ("loss",)).origins
    for origin in origins:
        match origin.node:
            case cst.BinaryOperation(operator=cst.Divide(), right=number):
                yield origin.node, number
            case cst.AugAssign(operator=cst.DivideAssign(), value=number):
                yield origin.node, number


def _is_same(module: FileFacts, setting: Node, number: Node) -> bool:
    """Whether two expressions are the same number, above 1."""
    known = module.number(setting), module.number(number)
    if None not in known:
        return known[0] == known[1] and (known[0] or 0) > 1
    if dotted(setting) is not None and dotted(setting) == dotted(number):
        return True
    one, other = (module.flow.of(node).origins for node in (setting, number))
    return bool(one) and {(o.node, o.path) for o in one} == {(o.node, o.path) for o in other}


def _related(module: FileFacts, division: Node, place: Node) -> tuple[tuple[Node, str], ...]:
    is_apart = module.is_here(division) and not module.tree.contains(place, division)
    return ((division, "divided here"),) if is_apart else ()
