"""Scripts: files that train when they are run, and the training that they do."""

from functools import cached_property

import libcst as cst

from ta_lint.facts.loops.loops import Loop, Loops, TrainingLoop
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.loaders import Loaders
from ta_lint.syntax.tree import Node, Tree

# To come to a definition is not to run it.
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)


class Scripts:
    """Whether a file is a training entry point: one whose own training loop runs when the file does."""

    def __init__(self, tree: Tree, classes: Classes, loops: Loops, loaders: Loaders) -> None:
        self._tree = tree
        self._classes = classes
        self._loops = loops
        self._loaders = loaders

    @cached_property
    def training(self) -> list[TrainingLoop]:
        """The training loops that run when the file is run, in source order; empty for a library's file.

        A function counts as run where code that runs mentions it: it may be called, or handed to what calls it.
        """
        found = [loop for loop in self._loops.training if self._runs(loop.region)]
        return sorted(found, key=lambda loop: self._tree.order(loop.region))

    def around(self, training: TrainingLoop) -> list[Loop]:
        """The loops that repeat a training step in this file, the innermost first: over batches, over epochs."""
        region = training.region
        inner = [region] if not isinstance(region, cst.FunctionDef) else []
        outer = self._loaders.loops_around(region if inner else region.body)
        return list(dict.fromkeys([*inner, *outer]))

    @cached_property
    def entry(self) -> Loop | None:
        """The outermost loop of the first training; None where the file is no training entry point."""
        return self.around(self.training[0])[-1] if self.training else None

    @cached_property
    def own_entry(self) -> Loop | None:
        """The `entry` of a script that does all by itself.

        None too where a framework may do some of it unseen, where no model is asked for its parameters (an image is
        optimized), and where the loop is a method of a model that comes with its own training, as libraries have them:
        what runs here is a demonstration.
        """
        if not any((called_name(call) or "").endswith("parameters") for call in self._tree.all(cst.Call)):
            return None
        is_method = self.training and any(
            self._tree.contains(klass, self.training[0].region) for klass in self._classes.modules()
        )
        return self.entry if self._loops.framework is None and not is_method else None

    @cached_property
    def run(self) -> list[Node]:
        """The code of this file that may run when it is run: statements of the top level, and functions."""
        reached: dict[Node, None] = {
            statement: None for statement in self._tree.root.body if not isinstance(statement, _DEFINITIONS)
        }
        pending = [statement for statement in reached if not self._is_table(statement)]
        while pending:
            mentioned = [function for _, function in self._loops.mentions(pending.pop())]
            pending += [function for function in dict.fromkeys(mentioned) if function not in reached]
            reached.update(dict.fromkeys(mentioned))
        return list(reached)

    def _is_table(self, statement: Node) -> bool:
        """Whether a statement only names functions for others to call: `TRAINERS = {"gan": train_gan}`."""
        return not self._tree.within(statement, cst.Call)

    def _runs(self, region: Node) -> bool:
        return any(self._tree.contains(node, region) for node in self.run)


def header(loop: Loop) -> Node:
    """Where to point at a loop: what it goes over, or asks."""
    return loop.iter if isinstance(loop, cst.For) else loop.test
