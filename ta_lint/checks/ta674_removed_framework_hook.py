"""TA674: a method of a Lightning class has the name of a hook that Lightning 2 removed: it is never called, or it raises."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.lightning import RAISING
from ta_lint.syntax.tree import Node

_OF_BOTH = {
    "on_batch_end": "on_train_batch_end",
    "on_batch_start": "on_train_batch_start",
    "on_epoch_end": "on_train_epoch_end",
    "on_epoch_start": "on_train_epoch_start",
    "on_pretrain_routine_end": "on_fit_start",
    "on_pretrain_routine_start": "on_fit_start",
}
_OF_MODULES = _OF_BOTH | {
    "test_step_end": "on_test_batch_end",
    "training_step_end": "training_step",
    "validation_step_end": "on_validation_batch_end",
}
_OF_CALLBACKS = _OF_BOTH | {
    "on_configure_sharded_model": "setup",
    "on_init_end": "setup",
    "on_init_start": "setup",
    "on_keyboard_interrupt": "on_exception",
}

KEYWORDS = (tuple(RAISING | _OF_MODULES | _OF_CALLBACKS),)
AROUND = (("lightning", "pytorch_lightning"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if "lightning" in module.old_frameworks or module.targets_before(
        1, 11
    ):  # the release that Lightning 2 needs
        return
    if "__version__" in module.source.text:
        return
    found = [one for klass in module.lightning.modules for one in _removed(module, klass, _OF_MODULES)]
    found += [one for klass in module.lightning.callbacks for one in _removed(module, klass, _OF_CALLBACKS)]
    if found and not any(facts.lightning.is_of_1 for facts in module.script):
        yield from found


def _removed(module: FileFacts, klass: cst.ClassDef, silent: dict[str, str]) -> Iterator[Suspicion]:
    methods = module.classes.methods(klass)
    raising = [methods[name] for name in RAISING if name in methods] if silent is _OF_MODULES else []
    lineage = module.lightning.lineage(klass)
    if lineage is None or any(_is_of_lightning_1(module, one) for one in lineage):
        return
    for method in raising:
        name = method.name.value
        message = f"Lightning 2 raises at a `{name}`; use `{RAISING[name]}`"
        if not _is_used(module, klass, name):
            yield Suspicion(method.name, message, is_note=True)
    for name, instead in silent.items():
        if name in methods and not raising and not _is_used(module, klass, name):
            yield Suspicion(methods[name].name, f"Lightning 2 never calls `{name}`; use `{instead}`")


def _is_of_lightning_1(module: FileFacts, klass: cst.ClassDef) -> bool:
    """Whether a module trains by several optimizers as it was before Lightning 2, which raises at it."""
    hooks = (module.lightning.hook(klass, name) for name in ("training_step", "optimizer_step"))
    params = [param for hook in hooks if hook is not None for param in hook.params.params]
    return any(param.name.value == "optimizer_idx" for param in params)


def _is_used(module: FileFacts, klass: cst.ClassDef, name: str) -> bool:
    """Whether code calls a method of a class directly, or gives it another name."""
    elsewhere = module.classes.mentions_elsewhere(klass, name)
    if elsewhere is None:
        return True
    above = [
        node
        for one in module.lightning.lineage(klass) or ()
        for node in module.tree.within(one, cst.Attribute)
        if node.attr.value == name
    ]
    named: list[Node] = [*module.classes.mentions(name), *elsewhere, *above]
    named += [one for one in module.tree.own(klass, cst.Name) if one.value == name and _is_value(module, one)]
    return any(not _is_inherited(module, one) for one in named)


def _is_value(module: FileFacts, name: cst.Name) -> bool:
    return isinstance(module.tree.parent[name], (cst.Assign, cst.Arg, cst.Element))


def _is_inherited(module: FileFacts, node: Node) -> bool:
    """Whether a method only calls the one it overrides: `super().on_epoch_end()`."""
    return isinstance(node, cst.Attribute) and module.code(node.value).startswith("super(")
