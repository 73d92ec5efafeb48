"""What an argument is whose value nobody gives: by its annotation, what is asked of it, or the whole words of its name."""

import re
from dataclasses import replace
from functools import cache, lru_cache

from ta_lint.core.data import read
from ta_lint.dryrun.machine.library import DICT, list_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.data import BATCH, LOADER
from ta_lint.dryrun.stubs.torch.modules import CRITERION, distant
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, PLAIN, Facts, Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER, SCALER, SCHEDULER
from ta_lint.dryrun.values import DATA, NONE, TRUE, Object, Table, Unknown, Value


def guess(machine: Machine, name: str, annotation: str, asked: frozenset[str] = frozenset()) -> Value | None:
    """A value for an argument, None if neither its annotation, nor the methods that are asked of it, nor its name say what it is."""
    kind = _of_annotation(annotation) if annotation else _of_methods(asked) or _of_name(name)
    if kind == "model":
        return distant(machine, None)
    if kind == "optimizer":
        return _some_optimizer(machine)
    if kind == "scheduler":
        return Object(SCHEDULER, None, {"optimizer": NONE})
    if kind == "scaler":
        return Object(SCALER, None, {})
    if kind == "loader":
        return Object(LOADER, None, {"dataset": Unknown("a dataset out of sight")})
    if kind == "batches":
        return list_of((), Object(BATCH, None, {"of": None}))
    if kind == "criterion":
        return Object(CRITERION, None, {"training": TRUE})
    if kind == "batch" or (kind == "tensor" and annotation and _of_name(name) == "batch"):
        return Tensor()
    if kind == "tensor":
        return Tensor(Facts(open=(f"the argument {name}",), requires=None, leaf=False))
    if kind in ("int", "float", "bool", "str", DATA):
        return Unknown(f"the argument {name}", kind)
    return None


def given(machine: Machine, name: str, asked: frozenset[str], *, imported: bool) -> Value | None:
    """What code out of sight gives, None unless the methods that are asked of it say what it is, or the name that it is an optimizer or a
    scheduler. A scheduler that a class gives that is imported is one of somebody's own, which may set the rate of the step to come.
    """
    says = _of_methods(asked)
    kind = says or _of_name(name)
    if kind == "optimizer":
        return _some_optimizer(machine)
    if kind == "scheduler" and not imported:
        return Object(SCHEDULER, None, {"optimizer": NONE})
    return distant(machine, None) if says == "model" else None


def _some_optimizer(machine: Machine) -> Value:
    parameters = list_of((), Tensor(replace(PLAIN, requires=True), None, PARAMETER))
    optimizer = Object(
        OPTIMIZER, None, {"param_groups": list_of((), Table(DICT, None, {"params": parameters}))}
    )
    gradients.watch(machine, optimizer, gradients.ANYTHING)
    return optimizer


_ANNOTATIONS = (
    (DATA, r"\b(DictConfig|ListConfig|Namespace|ndarray|Path|PathLike)\b"),
    ("scheduler", r"\b_?LRScheduler\b|\blr_scheduler\b"),
    ("optimizer", r"\bOptimizer\b|\boptim\.\w+$"),
    ("scaler", r"\bGradScaler\b"),
    ("loader", r"\bDataLoader\b"),
    ("model", r"\bModule\b"),
    ("tensor", r"\bTensor\b"),
)


def _of_annotation(annotation: str) -> str | None:
    if annotation in ("int", "float", "bool", "str"):
        return annotation
    return next((kind for kind, pattern in _ANNOTATIONS if re.search(pattern, annotation)), None)


def _of_methods(asked: frozenset[str]) -> str | None:
    return next((kind for kind, sets in methods().items() if any(one <= asked for one in sets)), None)


def _of_name(name: str) -> str | None:
    words = [word.lower() for word in re.findall(r"[a-z]+|[A-Z][a-z]*", name.replace("_", " "))]
    if words and words[-1] in names()[DATA]:
        return DATA  # `batch_size` is no batch
    return next((kind for kind, known in names().items() if kind != DATA and known & set(words)), None)


@lru_cache(4096)
def may_act(name: str) -> bool:
    """Whether a function out of sight may clear gradients or step, by the whole words of its name."""
    words, known = set(re.findall(r"[a-z]+", name)), _functions()
    return bool(words & known["act"] or (words & known["clear"] and words & known["gradients"]))


@lru_cache(4096)
def may_set_mode(name: str) -> bool:
    """Whether a function out of sight may put a module into training mode, by the whole words of its name."""
    return not _functions()["mode"].isdisjoint(re.findall(r"[a-z]+", name))


@cache
def _functions() -> dict[str, frozenset[str]]:
    table = read("names.toml", dict[str, dict[str, str]])["functions"]
    return {kind: frozenset(words.split()) for kind, words in table.items()}


@cache
def names() -> dict[str, frozenset[str]]:
    """The words that say what an argument is, by what it is then."""
    table = read("names.toml", dict[str, dict[str, str]])["arguments"]
    return {kind: frozenset(words.split()) for kind, words in table.items()}


@cache
def methods() -> dict[str, list[frozenset[str]]]:
    """The methods that together say what an argument is, by what it is then."""
    table = read("names.toml", dict[str, dict[str, str]])["methods"]
    return {kind: [frozenset(one.split("+")) for one in sets.split()] for kind, sets in table.items()}
