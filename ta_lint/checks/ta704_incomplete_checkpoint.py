"""TA704: what a program saves to resume training from is not what it loads when it resumes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from ta_lint.facts import Kind, Module, Suspicion
from ta_lint.facts.calls import called_name
from ta_lint.facts.names import Binding
from ta_lint.facts.tree import Node, argument, dotted

NEEDS = (r"load_state_dict\(", r"load\(", r"[\"']\s*:\s*[\w.\[\]\"']+\.state_dict\(\)")

_SCHEDULER_NAME = re.compile(r"sched", re.IGNORECASE)

# Optimizers of torch with a state.
_OPTIMIZER = re.compile(r"torch\.optim\.(Ada\w+|NAdam|RAdam|RMSprop|SGD|ASGD|Rprop|LBFGS|Muon)")

_READS_FILE = ("torch.load", "torch.hub.load_state_dict_from_url")

# What counts the steps of training, where a loop goes on from.
_GOES_ON = re.compile(r"start|begin|resum|last|initial", re.IGNORECASE)

# Functions that load a model to use it.
_USES = re.compile(r"eval|test|infer|predict|demo|sample|generate|export|convert|best|valid", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Saved:
    """A dictionary that is a checkpoint: the value of each key; `whole` if the keys are all in sight."""

    node: cst.Dict
    entries: dict[str, Node]
    whole: bool


@dataclass(frozen=True, eq=False)
class Loaded:
    """A variable that holds what `call`, and maybe others, read from a file, and where each key is read."""

    call: cst.Call
    reads: dict[str, list[Node]] = field(default_factory=dict)


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test:
        return
    saved = list(_saved(module))
    for loaded in _loaded(module) if saved else ():
        pair = next((one for one in saved if _restores_model(loaded, one, module)), None)
        if pair is None or _only_uses(loaded.call, module):
            continue
        yield from _never_loaded(loaded, pair, module)
        yield from _never_saved(loaded, saved, module)
        yield from _never_kept(loaded, pair, module)


def _never_loaded(loaded: Loaded, saved: Saved, module: Module) -> Iterator[Suspicion]:
    """The states of training that are saved, and not loaded where training goes on."""
    roles = {key: role for key, value in saved.entries.items() if (role := _role(value, module)) is not None}
    if not _goes_on(loaded, module) and not any(key in loaded.reads for key in roles):
        return
    for key, role in roles.items():
        if key not in loaded.reads and not _is_mentioned(key, saved, module):
            message = f"the state of the {role} is saved as `{key}` and not loaded where training resumes"
            yield Suspicion(loaded.call, message, related=((saved.entries[key], "saved here"),))


def _never_saved(loaded: Loaded, saved: list[Saved], module: Module) -> Iterator[Suspicion]:
    """The states of training that are loaded, and that no checkpoint of the file has."""
    if not all(one.whole for one in saved):
        return
    for key, reads in loaded.reads.items():
        for read in reads:
            receiver = _restored(read, module)
            if receiver is None or _role_of(receiver, module) is None:
                continue
            if not any(key in one.entries for one in saved) and not _is_mentioned(key, None, module, reads):
                message = f"`{key}` is loaded, and no checkpoint that this file saves has it"
                yield Suspicion(read, message, related=((saved[0].node, "saved here"),))


def _never_kept(loaded: Loaded, saved: Saved, module: Module) -> Iterator[Suspicion]:
    """The optimizer with a state of its own that is in no checkpoint, though training goes on from one."""
    keys = {*saved.entries, *loaded.reads}
    if not saved.whole or any("opt" in key.lower() for key in keys) or not _goes_on(loaded, module):
        return
    known = saved.entries.values()
    for call in module.tree.all(cst.Call):
        if called_name(call) == "state_dict" and call not in known:
            return  # it may be the optimizer's
    for optimizer, _ in module.calls_matching(_OPTIMIZER):
        if called_name(optimizer) != "SGD" or _has_momentum(optimizer, module):
            name = called_name(optimizer)
            message = f"training resumes from this checkpoint, which has no state of the optimizer `{name}`"
            yield Suspicion(
                saved.node, message, related=((loaded.call, "loaded here"), (optimizer, "made here"))
            )
            return


def _has_momentum(optimizer: cst.Call, module: Module) -> bool:
    momentum = argument(optimizer, "momentum", 2)
    return momentum is not None and module.number(momentum) != 0


# -- what is saved ----------------------------------------------------------------------------------------------


def _saved(module: Module) -> Iterator[Saved]:
    """The dictionaries that hold the state of something under a key."""
    for node in module.tree.all(cst.Dict):
        entries: dict[str, Node] = {
            key: element.value
            for element in node.elements
            if isinstance(element, cst.DictElement) and (key := _text(element.key)) is not None
        }
        if any(_stateful(value) is not None for value in entries.values()):
            yield Saved(node, entries, whole=len(entries) == len(node.elements))


def _stateful(value: Node) -> Node | None:
    """`optimizer` of `optimizer.state_dict()`."""
    if not isinstance(value, cst.Call) or called_name(value) != "state_dict":
        return None
    return value.func.value if isinstance(value.func, cst.Attribute) else None


def _role(value: Node, module: Module) -> str | None:
    owner = _stateful(value)
    return _role_of(owner, module) if owner is not None else None


def _role_of(owner: Node, module: Module) -> str | None:
    """What an object does in training, None for a model and for what is not known."""
    if module.kinds.is_optimizer(owner):
        return "optimizer"
    kind = module.kind(owner)
    if kind is Kind.SCHEDULER or (kind is None and _SCHEDULER_NAME.search(dotted(owner) or "")):
        return "scheduler"
    return "scaler" if module.kinds.is_scaler(owner) else None


# -- what is loaded ---------------------------------------------------------------------------------------------


def _loaded(module: Module) -> Iterator[Loaded]:
    """The variables that hold a file's content, and are asked for nothing but single keys."""
    seen: list[list[Binding]] = []
    for call in module.calls_to(*_READS_FILE):
        assign = module.tree.parent[call]
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        if not isinstance(target, cst.Name):
            continue
        bindings = module.names.bindings(target)
        if not any(bindings is other for other in seen):
            seen.append(bindings)
            reads = _reads(target, module)
            if reads is not None:
                yield Loaded(call, reads)


