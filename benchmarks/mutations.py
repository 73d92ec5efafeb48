"""One way for each loop rule to break a healthy training loop: the bugs of `mutation.py`.

A mutation looks for what it breaks by the words that users write, not by what the checks know; only the loop itself is
found by `ta_lint.facts`. What it makes is certainly the bug that the rule's page describes, or it makes nothing.

TA617 and TA618 have none. The first, opt-in, says that nothing in a file clips, as half of the healthy loops do not and
need not: that is no bug to plant. The second compares numbers that stand far from the loop.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import libcst as cst
from gradient_writes import GradientWrites

from ta_lint.facts import FileFacts, Kind, TrainingLoop
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, children, dotted

_CLIPS = re.compile(r"clip_?grad_?(norm|value)?_?")
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_MODEL = re.compile(
    r"(\w*_)?(model|net|network|actor|critic|policy|encoder|decoder|[GD])(_\w+)?", re.IGNORECASE
)
_ACCUMULATION = re.compile(r"accum", re.IGNORECASE)
_HIDDEN = re.compile(r"\w*(hidden|state|mems|memory)\w*|h|hx|cx", re.IGNORECASE)
_AVERAGE = re.compile(r"ema|averag|polyak|soft_update|momentum_update|target", re.IGNORECASE)
_MEASURES = re.compile(r"loss|acc|correct|metric|score", re.IGNORECASE)
_DIFFERENTIATES = ("backward", "manual_backward", "grad", "gradcheck", "jacobian", "hessian", "vjp", "jvp")
_LAYERS_WITH_MODES = re.compile(r"\b\w*(Dropout|BatchNorm)\w*\b|from_pretrained|torchvision\.models|timm\.")
_PER_BATCH = re.compile(r"OneCycleLR|CyclicLR|get_\w*schedule\w*")
_PER_EPOCH = re.compile(r"StepLR|MultiStepLR|ExponentialLR")


class Edit(NamedTuple):
    """`text` in the place of what stands between two offsets into a file."""

    start: int
    end: int
    text: str


class Text:
    """A parsed file as text: where its nodes stand, and edits of them."""

    def __init__(self, module: FileFacts) -> None:
        source = module.source
        self.module = module
        self.tree = module.tree
        self._span = module.places.span
        self._lines = source.lines
        self._starts = list(accumulate(map(len, map(str.__add__, source.lines, source.line_ends)), initial=0))

    def edited(self, edits: Iterable[Edit]) -> str | None:
        """The text with edits made; None if two of them overlap, or if nothing changes."""
        text = self.module.source.text
        parts: list[str] = []
        done = 0
        for edit in sorted(set(edits), key=lambda edit: edit[:2]):
            if edit.start < done:
                return None
            parts += [text[done : edit.start], edit.text]
            done = edit.end
        made = "".join([*parts, text[done:]])
        return made if made != text else None

    def line(self, node: Node) -> int:
        """The line that a node starts on, from 1."""
        return self._span(node).line

    def last_line(self, node: Node) -> int:
        return self._span(node).end_line

    def swapped(self, node: Node, code: str) -> Edit:
        """`code` in the place of a node."""
        place = self._span(node)
        start = self._starts[place.line - 1] + place.column - 1
        return Edit(start, self._starts[place.end_line - 1] + place.end_column - 1, code)

    def gone(self, node: Node) -> list[Edit]:
        """A simple statement becomes `pass`, so that its block never gets empty."""
        return [self.swapped(self.tree.statement(node), "pass")]

    def before(self, node: Node, code: str) -> list[Edit]:
        """Lines before the statement of a node; empty where it shares its line."""
        statement = self.tree.statement(node)
        line = self.line(statement)
        indent = self._lines[line - 1][: self._span(statement).column - 1]
        if indent.strip():
            return []
        start = self._starts[line - 1]
        return [Edit(start, start, self._indented(code, indent))]

    def after(self, node: Node, code: str) -> list[Edit]:
        """Lines after the statement of a node, and after its whole body; empty where it shares its lines."""
        statement = self.tree.statement(node)
        place = self._span(statement)
        indent = self._lines[place.line - 1][: place.column - 1]
        small = [found for found in self.tree.within(statement, *_SMALL) if found is not statement]
        last = self.last_line(small[-1] if small else statement)
        if indent.strip() or last >= len(self._starts) - 1 or self._shares(statement):
            return []
        start = self._starts[last]
        return [Edit(start, start, self._indented(code, indent))]

    def dedented(self, block: cst.With) -> list[Edit]:
        """The body of a `with` without the `with`; empty where the body is on its line."""
        if not isinstance(block.body, cst.IndentedBlock):
            return []
        column = self._span(block).column
        first = self.line(block.body.body[0])
        deeper = self._span(block.body.body[0]).column - column
        last = max(self.last_line(found) for found in self.tree.within(block.body, *_SMALL))
        start = self._starts[self.line(block) - 1]
        edits = [Edit(start, self._starts[first - 1], "")]
        for number in range(first, last + 1):
            if self._lines[number - 1][:deeper].isspace():
                offset = self._starts[number - 1]
                edits.append(Edit(offset, offset + deeper, ""))
        return edits

    def without_line(self, node: Node) -> Edit:
        """The lines of a node go, whatever else stands on them."""
        return Edit(self._starts[self.line(node) - 1], self._starts[self.last_line(node)], "")

    def code(self, node: Node) -> str:
        return self.module.verbatim(node)

    def _indented(self, code: str, indent: str) -> str:
        newline = self.module.source.newline
        return "".join(f"{indent}{line}{newline}" for line in code.split("\n"))

    def _shares(self, statement: Node) -> bool:
        line = self.tree.parent.get(statement)
        return isinstance(statement, cst.BaseSmallStatement) and not (
            isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
        )


_SMALL = (
    cst.AnnAssign, cst.Assert, cst.Assign, cst.AugAssign, cst.Break, cst.Continue, cst.Del, cst.Expr, cst.Global,
    cst.Import, cst.ImportFrom, cst.Nonlocal, cst.Pass, cst.Raise, cst.Return,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Site:
    """A training loop to break."""

    text: Text
    loop: TrainingLoop

    @property
    def module(self) -> FileFacts:
        return self.text.module

    @property
    def region(self) -> Node:
        return self.loop.region

    @cached_property
    def _epoch(self) -> tuple[Node, Node] | None:
        """The loop around the one that steps, in its function or where that is called; and what trains in it."""
        tree = self.module.tree
        for inner in self.loop.loops:
            for loop in tree.loops(inner)[:1]:
                return loop, inner
        homes = {tree.home(inner) for inner in self.loop.loops}
        for call in tree.all(cst.Call):
            loops = tree.loops(call)
            if loops and self.module.calls.callee(call) in homes:
                return loops[0], call
        return None

    @property
    def outer(self) -> Node | None:
        """The loop over epochs around the one that steps."""
        return self._epoch[0] if self._epoch is not None else None

    @property
    def training(self) -> Node | None:
        """What trains in a pass of the loop over epochs: the loop that steps, or the call that leads to it."""
        return self._epoch[1] if self._epoch is not None else None

    @cached_property
    def reached(self) -> list[Node]:
        """The region, the functions around it and those of this file that they name, two calls deep."""
        tree = self.module.tree
        functions: dict[str, list[Node]] = {}
        for function in tree.all(cst.FunctionDef):
            functions.setdefault(function.name.value, []).append(function)
        homes = [tree.home(loop) for loop in self.loop.loops]
        found: dict[Node, None] = dict.fromkeys([self.region, *homes, *([self.outer] if self.outer else [])])
        for _ in range(2):
            for node in list(found):
                for name in tree.within(node, cst.Name):
                    found.update(dict.fromkeys(functions.get(name.value, [])))
        return list(found)

    def statements(self, node: Node, *names: str) -> list[cst.Call]:
        """The calls below a node, of these methods, that are statements."""
        calls = self.module.tree.within(node, cst.Call)
        return [call for call in calls if called_name(call) in names and self.is_statement(call)]

    def clearings(self) -> list[cst.Call]:
        """The `zero_grad()` statements that this loop runs, or that run around it; empty if others are left."""
        tree = self.module.tree
        others = [loop.region for loop in self.module.training_loops if loop is not self.loop]
        found: dict[cst.Call, None] = {}
        for node in self.reached:
            for call in self.statements(node, "zero_grad"):
                beside = any(
                    tree.contains(other, call)
                    and not tree.contains(other, self.region)
                    and not tree.contains(self.region, other)
                    for other in others
                )
                if not beside:
                    found[call] = None
        calls = list(found)
        for node in self.reached:
            named = (name for name in tree.within(node, cst.Name) if "zero_grad" in name.value)
            for clearing in (*named, *GradientWrites(tree).within(node)):
                if not any(tree.contains(call, clearing) for call in calls) and tree.contains(
                    self.region, clearing
                ):
                    return []
        return calls

    def backward(self) -> cst.Call | None:
        """The one backward pass of the region as a statement."""
        calls = self.loop.backwards
        return calls[0] if len(calls) == 1 and self.is_statement(calls[0]) else None

    def loss(self, backward: cst.Call) -> str | None:
        """The name of what a backward pass starts from; of a scaled loss, of the loss."""
        receiver = backward.func.value if isinstance(backward.func, cst.Attribute) else None
        if isinstance(receiver, cst.Call) and receiver.args:
            receiver = receiver.args[0].value
        if backward.args and backward.args[0].keyword is None:
            receiver = backward.args[0].value
        return receiver.value if isinstance(receiver, cst.Name) else None

    def definition(self, name: str, before: Node) -> cst.Assign | None:
        """The last assignment of a name in the region before a node, in the block of the node or one around it."""
        tree = self.module.tree
        found = [
            assign
            for assign in tree.own(self.region, cst.Assign)
            if [dotted(item.target) for item in assign.targets] == [name]
            and tree.before(assign, before)
            and tree.contains(tree.block(assign), before)
        ]
        return found[-1] if found else None

    def is_statement(self, call: cst.Call) -> bool:
        tree = self.module.tree
        statement = tree.parent[call]
        line = tree.parent.get(statement)
        return (
            isinstance(statement, cst.Expr)
            and isinstance(line, cst.SimpleStatementLine)
            and len(line.body) == 1
        )


Mutation = Callable[[Site], Iterator[list[Edit]]]


# -- clearing gradients ---------------------------------------------------------------------------------------


def ta600(site: Site) -> Iterator[list[Edit]]:
    """every `zero_grad()` in the loop and around it is deleted"""
    yield [edit for call in site.clearings() for edit in site.text.gone(call)]


def ta601(site: Site) -> Iterator[list[Edit]]:
    """`zero_grad()` is moved between `backward()` and `step()`"""
    tree = site.module.tree
    step, backward = site.loop.steps[0], site.backward()
    if backward is None or len(site.loop.steps) != 1 or not tree.before(backward, step.call):
        return
    clears = [
        call
        for call in site.clearings()
        if isinstance(call.func, cst.Attribute) and dotted(call.func.value) == dotted(step.optimizer)
    ]
    if clears and dotted(step.optimizer) is not None and site.is_statement(step.call):
        moved = site.text.before(step.call, site.text.code(clears[0]))
        yield [*moved, *(edit for call in clears for edit in site.text.gone(call))] if moved else []


def ta602(site: Site) -> Iterator[list[Edit]]:
    """`zero_grad()` is moved out of the loop over batches, to where the epoch begins"""
    tree, clears = site.module.tree, site.clearings()
    inside = [call for call in clears if tree.contains(site.region, call)]
    if not inside or len(site.loop.loops) != 1:
        return
    loop = site.loop.loops[0]
    code = site.text.code(inside[0])
    if loop is not site.region and not code.startswith("self."):
        return
    moved = site.text.before(loop, code)
    yield [*moved, *(edit for call in clears for edit in site.text.gone(call))] if moved else []


# -- calls ----------------------------------------------------------------------------------------------------


def ta603(site: Site) -> Iterator[list[Edit]]:
    """the parentheses of `step`, `backward`, `zero_grad`, `eval` or `train` are dropped"""
    for name in ("step", "backward", "zero_grad", "eval", "train"):
        calls = site.statements(site.outer or site.region, name)
        for call in [call for call in calls if not call.args and isinstance(call.func, cst.Attribute)][:1]:
            yield [site.text.swapped(call, site.text.code(call.func))]


# -- clipping and scaling -------------------------------------------------------------------------------------


def _clips(site: Site) -> list[cst.Call]:
    calls = site.module.tree.own(site.region, cst.Call)
    return [call for call in calls if _CLIPS.fullmatch(called_name(call) or "")]


def ta604(site: Site) -> Iterator[list[Edit]]:
    """the clipping is moved behind the step"""
    tree = site.module.tree
    for clip in [call for call in _clips(site) if site.is_statement(call)][:1]:
        steps = [step.call for step in site.loop.steps if tree.before(clip, step.call)]
        together = [call for call in steps if tree.contains(tree.block(clip), call)]
        if together:
            siblings = children(tree.block(clip))
            place = next(found for found in siblings if tree.contains(found, together[0]))
            moved = site.text.after(_statement(place), site.text.code(clip))
            yield [*moved, *site.text.gone(clip)] if moved else []


def ta605(site: Site) -> Iterator[list[Edit]]:
    """`scaler.unscale_(optimizer)` is deleted, and the gradients are still clipped"""
    if _clips(site):
        calls = site.statements(site.region, "unscale_")
        yield [edit for call in calls for edit in site.text.gone(call)]


def ta606(site: Site) -> Iterator[list[Edit]]:
    """`scaler.step(optimizer)` becomes `optimizer.step()`, or `scaler.update()` is deleted"""
    scaled = [step for step in site.loop.steps if step.call.args]
    if scaled:
        yield [site.text.swapped(step.call, f"{site.text.code(step.optimizer)}.step()") for step in scaled]
        calls = [call for call in site.statements(site.region, "update") if not call.args]
        yield [edit for call in calls for edit in site.text.gone(call)]


# -- schedulers -----------------------------------------------------------------------------------------------


def _schedules(site: Site, place: Node) -> list[cst.Call]:
    """The calls of a scheduler's `step()` that are statements in the own body of a place."""
    own = site.module.tree.own(place, cst.Call)
    return [
        call
        for call in site.statements(place, "step")
        if not call.args
        and call in own
        and isinstance(call.func, cst.Attribute)
        and _SCHEDULER.search(site.text.code(call.func.value))
    ]


