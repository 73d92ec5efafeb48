"""Which activation gave a tensor its numbers: softmax, sigmoid, their logarithms, another one, or a layer that has none after it."""

from dataclasses import dataclass, field, replace
from typing import Any

from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.machine.library import stub
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.stubs.torch.tensors import FACTS, Tensor, tensors_in
from ta_lint.dryrun.values import NONE, Function, Known, Place, Value, each_in


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation by its name in `torch.nn.functional`, and where it was applied. `linear` is a linear layer or a convolution."""

    name: str
    place: Place = field(compare=False)
    entry: Any = field(default=None, compare=False)
    """The function that nobody calls and that was run on guessed arguments when it was, None for what the script itself does."""
    layer: Any = field(default=None, compare=False)
    """The layer that applied it, if this is its whole output."""


FUNCTIONS = {
    "softmax": "softmax", "sigmoid": "sigmoid", "expit": "sigmoid", "log_softmax": "log_softmax", "logsigmoid": "logsigmoid",
    "relu": "relu", "tanh": "tanh", "relu_": "relu", "sigmoid_": "sigmoid", "tanh_": "tanh", **dict.fromkeys("linear conv1d conv2d conv3d".split(), "linear"),
}  # fmt: skip
LAYERS = {
    "Softmax": "softmax", "Softmax2d": "softmax", "Sigmoid": "sigmoid", "LogSoftmax": "log_softmax", "LogSigmoid": "logsigmoid",
    "ReLU": "relu", "Tanh": "tanh",
    **dict.fromkeys("Linear LazyLinear Conv1d Conv2d Conv3d LazyConv1d LazyConv2d LazyConv3d".split(), "linear"),
}  # fmt: skip
BIASED = frozenset(
    [
        "Linear",
        "LazyLinear",
        *(f"{lazy}Conv{way}{n}d" for lazy in ("", "Lazy") for way in ("", "Transpose") for n in (1, 2, 3)),
    ]
)
"""The layers whose bias a norm may subtract."""
PROBABILITIES = frozenset({"softmax", "sigmoid"})

_KEEPS = frozenset("""
    broadcast_to expand expand_as flatten gather index_select masked_select moveaxis movedim narrow permute ravel reshape select squeeze
    swapaxes swapdims t take_along_dim transpose unflatten unsqueeze view view_as reshape_as
    cat chunk concat concatenate split stack unbind interpolate upsample
""".split())  # fmt: skip
"""The numbers are the same in another shape or order, some of them, or lie between them."""
_KEEPS_RANGE = frozenset("clamp clamp_max clamp_min clip mean".split())
"""What is between 0 and 1 stays there, and the same of what is not certain no longer holds of other numbers."""
_KEEPS_SIGN = frozenset("alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout".split())
"""What is not below 0 stays so."""
_PRODUCTS = frozenset("__matmul__ __rmatmul__ bmm matmul mm".split())
"""What a layer without activation gives is no more than scores after these."""
_KEEP = _KEEPS | _KEEPS_RANGE | _KEEPS_SIGN | _PRODUCTS


def activated(name: str, effect: Effect) -> Effect:
    """What an operation does, and which activation gave the numbers of its result as well."""
    own = FUNCTIONS.get(name)
    if own is None and name not in _KEEP:
        return effect

    def run(made: Call) -> Value:
        result = effect(made)
        if made.machine.by_library:
            return result
        activation = (
            Activation(own, made.place, _entry(made.machine))
            if own is not None
            else _of_product(made)
            if name in _PRODUCTS
            else _kept(made, name, made.args[0] if made.args else made.kwargs.get("input"))
        )
        if activation is None:
            return result
        if isinstance(result, Tensor):
            return _of(made, result, activation)
        for one in tensors_in([result]) if own is None else ():
            if not any(one is given for given in tensors_in(made.values())):
                one.fields.update(_of(made, one, activation).fields)
        return result

    return run


def applied(made: Call, layer: str, function: str, given: Value | None, result: Tensor) -> Tensor:
    """What a layer gives for what it is given. `function` is what the layer calls, if that keeps numbers."""
    if layer in BIASED:
        return _of(made, result, Activation("linear", made.place, _entry(made.machine), made.own()))
    name = LAYERS.get(layer)
    if name is not None:
        return _of(made, result, Activation(name, made.place, _entry(made.machine)))
    activation = _kept(made, function, given) if function in _KEEP else None
    return result if activation is None else _of(made, result, activation)


def _entry(machine: Machine) -> Any:
    """The entry that runs; of a class that others derive from nobody knows that it runs like that."""
    entry = machine.entry
    cls = entry.owner if isinstance(entry, Function) else entry
    return UNSURE if cls in machine.extended else entry


UNSURE = object()


def _of(made: Call, result: Tensor, activation: Activation) -> Tensor:
    facts = replace(result.facts, output=activation)
    if not any(result is one for one in tensors_in(made.values())):
        return Tensor(facts, result.made, result.cls)
    if activation.place == made.place:  # in place
        made.machine.state.write(result.fields, FACTS, facts)
    return result


def _kept(made: Call, name: str, given: Value | None) -> Activation | None:
    """The one that gave all the tensors that an operation gets, as far as that keeps their numbers."""
    activation = part_of(activation_of(given))
    if name in _KEEPS_SIGN:
        return activation if activation is not None and activation.name == "relu" else None
    if activation is None or name not in _KEEPS_RANGE:
        return activation
    bounds = made.args[1:] if name != "mean" else ()
    known = all(isinstance(one, Known) for one in bounds)
    return activation if known and activation.name in PROBABILITIES else None


def _of_product(made: Call) -> Activation | None:
    """A layer without activation, if such a layer gave one of the factors, as those that a graph convolution adds up over neighbours."""
    found = (part_of(activation_of(one)) for one in made.values())
    return next((one for one in found if one is not None and one.name == "linear"), None)


def activation_of(value: Value | None) -> Activation | None:
    """The activation that certainly gave all numbers of a value, or of all tensors in it."""
    found = {
        one.facts.output if isinstance(one, Tensor) else None
        for one in each_in((value,) if value is not None else ())
    }
    return found.pop() if len(found) == 1 else None


def scored(made: Call, scores: Value | None) -> None:
    """Softmax gets these scores: directly from a ReLU, none of them is below 0."""
    activation = activation_of(scores)
    if activation is not None and activation.name == "relu":
        made.emit("clipped scores", scores, at=activation.place)


@stub("ta_lint.scores")
def _scores(made: Call) -> Value:
    """A distribution gets scores."""
    scored(made, made.args[0])
    return NONE


def part_of(activation: Activation | None) -> Activation | None:
    """What is known of other tensors with the same numbers, which are not the output of the layer itself."""
    return activation and (replace(activation, layer=None) if activation.layer is not None else activation)
