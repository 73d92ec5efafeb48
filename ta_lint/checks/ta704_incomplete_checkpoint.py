"""TA704: a program does not load all the state that it saves for resuming, or loads state that it never saves."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.torch.checkpoints import LoadCall, SavedDict, bare
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted, literal_text, spreads

KEYWORDS = ("load_state_dict", "state_dict", "load")

# Optimizers of torch that have state.
_OPTIMIZER = regex(r"torch\.optim\.(Ada\w+|NAdam|RAdam|RMSprop|SGD|ASGD|Rprop|LBFGS|Muon)")

# Variables with the step or epoch from which a loop continues.
_GOES_ON = regex(r"start|begin|resum|last|initial", re.IGNORECASE)

_SAVES_OBJECTS = regex(
    r"torch\.distributed\.checkpoint\.(state_dict_saver\.)?(save|async_save|save_state_dict)"
)
_LOADS_OBJECTS = regex(r"torch\.distributed\.checkpoint\.(state_dict_loader\.)?(load|load_state_dict)")

# Variables with a number of steps or epochs, as opposed to a metric.
_COUNT = regex(r"epoch|step|iter|count|updates|num|(^|\.)(i|n|t|it)$", re.IGNORECASE)

# What shows where a scheduler is, and moves it nowhere.
_LOOKS = frozenset({"get_last_lr", "get_lr"})

# Functions that load a model to use it, not to train it.
_USES = regex(r"eval|test|infer|predict|demo|sample|generate|export|convert|best|valid", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    saved = module.checkpoints.saved
    yield from _left_out_of_objects(module)
    yield from _model_alone(module)
    reported: set[Node] = set()
    for loaded in module.checkpoints.loaded if saved else ():
        yield from _scheduler_left_out(loaded, saved, reported, module)
        yield from _under_another_key(loaded, saved, module)
        pair = next((one for one in saved if _restores_model(loaded, one, module)), None)
        if pair is None or _only_uses(loaded.call, module):
            continue
        yield from _never_loaded(loaded, pair, module)
        yield from _never_saved(loaded, saved, module)
        yield from _never_kept(loaded, pair, module)


def _never_loaded(loaded: LoadCall, saved: SavedDict, module: FileFacts) -> Iterator[Suspicion]:
    """Saved training states that are not loaded where training resumes."""
    roles = {
        key: role
        for key, value in saved.entries.items()
        if (role := module.checkpoints.role(value)) is not None
    }
    if not _goes_on(loaded, module) and not any(key in loaded.reads for key in roles):
        return
    for key, role in roles.items():
        if key not in loaded.reads and not _is_mentioned(key, saved, module):
            message = f"the state of the {role} is saved as `{key}`, but not loaded where training resumes: load it too"
            yield Suspicion(loaded.call, message, related=((saved.entries[key], "saved here"),))


def _never_saved(loaded: LoadCall, saved: list[SavedDict], module: FileFacts) -> Iterator[Suspicion]:
    """Loaded training states that no checkpoint of the file contains."""
    if not all(one.whole for one in saved):
        return
    for key, reads in loaded.reads.items():
        for read in reads:
            receiver = module.checkpoints.restored(read)
            if receiver is None or module.checkpoints.role_of(receiver) is None:
                continue
            if not any(key in one.entries for one in saved) and not _is_mentioned(key, None, module, reads):
                message = f"`{key}` is loaded, but this file never saves it: add it to the checkpoint"
                yield Suspicion(read, message, related=((saved[0].node, "saved here"),))


def _under_another_key(loaded: LoadCall, saved: list[SavedDict], module: FileFacts) -> Iterator[Suspicion]:
    """Models that are loaded from a key that no checkpoint of the file has, and saved under one that nothing reads."""
    if not all(one.whole for one in saved):
        return
    for key, reads in loaded.reads.items():
        if any(key in one.entries for one in saved):
            continue
        for read in reads:
            receiver = module.checkpoints.restored(read)
            is_model = receiver is not None and module.checkpoints.role_of(receiver) is None
            path = bare(receiver) if receiver is not None and is_model else None
            entry = _unread_entry(path, loaded, saved, module) if path is not None else None
            if entry is not None:
                own, value = entry
                message = f"`{path}` is loaded from `{key}`, but saved as `{own}`: use one key"
                yield Suspicion(read, message, related=((value, "saved here"),))


def _unread_entry(
    path: str, loaded: LoadCall, saved: list[SavedDict], module: FileFacts
) -> tuple[str, Node] | None:
    """The entry that holds the state of an object in a checkpoint whose other entries are read, if nothing reads it."""
    for one in saved:
        read = {
            key
            for key in one.entries.keys() & loaded.reads.keys()
            if module.checkpoints.owner(one.entries[key]) is not None
        }
        own = [key for key, value in one.entries.items() if module.checkpoints.owner(value) == path]
        if read and len(own) == 1 and not _is_mentioned(own[0], one, module):
            return own[0], one.entries[own[0]]
    return None


def _never_kept(loaded: LoadCall, saved: SavedDict, module: FileFacts) -> Iterator[Suspicion]:
    """Optimizers with a state, or else schedulers, that are in no checkpoint, although training resumes from one."""
    if not saved.whole or not _goes_on(loaded, module):
        return
    keys = " ".join((*saved.entries, *loaded.reads)).lower()
    for role, word, made in (
        ("optimizer", "opt", _optimizer_with_state),
        ("scheduler", "sched", _moved_scheduler),
    ):
        if word in keys or _keeps_other_state(role, saved, module):
            continue
        call = made(module)
        if call is not None:
            name = called_name(call)
            message = (
                f"training resumes without the state of the {role} `{name}`: save it in this checkpoint too"
            )
            related = ((loaded.call, "loaded here"), (call, "made here"))
            is_note = _keeps_its_rate(call, keys) or _is_left_out_on_purpose(word, saved.node, module)
            yield Suspicion(saved.node, message, related, is_note=is_note, needs=(loaded.call,))
            return


def _keeps_its_rate(scheduler: cst.Call, keys: str) -> bool:
    """Whether a scheduler loses its patience alone, as the state of the optimizer holds the learning rate."""
    return called_name(scheduler) == "ReduceLROnPlateau" and "opt" in keys


def _is_left_out_on_purpose(word: str, saved: Node, module: FileFacts) -> bool:
    """Whether a comment stands for the state in the code that saves the others."""
    first, _, last, _ = module.places.span(saved)
    lines = module.source.text.splitlines()[first - 1 : last]
    return any(word in line.partition("#")[2].lower() for line in lines)


def _scheduler_left_out(
    loaded: LoadCall, saved: list[SavedDict], reported: set[Node], module: FileFacts
) -> Iterator[Suspicion]:
    """Schedulers that the code receives and steps, but that a checkpoint with an optimizer's state leaves out."""
    for one in saved:
        pair = next((key for key in one.entries if _restores_optimizer(key, loaded, one, module)), None)
        keys = " ".join((*one.entries, *loaded.reads)).lower()
        if pair is None or not one.whole or one.node in reported or "sched" in keys:
            continue
        step = _step_of_given_scheduler(one, module)
        if step is not None and not _keeps_scheduler(module):
            reported.add(one.node)
            assert isinstance(step.func, cst.Attribute)
            name = module.code(step.func.value)
            message = f"training resumes without the state of the scheduler `{name}`: save it in this checkpoint too"
            related = ((loaded.call, "loaded here"), (step, "stepped here"))
            # a scheduler that gets a metric lowers the rate, which the optimizer keeps
            yield Suspicion(one.node, message, related, is_note=bool(step.args), needs=(loaded.call,))