def _made_by(site: Site, scheduler: cst.Call) -> str:
    """The code that builds a scheduler, as far as this file shows it."""
    assert isinstance(scheduler.func, cst.Attribute)
    made = site.module.kinds.construction(scheduler.func.value)
    return site.text.code(made.func) if made is not None else ""


def ta607(site: Site) -> Iterator[list[Edit]]:
    """`scheduler.step()` is moved before `optimizer.step()`, or before the loop over the batches of an epoch"""
    tree, step = site.module.tree, site.loop.steps[0].call
    inside = [call for call in _schedules(site, site.region) if tree.before(step, call)]
    if inside and site.is_statement(step):
        siblings = children(tree.block(inside[0]))
        place = next((sibling for sibling in siblings if tree.contains(sibling, step)), step)
        moved = site.text.before(_statement(place), site.text.code(inside[0]))
        yield [*moved, *site.text.gone(inside[0])] if moved else []
    elif site.outer is not None and site.training is not None:
        training = tree.statement(site.training)
        outside = [
            call
            for call in _schedules(site, site.outer)
            if not tree.contains(training, call) and tree.before(training, call)
        ]
        if outside:
            moved = site.text.before(training, site.text.code(outside[0]))
            yield [*moved, *site.text.gone(outside[0])] if moved else []


