"""The files that a training goes on from, and the states that it goes on without."""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter

from ta_lint.core.protocol import Action
from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.collect.files import fixed_name, may_be_one, origins
from ta_lint.dryrun.collect.memberships import scope_of, unwrapped
from ta_lint.dryrun.collect.places import position
from ta_lint.dryrun.sources import LoadedFile, is_fixed, pieces_of, read_of
from ta_lint.dryrun.stubs.torch.gradients import groups_of, held_by
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.saving import Checkpoint
from ta_lint.dryrun.stubs.torch.scaling import SCALER
from ta_lint.dryrun.stubs.torch.training import OPTIMIZER, SCHEDULER
from ta_lint.dryrun.values import Known, Object, Place, Unknown, Value, options
from ta_lint.events.event import Event
from ta_lint.events.resumption import Forgotten, Misread, Resumption

BUILT = ("optimizer", "scheduler")
ROLES = {"optimizer": OPTIMIZER, "scheduler": SCHEDULER, "scaler": SCALER}
WITHOUT = frozenset({"torch.optim.SGD"})
"""Optimizers that have a state with momentum alone."""
PLATEAU = "ReduceLROnPlateau"


@dataclass(slots=True)
class _Restored:
    """A state that an object gets from a file."""

    owner: Value
    role: str | None
    key: str | None
    place: Place
    index: int


_Named = dict[str | None, dict[int, Event]]
"""Saves by the name of the file; those whose name is not known under None."""


@dataclass
class _Program:
    """What a program saves and loads, in order."""

    events: list[Event]
    files: dict[LoadedFile, int] = field(default_factory=dict)
    saves: list[tuple[int, Event]] = field(default_factory=list)
    restored: dict[LoadedFile, list[_Restored]] = field(default_factory=dict)
    loaded: list[Value] = field(default_factory=list)
    """Whatever gets a state."""
    steps: list[tuple[int, Object, Event]] = field(default_factory=list)
    counted: set[LoadedFile] = field(default_factory=set)
    """The files with a count that the program counts on from."""
    broken: set[Value | None] = field(default_factory=set)
    """The parts of the program that break off: nobody knows what they save."""
    starts: list[Value] = field(default_factory=list)
    """The numbers that a loop starts at."""

    @cached_property
    def contents(self) -> list[Checkpoint]:
        """What is saved, in order."""
        return [event.detail["content"] for _, event in self.saves]

    @cached_property
    def _holding(self) -> dict[tuple[object, ...], _Named]:
        """The saves, in each part of the program and in all, by key and role of what they hold; a state that is saved alone, without a key,
        by whose it is.
        """
        found: dict[tuple[object, ...], _Named] = {}
        for index, event in self.saves:
            content: Checkpoint = event.detail["content"]
            name = fixed_name(event.detail["file"])
            for key, states in content.owners.items():
                owners = [unwrapped(one) for one in states]
                for owner in owners if key is None else (None,) if owners else ():
                    for part in (scope_of(event), ...):
                        of_this = found.setdefault((part, key, _role_of(owners), owner), {})
                        of_this.setdefault(name, {})[index] = event
        return found

    def saves_of(self, file: LoadedFile) -> list[tuple[int, Event]]:
        """The saves of a file that holds what is restored from this one: it has a state of such a thing under the key that it is loaded from,
        or is that model. Those of the same part of the program, if there are some, and of these the ones that write a file of
        this name.
        """
        for part in (scope_of(self.events[self.files[file]]), ...):
            asked = [
                (part, one.key, one.role, one.owner if one.key is None else None)
                for one in self.restored[file]
            ]
            holding = [self._holding[one] for one in asked if one in self._holding]
            if holding:
                same = {index: event for each in holding for index, event in _of_name(each, file.name)}
                every = same or {index: event for each in holding for index, event in _all_of(each)}
                return sorted(every.items(), key=itemgetter(0))
        return []

    @cached_property
    def saves_in(self) -> dict[Value | None, list[tuple[int, Event]]]:
        """The saves of each part of the program."""
        found: dict[Value | None, list[tuple[int, Event]]] = {}
        for index, event in self.saves:
            found.setdefault(scope_of(event), []).append((index, event))
        return found

    @cached_property
    def built(self) -> dict[tuple[str, Value | None], dict[Object, Event]]:
        """The optimizers and schedules that each part of the program builds."""
        found: dict[tuple[str, Value | None], dict[Object, Event]] = {}
        for event in self.events:
            if event.action in BUILT and isinstance(event.subject, Object):
                found.setdefault((event.action, scope_of(event)), {})[event.subject] = event
        return found

    @cached_property
    def schedule_steps(self) -> dict[Value | None, list[Event]]:
        """The steps of schedules in each part of the program."""
        found: dict[Value | None, list[Event]] = {}
        for event in self.events:
            if event.action == Action.SCHEDULE:
                found.setdefault(scope_of(event), []).append(event)
        return found

    @cached_property
    def busy(self) -> set[Place]:
        """The loops in which something trains, runs or is saved."""
        working = (Action.STEP, Action.FORWARD, "save")
        return {loop for event in self.events if event.action in working for loop, _ in event.passes}

    @cached_property
    def origins(self) -> set[object]:
        """Where the numbers come from that loops start at."""
        return {each for one in self.starts for each in origins(one)}

    @cached_property
    def saved(self) -> dict[str | None, set[Value]]:
        """The objects whose state some file gets, by their roles in training."""
        found: dict[str | None, set[Value]] = {}
        for content in self.contents:
            for owners in content.owners.values():
                for one in owners:
                    found.setdefault(_role(one), set()).add(one)
        return found

    @cached_property
    def restored_as(self) -> dict[str | None, set[Value]]:
        """The objects that get a state, by their roles."""
        found: dict[str | None, set[Value]] = {}
        for one in self.loaded:
            found.setdefault(_role(one), set()).add(one)
        return found

    @cached_property
    def _asked(self) -> set[object]:
        return {key for one in self.files for key in (*one.asked, *one.looked_for)}

    def asks(self, key: str) -> bool:
        """Whether a key of any file is read, or may be."""
        return key in self._asked or any(one.is_passed_on for one in self.files)


