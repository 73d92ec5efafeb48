"""Whether code asks if its module trains or evaluates."""

import re

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.values.classes import Classes
from ta_lint.syntax.tree import Node, Tree

_MODE = regex(r"training|train|eval|(is_|do_|in_|for_)(training|train|eval)(_mode)?|deterministic|inference")

# Methods that run in training alone, and layers that are random on purpose.
_TRAINS = regex(
    r"train|augment|perturb|corrupt|mc_|_mc|monte|sample|bayes|stochastic|uncertain", re.IGNORECASE
)


class Modes:
    """The mode of modules in the code of their methods."""

    def __init__(self, tree: Tree, classes: Classes) -> None:
        self._tree = tree
        self._classes = classes

    def always_on(self, node: Node) -> bool:
        """Whether code in a method of a module runs alike in training and in evaluation.

        Not if the method asks for the mode anywhere, or if its own name or its class's says that it is random on
        purpose.
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
        """Whether a mention of the mode stands at or below a node."""
        return any(_MODE.fullmatch(name.value) for name in self._tree.within(node, cst.Name))