def _keeps_scheduler(module: FileFacts) -> bool:
    """Whether the file reads the state of any scheduler."""
    return any(
        called_name(call) == "state_dict"
        and isinstance(call.func, cst.Attribute)
        and module.checkpoints.role_of(call.func.value) == "scheduler"
        for call in module.tree.all(cst.Call)
    )


def _restores_optimizer(key: str, loaded: LoadCall, saved: SavedDict, module: FileFacts) -> bool:
    """Whether an optimizer loads the state under a checkpoint's key, which only continued training needs."""
    if module.checkpoints.role(saved.entries[key]) != "optimizer":
        return False
    restored = (module.checkpoints.restored(read) for read in loaded.reads.get(key, ()))
    return any(owner is not None and module.checkpoints.role_of(owner) == "optimizer" for owner in restored)


def _step_of_given_scheduler(saved: SavedDict, module: FileFacts) -> cst.Call | None:
    """The step, in the class or function that saves, of a scheduler from elsewhere; None if it gets the epoch."""
    around = module.tree.enclosing(saved.node, cst.ClassDef) or module.tree.home(saved.node)
    found: cst.Call | None = None
    for call in module.tree.within(around, cst.Call):
        if called_name(call) != "step" or not isinstance(call.func, cst.Attribute):
            continue
        scheduler = call.func.value
        if module.checkpoints.role_of(scheduler) != "scheduler":
            continue
        if not isinstance(module.kinds.origin(scheduler), cst.Param) or _is_told(call):
            return None
        found = found or call
    return found