def _role(owner: Value) -> str | None:
    """What an object is to a training; None for a model, or something that nobody knows."""
    cls = owner.cls if isinstance(owner, Object) else None
    return next((role for role, kind in ROLES.items() if cls is not None and cls.is_a(kind)), None)


def _role_of(owners: Collection[Value]) -> str | None:
    """The role of what has one of several states."""
    return next(filter(None, map(_role, owners)), None)


def _program(events: list[Event]) -> _Program:
    found = _Program(events)
    for index, event in enumerate(events):
        detail = event.detail
        if event.action == "load" and "read" in detail:
            found.files[detail["read"]] = index
        elif event.action == "load":
            _load(found, index, event)
        elif event.action == "save" and "content" in detail:
            found.saves.append((index, event))
        elif event.action == Action.STEP:
            found.steps += [(index, one, event) for one in options(event.subject) if isinstance(one, Object)]
        elif event.action == "broken off":
            found.broken.add(scope_of(event))
        elif event.action == "count on":
            found.counted.add(detail["read"].file)
        elif event.action == "start":
            found.starts.append(detail["at"])
            if (read := read_of(detail["at"])) is not None:
                found.counted.add(read.file)
    for one in chain.from_iterable(found.restored.values()):
        if isinstance(one.owner, Unknown):
            one.role = _role_under(one.key, found.contents)
    return found


def _role_under(key: str | None, contents: list[Checkpoint]) -> str | None:
    """The role of what checkpoints have under a key, for what gets it from there, such as one of many optimizers."""
    roles = {_role_of(own) for one in contents for name, own in one.owners.items() if name == key}
    return roles.pop() if key is not None and len(roles) == 1 else None


def _of_name(saves: _Named, name: Value) -> Iterator[tuple[int, Event]]:
    """The saves that write a file of this name, or may."""
    fixed = fixed_name(name)
    if fixed is not None:
        yield from saves.get(fixed, {}).items()
    others = _all_of(saves) if fixed is None else saves.get(None, {}).items()
    yield from ((index, event) for index, event in others if may_be_one(name, event.detail["file"]))


