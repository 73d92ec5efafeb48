"""TA704: a program does not load all the state that it saves for resuming, or loads state that it never saves."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.checkpoints import LoadCall, SavedDict
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted, literal_text

KEYWORDS = ("load_state_dict", "state_dict", "load")

# Optimizers of torch that have state.
_OPTIMIZER = regex(r"torch\.optim\.(Ada\w+|NAdam|RAdam|RMSprop|SGD|ASGD|Rprop|LBFGS|Muon)")

# Variables with the step or epoch from which a loop continues.
_GOES_ON = regex(r"start|begin|resum|last|initial", re.IGNORECASE)

# Functions that load a model to use it, not to train it.
_USES = regex(r"eval|test|infer|predict|demo|sample|generate|export|convert|best|valid", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    saved = module.checkpoints.saved
    for loaded in module.checkpoints.loaded if saved else ():
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
            message = f"the state of the {role} is saved as `{key}` and not loaded where training resumes"
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
                message = f"`{key}` is loaded, and no checkpoint that this file saves has it"
                yield Suspicion(read, message, related=((saved[0].node, "saved here"),))


def _never_kept(loaded: LoadCall, saved: SavedDict, module: FileFacts) -> Iterator[Suspicion]:
    """Stateful optimizers that are in no checkpoint, although training resumes from one."""
    keys = {*saved.entries, *loaded.reads}
    if not saved.whole or any("opt" in key.lower() for key in keys) or not _goes_on(loaded, module):
        return
    known = saved.entries.values()
    for call in module.tree.all(cst.Call):
        if called_name(call) == "state_dict" and call not in known:
            return  # may be the optimizer's state
    for optimizer, _ in module.calls_matching(_OPTIMIZER):
        if called_name(optimizer) != "SGD" or _has_momentum(optimizer, module):
            name = called_name(optimizer)
            message = f"training resumes from this checkpoint, which has no state of the optimizer `{name}`"
            yield Suspicion(
                saved.node, message, related=((loaded.call, "loaded here"), (optimizer, "made here"))
            )
            return


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
            if isinstance(assign, cst.Assign):
                names = [(dotted(item.target) or "").rpartition(".")[2] for item in assign.targets]
                if any(_GOES_ON.search(name) or _starts_loop(name, module) for name in names):
                    return True
    return False


def _starts_loop(name: str, module: FileFacts) -> bool:
    """Whether a variable of this name is the start of a `range`, or in the condition of a `while`."""
    starts: list[Node] = [loop.test for loop in module.tree.all(cst.While)]
    for loop in module.tree.all(cst.For):
        counts = isinstance(loop.iter, cst.Call) and called_name(loop.iter) in ("range", "trange")
        if isinstance(loop.iter, cst.Call) and counts and len(loop.iter.args) > 1:
            starts.append(loop.iter.args[0])
    return any(part.value == name for start in starts for part in module.tree.within(start, cst.Name))


def _only_uses(call: cst.Call, module: FileFacts) -> bool:
    function = module.tree.home(call)
    return isinstance(function, cst.FunctionDef) and _USES.search(function.name.value) is not None


def _is_mentioned(
    key: str, saved: SavedDict | None, module: FileFacts, reads: list[Node] | None = None
) -> bool:
    """Whether the file mentions a key outside the given checkpoint and reads."""
    known = [*([saved.node] if saved is not None else []), *(reads or [])]
    return any(
        literal_text(string) == key and not any(module.tree.contains(node, string) for node in known)
        for string in module.tree.all(cst.SimpleString)
    )