def _is_told(step: cst.Call) -> bool:
    """Whether a step gets only its epoch or step number."""
    return len(step.args) == 1 and _COUNT.search(dotted(step.args[0].value) or "count") is not None


def _left_out_of_objects(module: FileFacts) -> Iterator[Suspicion]:
    """Schedulers that are stepped, but not passed to an object created there that saves and loads an optimizer.

    Such a checkpoint holds the objects or their wrappers, and `torch.distributed.checkpoint` reads their state.
    """
    dicts = list(
        dict.fromkeys(
            found
            for call, _ in module.calls_matching(_SAVES_OBJECTS)
            for found in module.checkpoints.objects(call)
        )
    )
    roles = {one: module.checkpoints.roles_inside(one) for one in dicts}
    kept = next((one for one, found in roles.items() if "optimizer" in found), None)
    if kept is None or any("scheduler" in found for found in roles.values()):
        return
    if not any(True for _ in module.calls_matching(_LOADS_OBJECTS)):
        return
    klass, home = module.tree.enclosing(kept, cst.ClassDef), module.tree.home(kept)
    init = module.classes.methods(klass).get("__init__") if klass is not None else None
    made = init if init is not None else home
    sites = module.calls_in_loop.sites(made) if isinstance(made, cst.FunctionDef) else []
    for place in (kept, *sites):
        step = _step_beside(place, module)
        if step is not None:
            assert isinstance(step.func, cst.Attribute)
            name = module.code(step.func.value)
            message = f"training resumes without the state of the scheduler `{name}`: save it in this checkpoint too"
            yield Suspicion(kept, message, ((step, "stepped here"),))
            return


def _model_alone(module: FileFacts) -> Iterator[Suspicion]:
    """Models of which only the state is saved and loaded, under the condition that sets where the loop continues."""
    saved = {path: call for call in module.calls_to("torch.save") if (path := _saved_model(call)) is not None}
    if not saved or any(_keeps_state(call, module) for call in module.tree.all(cst.Call)):
        return
    optimizer = _optimizer_with_state(module)
    for load in module.tree.all(cst.Call) if optimizer is not None else ():
        if called_name(load) != "load_state_dict" or not isinstance(load.func, cst.Attribute):
            continue
        origin = module.kinds.origin(load.args[0].value) if load.args else None
        read = isinstance(origin, cst.Call) and module.qualified(origin.func) == "torch.load"
        save = saved.get(bare(load.func.value) or "") if read else None
        if save is not None and optimizer is not None and _goes_on_beside(load, module):
            message = f"training resumes without the state of the optimizer `{called_name(optimizer)}`: save it in this checkpoint too"
            related = ((load, "loaded here"), (optimizer, "made here"))
            yield Suspicion(save, message, related, needs=(load,))
            return


def _saved_model(call: cst.Call) -> str | None:
    """`model` in `torch.save(model.state_dict(), path)`."""
    given = call.args[0].value if call.args else None
    if not isinstance(given, cst.Call) or called_name(given) != "state_dict":
        return None
    return bare(given.func.value) if isinstance(given.func, cst.Attribute) else None