def ta608(site: Site) -> Iterator[list[Edit]]:
    """a scheduler that counts batches is stepped once per epoch, or one that counts epochs once per batch"""
    tree, step = site.module.tree, site.loop.steps[0].call
    if site.outer is None or site.training is not site.region:
        return
    for call in _schedules(site, site.outer):
        made = _made_by(site, call)
        code = site.text.code(call)
        if tree.contains(site.region, call) and _PER_BATCH.search(made):
            moved = site.text.after(site.region, code)
        elif not tree.contains(site.region, call) and _PER_EPOCH.search(made) and site.is_statement(step):
            moved = site.text.after(step, code)
        else:
            continue
        yield [*moved, *site.text.gone(call)] if moved else []


# -- accumulation ---------------------------------------------------------------------------------------------


def _guards(site: Site) -> list[cst.If]:
    """The conditions with a modulus around a step."""
    tree = site.module.tree
    return [
        branch
        for branch in tree.own(site.region, cst.If)
        if any(tree.contains(branch.body, step.call) for step in site.loop.steps)
        and any(isinstance(op.operator, cst.Modulo) for op in tree.within(branch.test, cst.BinaryOperation))
    ]


def ta609(site: Site) -> Iterator[list[Edit]]:
    """the loss is no longer divided by the number of accumulated batches"""
    tree = site.module.tree
    counts = {
        site.text.code(operation.right)
        for guard in _guards(site)
        for operation in tree.within(guard.test, cst.BinaryOperation)
        if isinstance(operation.operator, cst.Modulo)
    }
    edits: list[Edit] = []
    for operation in tree.own(site.region, cst.BinaryOperation):
        left, right = site.text.code(operation.left), site.text.code(operation.right)
        if isinstance(operation.operator, cst.Divide) and right in counts and "loss" in left:
            above = tree.parent[operation]
            is_rebound = isinstance(above, cst.Assign) and site.text.code(above.targets[0].target) == left
            edits += site.text.gone(above) if is_rebound else [site.text.swapped(operation, left)]
    for statement in tree.own(site.region, cst.AugAssign):
        if isinstance(statement.operator, cst.DivideAssign) and site.text.code(statement.value) in counts:
            edits += site.text.gone(statement)
    yield edits


