"""TA324: subsets of one dataset set a transform each, but share the last one."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import dotted

KEYWORDS = ("dataset", ("random_split", "Subset"))

_SPLIT = "torch.utils.data.random_split"
_SUBSET = "torch.utils.data.Subset"


@dataclass(frozen=True)
class _Setting:
    """`subset.dataset.attribute = value`."""

    statement: cst.Assign
    subset: str
    attribute: str
    value: str


def check(module: FileFacts) -> Iterator[Suspicion]:
    settings = list(_settings(module))
    for group in _groups(module):
        for attribute in dict.fromkeys(setting.attribute for setting in settings):
            ours = [one for one in settings if one.attribute == attribute and one.subset in group]
            if not ours or len({one.value for one in ours}) < len(group) == len({one.subset for one in ours}):
                continue
            *others, last = ours
            with_others = ", ".join(f"`{name}`" for name in group if name != last.subset)
            message = f"`{last.subset}` and {with_others} share one dataset, so this sets `{attribute}` for all: build the dataset twice"
            related = tuple((other.statement, "and overwrites this") for other in others)
            yield Suspicion(last.statement, message, related)


def _settings(module: FileFacts) -> Iterator[_Setting]:
    """The assignments to attributes of the datasets behind subsets, outside of loops."""
    for statement in module.tree.all(cst.Assign):
        target = statement.targets[0].target
        if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Attribute):
            continue
        subset = dotted(target.value.value)
        if target.value.attr.value == "dataset" and subset is not None and not module.tree.loops(statement):
            yield _Setting(statement, subset, target.attr.value, plain(statement.value))


def _groups(module: FileFacts) -> Iterator[tuple[str, ...]]:
    """The names of subsets that read one dataset: the results of one split, or subsets of one variable."""
    by_dataset: dict[str, list[str]] = {}
    for statement in module.tree.all(cst.Assign):
        target, value = statement.targets[0].target, statement.value
        if not isinstance(value, cst.Call) or not value.args:
            continue
        called = module.qualified(value.func)
        if called == _SPLIT and isinstance(target, cst.Tuple):
            names = [dotted(element.value) for element in target.elements]
            if None not in names and "_" not in names:
                yield from _own(tuple(name for name in names if name is not None), module)
        elif called == _SUBSET and (name := dotted(target)) and (read := dotted(value.args[0].value)):
            by_dataset.setdefault(read, []).append(name)
    for names_ in by_dataset.values():
        yield from _own(tuple(dict.fromkeys(names_)), module)


def _own(names: tuple[str, ...], module: FileFacts) -> list[tuple[str, ...]]:
    """The group, if there are several and none of them gets its own dataset: `val.dataset = deepcopy(dataset)`."""
    replaced = {
        dotted(item.target) for statement in module.tree.all(cst.Assign) for item in statement.targets
    }
    return [names] if len(names) > 1 and not any(f"{name}.dataset" in replaced for name in names) else []
