"""How layers are built, held and changed: what torch does not see of them, and what it refuses."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ta_lint.core.protocol import Action
from ta_lint.dryrun.collect.memberships import scope_of
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.gradients import held_by
from ta_lint.dryrun.stubs.torch.modules import below, children, is_module
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Tensor, is_parameter
from ta_lint.dryrun.values import FALSE, Known, Object, Place, each_in, options
from ta_lint.events.event import Event
from ta_lint.events.layers import (
    AlwaysDropped,
    Cancelled,
    LeafChanged,
    PaddingFilled,
    ParameterLost,
    UsedUp,
    Window,
)

_SIZES = ("kernel_size", "stride", "padding", "dilation")


def windows_of(events: list[Event]) -> list[Window]:
    """The convolutions whose sizes are known."""
    found = {}
    for event in events:
        if event.action == "convolution" and event.subject.made is not None and not event.by_library:
            sizes, kind = event.detail["sizes"], event.detail["kind"]
            axes = [tuple(_along(sizes.get(name), axis) for name in _SIZES) for axis in range(int(kind[-2]))]
            known = tuple(axis for axis in axes if all(isinstance(one, int) for one in axis))
            if len(known) == len(axes):
                place = event.subject.made
                found[place] = Window(position(place), kind, known)  # type: ignore[arg-type]
    return [*found.values()]


def _along(size: object, axis: int) -> object:
    return size[axis] if isinstance(size, tuple) and axis < len(size) else size


def always_dropped_of(events: list[Event]) -> list[AlwaysDropped]:
    """The calls of dropout functions without `training` that drop values of a module in evaluation mode."""
    found = {}
    for event in events:
        if event.action != "dropped" or event.by_library or event.doubt:
            continue
        share = event.detail["share"]
        drops = isinstance(share, Known) and isinstance(share.value, int | float) and share.value > 0
        if drops and event.subject.fields.get("training") == FALSE:
            within = tuple(one.owner.name for one in event.functions if one.owner is not None)
            found[event.place] = AlwaysDropped(position(event.place), event.detail["by"], within)
    return [*found.values()]


def leaf_changes_of(events: list[Event]) -> list[LeafChanged]:
    """The in-place changes of leaves while autograd records. Who calls a function that nobody here calls may have switched that off, unless it goes
    back through a loss itself.
    """
    trains = {scope_of(event) for event in events if event.action == Action.BACKWARD}
    averaged = {event.place for event in events if event.action == "growth"}  # a finding of its own
    found: dict[Place, LeafChanged] = {}
    for event in events:
        if event.action == "write" and event.detail.get("raises") and not event.by_library:
            made = event.subject.made
            is_sure = event.place not in averaged and (
                event.entry is None or (scope_of(event) in trains and len(event.functions) > 1)
            )
            if is_sure and made is not None:
                found[event.place] = LeafChanged(position(event.place), code(event.place), position(made))
    return [*found.values()]


_DRAWS = frozenset(
    "kaiming_normal kaiming_uniform normal orthogonal trunc_normal uniform xavier_normal xavier_uniform".split()
)


def paddings_filled_of(events: list[Event]) -> list[PaddingFilled]:
    """The initialisers of embeddings of models that run, which fill the row of padding as well."""
    called = {event.subject for event in events if event.action == Action.FORWARD}
    padded = {
        id(weight): one
        for one in _all_of(called)
        if one.cls.name == "torch.nn.Embedding" and _has_padding(one)
        for weight in [one.fields.get("weight")]
    }
    found: dict[int, PaddingFilled] = {}
    for event in events:
        key = id(event.subject)
        if event.action in ("load", "hand over") and is_module(event.subject):
            for _, one, _ in below(event.subject):
                found.pop(id(one.fields.get("weight")), None)
        if key not in padded:
            continue
        by = str(event.detail.get("by", "")).rstrip("_")
        if event.action in ("initialise", "write") and by in _DRAWS and not event.by_library:
            made = padded[key].made
            if made is not None:
                found[key] = PaddingFilled(position(event.place), code(event.place), position(made))
        elif event.action in ("initialise", "write", "part", "load", "hand over"):
            found.pop(key, None)
    return [*dict.fromkeys(found.values())]


def _all_of(modules: Iterable[Object]) -> Iterator[Object]:
    """Modules and what is below them, each once."""
    pending, seen = [*modules], set[int]()
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += [child for _, child, _ in children(one)]


def _has_padding(embedding: Object) -> bool:
    index = embedding.fields.get("padding_idx")
    return isinstance(index, Known) and isinstance(index.value, int)


def parameters_lost_of(events: list[Event]) -> list[ParameterLost]:
    """The parameters that a module gets only a converted copy of."""
    modules = {event.subject for event in events if is_module(event.subject)}
    kept = {id(part) for one in _all_of(modules) for part in one.fields.values()}
    kept |= {
        id(one)
        for event in events
        if event.action == "optimizer" and isinstance(event.subject, Object)
        for one in held_by(event.subject).parameters
    }
    moved: dict[Place, Event] = {}
    found = {}
    for event in events:
        if event.action == "moved":
            moved[event.place] = event
        if event.action != "tensor attribute" or not isinstance(event.detail["name"], str):
            continue
        for one in options(event.detail["value"]):
            move = moved.get(one.made) if isinstance(one, Tensor) and one.made is not None else None
            is_copy = move is not None and one.cls is not PARAMETER  # type: ignore[attr-defined]
            if move is not None and is_copy and id(move.subject) not in kept and not move.by_library:
                found[move.place] = ParameterLost(
                    position(move.place), move.detail["by"], event.detail["name"]
                )
    return [*found.values()]


def used_up_of(events: list[Event]) -> list[UsedUp]:
    """The second uses of generators of parameters, where the first certainly comes before."""
    first: dict[int, Event] = {}
    found = {}
    for event in events:
        if event.action != "gone over" or event.by_library:
            continue
        before = first.setdefault(id(event.subject), event)
        if before is not event and not before.doubt and any(map(is_parameter, each_in((event.subject,)))):
            found[event.place] = UsedUp(position(event.place), position(before.place))
    return [*found.values()]


def cancelled_of(events: list[Event]) -> list[Cancelled]:
    """The layers whose bias has no effect; one line may make several, all of which are such then."""
    norms: dict[Object, Object] = {}
    uses: Counter[Object] = Counter()
    doubt: dict[Object, int] = {}
    for event in events:
        if event.action == Action.FORWARD:
            doubt[event.subject] = event.doubt
        elif event.action == "output used":
            uses[event.subject] += 1
        elif event.action == "normalised" and event.doubt <= doubt.get(event.subject, 0):
            norms[event.subject] = event.detail["by"]
            uses[event.subject] -= 1  # the use that comes next
    others = {one.made for one in doubt if one not in norms or uses[one]}
    return [
        Cancelled(position(layer.made), layer.cls.name.rpartition(".")[2], position(norm.made))
        for layer, norm in norms.items()
        if layer.made is not None
        and norm.made is not None
        and layer.made not in others
        and _subtracts(norm, layer)
    ]


def _subtracts(norm: Object, layer: Object) -> bool:
    """Whether a norm subtracts the bias that a layer certainly has: of a linear layer one over its features, as others are over the time."""
    bias = layer.fields.get("bias")
    asked = (layer.fields.get("sizes") or {}).get("bias", True)
    if not isinstance(bias, Tensor) or bias.facts.requires is not True or asked is not True:
        return False
    if "Linear" not in layer.cls.name:
        return True
    sizes = layer.fields.get("sizes", {}), norm.fields.get("sizes", {})
    width = sizes[0].get("out_features")
    return (
        norm.cls.name.endswith("BatchNorm1d")
        and isinstance(width, int)
        and width == sizes[1].get("num_features")
    )
