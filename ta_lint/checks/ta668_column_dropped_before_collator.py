"""TA668: a collator or loss reads a column that the trainer removed because the model's `forward` does not name it."""

from collections.abc import Callable, Iterator
from functools import cache

import libcst as cst

from ta_lint.core.data import read
from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument, is_name, literal_key, literal_text

KEYWORDS = ("*Trainer",)

_KEPT = frozenset({"label", "label_ids", "labels"})
_OTHERWISE = ("_remove_unused_columns", "_set_signature_columns_if_needed", "get_train_dataloader")
_CHANGES_BATCH = ("_prepare_inputs", "training_step")
_COLLATORS = regex(r"transformers\.(\w+\.)*(\w+_data_collator|\w*DataCollator(?!WithFlattening)\w*)")
_PRETRAINED = regex(r"transformers\.(\w+\.)*(?!TF|Flax)\w+\.from_(pretrained|config)")

_Function = cst.FunctionDef | cst.Lambda


def check(module: FileFacts) -> Iterator[Suspicion]:
    for trainer in module.trainers.made:
        if not _removes(module, trainer):
            continue
        seen: set[str] = set()
        for key, node in _reads(module, trainer):
            if key not in seen and _is_removed(module, trainer, key):
                seen.add(key)
                place = node if module.is_here(node) else trainer
                message = f"the `Trainer` drops the column `{key}`, as `forward` does not take it: set `remove_unused_columns=False`"
                yield Suspicion(place, message, ((trainer, "the trainer"),), fix=_fix(module, trainer))


def _fix(module: FileFacts, trainer: cst.Call) -> ProposedFix | None:
    settings = module.trainers.settings_of(trainer)
    if settings is None or not module.is_here(settings):
        return None
    name = "remove_unused_columns"
    edit = set_argument(settings, name, "False", argument(settings, name))
    return ProposedFix("keep all columns", (edit,)) if edit is not None else None


def _removes(module: FileFacts, trainer: cst.Call) -> bool:
    """Whether a trainer certainly removes the columns that the model does not take."""
    trainers = module.trainers
    return (
        trainers.is_plain(trainer)
        and not trainers.defines(trainer, *_OTHERWISE)
        and trainers.boolean(trainer, "remove_unused_columns", True) is True
    )


def _is_removed(module: FileFacts, trainer: cst.Call, key: str) -> bool:
    """Whether `forward` of a trainer's model certainly does not take a column."""
    models = module.trainers.given(trainer, "model").origins
    labels = _label_names(module, trainer)
    if key in _KEPT or labels is None or key in labels or not models:
        return False
    return all(not model.path and _lacks(module, model.node, key) for model in models)


def _label_names(module: FileFacts, trainer: cst.Call) -> frozenset[str] | None:
    """The columns that a trainer keeps as labels, by its settings; None if they are not in sight."""
    if not module.trainers.given(trainer, "args").origins:
        return frozenset()
    settings = module.trainers.settings_of(trainer)
    return module.adapters.words(settings, "label_names") if settings is not None else None


def _lacks(module: FileFacts, model: Node, key: str) -> bool:
    klass = module.kinds.class_of(model)
    if klass is None:
        made = module.adapters.base(model)
        if made is None or _PRETRAINED.fullmatch(module.qualified(made.func) or "") is None:
            return False
        return argument(made, "trust_remote_code") is None and key not in _parameters()
    forward = module.classes.method(klass, "forward")
    if forward is None or forward.decorators:
        return False
    params = (*forward.params.params, *forward.params.kwonly_params)
    return all(param.name.value != key for param in params)


@cache
def _parameters() -> frozenset[str]:
    """What `forward` of some model of transformers takes."""
    return frozenset(read("columns.toml", dict[str, dict[str, str]])["forward"]["transformers"].split())


def _reads(module: FileFacts, trainer: cst.Call) -> Iterator[tuple[str, Node]]:
    """The keys that the collator of a trainer reads of its rows, or, with one of transformers, its loss of a batch."""
    for function in module.trainers.collators(trainer):
        yield from _read_of_rows(module, function)
    collators = module.trainers.given(trainer, "data_collator").origins
    if all(_is_of_library(module, one.node) for one in collators):
        klass = module.classes.local(trainer.func)
        changes = klass is None or module.trainers.defines(trainer, *_CHANGES_BATCH)
        loss = module.classes.method(klass, "compute_loss") if klass is not None and not changes else None
        if loss is not None and len(loss.params.params) > 2:
            batch = loss.params.params[2].name.value
            yield from _read(module, loss, lambda node: is_name(node, batch))


def _is_of_library(module: FileFacts, collator: Node) -> bool:
    """Whether a collator is one of transformers, which adds no column."""
    made = collator.func if isinstance(collator, cst.Call) else collator
    return _COLLATORS.fullmatch(module.qualified(made) or "") is not None


def _read_of_rows(module: FileFacts, function: _Function) -> Iterator[tuple[str, Node]]:
    params = [param.name.value for param in function.params.params if param.name.value != "self"]
    if not params:
        return

    def is_row(node: Node) -> bool:
        """Whether an expression is one of the rows: the target of a loop over them, or `rows[0]`."""
        if isinstance(node, cst.Subscript):
            return is_name(node.value, params[0]) and literal_key(node) is None
        binding = module.names.definition(node) if isinstance(node, cst.Name) else None
        loop = binding.node if binding is not None else None
        return isinstance(loop, (cst.For, cst.CompFor)) and is_name(loop.iter, params[0])

    yield from _read(module, function, is_row)


def _read(
    module: FileFacts, function: _Function, is_mapping: Callable[[Node], bool]
) -> Iterator[tuple[str, Node]]:
    """The literal keys that a function reads of some mappings, where a missing one raises, but for those that it sets."""
    found: dict[Node, str] = {}
    written: set[str] = set()
    for node in module.tree.within(function, cst.Subscript, cst.Call):
        if isinstance(node, cst.Subscript):
            key, owner = literal_key(node), node.value
        elif called_name(node) == "pop" and isinstance(node.func, cst.Attribute) and len(node.args) == 1:
            key, owner = literal_text(node.args[0].value), node.func.value
        else:
            continue
        if key is not None and is_mapping(owner):
            if _is_written(module, node):
                written.add(key)
            else:
                found[node] = key
    yield from ((key, node) for node, key in found.items() if key not in written)


def _is_written(module: FileFacts, node: Node) -> bool:
    return isinstance(module.tree.parent[node], (cst.AssignTarget, cst.Del))
