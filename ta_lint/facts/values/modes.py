"""Dependence on the mode: whether code asks if its module is training, and whether a module has layers that do."""

import re

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument

_MODE = regex(r"training|train|eval|(is_|do_|in_|for_)(training|train|eval)(_mode)?|deterministic|inference")

# Methods that run only in training, and layers that are random by design.
_TRAINS = regex(
    r"train|augment|perturb|corrupt|mc_|_mc|monte|sample|bayes|stochastic|uncertain", re.IGNORECASE
)

# Layers and models that behave differently in training and evaluation.
_DEPENDS_ON_MODE = regex(
    r"torch\.nn\.(\w*Dropout\w*|\w*BatchNorm\w*|RReLU|Transformer\w*)|torch\.nn\.functional\.\w*dropout\w*|"
    r"torchvision\.models\.(?!detection)(\w+\.)*[a-z]\w*|timm\.(models\.)?(\w+\.)*create_model|"
    r"pytorch_fid\.(inception\.)?InceptionV3"
)
_MAKES_LAYERS = regex(r"(^|\.)[A-Z]\w*$|from_pretrained|create_model|build_\w+|make_\w+|get_\w*model\w*")


class Modes:
    """Whether the code of a module's methods, or a module, depends on its mode."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, kinds: Kinds) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds

    def always_on(self, node: Node) -> bool:
        """Whether code in a module's method runs in both training and evaluation.

        False if the method tests the mode anywhere, or if its own name or that of its class says that it is random by
        design.
        """
        method = self._classes.method_around(node)
        if method is None:
            return False
        klass = self._tree.home(method)
        return (
            isinstance(klass, cst.ClassDef)
            and self._classes.derives(klass, "torch.nn.Module")
            and not _TRAINS.search(method.name.value)
            and not _TRAINS.search(klass.name.value)
            and not self.asks(method)
        )

    def asks(self, node: Node) -> bool:
        """Whether a node, or anything below it, mentions the mode."""
        return any(_MODE.fullmatch(name.value) for name in self._tree.within(node, cst.Name))

    def depends(self, made: cst.Call) -> bool | None:
        """Whether the module that a call makes has layers that depend on the mode; None if the project does not show them."""
        return self._depends(made, ())

    def _depends(self, call: cst.Call, seen: tuple[Node, ...]) -> bool | None:
        maker = self._classes.local(call.func) or self._kinds.calls.callee(call)
        qualified = self._names.qualified(call.func) or ""
        if maker is None and qualified != "torch.nn.Sequential":
            depends = self._is_such_a_layer(call)
            return depends if depends or qualified.startswith("torch.nn.") else None
        if maker in seen:
            return False
        inside = [found for found in self._tree.within(maker or call, cst.Call) if found is not call]
        inside += self._named_parts(call) if maker is None else []
        if any(self._is_such_a_layer(found) for found in inside):
            return True
        within = (*seen, maker) if maker is not None else seen
        parts = [self._depends(found, within) for found in inside if self._may_make_layers(found)]
        return True if any(parts) else None if None in parts else False

    def _named_parts(self, sequence: cst.Call) -> list[cst.Call]:
        """The calls that make the layers which a sequence gets by name: `encoder` of `nn.Sequential(encoder, head)`."""
        named = (arg.value for arg in sequence.args if isinstance(arg.value, (cst.Name, cst.Attribute)))
        return [made for one in named if (made := self._kinds.construction(one)) is not None]

    def _may_make_layers(self, call: cst.Call) -> bool:
        """Whether a call in a model may make a part of it: of a class or function, or by a name that nobody knows."""
        called = call.func
        if (self._names.qualified(called) or "").startswith(("torch.", "builtins.")):
            return False
        name = called.attr if isinstance(called, cst.Attribute) else called
        if isinstance(name, cst.Name) and _MAKES_LAYERS.search(name.value):
            return True
        if not isinstance(called, cst.Name):
            return False
        return not self._names.bindings(called) or self._defined(call)

    def _defined(self, call: cst.Call) -> bool:
        """Whether a call runs a class or function of the project."""
        return self._classes.local(call.func) is not None or self._kinds.calls.callee(call) is not None

    def _is_such_a_layer(self, call: cst.Call) -> bool:
        qualified = self._names.qualified(call.func) or ""
        if _DEPENDS_ON_MODE.fullmatch(qualified) is None:
            return False
        share = argument(call, "p", 0) if qualified.startswith("torch.nn.Dropout") else None
        return share is None or self._kinds.number(share) != 0