def ta610(site: Site) -> Iterator[list[Edit]]:
    """the incomplete accumulation at the end of an epoch is no longer stepped"""
    tree = site.module.tree
    for guard in _guards(site):
        test = guard.test
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
            for side in (test.left, test.right):
                operations = tree.within(side, cst.BinaryOperation)
                if any(isinstance(operation.operator, cst.Modulo) for operation in operations):
                    yield [site.text.swapped(test, site.text.code(side).strip())]
                    break


# -- modes and evaluation -------------------------------------------------------------------------------------


def _receiver(call: cst.Call) -> str | None:
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None


def _modes(site: Site, name: str) -> list[cst.Call]:
    """The `eval()` or `train()` statements of the epoch, and of the functions of this file that it calls."""
    repeated = site.outer or site.region
    functions = [node for node in site.reached if isinstance(node, cst.FunctionDef)]
    called = [function for function in functions if not site.module.tree.contains(function, repeated)]
    calls = dict.fromkeys(call for place in (repeated, *called) for call in site.statements(place, name))
    return [call for call in calls if not call.args or site.text.code(call.args[0]) == "True"]


def ta611(site: Site) -> Iterator[list[Edit]]:
    """`train()` is deleted where each epoch calls `eval()`

    Not in a test, which may do that on purpose.
    """
    if site.outer is not None and not site.module.is_test:
        evaluated = {_last(call) for call in _modes(site, "eval")}
        trains = [call for call in _modes(site, "train") if _last(call) in evaluated]
        yield [edit for call in trains for edit in site.text.gone(call)]


