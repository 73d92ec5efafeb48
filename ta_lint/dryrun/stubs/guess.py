"""What an argument is whose value nobody gives: by its annotation, then by the whole words of its name."""

import re
from dataclasses import replace
from functools import cache, lru_cache

from ta_lint.core.data import read
from ta_lint.dryrun.machine.library import DICT, list_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.data import LOADER
from ta_lint.dryrun.stubs.torch.modules import distant
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, PLAIN, Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER, SCALER, SCHEDULER
from ta_lint.dryrun.values import DATA, NONE, Object, Table, Unknown, Value


def guess(machine: Machine, name: str, annotation: str) -> Value | None:
    """A value for an argument, None if neither annotation nor name says what it is."""
    kind = _of_annotation(annotation) if annotation else _of_name(name)
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
    if kind == "tensor":
        return Tensor()
    if kind in ("int", "float", "bool", "str", DATA):
        return Unknown(f"the argument {name}", kind)
    return None


def optimizer_called(machine: Machine, name: str) -> Value | None:
    """An optimizer, None unless the name says that something is one."""
    return _some_optimizer(machine) if _of_name(name) == "optimizer" else None


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


def _of_name(name: str) -> str | None:
    words = set(re.findall(r"[a-z]+|[A-Z][a-z]*", name.replace("_", " ")))
    lower = {word.lower() for word in words}
    return next((kind for kind, known in names().items() if lower & known), None)


@lru_cache(4096)
def may_act(name: str) -> bool:
    """Whether a function out of sight may clear gradients or step, by the whole words of its name."""
    words, known = set(re.findall(r"[a-z]+", name)), _functions()
    return bool(words & known["act"] or (words & known["clear"] and words & known["gradients"]))


@cache
def _functions() -> dict[str, frozenset[str]]:
    table = read("names.toml", dict[str, dict[str, str]])["functions"]
    return {kind: frozenset(words.split()) for kind, words in table.items()}


@cache
def names() -> dict[str, frozenset[str]]:
    """The words that say what an argument is, by what it is then."""
    table = read("names.toml", dict[str, dict[str, str]])["arguments"]
    return {kind: frozenset(words.split()) for kind, words in table.items()}
