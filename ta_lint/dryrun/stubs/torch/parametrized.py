"""Layers whose weight is computed from other parameters: weight norm, spectral norm."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import stub
from ta_lint.dryrun.stubs.torch.modules import MODULE, is_module
from ta_lint.dryrun.stubs.torch.tensors import PARAMETER, Facts, Tensor
from ta_lint.dryrun.values import TRUE, Object, Unknown, Value

IN_PLACE = {"weight_norm": ("_g", "_v"), "spectral_norm": ("_orig",)}
"""What `torch.nn.utils` calls the parameters that take the place of one."""
APART = {
    "weight_norm": ("original0", "original1"),
    "spectral_norm": ("original",),
    "orthogonal": ("original",),
}
"""The same for `torch.nn.utils.parametrizations`, which keeps them in a module of their own."""


@stub(
    *(f"torch.nn.utils.{name}" for name in IN_PLACE),
    *(f"torch.nn.utils.parametrizations.{name}" for name in APART),
)
def _parametrized(made: Call) -> Value:
    own, name = made.argument(0, "module"), made.constant(1, "name", "weight")
    if not is_module(own) or not isinstance(own, Object) or not isinstance(own.fields.get(name), Tensor):
        return own
    apart = "parametrizations" in made.function
    keeper = Object(MODULE, made.place, {"training": TRUE}) if apart else own
    old = own.fields[name]
    suffixes = (APART if apart else IN_PLACE)[made.name]
    for suffix in suffixes:
        shape = old.facts.shape if suffix == suffixes[-1] else None
        new = Tensor(Facts(requires=old.facts.requires, shape=shape), made.place, PARAMETER)
        made.machine.state.write(
            keeper.fields, suffix if apart else f"{name}{suffix}", new if len(suffixes) > 1 else old
        )
    made.machine.state.remove(own.fields, name)
    if apart:
        every = own.fields.get("parametrizations")
        if not isinstance(every, Object):
            every = Object(MODULE, made.place, {"training": TRUE})
            made.machine.state.write(own.fields, "parametrizations", every)
        made.machine.state.write(every.fields, name, keeper)
        made.emit("module", keeper)
    return own


@stub("torch.nn.utils.remove_weight_norm", "torch.nn.utils.remove_spectral_norm", "torch.nn.utils.parametrize.remove_parametrizations", "torch.nn.utils.parametrize.register_parametrization")  # fmt: skip
def _changed(made: Call) -> Value:
    own = made.argument(0, "module")
    if is_module(own) and isinstance(own, Object):
        made.machine.state.write(own.fields, "incomplete", TRUE)
    return own if not isinstance(own, Unknown) else Unknown("a layer with another weight")
