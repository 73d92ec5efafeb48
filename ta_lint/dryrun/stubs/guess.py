"""What an argument is whose value nobody gives: by its annotation, then by the whole words of its name."""

import re
from dataclasses import replace
from functools import cache

from ta_lint.core.data import read
from ta_lint.dryrun.machine.library import DICT, list_of
from ta_lint.dryrun.machine.machine import Machine
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
        parameters = list_of((), Tensor(replace(PLAIN, requires=True), None, PARAMETER))
        return Object(
            OPTIMIZER, None, {"param_groups": list_of((), Table(DICT, None, {"params": parameters}))}
        )
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


_ANNOTATIONS = (
    (DATA, r"\b(DictConfig|ListConfig|Namespace|ndarray|Path|PathLike)\b"),
    ("optimizer", r"\bOptimizer\b|\boptim\.\w+$"),
    ("scheduler", r"\b_?LRScheduler\b|lr_scheduler\."),
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


@cache
def names() -> dict[str, frozenset[str]]:
    """The words that say what an argument is, by what it is then."""
    table = read("names.toml", dict[str, dict[str, str]])["arguments"]
    return {kind: frozenset(words.split()) for kind, words in table.items()}
