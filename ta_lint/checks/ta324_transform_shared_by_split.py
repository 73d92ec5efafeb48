"""TA324: subsets of one dataset set a transform each, but share the last one."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("dataset", ("random_split", "Subset"))

_SPLIT = "torch.utils.data.random_split"
_SUBSET = "torch.utils.data.Subset"
_JOINS = frozenset(("builtins.dict", "builtins.enumerate", "builtins.list", "builtins.tuple", "builtins.zip"))
_DEPTH = 4


@dataclass(frozen=True)
class _Setting:
    """`subset.dataset.attribute = value`."""

    statement: cst.Assign
    subset: str
    attribute: str
    value: str


def check(module: FileFacts) -> Iterator[Suspicion]:
    settings = list(_settings(module))
    groups = list(_groups(module))
    yield from _in_loops(groups, module)
    for group in groups:
        for attribute in dict.fromkeys(setting.attribute for setting in settings):
            ours = [one for one in settings if one.attribute == attribute and one.subset in group]
            if not ours or len({one.value for one in ours}) < len(group) == len({one.subset for one in ours}):
                continue
            *others, last = ours
            with_others = ", ".join(f"`{name}`" for name in group if name != last.subset)
            message = f"`{last.subset}` and {with_others} share one dataset, so this sets `{attribute}` for all: build the dataset twice"
            related = tuple((other.statement, "and overwrites this") for other in others)
            yield Suspicion(last.statement, message, related)


def _in_loops(groups: list[tuple[str, ...]], module: FileFacts) -> Iterator[Suspicion]:
    """A loop over the parts that does nothing but give each a value of its own: `for name, part in parts.items()`."""
    for statement in module.tree.all(cst.Assign):
        loop, setting = module.tree.enclosing(statement, cst.For), _setting(statement)
        if loop is None or setting is None or not _is_alone(statement, loop):
            continue
        names = {name.value for name in module.tree.within(loop.target, cst.Name)}
        others = names - {setting.subset}
        is_own = any(name.value in others for name in module.tree.within(statement.value, cst.Name))
        if is_own and setting.subset in names and _holds(loop.iter, groups, module):
            message = f"these parts share one dataset, so the last `{setting.attribute}` is that of all: build the dataset twice"
            yield Suspicion(statement, message)


def _is_alone(statement: cst.Assign, loop: cst.For) -> bool:
    """Whether it is all that a loop does."""
    lines = loop.body.body
    return (
        len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) and [*lines[0].body] == [statement]
    )


def _holds(several: Node, groups: list[tuple[str, ...]], module: FileFacts, depth: int = _DEPTH) -> bool:
    """Whether a container has the parts of one dataset, or is put together from one that does: `dict(zip(names, parts))`."""
    made = module.kinds.origin(several)
    if isinstance(made, (cst.Tuple, cst.List, cst.Dict)):
        every = [one.value for one in made.elements]
        every += [inner.value for one in every if isinstance(one, cst.Tuple) for inner in one.elements]
        names = set(map(dotted, every))
        return any(len(names.intersection(group)) > 1 for group in groups)
    if not isinstance(made, cst.Call) or not depth:
        return False
    if module.qualified(made.func) == _SPLIT:
        return True
    inner = [arg.value for arg in made.args]
    if isinstance(made.func, cst.Attribute) and made.func.attr.value in ("items", "values"):
        inner.append(made.func.value)
    elif module.qualified(made.func) not in _JOINS:
        return False
    return any(_holds(one, groups, module, depth - 1) for one in inner)


def _settings(module: FileFacts) -> Iterator[_Setting]:
    """The assignments to attributes of the datasets behind subsets, outside of loops."""
    for statement in module.tree.all(cst.Assign):
        if not module.tree.loops(statement) and (setting := _setting(statement)) is not None:
            yield setting


def _setting(statement: cst.Assign) -> _Setting | None:
    target = statement.targets[0].target
    if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Attribute):
        return None
    subset = dotted(target.value.value)
    if target.value.attr.value != "dataset" or subset is None:
        return None
    return _Setting(statement, subset, target.attr.value, plain(statement.value))


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