def ta612(site: Site) -> Iterator[list[Edit]]:
    """`eval()` before an evaluation under `no_grad` is deleted, of a model that trains and has layers that need it

    Not in a test. A model that nothing in the file puts into training mode, as an average of weights, is in evaluation
    mode too; one for which a condition chooses the mode is in neither for certain.
    """
    if site.module.is_test or not _LAYERS_WITH_MODES.search(site.module.source.text):
        return
    tree = site.module.tree
    trained = {_last(call) for call in tree.all(cst.Call) if called_name(call) == "train"}
    evals = [call for call in _modes(site, "eval") if _last(call) in trained]
    chosen = {_last(call) for call in evals if _is_chosen(site, call)}
    evaluated = {_last(call) for call in evals if _no_grad_after(site, call) is not None}
    calls = [call for call in evals if _last(call) in evaluated - chosen]  # one that is left would do for all
    yield [edit for call in calls for edit in site.text.gone(call)]


def _last(call: cst.Call) -> str:
    """`model` of `self.model.eval()`"""
    return (_receiver(call) or "").rpartition(".")[2]


def _is_chosen(site: Site, call: cst.Call) -> bool:
    """Whether a condition chooses between `eval()` and `train()`."""
    tree = site.module.tree
    branches = [
        above for above in tree.ancestors(call) if isinstance(above, cst.If) and above.orelse is not None
    ]
    return any(
        called_name(other) == "train" and not tree.contains(tree.block(call), other)
        for branch in branches
        for other in tree.within(branch, cst.Call)
    )


