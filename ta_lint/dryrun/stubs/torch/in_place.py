"""Operations that change the tensor itself: it then leads to what is put into it."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.stubs.torch import gradients
from ta_lint.dryrun.stubs.torch.amounts import of_operation
from ta_lint.dryrun.stubs.torch.devices import together
from ta_lint.dryrun.stubs.torch.graphs import NO_GRAPH, Start
from ta_lint.dryrun.stubs.torch.rows import FUNCTION, FUNCTIONAL, METHOD, register
from ta_lint.dryrun.stubs.torch.tensors import (
    BOUNDED,
    FACTS,
    GRADIENT,
    PARAMETER,
    Tensor,
    computed,
    flattened,
    tensors_in,
)
from ta_lint.dryrun.values import NONE, Unknown, Value

OVERWRITES = frozenset("""
    bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ set_ uniform_ zero_
""".split())  # fmt: skip
"""Nothing is left of the numbers that were there: autograd still leads to where they came from, with gradients of zero."""
STEPS = frozenset("ceil_ fix_ floor_ floor_divide_ heaviside_ round_ sgn_ sign_ trunc_".split())
"""The numbers become steps, through which every gradient is zero."""
BOUNDS = frozenset({"clamp_", "clip_"})
"""The numbers are cut off at a limit."""
RESHAPES = frozenset("""
    as_strided_ resize_ resize_as_ set_ sparse_resize_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_
""".split())  # fmt: skip
"""The tensor has another shape then."""


def in_place(made: Call) -> Value:
    """The tensor itself changes: it then leads to what is put into it."""
    own = made.args[0] if made.args else made.kwargs.get("input")
    if not isinstance(own, Tensor):
        return own if own is not None else NONE
    name = made.name
    recording = made.machine.mode("recording")
    event = made.emit(
        "write", own, by=name, raises=own.takes_gradient and recording is True and _is_uncaught(made)
    )
    if own.cls is GRADIENT and name not in BOUNDS:
        gradients.rescaled_of(made.machine, tensors_in([own.fields["of"]]))
    if own.takes_gradient:
        _averaged(made, own)
        return own
    shape = None if name in RESHAPES else own.facts.shape
    others = [one for one in made.values() if one is not own]
    where = own.facts.where
    if name not in OVERWRITES:
        where = together(one.facts.where for one in (own, *tensors_in(others)))
    if recording is False:
        kept = replace(own.facts, shape=shape, amount=of_operation(made), output=None, where=where)
        if kept != own.facts:
            made.machine.state.write(own.fields, FACTS, kept)
        return own
    before: Value = own
    amount = of_operation(made)
    if name in OVERWRITES or name in STEPS:
        before = Tensor(replace(flattened(own.facts, made.place), graph=NO_GRAPH), own.made)
    event.detail["graph"] = any(one.facts.graph.starts or one.takes_gradient for one in tensors_in(others))
    facts = computed(made.machine, [before, *others], made.place).facts
    facts = replace(
        facts,
        shape=shape,
        amount=amount,
        dtype=own.facts.dtype,
        source=own.facts.source,
        where=where,
    )
    made.machine.state.write(own.fields, FACTS, facts)
    return (
        Tensor(replace(facts, scale=(BOUNDED, made.argument(2, "max"))))
        if name in BOUNDS and own.cls is GRADIENT
        else own
    )


def _is_uncaught(made: Call) -> bool:
    """Whether an error here would end the program: no code around it may catch it, and the program itself makes what changes."""
    error = Unknown("an exception")
    return not made.machine.guessing and all(one.fits(error) is False for one in made.machine.catches)


def _averaged(made: Call, own: Tensor) -> None:
    """A parameter takes in another one while autograd records: it keeps the graph of that, unless it takes a gradient itself, which raises."""
    taken = [one for one in tensors_in(made.values()) if one is not own and one.cls is PARAMETER]
    if made.machine.mode("recording") is True and any(one.takes_gradient for one in taken):
        start = Start(made.machine, made.place)
        made.emit(
            "growth",
            own,
            at=made.place,
            starts=frozenset({start}),
            of_outputs=False,
            freed=False,
            used=False,
            stepped=True,
        )


register("""
    __iadd__ __iand__ __ifloordiv__ __ilshift__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ abs_ absolute_
    acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ apply_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_
    as_strided_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_
    bitwise_right_shift_ bitwise_xor_ cauchy_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ copy_ copysign_ cos_ cosh_ cumprod_
    cumsum_ deg2rad_ digamma_ div_ divide_ eq_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ exponential_ fill_ fill_diagonal_ fix_ float_power_
    floor_ floor_divide_ fmod_ frac_ gcd_ ge_ geometric_ greater_ greater_equal_ gt_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_
    index_copy_ index_fill_ index_put_ index_reduce_ lcm_ ldexp_ le_ lerp_ less_ less_equal_ lgamma_ log10_ log1p_ log2_ log_ log_normal_
    logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ map2_ map_ masked_fill_ masked_scatter_ mul_ multiply_ mvlgamma_
    nan_to_num_ ne_ neg_ negative_ nextafter_ normal_ not_equal_ polygamma_ pow_ put_ rad2deg_ random_ reciprocal_ relu_ remainder_ renorm_
    resize_ resize_as_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ set_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_ sparse_resize_ sqrt_
    square_ squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_ tanh_ transpose_ tril_ triu_ true_divide_ trunc_ uniform_ unsqueeze_ xlogy_
    zero_
""", in_place, METHOD)  # fmt: skip
register("""
    abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_
    conj_physical_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ i0_ index_put_ ldexp_ log10_ log1p_ log2_ log_
    logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_
    xlogy_ zero_
""", in_place, FUNCTION)  # fmt: skip
register(
    "celu_ rrelu_ selu_ threshold_ alpha_dropout_ dropout_ feature_alpha_dropout_ feature_dropout_",
    in_place,
    FUNCTION,
)
register("celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_ threshold_", in_place, FUNCTIONAL)
