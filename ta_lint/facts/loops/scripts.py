"""Scripts: files that train when they run, and their training loops."""

from functools import cached_property

import libcst as cst

from ta_lint.facts.loops.loops import Loop, Loops, TrainingLoop
from ta_lint.facts.values.calls import Calls, called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.loaders import Loaders
from ta_lint.syntax.tree import Node, Tree

# Executing a definition does not run its body.
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)

_CALLERS_DEEP = 4  # functions between a script and what it trains with


class Scripts:
    """The training that a file does when it runs, if it is a training script."""

    def __init__(self, tree: Tree, classes: Classes, calls: Calls, loops: Loops, loaders: Loaders) -> None:
        self._tree = tree
        self._classes = classes
        self._calls = calls
        self._loops = loops
        self._loaders = loaders

    @cached_property
    def training(self) -> list[TrainingLoop]:
        """The training loops that run when the file runs, or else a script that imports it, in source order; empty for a file
        of a library.

        A function counts as run if code that runs mentions it, because it may be called there or passed to a caller.
        """
        own = [loop for loop in self._loops.training if self._runs(loop.region)]
        found = own or [loop for loop in self._loops.training if self._is_run_elsewhere(loop.region)]
        return sorted(found, key=lambda loop: self._tree.order(loop.region))

    @cached_property
    def is_one_of_several(self) -> bool:
        """Whether the training of this file runs in a script that imports it, and not when the file itself runs."""
        return not any(self._runs(loop.region) for loop in self._loops.training)

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
        """The `entry` of a script that does all of its training itself.

        None if a framework may do some of it unseen, if no model is asked for its parameters (the script optimizes an image),
        or if the loop is a method of a model: libraries have such models, and the script is a demonstration.
        """
        if not any((called_name(call) or "").endswith("parameters") for call in self._tree.all(cst.Call)):
            return None
        is_method = self.training and any(
            self._tree.contains(klass, self.training[0].region) for klass in self._classes.modules()
        )
        return self.entry if self._loops.framework is None and not is_method else None

    @cached_property
    def run(self) -> list[Node]:
        """The code of this file that may run when the file runs: top-level statements, and functions."""
        reached: dict[Node, None] = {
            statement: None for statement in self._tree.root.body if not isinstance(statement, _DEFINITIONS)
        }
        pending = [statement for statement in reached if not self._is_table(statement)]
        while pending:
            mentioned = [
                function
                for _, function in self._loops.mentions(pending.pop())
                if self._tree.root_of(function) is self._tree.root
            ]
            pending += [function for function in dict.fromkeys(mentioned) if function not in reached]
            reached.update(dict.fromkeys(mentioned))
        return list(reached)

    def _is_table(self, statement: Node) -> bool:
        """Whether a statement only names functions for others to call: `TRAINERS = {"gan": train_gan}`."""
        return not self._tree.within(statement, cst.Call)

    def reaches(self, node: Node) -> bool:
        """Whether a node runs when its file runs, or a script that imports it."""
        return self._runs(node) or self._is_run_elsewhere(node)

    def _is_run_elsewhere(self, node: Node, depth: int = _CALLERS_DEEP) -> bool:
        """Whether the code at the top of another file calls the function of a node, itself or through others."""
        function = node if isinstance(node, cst.FunctionDef) else self._tree.home(node)
        if not isinstance(function, cst.FunctionDef) or depth == 0:
            return False
        sites = [site for site in self._calls.sites(function) if not self._tree.contains(function, site)]
        return any(
            self._tree.root_of(site) is not self._tree.root
            if self._tree.is_at_top(site)
            else self._is_run_elsewhere(site, depth - 1)
            for site in sites
        )

    def _runs(self, region: Node) -> bool:
        return any(id(node) in self._running for node in (region, *self._tree.ancestors(region)))

    @cached_property
    def _running(self) -> set[int]:
        return set(map(id, self.run))


def header(loop: Loop) -> Node:
    """The part of a loop to point at: its iterable or its condition."""
    return loop.iter if isinstance(loop, cst.For) else loop.test
