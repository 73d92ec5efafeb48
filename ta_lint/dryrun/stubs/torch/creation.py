"""New tensors: what makes them, their shapes and dtypes. They have a gradient only if that is asked for."""

from dataclasses import replace

from ta_lint.dryrun.machine.amounts import of_one_batch, side_by_side
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import method, stub
from ta_lint.dryrun.machine.sizes import of as of_array
from ta_lint.dryrun.stubs.sklearn import PART
from ta_lint.dryrun.stubs.torch import devices, dtypes, shapes
from ta_lint.dryrun.stubs.torch.conversions import moved
from ta_lint.dryrun.stubs.torch.rows import FUNCTION, METHOD, operand, register
from ta_lint.dryrun.stubs.torch.shapes import sizes
from ta_lint.dryrun.stubs.torch.tensors import (
    DETACHED,
    FACTS,
    TENSOR,
    Cut,
    Facts,
    Shape,
    Tensor,
    computed,
    cut,
    ended,
    forced,
    tensors_in,
    why_unknown,
)
from ta_lint.dryrun.values import (
    Known,
    Object,
    Sequence,
    Unknown,
    Value,
    cuts_of,
    each_in,
    is_number,
    latest,
)

_MOST_DIMENSIONS = 64
"""Of a tensor of torch."""


def _wants(made: Call) -> bool | None:
    """Whether a gradient is asked for."""
    asked = made.kwargs.get("requires_grad")
    return False if asked is None else bool(asked.value) if isinstance(asked, Known) else None


def _dtype(made: Call, otherwise: str | None) -> str | None:
    """The dtype that is asked for, or this one."""
    asked = made.kwargs.get("dtype")
    return None if made.loose else otherwise if asked is None or asked == Known(None) else dtypes.named(asked)


def _new(made: Call, shape: Shape | None, dtype: str | None, cuts: tuple[Cut, ...] = ()) -> Tensor:
    if made.machine.by_library:
        return Tensor(Facts(requires=_wants(made), cuts=cuts), made.place)
    where = devices.named(made.kwargs.get("device"))
    facts = Facts(requires=_wants(made), shape=shape, dtype=_dtype(made, dtype), cuts=cuts, where=where)
    return _leaf(made, Tensor(facts, made.place))


def _leaf(made: Call, new: Tensor) -> Tensor:
    """A new tensor, with what is known if it takes a gradient."""
    if new.facts.requires is True:
        new.fields[FACTS] = replace(new.facts, forced=forced(new, made.place))
    return new


def _sized(made: Call, start: int = 0) -> Shape | None:
    found = sizes(made, start)
    return None if found is None else tuple(found)


def floating(made: Call) -> Value:
    """Floating numbers of a size."""
    return _new(made, _sized(made), dtypes.default(made.machine))


def unsized(made: Call) -> Value:
    """Floating numbers of a size that nobody computes."""
    return _new(made, None, dtypes.default(made.machine))


def row(made: Call) -> Value:
    """Numbers at equal distances: as many as the third argument says."""
    steps = made.constant(2, "steps")
    return _new(made, (steps if isinstance(steps, int) else None,), dtypes.default(made.machine))


def square(made: Call) -> Value:
    """The identity matrix."""
    rows = made.constant(0, "n")
    columns = made.constant(1, "m", rows)
    return _new(
        made,
        tuple(one if isinstance(one, int) else None for one in (rows, columns)),
        dtypes.default(made.machine),
    )


def counted(made: Call) -> Value:
    """`arange`: whole numbers, if all that is given are."""
    given = [one.value if isinstance(one, Known) else None for one in made.args]
    whole = bool(given) and not made.kwargs.keys() & {"start", "end", "step"}
    if any(isinstance(one, float) for one in given):
        dtype = dtypes.default(made.machine)
    else:
        dtype = "int64" if whole and all(isinstance(one, int) for one in given) else None
    known = dtype == "int64" and 0 not in given[2:] and len(given) <= 3
    length = shapes.count(range(*given)) if known else None  # type: ignore[arg-type]
    return _new(made, (length,), dtype)