def _all_of(saves: _Named) -> Iterator[tuple[int, Event]]:
    return (one for each in saves.values() for one in each.items())


def _load(found: _Program, index: int, event: Event) -> None:
    owners = [unwrapped(one) for one in options(event.subject)]
    found.loaded += owners
    if (read := read_of(event.detail.get("state"))) is not None:
        for one in owners:
            entry = _Restored(one, _role(one), read.key, read.place or event.place, index)
            found.restored.setdefault(read.file, []).append(entry)


def resumptions_of(events: list[Event]) -> list[Resumption]:
    """The files that a training goes on from, with a checkpoint of the program that such a file holds."""
    program = _program(events)
    found = []
    for file, restored in program.restored.items():
        pairs = program.saves_of(file)
        if pairs and (_goes_on(file, restored, program) or _is_written_later(file, restored, pairs, program)):
            event = pairs[0][1]
            one = Resumption(position(file.place), position(event.detail["content"].place))
            one.lost += [*_left(file, pairs, program)] or [*_unsaved(file, restored, pairs, program)]
            found.append(one)
    return found


def _is_same(loaded: Value, saved: Value, program: _Program) -> bool:
    """Whether it may be one file: by its name, or as a loop starts at what its name says."""
    return may_be_one(loaded, saved) or not program.origins.isdisjoint(origins(loaded))


def _goes_on(file: LoadedFile, restored: list[_Restored], program: _Program) -> bool:
    """Whether only a training that goes on loads this: a state of more than the model, or a count that it counts on from."""
    return file in program.counted or any(one.role is not None for one in restored)


def _is_written_later(
    file: LoadedFile, restored: list[_Restored], pairs: list[tuple[int, Event]], program: _Program
) -> bool:
    """Whether a training that has not begun writes the file again, with the model that it was loaded into, and that did not come from it just
    now.
    """
    for one in restored:
        steps = [index for index, optimizer, _ in program.steps if _may_train(optimizer, [one.owner])]
        came_back = any(index < one.index and one.owner in _owners(save) for index, save in pairs)
        if one.role is not None or not steps or min(steps) < one.index or came_back:
            continue
        for index, save in pairs:
            named = (
                (_is_same(file.name, save.detail["file"], program) and not _is_start(file, save, program))
                or _loads_each_network(program)
                or is_meant("resumption", *_names(file))
            )
            if index > steps[0] and named and (one.key is not None or one.owner in _owners(save)):
                return True
    return False


def _is_start(file: LoadedFile, save: Event, program: _Program) -> bool:
    """Whether these are weights to begin with: of a folder that an option gives, where the program does not save, in a program whose
    loops all begin at the beginning.
    """
    folder, own = next(pieces_of(file.name), None), next(pieces_of(save.detail["file"]), None)
    is_elsewhere = isinstance(folder, Value) and folder is not own
    return is_elsewhere and bool(program.starts) and all(map(is_fixed, program.starts))


def _names(file: LoadedFile) -> list[str]:
    """What the program calls the file that it reads, and the option that names it."""
    node = file.place.node
    given = [*node.args[:1], *(one.value for one in node.keywords)] if isinstance(node, ast.Call) else []
    parts = [part for one in given for part in ast.walk(one)]
    names = [getattr(part, "id", getattr(part, "attr", "")) for part in parts]
    return [*names, getattr(file.name, "why", "")]


def _loads_each_network(program: _Program) -> bool:
    """Whether each of several networks, all of them trained by optimizers of their own, comes from a file before its training begins."""
    optimizers = {optimizer for _, optimizer, _ in program.steps}
    first = min((index for index, _, _ in program.steps), default=0)
    loaded = [
        one.owner
        for restored in program.restored.values()
        for one in restored
        if one.role is None and one.index < first
    ]
    trained = {
        frozenset(one for one in loaded if _trains(optimizer, one)) for optimizer in optimizers
    }  # several optimizers of one network may be alternatives
    return len(trained) > 1 and all(trained)