def _is_no_grad(node: Node) -> bool:
    name = called_name(node) if isinstance(node, cst.Call) else None
    return name in ("no_grad", "inference_mode")


def ta613(site: Site) -> Iterator[list[Edit]]:
    """an evaluation is no longer under `no_grad`

    It is one if it measures something: a loss, an accuracy. Code that returns what a model puts out, or takes samples
    from it, may run under the `no_grad` of its caller or of the model's own method. Not in a test.
    """
    for call in _modes(site, "eval") if not site.module.is_test else []:
        place = _no_grad_after(site, call)
        if place is None or not any(
            _MEASURES.search(name.value) for name in site.module.tree.within(place, cst.Name)
        ):
            continue
        if isinstance(place, cst.With):
            edits = site.text.dedented(place)
        else:
            decorators = [item for item in place.decorators if _is_no_grad(item.decorator)]
            edits = [site.text.without_line(decorators[0])]
        if edits:
            yield edits
            return


def _no_grad_after(site: Site, call: cst.Call) -> cst.With | cst.FunctionDef | None:
    """The `no_grad` around or after an `eval()`: the function that it decorates, or a `with`."""
    tree = site.module.tree
    function = tree.home(call)
    if isinstance(function, cst.FunctionDef) and any(
        _is_no_grad(item.decorator) for item in function.decorators
    ):
        return function
    place = site.outer if site.outer is not None and tree.contains(site.outer, call) else function
    for block in tree.own(place, cst.With):
        bare = len(block.items) == 1 and _is_no_grad(block.items[0].item)
        if (
            bare
            and (tree.before(call, block) or tree.contains(block, call))
            and not _holds_long_strings(site, block)
        ):
            return block
    return None


def _holds_long_strings(site: Site, block: cst.With) -> bool:
    """Whether a block has a string over several lines, whose text is not to be dedented."""
    return any("\n" in string.value for string in site.module.tree.within(block, cst.SimpleString))


# -- the graph ------------------------------------------------------------------------------------------------


def ta206(site: Site) -> Iterator[list[Edit]]:
    """`.item()` or `.detach()` is dropped where a loss is summed up or kept"""
    backward = site.backward()
    loss = site.loss(backward) if backward is not None else None
    for call in site.module.tree.own(site.region, cst.Call) if loss is not None else []:
        if (
            called_name(call) not in ("item", "detach")
            or call.args
            or not isinstance(call.func, cst.Attribute)
        ):
            continue
        target = _keeper(site, call)
        if dotted(call.func.value) == loss and target is not None and not _is_bound_in(site, target):
            yield [site.text.swapped(call, site.text.code(call.func.value))]
            return


