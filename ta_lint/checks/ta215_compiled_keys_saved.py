"""TA215: the state of a wrapped model is saved under its wrapper's keys, and loaded without a wrapper."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Origin
from ta_lint.facts.values.vocabulary import PREPARER_NAMES
from ta_lint.syntax.edits import ProposedFix, insert_after
from ta_lint.syntax.tree import Node, argument, dotted, literal_text

KEYWORDS = ("state_dict", "save")
AROUND = (("compile", "DataParallel", "DistributedDataParallel", "prepare"),)

_PREFIXES = {
    "torch.compile": "_orig_mod",
    "torch.nn.DataParallel": "module",
    "torch.nn.parallel.DataParallel": "module",
    "torch.nn.parallel.DistributedDataParallel": "module",
    "torch.nn.parallel.distributed.DistributedDataParallel": "module",
}

# What shows that code knows of the keys: it takes the model out of its wrapper, or a prefix off the keys.
_KNOWS = frozenset(
    "_orig_mod consume_prefix_in_state_dict_if_present extract_model_from_parallel get_model_state_dict module "
    "get_state_dict removeprefix unwrap_model unwrap lstrip".split()
)


@dataclass(frozen=True, eq=False)
class _Saved:
    """`state`, of a wrapped model whose class is `made`, saved to `path`: by itself, or under a key of a dictionary."""

    state: cst.Call
    model: cst.BaseExpression
    prefix: str
    is_certain: bool
    made: cst.Call
    key: str | None
    path: Node | None


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _knows(module, module.tree.root):
        return
    for saved in _Keys(module).saved:
        load = _bare_load(saved, module)
        if load is None:
            continue
        model = module.code(saved.model)
        message = (
            f"the keys of `{model}` begin with `{saved.prefix}.`, which the model that loads lacks: "
            f"save `{model}.{saved.prefix}`"
        )
        related = ((load, "loaded here"),) if module.is_here(load) else ()
        code = f".{saved.prefix}"
        fix = ProposedFix(f"save `{model}{code}`", (insert_after(saved.model, code),))
        yield Suspicion(saved.state, message, related, fix if saved.is_certain else None)


def _knows(module: FileFacts, root: cst.Module) -> bool:
    """Whether a file takes models out of their wrappers, or prefixes off keys."""
    names = (name.value for name in module.tree.within(root, cst.Name))
    if not _KNOWS.isdisjoint(names):
        return True
    texts = (literal_text(text) or "" for text in module.tree.within(root, cst.SimpleString))
    return any(
        text in ("module", "_orig_mod") or text.startswith(("module.", "_orig_mod.")) for text in texts
    )


class _Keys:
    """What a file saves of wrapped models."""

    def __init__(self, module: FileFacts) -> None:
        self._module = module

    @cached_property
    def saved(self) -> list[_Saved]:
        return [
            found
            for call in self._module.calls_to("torch.save")
            for key, value in self._entries(argument(call, "obj", 0))
            if (found := self._of(value, key, argument(call, "f", 1))) is not None
        ]

    def _entries(self, saved: Node | None) -> Iterator[tuple[str | None, Node]]:
        """The states in what is saved, each with its key."""
        origins = self._module.flow.of(saved).origins if saved is not None else ()
        for node in (origin.node for origin in origins if not origin.path):
            if isinstance(node, cst.Dict):
                for element in node.elements:
                    if (
                        isinstance(element, cst.DictElement)
                        and (key := literal_text(element.key)) is not None
                    ):
                        yield key, element.value
            else:
                yield None, node

    def _of(self, value: Node, key: str | None, path: Node | None) -> _Saved | None:
        state = self._module.kinds.origin(value)
        if not isinstance(state, cst.Call) or called_name(state) != "state_dict" or state.args:
            return None
        if not isinstance(state.func, cst.Attribute) or not self._module.is_here(state):
            return None
        model = state.func.value
        origins = self._module.flow.of(model).tensors
        wrapped = [found for origin in origins if (found := self._wrapped(origin)) is not None]
        made = next((one for _, inner in wrapped if (one := self._maker(inner)) is not None), None)
        if made is None:
            return None
        prefixes = [prefix for prefix, _ in wrapped]
        is_certain = len(wrapped) == len(origins) == 1 and not self._is_prepared(origins[0])
        return _Saved(state, model, prefixes[-1], is_certain, made, key, path)

    def _maker(self, model: Node) -> cst.Call | None:
        """The call that makes a model, below the wrappers that it may have on one way or the other."""
        if (made := self._module.kinds.construction(model)) is not None:
            return made
        origins = self._module.flow.of(model).tensors
        made_here = [one for one in origins if not one.path and self._wrapped(one) is None]
        return next((one.node for one in made_here if isinstance(one.node, cst.Call)), None)

    def _wrapped(self, origin: Origin) -> tuple[str, Node] | None:
        """The prefix that a wrapper gives the keys of a model, and the model."""
        call = origin.node
        if not isinstance(call, cst.Call) or not call.args or any(arg.star for arg in call.args):
            return None
        prefix = _PREFIXES.get(self._module.qualified(call.func) or "")
        if prefix is not None and not origin.path:
            return prefix, call.args[0].value
        place = origin.path[0] if origin.path else 0
        if self._is_prepared(origin) and len(origin.path) <= 1 and isinstance(place, int):
            return ("module", call.args[place].value) if place < len(call.args) else None
        return None

    def _is_prepared(self, origin: Origin) -> bool:
        """Whether Accelerate wraps a model, which it does in a run of several processes."""
        call = origin.node
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return False
        receiver = (dotted(call.func.value) or "").rpartition(".")[2]
        return call.func.attr.value == "prepare" and receiver in PREPARER_NAMES


def _bare_load(saved: _Saved, module: FileFacts) -> cst.Call | None:
    """The call that loads what was saved into a model of the same class without a wrapper."""
    for root in _users(saved, module):
        if root is not module.tree.root and _knows(module, root):
            continue
        for call in module.tree.within(root, cst.Call):
            if called_name(call) == "load_state_dict" and _loads(call, saved, module):
                return call
    return None


def _users(saved: _Saved, module: FileFacts) -> list[cst.Module]:
    """The files that may make a model of the same class: this one, that of the class, and those that import the class."""
    klass = module.classes.local(saved.made.func)
    if klass is None:
        return [module.tree.root]
    importers = module.names.importers(klass, "load_state_dict") if module.tree.is_at_top(klass) else []
    return list(dict.fromkeys([module.tree.root, module.tree.root_of(klass), *importers]))


def _loads(call: cst.Call, saved: _Saved, module: FileFacts) -> bool:
    given = argument(call, "state_dict", 0)
    if not isinstance(call.func, cst.Attribute) or given is None:
        return False
    return _is_of_file(given, saved, module) and _is_bare(call.func.value, saved, module)


def _is_of_file(state: Node, saved: _Saved, module: FileFacts) -> bool:
    """Whether a state is read from the file that was saved, as far as its key or name says so."""
    origins = module.flow.of(state).origins
    for origin in origins:
        read = origin.node
        if not isinstance(read, cst.Call) or module.qualified(read.func) != "torch.load":
            return False
        if origin.path != ((saved.key,) if saved.key is not None else ()):
            return False
        if saved.key is None and not _is_same_path(saved.path, argument(read, "f", 0), module):
            return False
    return bool(origins)


def _is_same_path(one: Node | None, other: Node | None, module: FileFacts) -> bool:
    """Whether two paths are of one variable, or end in the same name."""
    if one is None or other is None:
        return False
    if dotted(one) is not None and dotted(one) == dotted(other) and module.is_here(other):
        return True
    names = _file_names(one, module)
    return bool(names) and not names.isdisjoint(_file_names(other, module))


def _file_names(path: Node, module: FileFacts) -> set[str]:
    """The names of files in a path, as far as the source has them: `last.pth` in `f"{folder}/last.pth"`."""
    found = (
        text
        for way in (path, *(origin.node for origin in module.flow.of(path).origins))
        for part in module.parts.of(way)
        for text in module.tree.within(part, cst.SimpleString, cst.FormattedStringText)
    )
    texts = (
        text.value if isinstance(text, cst.FormattedStringText) else literal_text(text) for text in found
    )
    names = (PurePosixPath(text).name for text in texts if text is not None)
    return {name for name in names if "." in name}


def _is_bare(model: Node, saved: _Saved, module: FileFacts) -> bool:
    """Whether a model is of the saved one's class, and is not wrapped on any way that leads there."""
    origins = module.flow.of(model).tensors
    makers = [origin.node for origin in origins if isinstance(origin.node, cst.Call) and not origin.path]
    if not makers or len(makers) < len(origins):
        return False
    return all(_is_same_class(saved.made, maker, module) for maker in makers)


def _is_same_class(one: cst.Call, other: Node, module: FileFacts) -> bool:
    made = module.kinds.construction(other)
    if not isinstance(other, cst.Call) or made is None or module.qualified(other.func) in _PREFIXES:
        return False
    if isinstance(other.func, cst.Attribute) and other.func.attr.value == "prepare":
        return False
    klass = module.classes.local(one.func)
    if klass is not None:
        return module.classes.local(made.func) is klass
    called = module.qualified(one.func)
    return called is not None and module.qualified(made.func) == called
