"""Data loaders: how each `DataLoader` of a file is built, and which loops iterate over its batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.edits import Edit, set_argument
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, Tree, argument, is_name, spreads

# That of PyTorch Geometric is a subclass with the same first parameters.
_LOADER = regex(
    r"torch\.utils\.data\.(dataloader\.)?DataLoader|torch_geometric\.(data|loader)\.(\w+\.)?DataLoader"
)
_PARAMETERS = (
    "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last timeout "
    "worker_init_fn multiprocessing_context generator"
).split()

# Wrappers that yield the items of their first argument; `log_every` is that of torchvision's reference scripts.
_GOES_THROUGH = regex(r"builtins\.(enumerate|iter)|tqdm\.(\w+\.)*tqdm(_notebook)?|rich\.progress\.track")
_GOES_THROUGH_METHOD = "log_every"

# Datasets that return the samples of another dataset.
_VIEWS = frozenset({"torch.utils.data.Subset", "torch.utils.data.random_split"})

# Frameworks that replace a `DataLoader` with their own: other sampler, pinning and device.
_REPLACING = regex(r"(accelerate|lightning|pytorch_lightning|lightning_fabric|composer|ray|determined)(\.|$)")

_DEPTH = 8
_CALLERS_DEEP = 3


@dataclass(frozen=True, eq=False)
class LoaderCall:
    """A call of `DataLoader`."""

    call: cst.Call

    def given(self, parameter: str) -> cst.BaseExpression | None:
        """The argument of a parameter, passed by keyword or by position."""
        return argument(self.call, parameter, _PARAMETERS.index(parameter))

    def switched_on(self, parameter: str) -> Edit | None:
        """The edit that sets a parameter to True if it is missing or literally False; else None."""
        given = self.given(parameter)
        plain = given is None or is_name(given, "False")
        return set_argument(self.call, parameter, "True", given) if plain else None

    @property
    def spreads(self) -> bool:
        """Whether `**options` may pass any parameter."""
        return spreads(self.call)

    @property
    def has_sampler(self) -> bool:
        """Whether a sampler chooses the samples, or may: one is given, and be it `None` by a setting."""
        return any(self.given(name) is not None for name in ("sampler", "batch_sampler"))


@dataclass(frozen=True, eq=False)
class LoaderLoop:
    """A loop over the batches of known loaders."""

    loop: cst.For
    loaders: tuple[LoaderCall, ...]

    @property
    def batch(self) -> cst.BaseAssignTargetExpression:
        """The loop target that receives the batch, without the index of `enumerate`."""
        target, iterable = self.loop.target, self.loop.iter
        while isinstance(iterable, cst.Call) and iterable.args:
            if called_name(iterable) == "enumerate" and isinstance(target, cst.Tuple):
                inner = target.elements[-1].value
                return inner if isinstance(inner, (cst.Name, cst.Tuple, cst.List)) else target
            iterable = iterable.args[0].value
        return target

    def part(self, name: cst.Name) -> int | None:
        """The index of the batch element that the loop unpacks into a variable: 1 for `y` in `for x, y in loader`."""
        if not isinstance(self.batch, (cst.Tuple, cst.List)):
            return None
        parts = [element.value for element in self.batch.elements]
        named = [part.value if isinstance(part, cst.Name) else None for part in parts]
        starred = any(isinstance(element, cst.StarredElement) for element in self.batch.elements)
        return named.index(name.value) if name.value in named and not starred else None


class Loaders:
    """Queries about the loaders of a file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._by_call: dict[cst.Call, LoaderCall | None] = {}
        self._passes: dict[cst.For, LoaderLoop | None] = {}
        self.all = self.made_in(tree.root)
        self.replaced = any(_REPLACING.match(name) for name in names.imported_by(tree.root))
        """Whether a framework that this file imports may put another loader in the place of each."""

    def made_in(self, root: cst.Module) -> list[LoaderCall]:
        """The loaders that a file makes, in source order."""
        made = (self._loader(call) for call in self._tree.within(root, cst.Call))
        return [loader for loader in made if loader is not None]

    @cached_property
    def passes(self) -> list[LoaderLoop]:
        """The `for` statements of a file that makes loaders over batches whose loaders are all known, in source order."""
        if not self.all:
            return []
        return [found for loop in self._tree.all(cst.For) if (found := self._pass(loop)) is not None]

    @cached_property
    def measured(self) -> set[Node]:
        """What the calls of this file make whose length the same function takes."""
        lengths = (call for call in self._tree.all(cst.Call) if called_name(call) == "len" and call.args)
        made = ((self._kinds.construction(call.args[0].value), call) for call in lengths)
        return {
            one for one, call in made if one is not None and self._tree.home(one) is self._tree.home(call)
        }

    def _pass(self, loop: cst.For) -> LoaderLoop | None:
        """The loop over batches that a `for` is, if its loaders are all known."""
        if loop not in self._passes:
            loaders = self.behind(loop.iter)
            self._passes[loop] = LoaderLoop(loop, tuple(loaders)) if loaders else None
        return self._passes[loop]

    def _loader(self, call: cst.Call) -> LoaderCall | None:
        """The loader that a call of this file, or of another one, makes."""
        if not isinstance(call.func, (cst.Name, cst.Attribute)):
            return None
        if call not in self._by_call:
            is_loader = _LOADER.fullmatch(self._names.qualified(call.func) or "") is not None
            self._by_call[call] = LoaderCall(call) if is_loader else None
        return self._by_call[call]

    def passes_over(self, loader: LoaderCall) -> list[LoaderLoop]:
        """The loops over the batches of a loader, in this file or in those that get the loader from it."""
        own = [found for found in self.passes if loader in found.loaders]
        return own or [found for found in self._passes_elsewhere(loader) if loader in found.loaders]

    def _passes_elsewhere(self, loader: LoaderCall) -> Iterator[LoaderLoop]:
        for root in self.users(loader.call):
            if root is not self._tree.root:
                found = map(self._pass, self._tree.within(root, cst.For))
                yield from (one for one in found if one is not None)

    def users(self, node: Node) -> list[cst.Module]:
        """The files that may use what a node makes: its own, those of the functions that call its function, and those of the
        functions that these call."""
        calls = self._kinds.calls
        found: dict[cst.Module, None] = {self._tree.root_of(node): None}
        pending, seen = [self._tree.home(node)], set[Node]()
        while pending:
            home = pending.pop()
            if home in seen:
                continue
            seen.add(home)
            called = (calls.callee(call) for call in self._tree.own(home, cst.Call))
            found.update(
                dict.fromkeys(self._tree.root_of(function) for function in called if function is not None)
            )
            sites = calls.sites(home) if isinstance(home, cst.FunctionDef) else []
            found.update(dict.fromkeys(self._tree.root_of(site) for site in sites))
            pending += [self._tree.home(site) for site in sites]
        return list(found)

    def shuffles(self, loader: LoaderCall) -> bool | None:
        """Whether a loader is asked to shuffle; None if a setting decides."""
        shuffle = loader.given("shuffle")
        return self._kinds.boolean(shuffle) if shuffle is not None else None if loader.spreads else False

    def loops_around(self, node: Node, depth: int = _CALLERS_DEEP) -> list[cst.For | cst.While]:
        """The loops that run a node repeatedly: those around it, and those around calls of its function."""
        around = list(self._tree.loops(node))
        home = self._tree.home(node)
        if depth and isinstance(home, cst.FunctionDef):
            for site in self._kinds.calls.sites(home):
                around += self.loops_around(site, depth - 1)
        return around

    def pass_of(self, name: cst.Name) -> LoaderLoop | None:
        """The loop whose batch, or one of its elements, a variable certainly is."""
        binding = self._names.definition(name)
        for _ in range(_DEPTH):
            if binding is None:
                return None
            if binding.how == "for":
                return self._pass_that_binds(binding.node, name.value)
            if binding.how != "unpack" or not isinstance(binding.value, cst.Name):
                return None
            name = binding.value  # images, labels = batch
            binding = self._names.definition(name)
        return None

    def _pass_that_binds(self, loop: Node, name: str) -> LoaderLoop | None:
        """The batch loop behind a `for`: its own, or that of a comprehension over a batch."""
        if isinstance(loop, cst.For):
            found = self._pass(loop)
            held = {part.value for part in self._tree.within(found.batch, cst.Name)} if found else set()
            if name in held:
                return found
        if not isinstance(loop, (cst.For, cst.CompFor)):
            return None
        iterable = loop.iter
        if isinstance(iterable, cst.Call) and isinstance(iterable.func, cst.Attribute) and not iterable.args:
            iterable = iterable.func.value  # batch.items()
        return self.pass_of(iterable) if isinstance(iterable, cst.Name) else None

    # -- which loader -----------------------------------------------------------------------------------------

    def behind(self, node: Node, depth: int = _DEPTH) -> list[LoaderCall]:
        """All loaders that an iterable may be; empty if one of them is unknown."""
        found: dict[LoaderCall, None] = {}
        for value in self.alternatives(node) if depth else []:
            loaders = self._behind_call(value, depth) if isinstance(value, cst.Call) else []
            if not loaders:
                return []
            found.update(dict.fromkeys(loaders))
        return list(found)

    def alternatives(self, node: Node, depth: int = _DEPTH) -> list[Node]:
        """All values that an expression may have, `None` aside; an expression that cannot be resolved yields itself."""
        origin = self._kinds.origin(node)
        values: list[Node] = []
        if isinstance(origin, cst.Param):
            values = self._kinds.calls.given(origin) or []
        elif isinstance(origin, cst.IfExp):
            values = [origin.body, origin.orelse]
        elif isinstance(origin, cst.Subscript):
            values = self._chosen(origin)
        elif isinstance(origin, cst.Name):
            if is_name(origin, "None"):
                return []
            bindings = self._names.bindings(origin)
            if all(binding.how in ("assign", "param") for binding in bindings):
                bound = [binding.node if binding.how == "param" else binding.value for binding in bindings]
                values = [value for value in bound if value is not None]
        if not values or depth == 0:
            return [origin]
        return [found for value in values for found in self.alternatives(value, depth - 1)]

    def _behind_call(self, call: cst.Call, depth: int) -> list[LoaderCall]:
        through = _GOES_THROUGH.fullmatch(self._names.qualified(call.func) or "") is not None
        if call.args and not call.args[0].star and (through or called_name(call) == _GOES_THROUGH_METHOD):
            return self.behind(call.args[0].value, depth - 1)
        made = self._kinds.construction(call)
        loader = self._loader(made) if made is not None else None
        return [loader] if loader is not None else []

    def _chosen(self, subscript: cst.Subscript) -> list[Node]:
        """The values that `loaders["train"]` may have in a dictionary literal; all of them for `loaders[phase]`."""
        held = self._kinds.origin(subscript.value)
        if isinstance(held, cst.DictComp):
            return [held.value]
        if not isinstance(held, cst.Dict):
            return []
        entries = [item for item in held.elements if isinstance(item, cst.DictElement)]
        if len(entries) < len(held.elements):
            return []  # {**others}
        index = subscript.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            entries = [item for item in entries if plain(item.key) == plain(index.value)]
        return [item.value for item in entries]

    # -- which dataset ----------------------------------------------------------------------------------------

    def dataset(self, loader: LoaderCall) -> Node | None:
        """The expression that creates a loader's samples, looking through `Subset` and `random_split`."""
        given = loader.given("dataset")
        return self.samples(given) if given is not None else None

    def samples(self, dataset: Node) -> Node:
        """The expression that creates a dataset's samples, looking through `Subset` and `random_split`."""
        for _ in range(_DEPTH):
            made = self._kinds.construction(dataset) or self._kinds.origin(dataset)
            if isinstance(made, cst.Name) and (binding := self._names.definition(made)) is not None:
                if binding.how != "unpack" or not isinstance(binding.value, cst.Call):
                    return made
                made = binding.value  # train, val = random_split(...)
            if not isinstance(made, cst.Call) or not made.args:
                return made
            if self._names.qualified(made.func) not in _VIEWS:
                return made
            dataset = made.args[0].value
        return dataset

    def dataset_class(self, loader: LoaderCall) -> cst.ClassDef | None:
        """The class of this file that a loader's dataset is an instance of."""
        made = self.dataset(loader)
        return self._classes.local(made.func) if isinstance(made, cst.Call) else None
