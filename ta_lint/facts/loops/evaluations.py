"""Evaluations: code that runs a model, measures its output and trains nothing."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts.loops.calls_in_loop import CallsInLoop, LoopCall, Variable
from ta_lint.facts.loops.loops import BACKWARD, Loops
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.classes import Classes
from ta_lint.facts.values.kinds import Kind, Kinds
from ta_lint.facts.values.modes import PRETRAINED, Modes
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, Tree, argument, dotted

_CALLERS_DEEP = 5

# Functions that only code calls which trains, attacks a model or differentiates.
_DIFFERENTIATES = regex(
    r"backward|manual_backward|grad|jacobian|hessian|vjp|jvp|requires_grad_|\w*train_?(step|batch|epoch|one_epoch)|"
    r"optimize_parameters|fit"
)
_ATTACKS = regex(r"(^|_)(adv|adversar\w*|attack\w*|fgsm|perturb\w*|pgd)(_|$)", re.IGNORECASE)

# Names of functions and variables that measure a result.
_MEASURES = regex(
    r"argmax|max|topk|eq|item|\w*(loss|criterion|criteria|metrics?|accuracy|score|correct|psnr|ssim|iou|auc|f1|nll|mse|"
    r"bce|cross_entropy)\w*|acc|add_batch",
    re.IGNORECASE,
)

# Names of functions that are random on purpose or collect running statistics.
_ON_PURPOSE = regex(
    r"mc_|_mc\b|monte|bayes|uncertain|ensemble|bn_|_bn|calibrat|pseudo|rollout|collect|adapt", re.IGNORECASE
)

_PRETRAINED = regex(PRETRAINED)

# Functions under these names take a model and do not change its mode.
_LEAVES_MODES = ("torch.", "builtins.", "copy.", "torchinfo.", "torchsummary.", "wandb.")


_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """`call` runs `model` in `region`: the outermost loop or comprehension around it, or else the function, in which nothing
    trains."""

    region: Node
    call: cst.Call
    model: Variable


@dataclass(frozen=True, eq=False)
class Prediction:
    """`call` runs the model that `made` builds and whose weights `loaded` brings in."""

    call: cst.Call
    made: cst.Call
    loaded: cst.Call


class Evaluations:
    """The evaluations of a file, and the mode of the model in each."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        classes: Classes,
        kinds: Kinds,
        loops: Loops,
        calls_in_loop: CallsInLoop,
        modes: Modes,
    ) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._kinds = kinds
        self._loops = loops
        self._calls_in_loop = calls_in_loop
        self._mode = modes
        self._differentiates: dict[Node, bool] = {}
        self._measured: dict[Node, bool] = {}
        self._modes_of: dict[cst.Module, frozenset[Action]] = {}

    @cached_property
    def all(self) -> list[Evaluation]:
        """One for each region and model, in source order."""
        found: dict[tuple[Node, Variable], Evaluation] = {}
        for call in self._tree.all(cst.Call):
            evaluation = self._evaluation(call)
            if evaluation is not None:
                found.setdefault((evaluation.region, evaluation.model), evaluation)
        return list(found.values())

    def _evaluation(self, call: cst.Call) -> Evaluation | None:
        called = self._calls_in_loop.called(call)
        if not isinstance(called, (cst.Name, cst.Attribute)) or isinstance(self._tree.parent[call], cst.Expr):
            return None
        if not self._measures(self._tree.home(call)):
            return None
        if self._names.qualified(called) is not None or not self._calls_in_loop.acts_as_model(called):
            return None
        region, model = self._region(call), self._calls_in_loop.variable(called)
        if region is None or model is None or not (self._measures(region) or self._is_collected(call)):
            return None
        return Evaluation(region, call, model)

    def _is_collected(self, call: cst.Call) -> bool:
        """Whether an output goes into a list that its function only measures later: `outputs.append(model(x))`."""
        append = self._tree.parent.get(self._tree.parent[call])
        if not isinstance(append, cst.Call) or called_name(append) != "append" or len(append.args) != 1:
            return False
        variable = append.func.value if isinstance(append.func, cst.Attribute) else None
        if not isinstance(variable, cst.Name) or self._names.definition(variable) is None:
            return False
        read = [
            use
            for use in self._names.mentions(variable)
            if use is not variable and self._tree.enclosing(use, cst.AssignTarget) is None
        ]
        home = self._tree.home(call)
        trains = self.trains(home.body if isinstance(home, cst.FunctionDef) else home)
        return bool(read) and all(self._is_measured(use) for use in read) and not trains

    def _is_measured(self, use: Node) -> bool:
        """Whether a use of a value is inside of what measures it."""
        statement = self._tree.statement(use)
        calls = (above for above in self._tree.ancestors(use) if isinstance(above, cst.Call))
        inner = (call for call in calls if self._tree.contains(statement, call))
        return any(_MEASURES.fullmatch(called_name(call) or "") for call in inner)

    def _region(self, call: cst.Call) -> Node | None:
        home = self._tree.home(call)
        if isinstance(home, cst.FunctionDef) and _ON_PURPOSE.search(home.name.value):
            return None
        loops: list[Node] = [loop for loop in self._tree.loops(call) if not self.trains(loop.body)]
        loops = loops or [found for found in self._comprehensions(call) if not self.trains(found)]
        if not loops and (branch := self._branch(call)) is not None:
            return branch
        if loops:
            return loops[-1] if any(self._goes_over_data(loop) for loop in loops) else None
        if not isinstance(home, cst.FunctionDef) or home.name.value == "forward":
            return None
        return None if self.trains(home.body) or self._is_returned(call, home) else home

    def _branch(self, call: cst.Call) -> cst.If | None:
        """The branch of a training loop that takes a batch of its own, runs the model on it, and trains nothing."""
        loops = self._tree.loops(call)
        for above in self._tree.ancestors(call):
            if isinstance(above, cst.BaseCompoundStatement) and not isinstance(above, (cst.If, cst.With)):
                return None
            if isinstance(above, cst.If) and loops and self._tree.contains(above.body, call):
                takes = [one for one in self._tree.own(above.body, cst.Call) if called_name(one) == "next"]
                if any(self._tree.before(one, call) for one in takes):
                    return None if self.trains(above.body) else above
        return None

    def _comprehensions(self, call: cst.Call) -> list[Node]:
        """The comprehensions around a call in its function, the innermost first."""
        found: list[Node] = []
        for above in self._tree.ancestors(call):
            if isinstance(above, cst.BaseStatement):
                break
            if isinstance(above, _COMPREHENSIONS):
                found.append(above)
        return found

    def _is_returned(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether a function returns the output of a call: its caller may call `backward` on it."""
        statement = self._tree.statement(call)
        targets = (
            {name.value for item in statement.targets for name in self._tree.within(item.target, cst.Name)}
            if isinstance(statement, cst.Assign)
            else set()
        )
        returned = self._tree.own(function, cst.Return)
        return statement in returned or any(
            name.value in targets for found in returned for name in self._tree.within(found, cst.Name)
        )

    def _goes_over_data(self, loop: Node) -> bool:
        """Whether a loop iterates over data, or counts and computes a loss; rollouts and samplers do neither."""
        iterable = loop.iter if isinstance(loop, cst.For) else None
        if isinstance(loop, _COMPREHENSIONS):
            iterable = loop.for_in.iter
        if iterable is not None and not _counts(iterable):
            return True
        return any("loss" in name.value.lower() for name in self._tree.within(loop, cst.Name))

    def trains(self, region: Node) -> bool:
        """Whether a region trains or computes gradients for another purpose, itself or in functions that it calls."""
        if region not in self._differentiates:
            events = self._calls_in_loop.events(region)
            self._differentiates[region] = any(
                event.action is Action.BACKWARD
                or _DIFFERENTIATES.fullmatch(called_name(event.call) or "") is not None
                or self._loops.step(event.call) is not None
                for event in events
            ) or any(_ATTACKS.search(name.value) for name in self._tree.within(region, cst.Name))
        return self._differentiates[region]

    def _measures(self, region: Node) -> bool:
        if region not in self._measured:
            calls = self._tree.own(region, cst.Call)
            sums = self._tree.own(region, cst.AugAssign)
            self._measured[region] = any(
                _MEASURES.fullmatch(called_name(call) or "") for call in calls
            ) or any(
                _MEASURES.fullmatch((dotted(statement.target) or "").rpartition(".")[2]) for statement in sums
            )
        return self._measured[region]

    # -- modes ------------------------------------------------------------------------------------------------

    def mode(self, evaluation: Evaluation) -> tuple[Action, cst.Call] | None:
        """The mode of the model, and the call that set it; None if no visible call does.

        `Action.MODE` means that the mode is not certain.
        """
        found = {
            outcome for home in self._scopes(evaluation.call) for outcome in self._modes(evaluation, home)
        }
        settled = {outcome for outcome in found if outcome is not None}
        kinds = {action for action, _ in settled}
        if len(kinds) > 1:
            return Action.MODE, evaluation.call
        return min(settled, key=lambda outcome: self._tree.order(outcome[1])) if settled else None

    def _scopes(self, call: cst.Call) -> Iterator[Node]:
        """The function around a call and the functions that call it, or the module."""
        homes = [self._tree.home(call)]
        seen: set[Node] = set()
        for _ in range(_CALLERS_DEEP + 1):
            yield from homes
            seen.update(homes)
            functions = [home for home in homes if isinstance(home, cst.FunctionDef)]
            sites = [site for function in functions for site in self._calls_in_loop.sites(function)]
            homes = [
                home for home in dict.fromkeys(self._tree.home(site) for site in sites) if home not in seen
            ]

    def files(self, call: cst.Call) -> list[cst.Module]:
        """The files whose code may set the mode of the model of a call: this one, those of the model's class and of the code that
        leads to the call, and those of what that code runs."""
        found: dict[cst.Module, None] = {self._tree.root: None}
        for value in self._calls_in_loop.values(self._calls_in_loop.called(call)):
            made = self._kinds.construction(value)
            klass = self._classes.local(made.func) if made is not None else None
            found.update(
                dict.fromkeys(self._tree.root_of(node) for node in (made, klass) if node is not None)
            )
        for home in self._scopes(call):
            found[self._tree.root_of(home)] = None
            found.update(dict.fromkeys(self._tree.root_of(event.call) for event in self._events(home)))
        return list(found)

    def _events(self, home: Node) -> list[LoopCall]:
        return self._calls_in_loop.events(home.body if isinstance(home, cst.FunctionDef) else home)

    def _modes(self, evaluation: Evaluation, home: Node) -> Iterator[tuple[Action, cst.Call] | None]:
        events = self._events(home)
        for index, event in enumerate(events):
            if event.call is evaluation.call:
                yield self._mode_at(events, index)

    @cached_property
    def modes(self) -> frozenset[Action]:
        """The modes into which this file puts any model."""
        return self.modes_in([self._tree.root])

    def modes_in(self, files: Iterable[cst.Module]) -> frozenset[Action]:
        """The modes into which these files put any model."""
        return frozenset().union(*(self._modes_in(root) for root in files))

    def _modes_in(self, root: cst.Module) -> frozenset[Action]:
        if root not in self._modes_of:
            calls = (
                call for call in self._tree.within(root, cst.Call) if called_name(call) in ("eval", "train")
            )
            found = {self._calls_in_loop.mode(call) for call in calls if self._calls_in_loop.is_mode(call)}
            by_hand = any(
                isinstance(target.target, cst.Attribute) and target.target.attr.value == "training"
                for target in self._tree.within(root, cst.AssignTarget)
            )
            self._modes_of[root] = frozenset(found | ({Action.MODE} if by_hand else set()))
        return self._modes_of[root]

    def goes_back(self, files: Iterable[cst.Module]) -> bool:
        """Whether anything in these files calls `backward`."""
        return any(
            called_name(call) in BACKWARD for root in files for call in self._tree.within(root, cst.Call)
        )

    def trained_before(self, evaluation: Evaluation) -> cst.Call | None:
        """A backward pass before an evaluation, in the same iteration or the previous one, if an optimizer has the model."""
        if self._calls_in_loop.is_optimized(evaluation.model) is not True:
            return None
        for home in self._scopes(evaluation.call):
            events = self._events(home)
            for index, event in enumerate(events):
                if event.call is evaluation.call:
                    for earlier in self._before(events, index):
                        if earlier.action is Action.BACKWARD:
                            return earlier.call
        return None

    @cached_property
    def predictions(self) -> list[Prediction]:
        """The first call of each model with loaded weights, in a file that trains nothing."""
        calls = self._tree.all(cst.Call)
        if any(_DIFFERENTIATES.fullmatch(called_name(call) or "") for call in calls):
            return []
        found: dict[Node, Prediction] = {}
        for call in calls:
            prediction = self._prediction(call)
            if prediction is not None:
                found.setdefault(prediction.made, prediction)
        return list(found.values())

    def _prediction(self, call: cst.Call) -> Prediction | None:
        called = self._calls_in_loop.called(call)
        if isinstance(self._tree.parent[call], cst.Expr) or self._names.qualified(called) is not None:
            return None
        if not isinstance(called, (cst.Name, cst.Attribute)):
            return None
        home = self._tree.home(call)
        if isinstance(home, cst.FunctionDef) and (
            home.name.value == "forward" or _ON_PURPOSE.search(home.name.value)
        ):
            return None
        around = [
            above for above in self._tree.ancestors(call) if isinstance(above, (cst.For, *_COMPREHENSIONS))
        ]
        if any(_counts(loop.iter if isinstance(loop, cst.For) else loop.for_in.iter) for loop in around):
            return None  # it draws samples for one input
        is_given = isinstance(called, cst.Name) and isinstance(self._kinds.origin(called), cst.Param)
        if not is_given and not self._calls_in_loop.acts_as_model(called):
            return None
        made = [self._kinds.construction(value) for value in self._calls_in_loop.values(called)]
        loaded = [self._loading(one) if one is not None else None for one in made]
        if not made or made[0] is None or loaded[0] is None or None in loaded:
            return None  # a caller may give it a model in another mode
        return Prediction(call, made[0], loaded[0])

    def _loading(self, made: cst.Call) -> cst.Call | None:
        """The call that loads the weights of a model: `load_state_dict`, or the one that builds it."""
        called = self._names.qualified(made.func)
        comes_with_weights = _PRETRAINED.fullmatch(called or "") is not None
        if self._kinds.kind(made) is not Kind.MODULE and not comes_with_weights:
            return None
        for call in self._tree.within(self._tree.root_of(made), cst.Call):
            if (
                isinstance(call.func, cst.Attribute)
                and call.func.attr.value == "load_state_dict"
                and self._kinds.construction(call.func.value) is made
            ):
                return call
        given = [argument(made, name) for name in ("weights", "pretrained")]
        told = any(value is not None and dotted(value) not in ("None", "False") for value in given)
        return made if (told or comes_with_weights) and called is not None else None

    def is_switched(self, model: Node, files: Iterable[cst.Module]) -> bool:
        """Whether code of these files may set the mode of a model: by a call on it, on what holds it, or on what is not known."""
        variable = self._calls_in_loop.variable(model)
        if variable is None or self._is_part(variable):
            return bool(self.modes_in(files))
        for root in files:
            if Action.MODE in self._modes_in(root):
                return True
            for call in self._tree.within(root, cst.Call):
                if called_name(call) in ("eval", "train") and self._calls_in_loop.is_mode(call):
                    assert isinstance(call.func, cst.Attribute)
                    if not self._calls_in_loop.distinct(
                        self._calls_in_loop.variable(call.func.value), variable
                    ):
                        return True
        return False

    def is_apart(self, prediction: Prediction) -> bool:
        """Whether a model comes with its weights and is held by an object that is no module, so that no training has it."""
        called = self._names.qualified(prediction.made.func) or ""
        variable = self._calls_in_loop.variable(self._calls_in_loop.called(prediction.call))
        return (
            _PRETRAINED.fullmatch(called) is not None and variable is not None and not self._is_part(variable)
        )

    def _is_part(self, variable: Variable) -> bool:
        """Whether a variable is an attribute of a module, whose mode code may set as a whole, or a parameter."""
        first = variable[0]
        if isinstance(first, cst.ClassDef):
            return self._classes.derives(first, "torch.nn.Module")
        return isinstance(first, cst.Param)

    def is_handed_away(self, model: Node, files: Iterable[cst.Module]) -> bool:
        """Whether one of these files passes a model to code outside of the project, which may set its mode."""
        made = {self._kinds.construction(value) for value in self._calls_in_loop.values(model)}
        return any(
            self._kinds.construction(value) in made
            for root in files
            for call in self._tree.within(root, cst.Call)
            if self._kinds.calls.callee(call) is None
            and not (self._names.qualified(call.func) or "").startswith(_LEAVES_MODES)
            for arg in call.args
            if isinstance(arg.value, (cst.Name, cst.Attribute))
            for value in self._calls_in_loop.values(arg.value)
        )

    def _before(self, events: list[LoopCall], index: int) -> Iterator[LoopCall]:
        """The events before one, the last first: those of the same iteration, then those of the previous one."""
        around = self._tree.loops(events[index].place)
        yield from reversed(events[:index])
        for event in reversed(events[index + 1 :]):
            if around and self._tree.contains(around[-1], event.place):
                yield event

    def _mode_at(self, events: list[LoopCall], index: int) -> tuple[Action, cst.Call] | None:
        """The last mode set before an event, in the same iteration or the previous one."""
        evaluated = events[index]
        trained = False
        for event in self._before(events, index):
            trained = trained or event.action is Action.BACKWARD
            if event.action not in (Action.TRAIN, Action.EVAL, Action.MODE):
                continue
            if self._calls_in_loop.distinct(event.subject, evaluated.subject):
                continue
            certain = event.subject == evaluated.subject and not self._is_chosen(event, events)
            if event.action is Action.TRAIN:
                certain = certain and (trained or self._goes_on_training(event, evaluated, events))
            return event.action if certain else Action.MODE, event.call
        return None

    def _goes_on_training(self, switched: LoopCall, later: LoopCall, events: list[LoopCall]) -> bool:
        """Whether a loop that ends before a later event trains after `train()`."""
        loops = [
            loop for loop in self._tree.loops(switched.place) if not self._tree.contains(loop, later.place)
        ]
        return any(
            event.action is Action.BACKWARD and any(self._tree.contains(loop, event.place) for loop in loops)
            for event in events
        )

    def is_alone(self, evaluation: Evaluation) -> bool:
        """Whether the function around an evaluation puts no model into evaluation mode: if it does, it may leave this one out
        on purpose."""
        home = self._tree.home(evaluation.call)
        return not any(event.action is Action.EVAL and not event.via for event in self._events(home))

    def _is_chosen(self, event: LoopCall, events: list[LoopCall]) -> bool:
        """Whether a condition decides between this change of mode and another."""
        return any(
            other.action in (Action.TRAIN, Action.EVAL, Action.MODE)
            and self._tree.apart(other.call, event.call)
            for other in events
        )

    def depends_on_mode(self, model: Node, variable: Variable | None = None) -> bool | None:
        """Whether a model has layers that depend on the mode; None if the project does not show them.

        `variable` is what the expression means, where it may mean several models.
        """
        values = self._calls_in_loop.values(model)
        meant = [value for value in values if self._calls_in_loop.variable(value) == variable]
        made = [self._kinds.construction(value) for value in meant or values]
        found = [self._mode.depends(call) if call is not None else None for call in made]
        return True if any(found) else None if None in found or not found else False


def _counts(iterable: Node) -> bool:
    """Whether a loop counts and does not iterate over data: `range(steps)`, `tqdm(range(steps))`, `count()`."""
    if not isinstance(iterable, cst.Call):
        return False
    name = called_name(iterable)
    if name in ("range", "trange", "count"):
        return True
    return (
        name in ("tqdm", "enumerate", "track", "iter")
        and bool(iterable.args)
        and _counts(iterable.args[0].value)
    )