def _keeper(site: Site, value: cst.Call) -> str | None:
    """The name that a value, or a multiple of it, is added or appended to."""
    above = site.module.tree.parent[value]
    if isinstance(above, cst.BinaryOperation):
        above = site.module.tree.parent[above]
    if isinstance(above, cst.AugAssign) and isinstance(above.operator, cst.AddAssign):
        return dotted(above.target)
    call = site.module.tree.parent[above] if isinstance(above, cst.Arg) else None
    if isinstance(call, cst.Call) and called_name(call) == "append" and isinstance(call.func, cst.Attribute):
        return dotted(call.func.value)
    return None


def _is_bound_in(site: Site, name: str) -> bool:
    """Whether each pass of a loop binds a name anew."""
    items = site.module.tree.own(site.region, cst.AssignTarget)
    return any(dotted(item.target) == name for item in items)


def ta211(site: Site) -> Iterator[list[Edit]]:
    """the only `backward()` of a loop gets `retain_graph=True`

    Not where the loop is in another function, nor where a helper differentiates too. Not in a test.
    """
    backward, tree = site.backward(), site.module.tree
    if (
        backward is None
        or backward.args
        or not isinstance(site.region, (cst.For, cst.While))
        or site.module.is_test
    ):
        return
    names = {name.value for name in tree.within(site.region, cst.Name)}
    helpers = [found for found in tree.all(cst.FunctionDef) if found.name.value in names]
    calls = [call for place in (site.region, *helpers) for call in tree.own(place, cst.Call)]
    if not any(called_name(call) in _DIFFERENTIATES for call in calls if call is not backward):
        yield [site.text.swapped(backward, f"{site.text.code(backward.func)}(retain_graph=True)")]


def ta502(site: Site) -> Iterator[list[Edit]]:
    """the loss is detached before `backward()`"""
    backward = site.backward()
    loss = site.loss(backward) if backward is not None else None
    made = site.definition(loss, backward) if loss is not None and backward is not None else None
    if made is not None and not isinstance(made.value, cst.Name):
        code = site.text.code(made.value)
        simple = isinstance(made.value, (cst.Call, cst.Attribute))
        yield [site.text.swapped(made.value, f"{code if simple else f'({code})'}.detach()")]


def ta503(site: Site) -> Iterator[list[Edit]]:
    """the loss is made to require a gradient before `backward()`"""
    backward = site.backward()
    loss = site.loss(backward) if backward is not None else None
    if loss is not None and backward is not None:
        yield site.text.before(backward, f"{loss}.requires_grad_()")
        yield site.text.before(backward, f"{loss}.requires_grad = True")


def ta505(site: Site) -> Iterator[list[Edit]]:
    """the forward pass of the training step is put under `no_grad`"""
    tree, backward = site.module.tree, site.backward()
    no_grad = site.module.spelled("torch.no_grad", at=backward) if backward is not None else None
    if backward is None or no_grad is None or no_grad[1]:
        return
    for assign in tree.own(site.region, cst.Assign):
        value = assign.value
        if isinstance(value, cst.Call) and tree.before(assign, backward) and _is_model(site, value):
            if not tree.contains(tree.block(assign), backward) or not _feeds(site, assign, backward):
                continue
            code = site.text.code(assign)
            if "\n" not in code:
                yield [site.text.swapped(assign, f"with {no_grad[0]}(): {code}")]
                return


def _is_model(site: Site, call: cst.Call) -> bool:
    name = (dotted(call.func) or "").rpartition(".")[2]
    return site.module.kind(call.func) is Kind.MODULE or _MODEL.fullmatch(name) is not None