def _owners(save: Event) -> list[Value]:
    content: Checkpoint = save.detail["content"]
    return [unwrapped(one) for owners in content.owners.values() for one in owners]


def _trains(optimizer: Object, model: Value) -> bool:
    """Whether an optimizer certainly holds parameters of a model."""
    parameters = {id(one) for one in held_by(optimizer).parameters}
    of_model = held(model).parameters if isinstance(model, Object) and is_module(model) else ()
    return any(id(one) in parameters for _, one in of_model)


def _left(file: LoadedFile, pairs: list[tuple[int, Event]], program: _Program) -> Iterator[Forgotten]:
    """What the checkpoint has, and nothing loads."""
    done = set()
    for _, save in pairs:
        content: Checkpoint = save.detail["content"]
        for key, owners in content.owners.items():
            role = _role_of(owners)
            if key is None or key in done or role is None or program.asks(key):
                continue
            if not any(owner in program.restored_as.get(_role(owner), ()) for owner in owners):
                done.add(key)
                yield Forgotten(role, _kind(owners[0]), position(content.place), key)


def _unsaved(
    file: LoadedFile, restored: list[_Restored], pairs: list[tuple[int, Event]], program: _Program
) -> Iterator[Forgotten]:
    """What no checkpoint has."""
    if not all(save.detail["content"].is_whole for _, save in pairs) or file.is_passed_on:
        return
    parts = [None, scope_of(program.events[program.files[file]]), *(scope_of(save) for _, save in pairs)]
    scope = tuple(dict.fromkeys(parts))
    models = [one.owner for one in restored if one.role is None]
    optimizers = _trained(program, _used(program, "optimizer", scope), file)
    known = program.saved.get("optimizer", set()) | program.restored_as.get("optimizer", set())
    places = {one.made for one in known if isinstance(one, Object)}
    if None not in places:
        for one, event in optimizers.items():
            if one.made not in places and _has_state(one) and _may_train(one, models):
                yield Forgotten("optimizer", _kind(one), position(event.place))
                return
    if program.saved.get("scheduler") or program.restored_as.get("scheduler"):
        return
    if known or not optimizers or not any(map(_has_state, optimizers)):
        yield from _schedulers(program, scope, pairs, bool(known))


def _is_renewed(own: list[Event], steps: list[Event], pairs: list[tuple[int, Event]]) -> bool:
    """Whether each pass of the loops that save the checkpoint makes another schedule, so that none lives on: its steps are of one pass,
    and in others another one steps there.
    """
    places = {event.place for event in own}
    there = [event for event in steps if event.place in places]
    loops = {save.passes[-1][0] if save.passes else None for _, save in pairs}
    return all(len(_numbers(own, loop)) == 1 < len(_numbers(there, loop)) for loop in loops)


def _numbers(events: list[Event], loop: Place | None) -> set[int]:
    """The passes of a loop in which something happens."""
    return {number for event in events for one, number in event.passes if one == loop}


def _trained(program: _Program, built: dict[Object, Event], file: LoadedFile) -> dict[Object, Event]:
    """Those of the optimizers that step after a file is read; all, if none is seen to step."""
    stepped = {one for index, one, _ in program.steps if index > program.files[file]}
    return {one: event for one, event in built.items() if one in stepped} or built


def _used(program: _Program, action: str, scope: Collection[Value | None]) -> dict[Object, Event]:
    """The objects that a part of the program builds."""
    return {
        subject: event for one in scope for subject, event in program.built.get((action, one), {}).items()
    }


def _may_train(optimizer: Object, models: list[Value]) -> bool:
    """Whether an optimizer may hold parameters of a model."""
    unknown = not held_by(optimizer).complete
    return unknown or any(_trains(optimizer, one) or not is_module(one) for one in models)


def _has_state(optimizer: Object) -> bool:
    """Whether an optimizer has a state. One whose class nobody knows may have none."""
    name = optimizer.cls.name
    group = next(iter(groups_of(optimizer)), None)
    momentum = Known(0) if group is None else group.fields.get("momentum", Known(0))
    is_known = optimizer.cls is not OPTIMIZER and name.startswith(("torch.optim.", "bitsandbytes.optim."))
    return is_known and (name not in WITHOUT or not (isinstance(momentum, Known) and not momentum.value))