def drawn(made: Call) -> Value:
    """`randint(low, high, size)`, and `randint(high, size)`."""
    at = 2 if len(made.args) > 2 and not isinstance(made.args[1], Sequence) else 1
    return _new(made, _sized(made, at), "int64")


def shuffled(made: Call) -> Value:
    """`randperm`."""
    count = made.constant(0, "n")
    return _new(made, (count if isinstance(count, int) else None,), "int64")


def places(made: Call) -> Value:
    """The indices of a triangle."""
    return _new(made, (2, None), "int64")


def filled(made: Call) -> Value:
    """`full`, in the dtype of the number."""
    given = made.given(0, "size")
    shape = (
        tuple(sizes(Call(made.machine, made.node, [given]), 0) or ()) if isinstance(given, Sequence) else None
    )
    return _new(made, shape, _of_number(made, made.given(1, "fill_value")))


def alike(made: Call) -> Value:
    """In shape and dtype of another tensor."""
    other = operand(made)
    shape, dtype = (None, None) if other is None else (other.facts.shape, other.facts.dtype)
    return _new(made, shape, dtype)


def of_its_kind(made: Call) -> Value:
    """`x.new_zeros(size)`: in the dtype of another tensor."""
    other = operand(made)
    single = made.name == "new_full"
    shape = _sized(
        Call(made.machine, made.node, made.args[:2] if single else made.args, made.kwargs, made.loose), 1
    )
    return _new(made, shape, None if other is None else other.facts.dtype)


def of_data(made: Call) -> Value:
    """`tensor`: a copy of numbers, which has no graph."""
    given = made.args[1] if made.name == "new_tensor" and len(made.args) > 1 else made.given(0, "data")
    cuts = _copied_from(made, given)
    dtype = _of_number(made, given)
    if made.name == "new_tensor":
        dtype = None
    result = _new(made, _shape_of_data(given), dtype, cuts)
    if (own := of_one_batch(made.machine, given) or side_by_side(given)) is not None:
        result = Tensor(replace(result.facts, amount=own), made.place)
    if isinstance(given, Object) and given.cls is PART:
        return Tensor(replace(result.facts, source=given), made.place)
    return result


def _copied_from(made: Call, given: Value | None) -> tuple[Cut, ...]:
    """Where the graphs of the tensors end whose numbers are copied."""
    values = [] if given is None else [given]
    tensors = list(tensors_in(values))
    if made.name != "from_numpy":  # an array has no graph
        tensors += [Tensor(Facts(open=why)) for why in map(why_unknown, values) if why]
    every = [one for tensor in tensors for one in ended(tensor, DETACHED, made.place)]
    return latest((*every, *cuts_of(*values)))


def variable(made: Call) -> Value:
    """`Variable`: the same numbers without a graph, as a leaf that takes a gradient if that is asked for."""
    given = operand(made)
    if given is None:
        return Unknown(getattr(made.args[0], "why", "a tensor") if made.args else "a tensor")
    return _leaf(made, cut(given, DETACHED, made.place, requires=_wants(made)))


def as_it_is(made: Call) -> Value:
    """`as_tensor`: a tensor stays the one it is, and anything else becomes one."""
    given = made.given(0, "data") or made.kwargs.get("obj")
    return moved(made) if isinstance(given, Tensor) else of_data(made)


def _of_number(made: Call, value: Value | None) -> str | None:
    """The dtype of a number, or of the numbers in a list."""
    if value is None or isinstance(value, Tensor):
        return None if value is None else value.facts.dtype
    if isinstance(value, Unknown) and value.type == dtypes.NUMPY_FLOAT:
        return "float64"
    kinds = {type(one.value) if is_number(one) else None for one in each_in((value,))} or {float}
    if None in kinds:
        return None
    return dtypes.default(made.machine) if float in kinds else "int64" if int in kinds else "bool"


