"""The loaders whose batches models are asked about, and that none learns from."""

from ta_lint.core.protocol import Action
from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.streams import Stream
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import NONE, External, Object, Unknown
from ta_lint.events.event import Event


def evaluated_of(events: list[Event]) -> set[Object]:
    """Those that are gone over to the end, and those that nothing goes over, whose data has the name of some that is for that. None in a program
    that compares the samples of a batch with each other: what it measures depends on how many there are.
    """
    if any(map(_compares_samples, events)):
        return set()
    loaders = {event.subject for event in events if event.action == "loader"}
    begun = {event.subject for event in events if event.action == Action.EPOCH}
    ended = {event.subject for event in events if event.action == "epoch is over"}
    asked, learnt = set[Object](), set[Object]()
    in_hand: dict[Stream, Event] = {}
    for event in events:
        if event.action == Action.BATCH:
            in_hand[event.detail["iterator"]] = event
        elif event.action == "epoch is over":
            in_hand.pop(event.detail["iterator"], None)
        elif event.action in (Action.STEP, Action.BACKWARD):
            learnt |= of_this_pass(in_hand, event)
        elif event.action == Action.FORWARD and only_asks(event):
            asked |= of_this_pass(in_hand, event)
    named = {one for one in loaders if _is_for_evaluation(one)}
    return ((asked | named) & ended | (named - begun)) - learnt


def of_this_pass(in_hand: dict[Stream, Event], event: Event) -> set[Object]:
    """The loaders whose last batch was taken in the passes of loops that something happens in."""
    return {
        one.subject
        for one in in_hand.values()
        if all(before == now for before, now in zip(one.passes, event.passes, strict=False))
    }


def only_asks(forward: Event) -> bool:
    """Whether a call of a model trains nothing: it is not recorded, or in evaluation mode."""
    call = forward.detail["call"]
    return call is not None and (call.recording is False or call.training is False)


def _compares_samples(event: Event) -> bool:
    """Whether a loss has a target that is no data, such as the numbers of the rows."""
    target = event.detail.get("target") if event.action == "loss" else None
    return isinstance(target, Tensor) and target.is_constant


def _is_for_evaluation(loader: Object) -> bool:
    dataset = loader.fields.get("dataset", NONE)
    said = dataset.why if isinstance(dataset, Unknown) else ""
    if isinstance(dataset, External):
        said = dataset.name.rpartition(".")[2]
    return is_meant("evaluation", said) and not is_meant("training", said)
