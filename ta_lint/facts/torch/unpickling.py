"""Calls that unpickle files of torch, which runs any code in them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.torch.provenance import Foreign, Provenance
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, Tree, argument, dotted, is_name, spreads

# Functions that read a pickle, whichever library wrote it.
READS_PICKLE = regex(
    r"(_?pickle|cPickle|pickle5|dill|cloudpickle|joblib)\.loads?|pandas\.read_pickle",
)

_PICKLE_MODULE = 2  # torch.load(f, map_location, pickle_module, *, weights_only, mmap, ...)

# Functions that pass `weights_only` to `torch.load`, and the argument that names the file.
_LOADERS = {
    "torch.hub.load_state_dict_from_url": ("url", 0),
    "torch.utils.model_zoo.load_url": ("url", 0),
    "accelerate.utils.load": ("f", 0),
    "accelerate.utils.other.load": ("f", 0),
}
_FROM_URL = frozenset({"torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"})

# Methods that do the same on any object: no other library has these with a `weights_only`.
_METHODS = {
    "load_from_checkpoint": ("checkpoint_path", 0),
    "from_pretrained": ("pretrained_model_name_or_path", 0),
}
# Methods of Lightning's trainer that read a checkpoint if they get one.
_RUNS = frozenset({"fit", "validate", "test", "predict"})
_FABRIC = regex(r"lightning(\.\w+)*\.Fabric|lightning_fabric(\.\w+)*\.Fabric")
_FABRIC_LOADS = frozenset({"load", "load_raw"})

# The attribute names that these functions and methods have.
_NAMES = {name.rpartition(".")[2] for name in _LOADERS} | _METHODS.keys() | _RUNS | _FABRIC_LOADS


@dataclass(frozen=True, eq=False)
class Unpickled:
    """A call that unpickles: its source, the reason, and whether `weights_only=True` can restrict it."""

    call: cst.Call
    source: Node | None
    why: str
    can_restrict: bool


class Unpickling:
    """The calls of a file that unpickle what torch saved. `targets_before` tests which releases it supports."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        kinds: Kinds,
        flow: ValueFlow,
        provenance: Provenance,
        targets_before: Callable[[int, int], bool],
    ) -> None:
        self._tree = tree
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._provenance = provenance
        self._targets_before = targets_before

    @cached_property
    def calls(self) -> list[Unpickled]:
        """The calls that certainly unpickle, unless the same function has just written the file."""
        found = map(self._unpickled, self._tree.all(cst.Call))
        return [read for read in found if read is not None and not self._was_just_saved(read)]

    def foreign(self, read: Unpickled) -> Foreign | None:
        """The outside source that a call unpickles, if any."""
        if self._names.qualified(read.call.func) in _FROM_URL:
            return self._provenance.foreign(read.call)
        return self._provenance.foreign(read.source) if read.source is not None else None

    def _unpickled(self, call: cst.Call) -> Unpickled | None:
        name = called_name(call)
        if isinstance(call.func, cst.Attribute) and name not in _NAMES:
            return None
        called = self._names.qualified(call.func)
        place = self._place(call, name, called) if called != "torch.load" else ("f", 0)
        weights_only = self._flow.passed(call, "weights_only") if place is not None else None
        if spreads(call) and weights_only is None:
            return None  # perhaps it is in `**kwargs`
        if called == "torch.load":
            return self._by_torch(call, weights_only)
        if place is None or weights_only is None or self._kinds.boolean(weights_only) is not False:
            return None
        why = (
            f"`{name}` with `weights_only=False` runs whatever code the file holds: load only files you trust"
        )
        source = argument(call, *place)
        return Unpickled(call, source, why, can_restrict=True) if not is_name(source, "None") else None

    def _place(self, call: cst.Call, name: str | None, called: str | None) -> tuple[str, int | None] | None:
        """The file argument of a loader other than `torch.load`; None for any other call."""
        if called in _LOADERS:
            return _LOADERS[called]
        if not isinstance(call.func, cst.Attribute) or name is None:
            return None
        if name in _METHODS:
            return _METHODS[name]
        if name in _RUNS and argument(call, "ckpt_path") is not None:
            return "ckpt_path", None
        return ("path", 0) if name in _FABRIC_LOADS and self._is_fabric(call.func.value) else None

    def _is_fabric(self, node: Node) -> bool:
        made = self._kinds.construction(node)
        if made is not None:
            return _FABRIC.fullmatch(self._names.qualified(made.func) or "") is not None
        named = (dotted(node) or "").rpartition(".")[2] == "fabric"
        return named and any(name.startswith("lightning") for name in self._names.imported)

    def _by_torch(self, call: cst.Call, weights_only: Node | None) -> Unpickled | None:
        pickle_module = _given(argument(call, "pickle_module", _PICKLE_MODULE))
        why = self._why(_given(weights_only), pickle_module)
        can_restrict = pickle_module is None and not self._targets_before(1, 13)
        return Unpickled(call, argument(call, "f", 0), why, can_restrict) if why is not None else None

    def _why(self, weights_only: Node | None, pickle_module: Node | None) -> str | None:
        """Why `torch.load` unpickles; None if it does not, or if that is uncertain."""
        if weights_only is not None:
            return (
                "`weights_only=False` runs whatever code the file holds: drop it, or load only files you trust"
                if self._kinds.boolean(weights_only) is False
                else None
            )
        if pickle_module is not None:  # switches the default of weights_only back to False
            known = self._names.qualified(pickle_module) is not None
            return (
                "`torch.load` with a `pickle_module` runs whatever code the file holds: drop it"
                if known
                else None
            )
        if self._targets_before(1, 13):
            return (
                "`torch.load` runs whatever code the file holds, and torch before 1.13 has no `weights_only`"
            )
        if self._targets_before(2, 6):
            return "`torch.load` without `weights_only` runs whatever code the file holds, before torch 2.6: set it to `True`"
        return None

    def _was_just_saved(self, read: Unpickled) -> bool:
        """Whether the same function has just written the file, which is then safe to read."""
        if read.source is None:
            return False
        tree, home = self._tree, self._tree.home(read.call)
        name = plain(read.source)
        return any(
            tree.home(save) is home
            and tree.before(save, read.call)
            and (target := argument(save, "f", 1)) is not None
            and plain(target) == name
            for save in self._saves
        )

    @cached_property
    def _saves(self) -> list[cst.Call]:
        return [call for call in self._tree.all(cst.Call) if self._names.qualified(call.func) == "torch.save"]


def _given(value: Node | None) -> Node | None:
    """An argument unless it is `None`, which both parameters treat as the default."""
    return None if is_name(value, "None") else value
