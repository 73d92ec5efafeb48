"""TA672: Ignite stops, or keeps the best model, by a score of the last training batch or of the training set."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.ignite import Attachment, ScoredHandler
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("add_event_handler", ("EarlyStopping", "*Checkpoint"))
AROUND = ("ignite",)

_VALIDATION = ("val", "test", "dev", "eval")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for attachment in module.ignite.attachments:
        handler = _scored(module, attachment)
        if handler is None:
            continue
        name = called_name(handler.call)
        if _is_of_trainer(module, attachment, handler):
            read = _read(module, handler)
            if read is not None and not _is_meant(module, attachment, read):
                what = "the last minibatch" if read == "output" else "the training set"
                message = f"this `{name}` scores {what}; attach it to the evaluator of the validation set"
                yield Suspicion(attachment.call, message)
        elif (both := _runs_on_both(module, attachment.engine)) is not None:
            message = f"this `{name}` also scores the training set, as its evaluator runs on that too: use a second evaluator"
            yield Suspicion(attachment.call, message, ((both, "the run on the training set"),))


def _scored(module: FileFacts, attachment: Attachment) -> ScoredHandler | None:
    origins = [origin.node for origin in module.flow.of(attachment.handler).origins]
    return next((one for one in module.ignite.scored if origins == [one.call]), None)


def _is_of_trainer(module: FileFacts, attachment: Attachment, handler: ScoredHandler) -> bool:
    """Whether a handler is attached to the engine that it stops, or to one that certainly trains."""
    name = dotted(attachment.engine)
    is_stopped = handler.stops is not None and name is not None and dotted(handler.stops) == name
    return is_stopped or module.ignite.is_trainer(attachment.engine)


def _read(module: FileFacts, handler: ScoredHandler) -> str | None:
    """What a score function reads from the state of its engine: its `output`, or the name of a metric."""
    if handler.score is None:
        return None
    params = handler.score.params.params
    for score in module.ignite.scores(handler.score):
        for attribute in module.tree.within(score, cst.Attribute, cst.Name):
            for origin in module.flow.of(attribute).origins:
                is_given = params and origin.node is params[-1] and origin.path[:1] == ("state",)
                if is_given and origin.path[1:2] == ("output",):
                    return "output"
        for subscript in module.tree.within(score, cst.Subscript, cst.Name):
            for origin in module.flow.of(subscript).origins:
                is_given = params and origin.node is params[-1] and origin.path[:2] == ("state", "metrics")
                if is_given and isinstance(origin.path[-1], str) and len(origin.path) == 3:
                    return origin.path[-1]
    return None


def _is_meant(module: FileFacts, attachment: Attachment, read: str) -> bool:
    """Whether there may be no better score: a GAN, no evaluator, or an evaluator's metrics in the trainer's state."""
    origin = module.kinds.origin(attachment.engine)
    for call, function in module.ignite.engines:
        if call is origin:
            backwards = [
                one for one in module.tree.within(function, cst.Call) if called_name(one) == "backward"
            ]
            if len(backwards) > 1:
                return True
    if read == "output":
        return False
    targets = [item.target for item in module.tree.all(cst.AssignTarget)]
    writes = [one.value for one in targets if isinstance(one, cst.Subscript)]
    writes += [
        call.func.value
        for call in module.tree.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "update"
    ]
    is_written = any((dotted(one) or "").endswith("state.metrics") for one in writes)
    return is_written or read.lower().startswith(_VALIDATION) or not _evaluates(module)


def _evaluates(module: FileFacts) -> bool:
    return bool(module.ignite.evaluators) or any(
        not module.ignite.goes_back(function) for _, function in module.ignite.engines
    )


def _runs_on_both(module: FileFacts, engine: Node) -> cst.Call | None:
    """The run of an evaluator on the training set, where functions run it on another set as well."""
    runs = [
        (call, data)
        for call, data in module.ignite.runs(engine)
        if module.tree.home(call) is not module.tree.root
        and module.tree.home(call) is not module.tree.home(engine)
    ]
    met = [call for call, data in runs if data & module.ignite.trained_on]
    if met and any(data - module.ignite.trained_on for _, data in runs):
        return met[0]
    names = {call: module.code(call.args[0].value).lower() for call, _ in runs}
    others = [call for call in names if any(word in names[call] for word in _VALIDATION)]
    trained = [call for call in names if "train" in names[call] and call not in others]
    return trained[0] if trained and others else None