def _is_load(binding: Binding, module: Module) -> bool:
    value = binding.value
    return (
        binding.how == "assign"
        and isinstance(value, cst.Call)
        and module.qualified(value.func) in _READS_FILE
    )


def _reads(variable: cst.Name, module: Module) -> dict[str, list[Node]] | None:
    """Where each key of a variable is read; None if the whole of it goes elsewhere."""
    found: dict[str, list[Node]] = {}
    for mention in module.names.mentions(variable):
        if isinstance(module.tree.parent[mention], (cst.AssignTarget, cst.Del, cst.ComparisonTarget)):
            continue
        reaching = module.names.definition(mention)
        if reaching is not None and not _is_load(reaching, module):
            continue  # the program builds its own checkpoint under the same name
        read = _read(mention, module)
        if read is None:
            return None
        key, node = read
        found.setdefault(key, []).append(node)
    return found


def _read(mention: cst.Name, module: Module) -> tuple[str, Node] | None:
    """The key that is read of a variable, and the expression that reads it."""
    above = module.tree.parent[mention]
    if isinstance(above, cst.Subscript) and above.value is mention:
        changed = isinstance(module.tree.parent[above], (cst.AssignTarget, cst.Del))
        index = above.slice[0].slice
        key = _text(index.value) if isinstance(index, cst.Index) and not changed else None
        return (key, above) if key is not None else None
    call = module.tree.parent[above]
    if isinstance(call, cst.Call) and call.args and called_name(call) == "get" and call.func is above:
        key = _text(call.args[0].value)
        return (key, call) if key is not None else None
    return None


def _restored(read: Node, module: Module) -> Node | None:
    """`model` of `model.load_state_dict(checkpoint["model"])`, whether or not that gets a name in between."""
    above = module.tree.parent[read]
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    for value in (read, *(module.names.mentions(target) if isinstance(target, cst.Name) else ())):
        given = module.tree.parent[value]
        call = module.tree.parent[given] if isinstance(given, cst.Arg) else None
        if isinstance(call, cst.Call) and called_name(call) == "load_state_dict":
            return call.func.value if isinstance(call.func, cst.Attribute) else None
    return None


def _restores_model(loaded: Loaded, saved: Saved, module: Module) -> bool:
    """Whether a model gets the very entry in which a checkpoint of this file keeps a model."""
    return any(
        key in saved.entries
        and _role(saved.entries[key], module) is None
        and any(
            (receiver := _restored(read, module)) is not None and _role_of(receiver, module) is None
            for read in reads
        )
        for key, reads in loaded.reads.items()
    )


def _goes_on(loaded: Loaded, module: Module) -> bool:
    """Whether a count that was loaded says where a loop starts: `start_epoch = checkpoint["epoch"] + 1`."""
    for reads in loaded.reads.values():
        for read in reads:
            assign = module.tree.statement(read)
            if isinstance(assign, cst.Assign):
                names = [(dotted(item.target) or "").rpartition(".")[2] for item in assign.targets]
                if any(_GOES_ON.search(name) or _starts_loop(name, module) for name in names):
                    return True
    return False


def _starts_loop(name: str, module: Module) -> bool:
    """Whether a variable by that name is where a `range` starts, or what a `while` asks for."""
    starts: list[Node] = [loop.test for loop in module.tree.all(cst.While)]
    for loop in module.tree.all(cst.For):
        counts = isinstance(loop.iter, cst.Call) and called_name(loop.iter) in ("range", "trange")
        if isinstance(loop.iter, cst.Call) and counts and len(loop.iter.args) > 1:
            starts.append(loop.iter.args[0])
    return any(part.value == name for start in starts for part in module.tree.within(start, cst.Name))


def _only_uses(call: cst.Call, module: Module) -> bool:
    function = module.tree.home(call)
    return isinstance(function, cst.FunctionDef) and _USES.search(function.name.value) is not None


def _is_mentioned(key: str, saved: Saved | None, module: Module, reads: list[Node] | None = None) -> bool:
    """Whether the file has a key anywhere besides the checkpoint, or the reads, that are known."""
    known = [*([saved.node] if saved is not None else []), *(reads or [])]
    return any(
        _text(string) == key and not any(module.tree.contains(node, string) for node in known)
        for string in module.tree.all(cst.SimpleString)
    )


def _text(node: Node) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None
