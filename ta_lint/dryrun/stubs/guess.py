"""What an argument is whose value nobody gives: by its annotation, what is asked of it, or the whole words of its name."""

import re
from dataclasses import replace
from functools import cache, lru_cache

from ta_lint.core.data import read
from ta_lint.dryrun.machine.library import DICT, list_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.data import LOADER
from ta_lint.dryrun.stubs.torch.modules import CRITERION, distant
from ta_lint.dryrun.stubs.torch.pairs import OUT_OF_SIGHT
from ta_lint.dryrun.stubs.torch.scaling import SCALER
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, PLAIN, Facts, Tensor
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER, SCHEDULER
from ta_lint.dryrun.values import BY_NAME, DATA, NONE, TRUE, Object, Table, Unknown, Value, options


def guess(machine: Machine, name: str, annotation: str, asked: frozenset[str] = frozenset()) -> Value | None:
    """A value for an argument, None if neither its annotation, nor the methods that are asked of it, nor its name say what it is."""
    kind = _of_annotation(annotation) if annotation else _of_methods(asked)
    if annotation or kind:
        return _some(machine, kind, name, annotation)
    guessed = _some(machine, _of_name(name), name, "")
    if isinstance(guessed, Object):
        guessed.fields[BY_NAME] = TRUE
    return guessed


def _some(machine: Machine, kind: str | None, name: str, annotation: str) -> Value | None:
    """A value of this kind, which has this name and annotation."""
    if kind == "model":
        return distant(machine, None)
    if kind == "optimizer":
        return _some_optimizer(machine)
    if kind == "scheduler":
        return Object(SCHEDULER, None, {"optimizer": NONE})
    if kind == "scaler":
        return Object(SCALER, None, {})
    if kind == "loader":
        unknown = Unknown("a loader out of sight")
        return Object(
            LOADER,
            None,
            {
                "dataset": unknown,
                "batch_size": unknown,
                "num_workers": unknown,
                "pin_memory": unknown,
                "shuffle": unknown,
            },
        )
    if kind == "batches":
        return list_of((), Object(OUT_OF_SIGHT, None, {"of": None}))
    if kind == "criterion":
        return Object(CRITERION, None, {"training": TRUE})
    if kind == "batch" or (kind == "tensor" and annotation and _of_name(name) == "batch"):
        return Tensor()
    if kind == "tensor":
        return Tensor(Facts(open=(f"the argument {name}",), requires=None, leaf=False))
    if kind in ("int", "float", "bool", "str", DATA):
        return Unknown(f"the argument {name}", kind)
    return None


def given(
    machine: Machine, name: str, asked: frozenset[str], got: tuple[Value, ...], *, imported: bool
) -> Value | None:
    """What code out of sight gives, None unless the methods that are asked of it say what it is, or the name that it is an optimizer or a
    scheduler, of the optimizer that this code got. A scheduler that a class gives that is imported is one of somebody's own, which may set
    the rate of the step to come.
    """
    says = _of_methods(asked)
    kind = says or _of_name(name)
    if kind == "optimizer":
        return _some_optimizer(machine)
    if kind == "scheduler" and not imported:
        made_for = (one for one in got if any(map(is_optimizer, options(one))))
        return Object(SCHEDULER, None, {"optimizer": next(made_for, NONE)})
    if kind == "scaler" and (says or "step" in asked):
        return Object(SCALER, None, {})
    return distant(machine, None) if says == "model" else None


def is_optimizer(value: Value) -> bool:
    """Whether a value certainly is one."""
    return isinstance(value, Object) and value.cls.is_a(OPTIMIZER)


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
    if not asked:
        return None
    return next((kind for kind, sets in methods().items() if any(one <= asked for one in sets)), None)


@lru_cache(4096)
def _of_name(name: str) -> str | None:
    words = [word.lower() for word in re.findall(r"[a-z]+|[A-Z][a-z]*", name.replace("_", " "))]
    if words and words[-1] in names()[DATA]:
        return DATA  # `batch_size` is no batch
    if words and (words[-1] in _others()["makers"] or words[0] in _others()["verbs"]):
        return None
    return next((kind for kind, known in names().items() if kind != DATA and known & set(words)), None)


@lru_cache(4096)
def may_act(name: str) -> bool:
    """Whether a function out of sight may clear gradients or step, by the whole words of its name."""
    words, known = set(re.findall(r"[a-z]+", name)), _functions()
    return bool(words & known["act"] or (words & known["clear"] and words & known["gradients"]))


@lru_cache(4096)
def may_set_mode(name: str) -> bool:
    """Whether a function out of sight may put a module into training mode, by the whole words of its name."""
    words, known = set(re.findall(r"[a-z]+", name)), _functions()
    return bool(words & known["mode"]) and not words & known["tells"]


@cache
def _functions() -> dict[str, frozenset[str]]:
    return _words("functions")


@cache
def others() -> frozenset[str]:
    """Libraries other than torch that train networks."""
    return frozenset(read("names.toml", dict[str, dict[str, str]])["libraries"]["others"].split())


@cache
def names() -> dict[str, frozenset[str]]:
    """The words that say what an argument is, by what it is then."""
    return _words("arguments")


@cache
def _others() -> dict[str, frozenset[str]]:
    """The words of names that say nothing."""
    return _words("others")


def _words(section: str) -> dict[str, frozenset[str]]:
    table = read("names.toml", dict[str, dict[str, str]])[section]
    return {kind: frozenset(words.split()) for kind, words in table.items()}


@cache
def methods() -> dict[str, list[frozenset[str]]]:
    """The methods that together say what an argument is, by what it is then."""
    table = read("names.toml", dict[str, dict[str, str]])["methods"]
    return {kind: [frozenset(one.split("+")) for one in sets.split()] for kind, sets in table.items()}