def _shape_of_data(value: Value | None) -> Shape | None:
    if isinstance(value, Unknown) or (isinstance(value, Object) and value.cls is PART):
        return of_array(value)
    sizes: list[int | None] = []
    while isinstance(value, Sequence) and len(sizes) < _MOST_DIMENSIONS:
        sizes.append(len(value.items) if value.rest is None else None)
        if not value.items:
            return tuple(sizes) if value.rest is None else None
        value = value.items[0]
    if isinstance(value, Tensor):
        return None if value.facts.shape is None else (*sizes, *value.facts.shape)
    return tuple(sizes) if value is not None and is_number(value) else None


register("empty ones rand randn zeros", floating, FUNCTION)
register("empty_permuted empty_quantized empty_strided range", unsized, FUNCTION)
register("bartlett_window blackman_window hamming_window hann_window kaiser_window", unsized, FUNCTION)
register("linspace logspace", row, FUNCTION)
register("eye", square, FUNCTION)
register("arange", counted, FUNCTION)
register("randint", drawn, FUNCTION)
register("randperm", shuffled, FUNCTION)
register("tril_indices triu_indices", places, FUNCTION)
register("full", filled, FUNCTION)
register("empty_like full_like ones_like rand_like randint_like randn_like zeros_like", alike, FUNCTION)
register("new_empty new_full new_ones new_zeros", of_its_kind, METHOD)
register("new new_empty_strided", lambda made: _new(made, None, None), METHOD)
register("scalar_tensor", lambda made: _new(made, (), dtypes.default(made.machine)), FUNCTION)
register("tensor", of_data, FUNCTION)
register("new_tensor", of_data, METHOD)
register("as_tensor asarray", as_it_is, FUNCTION)
register("Variable", variable, ("torch.autograd.",))
register("frombuffer from_file from_dlpack", lambda made: _new(made, None, None), FUNCTION)
register("from_numpy", of_data, FUNCTION)
register(
    "sparse_coo_tensor sparse_csr_tensor",
    lambda made: computed(made.machine, made.args[1:2], made.place),
    FUNCTION,
)


def normal(made: Call) -> Value:
    """`normal(mean, std)` leads to the tensors of its parameters; `normal(mean, std, size)` is new."""
    if any(True for _ in tensors_in(made.args[:2])):
        return computed(made.machine, made.args[:2], made.place)
    return _new(made, _sized(made, 2), dtypes.default(made.machine))


register("normal", normal, FUNCTION)

for _name, _of in dtypes.TYPES.items():

    def _typed(made: Call, dtype: str = _of) -> Value:
        """`torch.FloatTensor(2, 3)` and `torch.FloatTensor([1, 2])`."""
        given = made.args[0] if made.args else None
        is_size = isinstance(given, Known) or (isinstance(given, Unknown) and given.type == "int")
        shape = _sized(made) if is_size else _shape_of_data(given)
        where = Known("cuda") if made.function.startswith("torch.cuda.") else devices.CPU
        facts = Facts(shape=shape, dtype=dtype, cuts=_copied_from(made, given), where=where)
        return Tensor(facts, made.place)

    stub(f"torch.{_name}", f"torch.cuda.{_name}")(_typed)


@method(TENSOR, "__new__")
def _of_class(made: Call) -> Value:
    """`torch.Tensor(2, 3)`, and `torch.Tensor([1, 2])`."""
    given = made.args[1] if len(made.args) > 1 else None
    shape = _shape_of_data(given) if isinstance(given, Sequence | Tensor) else _sized(made, 1)
    dtype, where = dtypes.default(made.machine), devices.named(made.kwargs.get("device"))
    facts = Facts(shape=shape, dtype=dtype, cuts=_copied_from(made, given), where=where)
    return Tensor(facts, made.place)