def _feeds(site: Site, assign: cst.Assign, backward: cst.Call) -> bool:
    """Whether the loss comes from what an assignment binds, and from no other call of a model."""
    tree = site.module.tree
    loss = site.loss(backward)
    wanted = {loss}
    for earlier in reversed(
        [found for found in tree.own(site.region, cst.Assign) if tree.before(found, backward)]
    ):
        targets = {name.value for item in earlier.targets for name in tree.within(item.target, cst.Name)}
        if not targets & wanted:
            continue
        if earlier is assign:
            return True
        if any(_is_model(site, call) for call in tree.within(earlier.value, cst.Call)):
            return False
        wanted |= {name.value for name in tree.within(earlier.value, cst.Name)}
    return False


def ta507(site: Site) -> Iterator[list[Edit]]:
    """the hidden state of the step before is no longer detached"""
    for assign in site.module.tree.own(site.region, cst.Assign):
        target = dotted(assign.targets[0].target)
        if target is None or not _HIDDEN.fullmatch(target.rpartition(".")[2]):
            continue
        code = site.text.code(assign.value)
        mentioned = {dotted(node) for node in site.module.tree.within(assign.value, cst.Name, cst.Attribute)}
        detaches = ".detach()" in code or re.match(r"(self\.)?(repackage|detach)\w*\(", code)
        if (
            detaches
            and target in mentioned
            and not site.loop.backwards[0] in site.module.tree.within(assign, cst.Call)
        ):
            yield site.text.gone(assign)


def ta508(site: Site) -> Iterator[list[Edit]]:
    """the update of an averaged model is no longer under `no_grad`"""
    tree = site.module.tree
    for node in site.reached:
        if not isinstance(node, cst.FunctionDef) or not _AVERAGE.search(node.name.value):
            continue
        for decorator in node.decorators:
            if _is_no_grad(decorator.decorator):
                yield [site.text.without_line(decorator)]
        for block in tree.own(node, cst.With):
            bare = len(block.items) == 1 and _is_no_grad(block.items[0].item)
            if bare and not _holds_long_strings(site, block):
                yield site.text.dedented(block)


# -- state and data -------------------------------------------------------------------------------------------


def ta310(site: Site) -> Iterator[list[Edit]]:
    """`sampler.set_epoch(epoch)` is deleted"""
    places = [site.outer or site.region]
    calls = dict.fromkeys(call for place in places for call in site.statements(place, "set_epoch"))
    yield [edit for call in calls for edit in site.text.gone(call)]


def ta614(site: Site) -> Iterator[list[Edit]]:
    """a constant seed is set in each pass"""
    body = getattr(site.region, "body", None)
    seed = site.module.spelled("torch.manual_seed", at=site.region)
    if isinstance(body, cst.IndentedBlock) and seed is not None and not seed[1]:
        yield site.text.before(_statement(body.body[0]), f"{seed[0]}(0)")


def ta616(site: Site) -> Iterator[list[Edit]]:
    """the best state is no longer copied"""
    tree = site.module.tree
    for call in tree.within(site.outer or site.region, cst.Call):
        if called_name(call) == "deepcopy" and len(call.args) == 1:
            state = call.args[0].value
            statement = tree.statement(call)
            if (
                isinstance(state, cst.Call)
                and called_name(state) == "state_dict"
                and isinstance(statement, cst.Assign)
            ):
                yield [site.text.swapped(call, site.text.code(state))]


def _statement(node: Node) -> Node:
    """What libcst calls the line of a simple statement, as the statement."""
    return node.body[0] if isinstance(node, cst.SimpleStatementLine) else node


MUTATIONS: dict[str, Mutation] = {
    name.upper(): made for name, made in sorted(globals().items()) if re.fullmatch(r"ta\d{3}", name)
}


def mutants(site: Site, rule: str) -> Iterator[str]:
    """The file with a loop broken, once for each way that a rule's mutation finds; each compiles."""
    made: set[str] = set()
    for edits in MUTATIONS[rule](site):
        text = site.text.edited(edits) if edits else None
        if text is not None and text not in made and _compiles(text):
            made.add(text)
            yield text


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