def _keeps_state(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call reads the state of anything but a model."""
    if called_name(call) != "state_dict" or not isinstance(call.func, cst.Attribute):
        return False
    return module.checkpoints.role_of(call.func.value) is not None or "opt" in module.code(call.func).lower()


def _goes_on_beside(load: cst.Call, module: FileFacts) -> bool:
    """Whether the condition under which a model is loaded, here or by a function, also sets where a loop starts."""
    home = module.tree.home(load)
    places = [load, *(module.calls_in_loop.sites(home) if isinstance(home, cst.FunctionDef) else ())]
    branches = [
        above.body
        for place in places
        for above in module.tree.ancestors(place)
        if isinstance(above, cst.If) and module.tree.contains(above.body, place)
    ]
    return any(
        _starts_range((dotted(target.target) or "").rpartition(".")[2], module)
        for branch in branches
        for assign in module.tree.within(branch, cst.Assign)
        for target in assign.targets
    )


def _starts_range(name: str, module: FileFacts) -> bool:
    """Whether a variable of this name is the start of the `range` of a training loop."""
    return bool(name) and any(
        _is_range(loop.iter)
        and any(part.value == name for part in module.tree.within(loop.iter.args[0], cst.Name))  # type: ignore[attr-defined]
        and module.evaluations.trains(loop.body)
        for loop in module.tree.all(cst.For)
    )


def _step_beside(place: Node, module: FileFacts) -> cst.Call | None:
    """The step of a scheduler in the function around a place that does not mention the scheduler."""
    for call in module.tree.own(module.tree.home(place), cst.Call):
        if called_name(call) != "step" or not isinstance(call.func, cst.Attribute) or call.args:
            continue
        path = dotted(call.func.value)
        if path is None or module.checkpoints.role_of(call.func.value) != "scheduler":
            continue
        mentioned = module.tree.within(place, cst.Name, cst.Attribute)
        if not any("sched" in (dotted(name) or "").lower() or dotted(name) == path for name in mentioned):
            return call
    return None


def _keeps_other_state(role: str, saved: SavedDict, module: FileFacts) -> bool:
    """Whether the file may store a state of such an object elsewhere, or under another name."""
    known = list(saved.entries.values())
    for call in module.tree.all(cst.Call):
        if called_name(call) != "state_dict" or not isinstance(call.func, cst.Attribute):
            continue
        owner = call.func.value
        other = module.checkpoints.role_of(owner)
        if other == role or (other is None and call not in known and module.kind(owner) is not Kind.MODULE):
            return True
    return False


def _optimizer_with_state(module: FileFacts) -> cst.Call | None:
    """The first optimizer of the file that has a state."""
    for optimizer, _ in module.calls_matching(_OPTIMIZER):
        if called_name(optimizer) != "SGD" or _has_momentum(optimizer, module):
            return optimizer
    return None


def _moved_scheduler(module: FileFacts) -> cst.Call | None:
    """The first scheduler of the file that counts its own steps from the start, so that nothing puts it where it was."""
    for call in module.tree.all(cst.Call):
        assign = module.tree.parent[call]
        if module.kinds.instance(call.func) is not Kind.SCHEDULER or not isinstance(assign, cst.Assign):
            continue
        name = dotted(assign.targets[0].target)
        told = argument(call, "last_epoch") is not None or spreads(call)
        told = told or any(_is_told_where(other, name, module) for other in module.tree.all(cst.Assign))
        told = told or any(_GOES_ON.search(part.value) for part in module.tree.within(call, cst.Name))
        if name is not None and not told and _only_counts(name, call, module):
            return call
    return None


def _is_told_where(assign: cst.Assign, name: str | None, module: FileFacts) -> bool:
    """Whether code also binds the name of a scheduler to one that starts at a given step, as where training resumes."""
    made = assign.value
    is_same = any(dotted(target.target) == name for target in assign.targets)
    return (
        is_same
        and isinstance(made, cst.Call)
        and module.kinds.instance(made.func) is Kind.SCHEDULER
        and argument(made, "last_epoch") is not None
    )


def _only_counts(name: str, made: cst.Call, module: FileFacts) -> bool:
    """Whether code only steps a scheduler, without an epoch."""
    last = name.rpartition(".")[2]
    steps: list[cst.Call] = []
    for use in module.tree.all(cst.Attribute):
        if (dotted(use.value) or "").rpartition(".")[2] != last:
            continue
        call = module.tree.parent[use]
        if use.attr.value == "step" and isinstance(call, cst.Call):
            steps.append(call)
        elif use.attr.value not in _LOOKS:
            return False
    told = called_name(made) != "ReduceLROnPlateau" and any(call.args for call in steps)
    return bool(steps) and not told and not any(_catches_up(call, module) for call in steps)


def _catches_up(step: cst.Call, module: FileFacts) -> bool:
    """Whether a loop does nothing but this step, as many times as epochs were made before."""
    loops = module.tree.loops(step)
    return any(isinstance(loop, cst.For) and len(loop.body.body) == 1 for loop in loops)


def _has_momentum(optimizer: cst.Call, module: FileFacts) -> bool:
    momentum = argument(optimizer, "momentum", 2)
    return momentum is not None and module.number(momentum) != 0


def _restores_model(loaded: LoadCall, saved: SavedDict, module: FileFacts) -> bool:
    """Whether a model loads the entry under which a checkpoint of this file saves a model."""
    return any(
        key in saved.entries
        and module.checkpoints.role(saved.entries[key]) is None
        and any(
            (receiver := module.checkpoints.restored(read)) is not None
            and module.checkpoints.role_of(receiver) is None
            for read in reads
        )
        for key, reads in loaded.reads.items()
    )


def _goes_on(loaded: LoadCall, module: FileFacts) -> bool:
    """Whether a loaded count sets where a loop starts: `start_epoch = checkpoint["epoch"] + 1`."""
    for reads in loaded.reads.values():
        for read in reads:
            assign = module.tree.statement(read)
            if isinstance(assign, cst.For) and _is_range(assign.iter):
                return True
            if isinstance(assign, cst.Assign):
                names = [(dotted(item.target) or "").rpartition(".")[2] for item in assign.targets]
                if any(
                    _GOES_ON.search(name) or _starts_loop(name, module) or _counts(name, module)
                    for name in names
                ):
                    return True
    return False


def _starts_loop(name: str, module: FileFacts) -> bool:
    """Whether a variable of this name is the start of a `range`, or in the condition of a `while`."""
    starts: list[Node] = [loop.test for loop in module.tree.all(cst.While)]
    for loop in module.tree.all(cst.For):
        if isinstance(loop.iter, cst.Call) and _is_range(loop.iter):
            starts.append(loop.iter.args[0])
    return any(part.value == name for start in starts for part in module.tree.within(start, cst.Name))


def _counts(name: str, module: FileFacts) -> bool:
    """Whether code counts steps or epochs on in a variable or attribute of this name: `self.epoch += 1`."""
    return _COUNT.search(name) is not None and any(
        isinstance(added.operator, cst.AddAssign) and (dotted(added.target) or "").rpartition(".")[2] == name
        for added in module.tree.all(cst.AugAssign)
    )


def _is_range(iterable: Node) -> bool:
    """Whether an iterable counts from a given start."""
    counts = isinstance(iterable, cst.Call) and called_name(iterable) in ("range", "trange")
    return isinstance(iterable, cst.Call) and counts and len(iterable.args) > 1


def _only_uses(call: cst.Call, module: FileFacts) -> bool:
    function = module.tree.home(call)
    return isinstance(function, cst.FunctionDef) and _USES.search(function.name.value) is not None


def _is_mentioned(
    key: str, saved: SavedDict | None, module: FileFacts, reads: list[Node] | None = None
) -> bool:
    """Whether the file mentions a key outside the given checkpoint and reads."""
    known = [*(saved.written if saved is not None else ()), *(reads or [])]
    return any(
        literal_text(string) == key and not any(module.tree.contains(node, string) for node in known)
        for string in module.tree.all(cst.SimpleString)
    )
