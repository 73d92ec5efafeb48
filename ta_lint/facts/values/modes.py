"""Whether code asks if its module is training or evaluating."""

import re

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.syntax.tree import Node, Tree

_MODE = regex(r"training|train|eval|(is_|do_|in_|for_)(training|train|eval)(_mode)?|deterministic|inference")

# Methods that run only in training, and layers that are random by design.
_TRAINS = regex(
    r"train|augment|perturb|corrupt|mc_|_mc|monte|sample|bayes|stochastic|uncertain", re.IGNORECASE
)


class Modes:
    """Whether the code of a module's methods depends on its mode."""

    def __init__(self, tree: Tree, classes: Classes) -> None:
        self._tree = tree
        self._classes = classes

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
