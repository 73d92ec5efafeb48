"""All facts of one file: the object that a check asks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from weakref import proxy

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.core.lines import ends_cell
from ta_lint.core.source import Source
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.loops.gradients import GradientFlow
from ta_lint.facts.loops.graphs import Graphs
from ta_lint.facts.loops.loops import Loops, TrainingLoop
from ta_lint.facts.loops.order import StepOrder
from ta_lint.facts.loops.precision import HalfPrecision
from ta_lint.facts.loops.scripts import Scripts
from ta_lint.facts.program.program import Parsed, Program
from ta_lint.facts.torch.adapters import Adapters
from ta_lint.facts.torch.api import Api
from ta_lint.facts.torch.checkpoints import Checkpoints
from ta_lint.facts.torch.collectives import Collectives
from ta_lint.facts.torch.device_names import DeviceNames
from ta_lint.facts.torch.devices import Devices
from ta_lint.facts.torch.fallbacks import Fallbacks
from ta_lint.facts.torch.hub import Hub
from ta_lint.facts.torch.ignite import Ignite
from ta_lint.facts.torch.languages import Languages
from ta_lint.facts.torch.lightning import Lightning
from ta_lint.facts.torch.losses import MeanLosses
from ta_lint.facts.torch.preparing import Preparing
from ta_lint.facts.torch.provenance import Provenance
from ta_lint.facts.torch.rank_values import RankValues
from ta_lint.facts.torch.ranks import Ranks
from ta_lint.facts.torch.renaming import Renaming
from ta_lint.facts.torch.tokenizers import Tokenizers
from ta_lint.facts.torch.trainers import Trainers
from ta_lint.facts.torch.unpickling import Unpickling
from ta_lint.facts.torch.wrappers import Wrappers
from ta_lint.facts.values.calls import Calls
from ta_lint.facts.values.chains import Chains
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.containers import Containers
from ta_lint.facts.values.discounting import Discounting
from ta_lint.facts.values.dropping import Dropping
from ta_lint.facts.values.flow import Constant, ValueFlow
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.layers import Layers
from ta_lint.facts.values.loaders import Loaders
from ta_lint.facts.values.modes import Modes
from ta_lint.facts.values.outputs import Output, Outputs
from ta_lint.facts.values.parameters import Parameters
from ta_lint.facts.values.parts import Parts
from ta_lint.facts.values.recording import Recording
from ta_lint.facts.values.shapes import Shapes
from ta_lint.facts.values.spelling import Spellings
from ta_lint.facts.values.states import States
from ta_lint.facts.values.whereabouts import Whereabouts
from ta_lint.facts.values.widths import Widths
from ta_lint.file import is_test
from ta_lint.syntax.edits import ProposedFix
from ta_lint.syntax.tree import Node, dotted, spreads

# What the losses of torch call their inputs.
_OF_LOSSES = frozenset(
    "anchor input input1 input2 input_ input_lengths log_input log_probs negative positive target target_ target_lengths "
    "targets var".split()
)
_LITERALS = (cst.Float, cst.Integer, cst.SimpleString)


@dataclass(frozen=True, eq=False)
class Suspicion:
    """A check's result: the node to report, and the problem.

    `related` are further nodes with an explanation each; `fix` is the correction, if it is certain. `is_note` says that this one is
    of severity note, whatever the rule's is. `in_tests` says whether this
    one matters in a test file, as the page says of all findings of a rule.
    """

    node: Node
    message: str
    related: tuple[tuple[Node, str], ...] = ()
    fix: ProposedFix | None = None
    is_note: bool = False
    in_tests: bool = True


class FileFacts:
    """The facts of one file, each computed on first use."""

    def __init__(
        self,
        program: Program,
        parsed: Parsed,
        target_torch: tuple[int, int] | None = None,
        old_frameworks: frozenset[str] = frozenset(),
    ) -> None:
        self.program = program
        self.source = parsed.source
        self.tree = parsed.tree
        self.places = parsed.places
        self.names = parsed.names
        self._parsed = parsed
        self._target_torch = target_torch
        self.old_frameworks = old_frameworks
        self._full_names: dict[
            int, str | None
        ] = {}  # by the numbers of nodes, as many checks ask for the same

    @classmethod
    def of(cls, source: Source) -> "FileFacts":
        """The facts of a file that stands alone.

        Raises:
            Unreadable: as for `syntax.parse`.
        """
        program = Program("")
        return cls(program, program.open(source.path, source))

    def is_here(self, node: Node) -> bool:
        """Whether a node is in this file."""
        return self.parsed(node) is self._parsed

    def is_nearby(self, *words: str) -> bool:
        """Whether this file, or one near it in the project, has one of these words: for what is rarely asked."""
        return self.program.imports.is_nearby(self._parsed.path, words)

    def parsed(self, node: Node) -> Parsed:
        """The file that a node is in: this one, or another one of the project."""
        if id(node) in self.tree.number:
            return self._parsed
        return self.program.holding(node) or self._parsed

    @cached_property
    def classes(self) -> Classes:
        return Classes(self.tree, self.names)

    @cached_property
    def kinds(self) -> Kinds:
        return Kinds(self.tree, self.names, self.classes)

    @property
    def calls(self) -> Calls:
        return self.kinds.calls

    @cached_property
    def flow(self) -> ValueFlow:
        return ValueFlow(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def discounting(self) -> Discounting:
        return Discounting(self.tree, self.names, self.flow)

    @cached_property
    def states(self) -> States:
        return States(self.tree, self.names)

    @cached_property
    def outputs(self) -> Outputs:
        return Outputs(self.tree, self.names, self.kinds, self.flow)

    @cached_property
    def api(self) -> Api:
        return Api(self.tree, self.names, self.kinds, self.fallbacks)

    @cached_property
    def renaming(self) -> Renaming:
        return Renaming(self.tree, self.places, self.names, self.source, self.spellings)

    @cached_property
    def spellings(self) -> Spellings:
        return Spellings(self.tree, self.names)

    @cached_property
    def layers(self) -> Layers:
        return Layers(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def whereabouts(self) -> Whereabouts:
        return Whereabouts(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def parts(self) -> Parts:
        return Parts(self.tree, self.kinds)

    @cached_property
    def chains(self) -> Chains:
        return Chains(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def modes(self) -> Modes:
        return Modes(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def dropping(self) -> Dropping:
        return Dropping(self.tree, self.kinds, self.modes)

    @cached_property
    def containers(self) -> Containers:
        return Containers(self.tree, self.names, self.classes, self.layers)

    @cached_property
    def loaders(self) -> Loaders:
        return Loaders(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def ignite(self) -> Ignite:
        return Ignite(self.tree, self.names, self.kinds, self.flow)

    @cached_property
    def lightning(self) -> Lightning:
        return Lightning(self.tree, self.names, self.classes, self.kinds, self.flow)

    @cached_property
    def losses(self) -> MeanLosses:
        return MeanLosses(self.names, self.kinds, self.flow, self.calls_in_loop)

    @cached_property
    def shapes(self) -> Shapes:
        return Shapes(self.names, self.kinds, self.loaders, self.flow)

    @cached_property
    def widths(self) -> Widths:
        return Widths(self.names, self.kinds, self.flow)

    @cached_property
    def ranks(self) -> Ranks:
        return Ranks(self.tree, self.names, self.kinds, self.calls)

    @cached_property
    def rank_values(self) -> RankValues:
        return RankValues(self.tree, self.names, self.classes, self.kinds, self.loaders, self.ranks)

    @cached_property
    def collectives(self) -> Collectives:
        return Collectives(self.tree, self.names, self.kinds, self.calls, self.ranks)

    @cached_property
    def device_names(self) -> DeviceNames:
        return DeviceNames(self.names, self.kinds, self.flow)

    @cached_property
    def devices(self) -> Devices:
        return Devices(self.tree, self.names, self.classes, self.kinds, self.flow)

    @cached_property
    def fallbacks(self) -> Fallbacks:
        return Fallbacks(self.tree, self.kinds, self.source.text)

    @cached_property
    def recording(self) -> Recording:
        return Recording(self.tree, self.names, self.calls)

    @cached_property
    def calls_in_loop(self) -> CallsInLoop:
        return CallsInLoop(self.tree, self.names, self.classes, self.kinds, self.calls)

    @cached_property
    def loops(self) -> Loops:
        return Loops(self.tree, self.names, self.classes, self.kinds, self.source.text)

    @cached_property
    def scripts(self) -> Scripts:
        return Scripts(self.tree, self.classes, self.calls, self.loops, self.loaders)

    @property
    def script(self) -> "tuple[FileFacts, ...]":
        """The facts of the files of the script that trains here: this file alone if it is one, else all files of its program.

        Empty if they are too many to tell.
        """
        return (self, *self._rest_of_script) if self._rest_of_script is not None else ()

    @cached_property
    def _rest_of_script(self) -> "tuple[FileFacts, ...] | None":
        others = self.names.beside() if self.scripts.is_one_of_several else []
        return tuple(map(self.beside, others)) if others is not None else None

    def beside(self, root: cst.Module) -> "FileFacts":
        """The facts of another file of the project."""
        return FileFacts(self.program, self.parsed(root), self._target_torch, self.old_frameworks)

    @cached_property
    def order(self) -> StepOrder:
        return StepOrder(self.tree, self.names, self.kinds, self.loops)

    @cached_property
    def graphs(self) -> Graphs:
        return Graphs(self.tree)

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def gradients(self) -> GradientFlow:
        return GradientFlow(
            self.tree,
            self.names,
            self.classes,
            self.kinds,
            self.layers,
            self.loops,
            self.graphs,
            self.recording,
            self.flow,
            self.calls_in_loop,
        )

    @cached_property
    def provenance(self) -> Provenance:
        return Provenance(self.tree, self.names, self.kinds, self.hub)

    @cached_property
    def languages(self) -> Languages:
        return Languages(
            self.tree, self.names, self.classes, self.kinds, self.flow, self.loaders, self.calls_in_loop
        )

    @cached_property
    def tokenizers(self) -> Tokenizers:
        return Tokenizers(self.tree, self.names, self.kinds, self.flow, self.calls_in_loop)

    @cached_property
    def trainers(self) -> Trainers:
        return Trainers(self.tree, self.names, self.classes, self.kinds, self.flow)

    @cached_property
    def adapters(self) -> Adapters:
        return Adapters(self.tree, self.names, self.kinds, self.flow, self.trainers)

    @cached_property
    def hub(self) -> Hub:
        return Hub(self.tree, self.names, self.kinds, self.flow)

    @cached_property
    def unpickling(self) -> Unpickling:
        module: FileFacts = proxy(self)  # a weak reference, as in `Kinds`
        return Unpickling(
            self.tree,
            self.names,
            self.kinds,
            self.flow,
            self.provenance,
            lambda *release: module.targets_before(*release),
        )

    @cached_property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.tree, self.names, self.kinds)

    @cached_property
    def wrappers(self) -> Wrappers:
        return Wrappers(self.tree, self.names, self.classes, self.kinds)

    @cached_property
    def preparing(self) -> Preparing:
        return Preparing(self.tree, self.names, self.kinds, self.flow)

    @cached_property
    def half_precision(self) -> HalfPrecision:
        return HalfPrecision(self.tree, self.names, self.classes, self.calls_in_loop)

    @property
    def training_loops(self) -> list[TrainingLoop]:
        return self.loops.training

    def kind(self, node: Node) -> Kind | None:
        """The kind of an expression's value, None if unknown."""
        return self.kinds.kind(node)

    def qualified(self, node: Node) -> str | None:
        """The full name of an expression, None if uncertain."""
        number = self.tree.number.get(id(node))
        if number is None:  # of another file, or made by a check
            return self.names.qualified(node)
        if number not in self._full_names:
            self._full_names[number] = self.names.qualified(node)
        return self._full_names[number]

    def call_at(self, site: Site) -> cst.Call | None:
        """The call that a finding is about."""
        found = self._starting.get((site.line, site.column), [])
        ends = (site.end_line, site.end_column)
        return next(
            (call for call in found if self.places.span(call)[2:4] == ends), found[0] if found else None
        )

    @cached_property
    def _starting(self) -> dict[tuple[int, int], list[cst.Call]]:
        """The calls by the line and column where they start."""
        found: dict[tuple[int, int], list[cst.Call]] = {}
        for call in self.tree.all(cst.Call):
            found.setdefault(self.places.span(call)[:2], []).append(call)
        return found

    def calls_to(self, *qualified: str) -> list[cst.Call]:
        """The calls of functions or classes with these full names, in source order."""
        last = {name.rpartition(".")[2] for name in qualified}
        attributes, named = self._called
        found = [
            call
            for name in last
            for call in attributes.get(name, ())
            if self.qualified(call.func) in qualified
        ]
        found += [call for name in set(qualified) for call in named.get(name, ())]
        return sorted(found, key=self.tree.order)

    @cached_property
    def _called(self) -> tuple[dict[str, list[cst.Call]], dict[str | None, list[cst.Call]]]:
        """The attribute calls by last name; the calls of plain names, which may be aliases, by full name."""
        attributes: dict[str, list[cst.Call]] = {}
        named: dict[str | None, list[cst.Call]] = {}
        for call in self.tree.all(cst.Call):
            function = call.func
            if type(function) is cst.Attribute:
                attributes.setdefault(function.attr.value, []).append(call)
            elif type(function) is cst.Name:
                named.setdefault(self.qualified(function), []).append(call)
        return attributes, named

    def calls_matching(self, pattern: re.Pattern[str]) -> list[tuple[cst.Call, re.Match[str]]]:
        """The calls whose full name matches a pattern completely, in source order, with the match.

        Leaves out calls that spread `*args` or `**kwargs`, because these may pass any argument.
        """
        found = ((call, pattern.fullmatch(name)) for call, name in self._named_calls)
        return [(call, match) for call, match in found if match is not None and not spreads(call)]

    @cached_property
    def _named_calls(self) -> list[tuple[cst.Call, str]]:
        """The calls with a known full name, in source order, with that name."""
        named = ((call, self.qualified(call.func)) for call in self.tree.all(cst.Call))
        return [(call, name) for call, name in named if name is not None]

    def loss_calls(self, criterion: str, function: str) -> list[cst.Call]:
        """The calls that compute a loss: of instances of the criterion class, and of the equivalent function."""
        if criterion not in self._criteria:
            return self.calls_to(function)
        return [
            call
            for call in self.tree.all(cst.Call)
            if self.qualified(call.func) == function or self._makers.get(self.tree.order(call)) == criterion
        ]

    @cached_property
    def _makers(self) -> dict[int, str | None]:
        """The constructor behind each callee that is called as a loss would be, by the number of the call:
        `torch.nn.MSELoss` for `self.criterion(x, y)`, also where the criterion is a parameter.

        A callee that is built in one place and called in many is resolved once.
        """
        found: dict[int, str | None] = {}
        makers: dict[int, str | None] = {}
        for call in self.tree.all(cst.Call):
            if not _may_compute_a_loss(call):
                continue
            origin = self.kinds.origin(call.func)
            if type(origin) not in (cst.Call, cst.Param):
                continue
            number = self.tree.order(origin)
            if number not in makers:
                makers[number] = self._maker(origin)
            found[self.tree.order(call)] = makers[number]
        return found

    @cached_property
    def _criteria(self) -> frozenset[str | None]:
        return frozenset(self._makers.values())

    def _maker(self, origin: Node) -> str | None:
        """The constructor of what a call makes, or of what all known calls give to a parameter."""
        values = [origin]
        if isinstance(origin, cst.Param):
            values = [value for value in self.calls_in_loop.values(origin) if value is not origin]
        made = [self.kinds.construction(value) for value in values]
        makers = {self.qualified(one.func) if one is not None else None for one in made}
        return makers.pop() if len(makers) == 1 else None

    def loss_inputs(self, criterion: str, function: str) -> Iterator[tuple[cst.Call, Output]]:
        """The calls that compute a loss, with the activations that certainly produce the input."""
        for call in self.loss_calls(criterion, function):
            for output in self.outputs.each(self.flow.argument(call, "input", 0), call):
                yield call, output

    def code(self, node: Node) -> str:
        """The source of an expression, on one line, for a message."""
        return dotted(node) or self.parsed(node).places.line(node)

    def verbatim(self, node: Node) -> str:
        """The exact source of an expression, for a fix."""
        return self.parsed(node).places.code(node)

    def is_in_parentheses(self, node: cst.BaseExpression) -> bool:
        """Whether an expression has parentheses of its own."""
        return bool(self.parsed(node).places.parentheses(node))

    def spelled(self, qualified: str, at: Node) -> tuple[str, tuple[str, ...]] | None:
        """How code at a node can spell `module.name`: the spelling, and the import statements that it needs.

        Uses the file's own imports if they certainly ran: `deepcopy` after `from copy import deepcopy`. None if the
        module's name means something else in this file.
        """
        return self.spellings.of(qualified, at)

    def number(self, node: Node) -> float | None:
        """The number that an expression evaluates to: a literal, signed or not, or what leads to one on all ways, such as names, entries of
        settings and arguments.
        """
        return self._on_all_ways(self.kinds.number, node)

    def string(self, node: Node) -> str | None:
        """The string that an expression evaluates to: a literal, or what leads to one on all ways."""
        return self._on_all_ways(self.kinds.string, node)

    def _on_all_ways(self, asked: Callable[[Node], Constant | None], node: Node) -> Constant | None:
        """The constant that an expression is, or that all ways to its value lead to."""
        found = asked(node)
        if found is not None or not isinstance(node, (cst.Name, cst.Subscript, cst.Attribute)):
            return found
        return self.flow.constant(node, asked)

    def boolean(self, node: Node) -> bool | None:
        """The `True` or `False` that an expression evaluates to, literal or through names; None for anything else."""
        return self.kinds.boolean(node)

    def targets_before(self, major: int, minor: int) -> bool:
        """Whether the code must also run on torch versions before this release."""
        return self._target_torch is not None and self._target_torch < (major, minor)

    def is_shown(self, statement: cst.Expr) -> bool:
        """Whether a notebook displays the value of a statement: the last in its cell, without a semicolon."""
        line = self.tree.parent[statement]
        if self.source.notebook is None or line not in self.tree.root.body:
            return False
        if not isinstance(line, cst.SimpleStatementLine) or line.body[-1] is not statement:
            return False
        following = islice(self.source.lines, self.places.span(statement).end_line, None)
        return ends_cell(self.places.behind(statement), following)

    @cached_property
    def is_test(self) -> bool:
        return is_test(self.source.path)


def _may_compute_a_loss(call: cst.Call) -> bool:
    """Whether a call may be of a loss: scores and targets, and no number or setting, as constructors of layers take."""
    named = [arg.keyword.value for arg in call.args if arg.keyword is not None]
    if len(call.args) < 2 and not spreads(call):
        return False
    return _OF_LOSSES.issuperset(named) and not any(isinstance(arg.value, _LITERALS) for arg in call.args)
