"""TA310: a `DistributedSampler` without `set_epoch` shuffles every epoch in the same way."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall, LoaderLoop
from ta_lint.facts.values.value import Frame, Origin
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, argument, dotted, is_name, spreads

KEYWORDS = ("DataLoader",)
AROUND = ("DistributedSampler", ("*backward", "step"))

_SHUFFLE = 3  # DistributedSampler(dataset, num_replicas, rank, shuffle, ...)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.gated or module.loaders.replaced:
        return
    for loader in module.loaders.all:
        sampler = _sampler(loader, module)
        if sampler is None or any(
            _is_taken_care_of(root, module) for root in module.loaders.users(loader.call)
        ):
            continue
        for found in module.loaders.passes_over(loader):
            epochs = _epochs(found, sampler, module)
            repeats: Node | None = None
            if epochs is not None and _trains(found, module):
                repeats, why = epochs.iter, "the epochs are counted here"
            elif epochs is None and (endless := _endless(found, module)) is not None:
                repeats, why = endless, "the loader begins anew here"
            if repeats is not None:
                message = "the `DistributedSampler` of this loader shuffles the same way in every epoch: call `set_epoch`"
                related = ((sampler, "the sampler is made here"), (repeats, why))
                fix = _fix(loader, found, epochs, module) if epochs is not None else None
                yield Suspicion(loader.call, message, related=related, fix=fix)
                break


def _is_taken_care_of(root: cst.Module, module: FileFacts) -> bool:
    """Whether a file that may use a loader sets the epoch, or has a framework that does."""
    if "set_epoch" in module.parsed(root).source.text:
        return True
    return module.loaders.replaced_in(root) or module.loops.framework_of(root) is not None


def _trains(found: LoaderLoop, module: FileFacts) -> bool:
    events = module.calls_in_loop.events(found.loop.body)
    return module.loops.trains(found.loop) or any(event.action is Action.BACKWARD for event in events)


def _sampler(loader: LoaderCall, module: FileFacts) -> cst.Call | None:
    """The `DistributedSampler` of a loader, on at least one path, unless it does not shuffle."""
    given = loader.given("sampler")
    if given is None:
        return None
    found = [Origin(value) for value in module.loaders.alternatives(given)]
    for origin in (*found, *module.flow.of(given).origins):
        value = origin.node
        if (
            origin.path
            or not isinstance(value, cst.Call)
            or module.qualified(value.func) != "torch.utils.data.DistributedSampler"
        ):
            continue
        shuffle = argument(value, "shuffle", _SHUFFLE)
        if not spreads(value) and (shuffle is None or _is_true(shuffle, origin.frame, module)):
            return value
    return None


def _is_true(node: Node, frame: Frame | None, module: FileFacts) -> bool:
    """Whether an expression is `True` in this call of its function."""
    origins = module.flow.of(node, (), frame).origins
    return bool(origins) and all(module.boolean(origin.node) is True for origin in origins)


def _epochs(found: LoaderLoop, sampler: Node, module: FileFacts) -> cst.For | None:
    """The `for` over epochs that repeats the pass with the same sampler."""
    anew = module.loaders.loops_around(sampler)
    for loop in module.loaders.loops_around(found.loop):
        within = found.loop if module.tree.contains(loop, found.loop) else loop.body
        if isinstance(loop, cst.For) and loop not in anew and not module.loops.is_last_pass(within, loop):
            return loop
    return None


def _endless(found: LoaderLoop, module: FileFacts) -> cst.While | None:
    """The `while True` of a generator that restarts a loader endlessly, and from which training code takes batches."""
    home, above = module.tree.home(found.loop), next(iter(module.tree.loops(found.loop)), None)
    if not isinstance(home, cst.FunctionDef) or not isinstance(above, cst.While):
        return None
    if not is_name(above.test, "True") or not module.tree.within(found.loop, cst.Yield):
        return None
    return above if any(_is_taken(site, module) for site in module.calls_in_loop.sites(home)) else None


def _is_taken(site: cst.Call, module: FileFacts) -> bool:
    """Whether code that trains takes the batches of a generator: `batches = endless(loader)` and `next(batches)`."""
    assign = module.tree.parent[site]
    target = dotted(assign.targets[0].target) if isinstance(assign, cst.Assign) else None
    if target is None:
        return False
    takes = [
        module.tree.home(call)
        for call in module.tree.all(cst.Call)
        if called_name(call) == "next" and call.args and dotted(call.args[0].value) == target
    ]
    return any(
        module.evaluations.trains(home.body if isinstance(home, cst.FunctionDef) else home)
        for home in dict.fromkeys(takes)
        if "." in target or home is module.tree.home(site)
    )


def _fix(loader: LoaderCall, found: LoaderLoop, epochs: cst.For, module: FileFacts) -> ProposedFix | None:
    """`sampler.set_epoch(epoch)` as the first statement, if both names are visible and the sampler always exists."""
    given = loader.given("sampler")
    tree = module.tree
    if not isinstance(given, cst.Name) or not isinstance(epochs.target, cst.Name):
        return None
    if epochs not in tree.loops(found.loop) or tree.home(epochs) is not tree.home(loader.call):
        return None
    if len(module.names.bindings(given)) != 1 or not isinstance(module.kinds.origin(given), cst.Call):
        return None
    if not isinstance(epochs.iter, cst.Call) or module.qualified(epochs.iter.func) != "builtins.range":
        return None
    line = f"{given.value}.set_epoch({epochs.target.value})"
    return ProposedFix("tell the sampler the epoch", (insert_line_before(tree, epochs.body.body[0], line),))
