"""TA607: a learning rate scheduler steps before the optimizer, which skips the first learning rate: swap them."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import Region
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, Side, move
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted

KEYWORDS = ("step", ("*sched*", "*lr_*"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework or not _steps_without_arguments(module):
        return
    steps = _Steps(module)
    for schedule in module.order.events(Action.SCHEDULE):
        if schedule.call.args or _is_own(module, schedule):
            continue
        if not isinstance(module.tree.parent[schedule.call], cst.Expr):
            continue  # `step` of a torch scheduler returns nothing
        step = _step_after(module, schedule, steps)
        if step is not None:
            code = module.code(schedule.call)
            message = f"`{code}` comes before `{module.code(step.call)}`, which skips the first learning rate: swap them"
            edits = (
                move(module.tree, module.places, schedule.call, step.place, Side.END) if not step.via else ()
            )
            fix = ProposedFix("step the scheduler after the optimizer", edits) if edits else None
            related = ((step.place, "the optimizer steps here"),)
            yield Suspicion(schedule.call, message, related, fix)


def _steps_without_arguments(module: FileFacts) -> bool:
    """Whether the file has a `step()` without arguments, as schedulers do; looking for the events costs far more."""
    return any(called_name(call) == "step" and not call.args for call in module.tree.all(cst.Call))


def _is_own(module: FileFacts, schedule: LoopEvent) -> bool:
    """Whether the project defines the scheduler's class: a range test has no first learning rate to lose."""
    made = (module.kinds.construction(value) for value in module.calls_in_loop.values(schedule.subject))
    return any(call is not None and module.classes.local(call.func) is not None for call in made)


def _step_after(module: FileFacts, schedule: LoopEvent, steps: "_Steps") -> LoopEvent | None:
    """The first step of the optimizer on each path, if it comes after the scheduler's step."""
    region = _region(module, schedule)
    if region is None:
        return None
    scheduled = _scheduled(module, schedule, steps.subjects)
    first: LoopEvent | None = None
    for path, index in module.order.paths_with(region, schedule, below=True):
        unknown, step = steps.first(path, scheduled)
        if min(unknown, step) < index:
            return None
        if step < len(path):
            first = first or path[step]
    if (
        first is None
        or not _is_its_own(module, first, schedule)
        or _is_sometimes(module, schedule, first, region)
    ):
        return None
    return None if _has_stepped(module, schedule, region) else first


def _region(module: FileFacts, schedule: LoopEvent) -> Region | None:
    """The innermost loop or function around the scheduler's step in which the optimizer steps too, or the innermost loop that
    runs both through functions."""
    region = module.order.region(schedule, Action.STEP)
    if region is not None or not isinstance(module.tree.home(schedule.call), cst.FunctionDef):
        return region
    if module.tree.loops(schedule.call):
        return None
    loops = module.calls_in_loop.loops_over([schedule.call])
    return next((loop for loop in loops if module.order.holds(loop, Action.SCHEDULE, Action.STEP)), None)


def _optimizer_of(module: FileFacts, schedule: LoopEvent) -> Node | None:
    """The optimizer that a scheduler is made for."""
    made = module.kinds.construction(schedule.subject)
    return argument(made, "optimizer", 0) if made is not None else None


def _is_its_own(module: FileFacts, step: LoopEvent, schedule: LoopEvent) -> bool:
    """Whether a step is certainly of the optimizer of a scheduler: by its name, or as no other one steps in this class or function."""
    scheduled = _optimizer_of(module, schedule)
    if scheduled is not None and dotted(scheduled) == dotted(step.subject):
        return True
    tree, scope = module.tree, module.tree.home(schedule.call)
    if attribute_of_self(schedule.subject) is not None:
        scope = tree.enclosing(schedule.call, cst.ClassDef) or scope
    steps = (event for event in module.order.events(Action.STEP) if tree.contains(scope, event.place))
    return {dotted(event.subject) for event in steps} <= {dotted(step.subject)}


