"""Weights of a layer that are computed from other parameters: weight norm, spectral norm, and parametrizations of the program."""

from dataclasses import replace
from itertools import count
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import COMPUTED, stub
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.stubs.torch.modules import replaced
from ta_lint.dryrun.stubs.torch.tensors import NOTHING, Facts, Shape, Tensor, computed
from ta_lint.dryrun.values import NONE, Choice, Known, Native, Object, Unknown, Value, options

_PARTS = {
    "torch.nn.utils.weight_norm": "weight_g weight_v", "torch.nn.utils.spectral_norm": "weight_orig",
    "torch.nn.utils.parametrizations.weight_norm": "parametrizations.weight.original0 parametrizations.weight.original1",
    "torch.nn.utils.parametrizations.spectral_norm": "parametrizations.weight.original",
    "torch.nn.utils.parametrizations.orthogonal": "parametrizations.weight.original",
    "torch.nn.utils.parametrize.register_parametrization": "parametrizations.weight.original",
}  # fmt: skip
"""The functions that compute the weight of a layer from other parameters, and the names of these."""


@stub(*_PARTS)
def _parametrised(made: Call) -> Value:
    """The weight is no parameter any more: it is computed from others where it is used."""
    name = made.constant(1, "tensor_name" if made.name == "register_parametrization" else "name", "weight")
    for module in options(made.argument(0, "module")):
        weight = module.fields.get(name) if isinstance(module, Object) and isinstance(name, str) else None
        if not isinstance(module, Object) or not isinstance(weight, Object):
            continue
        if isinstance(weight, Tensor):
            _divide(made, module, name, weight)
        if isinstance(by := made.given(2, "parametrization"), Object):
            result = attribute(made.machine, module, name, made.node)
            made.machine.state.write(module.fields, _number(module, name), by)
            call(made.machine, by, [result], {}, made.node)  # torch tries it once
    return made.args[0] if made.args else NONE


def _divide(made: Call, module: Object, name: str, weight: Tensor) -> None:
    """The weight of a module is computed from its parts from now on."""
    parts = _PARTS[made.function].replace("weight", name).split()
    facts = [weight.facts] * len(parts)
    if len(parts) > 1:
        facts[0] = replace(weight.facts, shape=_lengths(weight.facts.shape, made.constant(2, "dim", 0)))
    new = [weight] if len(parts) == 1 else [Tensor(known, made.place, weight.cls) for known in facts]
    for part, one in zip(parts, new, strict=True):
        made.machine.state.write(module.fields, part, one)
    if len(parts) > 1:
        replaced(made, module, weight, Choice(tuple(new)))
    made.machine.state.write(module.fields, name, _computed(name, parts, weight.facts))


def _number(module: Object, name: str) -> str:
    """The key of the next parametrization of a weight."""
    return next(key for one in count() if (key := f"parametrizations.{name}.{one}") not in module.fields)


def _computed(name: str, parts: list[str], facts: Facts) -> Object:
    """An attribute that is computed from these parts of its module."""

    def get(made: Call) -> Value:
        fields = made.own().fields
        result: Value = computed(
            made.machine,
            [fields.get(part, NONE) for part in parts],
            made.place,
            shape=facts.shape,
            dtype=facts.dtype,
        )
        for number in count():
            by = fields.get(f"parametrizations.{name}.{number}")
            if by is None:
                break
            result = call(made.machine, by, [result], {}, made.node)
        if isinstance(result, Tensor) and result.facts.roots and not parts[0].startswith("parametrizations."):
            known = result.facts  # a hook computes it at each call of the layer: perhaps before they froze
            perhaps = known.roots | known.perhaps
            return Tensor(replace(known, roots=NOTHING, perhaps=perhaps, requires=None), made.place)
        return result

    return Object(
        COMPUTED, None, {"get": Native(f"torch.nn.Module.{name}", get), "parts": Known(tuple(parts))}
    )


@stub(
    "torch.nn.utils.parametrize.remove_parametrizations",
    "torch.nn.utils.remove_spectral_norm",
    "torch.nn.utils.remove_weight_norm",
)
def _whole(made: Call) -> Value:
    """The weight is a parameter again: the one that it was, where torch keeps that."""
    kept = made.name == "remove_parametrizations"
    name = made.constant(1, "tensor_name" if kept else "name", "weight")
    for module in options(made.argument(0, "module")):
        former = module.fields.get(name) if isinstance(module, Object) and isinstance(name, str) else None
        if not isinstance(former, Object) or former.cls is not COMPUTED or not isinstance(module, Object):
            continue
        parts = former.fields["parts"].value
        one = module.fields.get(parts[-1])
        if isinstance(one, Tensor) and not (kept and len(parts) == 1):
            one = Tensor(one.facts, made.place, one.cls)
        for key in [
            *parts,
            *(key for key in module.fields if str(key).startswith(f"parametrizations.{name}.")),
        ]:
            made.machine.state.remove(module.fields, key)
        made.machine.state.write(module.fields, name, one or Unknown("a weight"))
    return made.argument(0, "module")


def _lengths(shape: Shape | None, dim: Any) -> Shape | None:
    """The shape of the lengths of the rows of a weight, whose directions are the other parameter."""
    if shape is None or not isinstance(dim, int) or not -len(shape) <= dim < len(shape):
        return None
    return tuple(size if index == dim % len(shape) else 1 for index, size in enumerate(shape))