def _kind(owner: Value) -> str:
    return owner.cls.name.rpartition(".")[2] if isinstance(owner, Object) else "object"


def _schedulers(
    program: _Program, scope: Collection[Value | None], pairs: list[tuple[int, Event]], keeps_rate: bool
) -> Iterator[Forgotten]:
    """The first schedule that counts its own steps, which nothing puts to where it was."""
    built = _used(program, "scheduler", scope)
    stepped: dict[Object, list[Event]] = {}
    for event in [event for one in scope for event in program.schedule_steps.get(one, ())]:
        for one in options(event.subject):
            if isinstance(one, Object):
                stepped.setdefault(one, []).append(event)
    told = {
        one for one in stepped if one in built and (built[one].detail["told"] or "last_epoch" in one.fields)
    }
    for one, events in stepped.items():
        is_plateau = _kind(one) == PLATEAU
        places = {event.place for event in events}
        alternatives = {
            each for each, own in stepped.items() if not places.isdisjoint(at.place for at in own)
        }
        counts = all(event.detail["arguments"] != 1 or is_plateau for event in events)
        idle = any(
            (loop := _repeating(event, stepped)) is not None and loop not in program.busy for event in events
        )
        renewed = _is_renewed(events, [each for own in stepped.values() for each in own], pairs)
        if counts and not idle and not renewed and told.isdisjoint(alternatives):
            place = built[one].place if one in built else events[0].place
            patience = is_plateau or any(event.detail["arguments"] for event in events)
            yield Forgotten("scheduler", _kind(one), position(place), keeps_rate=patience and keeps_rate)
            return


def _repeating(step: Event, stepped: dict[Object, list[Event]]) -> Place | None:
    """The innermost loop around a step that steps a schedule again in each pass, and does not just go over several of them."""
    for depth in range(len(step.passes) - 1, -1, -1):
        loop: Place = step.passes[depth][0]
        around = step.passes[:depth]
        passes = {
            one: {
                own.passes[depth][1]
                for own in events
                if own.passes[:depth] == around and len(own.passes) > depth and own.passes[depth][0] == loop
            }
            for one, events in stepped.items()
        }
        if sum(map(bool, passes.values())) == 1 or any(len(numbers) > 1 for numbers in passes.values()):
            return loop
    return None


def misread_of(events: list[Event]) -> list[Misread]:
    """The states that are loaded from a key that no checkpoint has, of a file that has others of its keys."""
    program = _program(events)
    contents = program.contents
    if not all(one.is_whole for one in contents):
        return []
    keys = {key for one in contents for key in one.keys}
    found: dict[tuple[Place, str], Misread] = {}
    for file, restored in program.restored.items():
        load = events[program.files[file]]
        scope = scope_of(load)
        if scope in program.broken:
            continue
        saves = program.saves_in.get(scope, ()) if program.broken else program.saves
        # what a guess asks for says nothing of what the script itself saves
        saved = [one.detail["content"] for _, one in saves if load.entry is None or one.entry is not None]
        for one in restored:
            if one.key is None or one.key in keys:
                continue
            for content in saved:
                shared = [each for each in restored if each.key is not None and each.key in content.owners]
                misread = _misread(file, one, shared, content, program) if shared else None
                if misread is not None and not file.is_passed_on:
                    found.setdefault((one.place, one.key), misread)
    return [*found.values()]


def _misread(
    file: LoadedFile, one: _Restored, shared: list[_Restored], content: Checkpoint, program: _Program
) -> Misread | None:
    place, saved = position(one.place), position(content.place)
    assert one.key is not None
    if one.role is not None:
        if one.key in file.looked_for:
            return None
        is_model = any(other.role is None for other in shared)
        return Misread(place, one.key, saved) if is_model else None
    own = [
        key
        for key, owners in content.owners.items()
        if key is not None and _role_of(owners) is None and not program.asks(key)
    ]
    return Misread(place, one.key, saved, own[0]) if len(own) == 1 else None