def _scheduled(module: FileFacts, schedule: LoopEvent, stepped: set[str | None]) -> str | None:
    """The name of a scheduler's optimizer, if steps of others are known to be none of it."""
    scheduled = _optimizer_of(module, schedule)
    name = dotted(scheduled) if scheduled is not None else None
    return (
        name if scheduled is not None and module.kinds.is_optimizer(scheduled) and name in stepped else None
    )


class _Steps:
    """The steps of the optimizers of a file, and which come first on its paths."""

    def __init__(self, module: FileFacts) -> None:
        self.subjects = {dotted(event.subject) for event in module.order.events(Action.STEP)}
        self._on: dict[ExecutionPath, dict[str | None, int]] = {}

    def first(self, path: ExecutionPath, subject: str | None) -> tuple[int, int]:
        """Where on a path is the first event that is unknown, and the first that may step this optimizer, or any; else its end."""
        if path not in self._on:
            self._on[path] = _firsts(path)
        on = self._on[path]
        step = (
            min(on.get(_STEP, len(path)), on.get(subject, len(path)))
            if subject is not None
            else on.get(_ANY, len(path))
        )
        return on.get(_UNKNOWN, len(path)), step


_UNKNOWN, _ANY, _STEP = "unknown event", "any step", "step of an optimizer that has no name here"


def _firsts(path: ExecutionPath) -> dict[str | None, int]:
    """The index of the first event on a path of each kind, and of the first step of each optimizer."""
    found: dict[str | None, int] = {}
    for index, event in enumerate(path):
        if event.action is Action.UNKNOWN:
            found.setdefault(_UNKNOWN, index)
        if event.action is Action.STEP:
            found.setdefault(_ANY, index)
            name = dotted(event.subject)
            found.setdefault(_STEP if event.via or name is None else name, index)
    return found


def _is_sometimes(module: FileFacts, schedule: LoopEvent, step: LoopEvent, region: Region) -> bool:
    """Whether the scheduler steps under a condition of its own that changes in the region: `if epoch > 0:`."""
    tree = module.tree
    for above in tree.ancestors(schedule.call):
        if above is region:
            break
        if isinstance(above, cst.If) and not tree.contains(above, step.place):
            names = tree.within(above.test, cst.Name, cst.Attribute)
            is_there = dotted(schedule.subject) in {dotted(name) for name in names}
            if not is_there and module.loops.changes(above.test, region):
                return True
    return False


def _has_stepped(module: FileFacts, schedule: LoopEvent, region: Region) -> bool:
    """Whether the optimizer may step before the region first runs, or the scheduler steps in a loop of its own."""
    tree = module.tree
    if not isinstance(region, cst.FunctionDef):
        return _steps_before(module, region)
    if tree.loops(schedule.call):
        return True
    paths = module.order.paths(region)
    steps = [event.place for path in paths for event in path if event.action is Action.STEP]
    sites = module.calls_in_loop.sites(region)
    if not sites:  # one step may be the first; a pass over the data may come after another
        return any(tree.loops(place) for place in steps)
    first = {tree.home(site): site for site in sorted(sites, key=tree.order, reverse=True)}
    return any(_steps_before(module, site) for site in first.values())


def _steps_before(module: FileFacts, place: Node, seen: frozenset[Node] = frozenset()) -> bool:
    """Whether an optimizer may step before a place is first reached, in the function around it or in those that call it."""
    tree, home = module.tree, module.tree.home(place)
    earlier = [call for call in tree.own(home, cst.Call) if tree.before(call, place)]
    if any(not tree.contains(call, place) and module.order.may_step(call) for call in earlier):
        return True
    if not isinstance(home, cst.FunctionDef) or home in seen:
        return False
    sites = module.calls_in_loop.sites(home)
    first = {tree.home(site): site for site in sorted(sites, key=tree.order, reverse=True)}
    return any(_steps_before(module, site, seen | {home}) for site in first.values())
