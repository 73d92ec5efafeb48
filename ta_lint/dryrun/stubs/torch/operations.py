"""What the functions of `torch`, and the methods of tensors with the same names, do. Nearly all of it is rows of a table.

What they put into the tensor itself is in `in_place`, new tensors are in `creation`, `torch.nn.functional`, `torch.linalg`, `torch.fft` and
`torch.special` in `functional`, tensors in another dtype or on another device in `conversions`, attributes and special methods of tensors in
`members`, and backward passes in `backward`.
"""

from dataclasses import replace
from math import prod

from ta_lint.dryrun.machine.amounts import of_one_batch, side_by_side
from ta_lint.dryrun.machine.batches import of_any, of_batch
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import stub, tuple_of
from ta_lint.dryrun.stubs.plain import numbers
from ta_lint.dryrun.stubs.torch import dtypes, outputs, shapes
from ta_lint.dryrun.stubs.torch.dtypes import arithmetic, boolean, first, floating, int64, same, summed
from ta_lint.dryrun.stubs.torch.rows import (
    CUTS,
    EVERYWHERE,
    FLAT,
    FOLLOWS,
    FUNCTION,
    METHOD,
    Row,
    as_indices,
    define,
    may_be_tensor,
    operand,
    register,
)
from ta_lint.dryrun.stubs.torch.shapes import broadcast, own, reduced, reduced_by_name, unknown
from ta_lint.dryrun.stubs.torch.tensors import (
    BOUNDED,
    DETACHED,
    FACTS,
    IN_STEPS,
    Cut,
    Shape,
    Tensor,
    computed,
    cut,
    ended,
    roots_of,
)
from ta_lint.dryrun.values import DATA, NONE, Known, Unknown, Value

LOGARITHMS = "log-probabilities"
PROBABILITIES = "probabilities"

define((
    # -- number by number ------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, own, floating, """
        acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cos cosh deg2rad digamma erf erfc erfinv exp exp2
        expm1 i0 lgamma log log10 log1p log2 logit mvlgamma rad2deg reciprocal rsqrt sin sinc sinh sqrt tan tanh
    """),
    Row(FOLLOWS, own, same, """
        abs absolute conj conj_physical cumprod cumsum fix flip fliplr flipud frac logcumsumexp matrix_exp msort nan_to_num neg negative
        positive renorm resolve_conj resolve_neg roll square tril triu
    """),
    Row(FLAT, own, same, "bernoulli ceil fix floor round sgn sign trunc"),
    Row(FOLLOWS, own, same, "__abs__ __neg__ __pos__", METHOD),
    Row(FOLLOWS, own, dtypes.unknown, "frexp", parts="mantissa ~exponent"),
    Row(FOLLOWS, own, floating, "sigmoid", means=PROBABILITIES),
    Row(FOLLOWS, own, floating, "log_softmax", EVERYWHERE, means=LOGARITHMS),
    Row(FOLLOWS, own, floating, "softmax", EVERYWHERE, means=PROBABILITIES),
    # -- of several tensors ----------------------------------------------------------------------------------------------------
    Row(FOLLOWS, broadcast, arithmetic, """
        add addcmul clamp_max clamp_min fmax fmin fmod maximum minimum mul multiply pow remainder sub subtract
    """),
    Row(FOLLOWS, broadcast, arithmetic, """
        __add__ __mod__ __mul__ __pow__ __radd__ __rmod__ __rmul__ __rpow__ __rsub__ __sub__
    """, METHOD),
    Row(FOLLOWS, broadcast, floating, """
        addcdiv arctan2 atan2 copysign div divide hypot ldexp lerp logaddexp logaddexp2 true_divide xlogy
    """),
    Row(FOLLOWS, broadcast, floating, "__rtruediv__ __truediv__", METHOD),
    Row(FOLLOWS, broadcast, dtypes.unknown, "float_power nextafter"),
    Row(FOLLOWS, broadcast, arithmetic, "rsub", FUNCTION),
    Row(FOLLOWS, broadcast, dtypes.unknown, "complex polar", FUNCTION),
    Row(CUTS, broadcast, boolean, """
        eq ge greater greater_equal gt isclose le less less_equal logical_and logical_or logical_xor lt ne not_equal
    """),
    Row(CUTS, broadcast, boolean, "__eq__ __ge__ __gt__ __le__ __lt__ __ne__", METHOD),
    Row(CUTS, broadcast, dtypes.unknown, """
        bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm
    """),
    Row(CUTS, broadcast, dtypes.unknown, """
        __and__ __lshift__ __or__ __rand__ __ror__ __rshift__ __rxor__ __xor__
    """, METHOD),
    Row(FLAT, broadcast, same, "floor_divide heaviside"),
    Row(FLAT, broadcast, same, "__floordiv__ __rfloordiv__", METHOD),
    Row(FOLLOWS, broadcast, dtypes.unknown, "igamma igammac"),
    Row(CUTS, own, boolean, "isfinite isinf isnan isneginf isposinf isreal logical_not signbit"),
    Row(CUTS, own, boolean, "isin", FUNCTION),
    Row(CUTS, own, same, "bitwise_not"),
    Row(CUTS, own, same, "__invert__", METHOD),
    Row(CUTS, own, dtypes.unknown, "bucketize", FUNCTION),
    Row(CUTS, unknown, dtypes.unknown, "bincount histc searchsorted"),
    # -- over dimensions -------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, reduced, same, "amax amin"),
    Row(FOLLOWS, unknown, dtypes.unknown, "histogram", parts="hist bin_edges"),
    Row(FOLLOWS, unknown, dtypes.unknown, "binomial frobenius_norm norm_except_dim nuclear_norm", FUNCTION),
    Row(FOLLOWS, reduced, summed, "nansum prod sum"),
    Row(FOLLOWS, reduced, floating, "logsumexp mean nanmean"),
    Row(FOLLOWS, reduced_by_name, floating, "norm std var"),
    Row(FOLLOWS, unknown, floating, "nanquantile quantile"),
    Row(FOLLOWS, reduced_by_name, floating, "std_mean", FUNCTION, parts="std mean"),
    Row(FOLLOWS, reduced_by_name, floating, "var_mean", FUNCTION, parts="var mean"),
    Row(FOLLOWS, reduced_by_name, same, "aminmax", parts="min max"),
    Row(CUTS, reduced, boolean, "all any"),
    Row(CUTS, reduced, int64, "argmax argmin count_nonzero"),
    Row(CUTS, own, int64, "argsort"),
    Row(FOLLOWS, own, same, "cummax cummin sort", parts="values #indices"),
    Row(FOLLOWS, shapes.one_less, same, "kthvalue mode", parts="values #indices"),
    Row(FOLLOWS, shapes.top, same, "topk", parts="values #indices"),
    Row(FOLLOWS, unknown, floating, "corrcoef cov cumulative_trapezoid trapezoid trapz"),
    Row(FOLLOWS, unknown, same, "diff"),
    Row(FOLLOWS, own, floating, "gradient", FUNCTION, parts="*"),
    # -- products --------------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, shapes.product, dtypes.product, "bmm matmul mm mv"),
    Row(FOLLOWS, shapes.product, dtypes.product, "__matmul__ __rmatmul__", METHOD),
    Row(FOLLOWS, shapes.scalar, dtypes.product, "dist dot trace vdot"),
    Row(FOLLOWS, shapes.outer, dtypes.product, "ger outer"),
    Row(FOLLOWS, broadcast, same, "cross"),
    Row(FOLLOWS, unknown, dtypes.product, "addbmm addmm addmv addr baddbmm inner kron smm"),
    Row(FOLLOWS, unknown, dtypes.product, "block_diag cartesian_prod cdist chain_matmul combinations dsmm einsum spmm tensordot", FUNCTION),
    # -- of matrices -----------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, unknown, dtypes.unknown, """
        cholesky cholesky_inverse cholesky_solve det inverse logdet lu_solve matrix_power orgqr ormqr pinverse
    """),
    Row(FOLLOWS, unknown, dtypes.unknown, "lu", parts="LU ~pivots"),
    Row(FOLLOWS, unknown, dtypes.unknown, "qr", parts="Q R"),
    Row(FOLLOWS, unknown, dtypes.unknown, "slogdet", parts="sign logabsdet"),
    Row(FOLLOWS, unknown, dtypes.unknown, "geqrf", parts="a tau"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lobpcg", FUNCTION, parts="eigenvalues eigenvectors"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lu_unpack", FUNCTION, parts="~P L U"),
    Row(FOLLOWS, unknown, dtypes.unknown, "svd", parts="U S V"),
    Row(FOLLOWS, unknown, dtypes.unknown, "triangular_solve", parts="solution cloned_coefficient"),
    Row(FOLLOWS, unknown, dtypes.unknown, "pca_lowrank svd_lowrank", FUNCTION, parts="U S V"),
    # -- views, and the same numbers in another shape --------------------------------------------------------------------------
    Row(FOLLOWS, shapes.expanded, first, "broadcast_to expand"),
    Row(FOLLOWS, shapes.flattened, first, "flatten ravel"),
    Row(FOLLOWS, shapes.permuted, first, "permute"),
    Row(FOLLOWS, shapes.repeated, first, "repeat"),
    Row(FOLLOWS, shapes.swapped, first, "swapaxes swapdims transpose"),
    Row(FOLLOWS, shapes.turned, first, "t"),
    Row(FOLLOWS, shapes.unfolded_dim, first, "unflatten"),
    Row(FOLLOWS, shapes.viewed, first, "reshape"),
    Row(FOLLOWS, shapes.viewed, dtypes.unknown, "view", METHOD),
    Row(FOLLOWS, shapes.with_one, first, "unsqueeze"),
    Row(FOLLOWS, shapes.without_dim, first, "select"),
    Row(FOLLOWS, shapes.without_one, first, "squeeze"),
    Row(FOLLOWS, shapes.like_second, first, "expand_as reshape_as view_as", METHOD),
    Row(FOLLOWS, unknown, first, """
        adjoint as_strided diag diag_embed diagflat diagonal moveaxis movedim repeat_interleave rot90 sum_to_size tile unfold
    """),
    Row(FOLLOWS, unknown, dtypes.unknown, "imag real view_as_complex view_as_real", FUNCTION),
    Row(FOLLOWS, unknown, first, "atleast_1d atleast_2d atleast_3d constant_pad_nd", FUNCTION),
    Row(FOLLOWS, unknown, same, "broadcast_tensors meshgrid", FUNCTION, parts="*"),
    Row(FOLLOWS, unknown, first, """
        alias_copy as_strided_copy diagonal_copy expand_copy permute_copy select_copy slice_copy squeeze_copy t_copy transpose_copy unfold_copy
        unsqueeze_copy view_copy
    """, FUNCTION),
    Row(FOLLOWS, unknown, first, "split_copy split_with_sizes_copy unbind_copy", FUNCTION, parts="*"),
    Row(FOLLOWS, unknown, first, "narrow_copy"),
    # -- parts of tensors, and tensors put together ----------------------------------------------------------------------------
    Row(FOLLOWS, shapes.chosen, first, "index_select narrow"),
    Row(FOLLOWS, shapes.flat_list, first, "masked_select"),
    Row(FOLLOWS, shapes.joined, same, "cat concat concatenate", FUNCTION),
    Row(FOLLOWS, shapes.like_index, first, "gather"),
    Row(FOLLOWS, shapes.stacked, same, "stack", FUNCTION),
    Row(FOLLOWS, unknown, first, "take take_along_dim"),
    Row(FOLLOWS, unknown, same, "column_stack dstack hstack row_stack vstack", FUNCTION),
    Row(FOLLOWS, unknown, first, "dsplit hsplit tensor_split vsplit split_with_sizes unsafe_chunk unsafe_split unsafe_split_with_sizes", parts="*"),
    Row(FOLLOWS, broadcast, first, "masked_fill"),
    Row(FOLLOWS, own, first, """
        as_strided_scatter diagonal_scatter index_add index_copy index_fill index_put index_reduce masked_scatter put scatter scatter_add
        scatter_reduce select_scatter slice_scatter
    """),
    Row(FOLLOWS, own, first, "detach_copy fill", FUNCTION),
    Row(CUTS, unknown, int64, "argwhere multinomial nonzero_static"),
    Row(CUTS, unknown, dtypes.unknown, "unravel_index", FUNCTION, parts="*"),
    # -- signals, and sparse tensors -------------------------------------------------------------------------------------------
    Row(FOLLOWS, unknown, dtypes.unknown, "istft stft"),
    Row(FOLLOWS, unknown, dtypes.unknown, "coalesce sparse_mask to_dense to_padded_tensor to_sparse to_sparse_coo to_sparse_csr values", METHOD),
    Row(CUTS, unknown, int64, "col_indices crow_indices indices", METHOD),
    Row(FOLLOWS, unknown, dtypes.unknown, "addmm log_softmax mm sampled_addmm softmax sum", ("torch.sparse.",)),
    # -- random ----------------------------------------------------------------------------------------------------------------
    Row(FLAT, own, same, "poisson", FUNCTION),
))  # fmt: skip


def extreme(made: Call) -> Value:
    """`max`, `min` and `median`: a number, values with their indices, or the greater of two tensors."""
    other = made.given(1, "other")
    are_two = (
        other is None or isinstance(other, Tensor) or (may_be_tensor(other) and may_be_tensor(made.args[0]))
    )
    if "dim" in made.kwargs or not are_two:
        return _along.run(made)
    return (_all_of if other is None else _of_two).run(made)


_all_of = Row(FOLLOWS, shapes.scalar, same, "")
_along = Row(FOLLOWS, shapes.one_less, same, "", parts="values #indices")
_of_two = Row(FOLLOWS, broadcast, same, "")
register("max median min nanmedian", extreme)


def bounded(made: Call) -> Value:
    """Numbers that are cut off at a limit."""
    result = _of_several.run(made)
    return (
        Tensor(replace(result.facts, scale=(BOUNDED, made.argument(2, "max"))), made.place)
        if isinstance(result, Tensor)
        else result
    )


_of_several = Row(FOLLOWS, broadcast, arithmetic, "")
register("clamp clip", bounded)


def where(made: Call) -> Value:
    """`where(condition, a, b)` leads to both; of a condition alone it gives the indices."""
    if len(made.args) + len(made.kwargs) == 1 and not made.loose:
        return tuple_of((), as_indices(made, computed(made.machine, (), made.place, shape=(None,))))
    result = computed(made.machine, made.values(), made.place, shape=broadcast(made))
    chosen = [one for one in made.values() if not (isinstance(one, Tensor) and one.facts.dtype == "bool")]
    found = {one.facts.dtype if isinstance(one, Tensor) else None for one in chosen}
    return Tensor(replace(result.facts, dtype=found.pop() if len(found) == 1 else None), made.place)


register("where", where)


def nonzero(made: Call) -> Value:
    """The indices of what is not zero, in one tensor or in one for each dimension."""
    asked = made.constant(1, "as_tuple", False)
    found = cut(
        computed(made.machine, made.args[:1], made.place), IN_STEPS, made.place, dtype="int64", shape=None
    )
    result = Tensor(replace(found.facts, scale=("indices", None)), made.place)
    return result if asked is False else tuple_of((), result) if asked is True else Unknown("indices")


register("nonzero", nonzero)


def unique(made: Call) -> Value:
    """The different numbers; with their places and counts if that is asked for."""
    values = _different.run(Call(made.machine, made.node, made.args[:1]))
    asked = [name for name in ("return_inverse", "return_counts") if name in made.kwargs]
    if made.loose or len(made.args) > 2:
        return Unknown("different numbers")
    counts = [as_indices(made, computed(made.machine, (), made.place)) for _ in asked]
    return tuple_of([values, *counts]) if counts else values


_different = Row(FLAT, unknown, same, "")
register("unique unique_consecutive", unique)


def parts(made: Call) -> Value:
    """`split`, `chunk`, `unbind` and iteration: the tensors along a dimension."""
    count = made.constant(1, "chunks") if made.name == "chunk" else None
    part = computed(made.machine, made.args[:1], made.place, dtype=first(made))
    if (
        made.name == "split"
        and (sizes := made.given(1, "split_size_or_sections")) is not None
        and hasattr(sizes, "items")
    ):
        count = len(sizes.items) if sizes.rest is None else None  # type: ignore[attr-defined]
    if made.name in ("unbind", "__iter__") and (shape := own(made)):
        dim = made.constant(1, "dim", 0)
        if dim == 0:
            count = shape[0]
            part = Tensor(replace(part.facts, shape=shape[1:]), made.place)
    if isinstance(count, int) and 0 <= count <= MOST_PARTS:
        return tuple_of([Tensor(part.facts, made.place) for _ in range(count)])
    return tuple_of((), part)


MOST_PARTS = 8
"""Of more parts of a tensor, one stands for all."""
register("chunk split unbind", parts)
register("__iter__", parts, METHOD)


# -- numbers -----------------------------------------------------------------------------------------


def detached(made: Call) -> Value:
    """The same numbers without a graph."""
    tensor = operand(made)
    if tensor is None:
        return Unknown("a detached value")
    cut_off = cut(tensor, DETACHED, made.place)
    if made.name != "detach_":
        return cut_off
    made.machine.state.write(tensor.fields, FACTS, cut_off.facts)
    return tensor


register("detach detach_", detached)


def read(made: Call) -> Value:
    """Numbers that leave the tensor."""
    tensor = operand(made)
    if tensor is not None:
        made.emit("read", tensor)
        outputs.used(made, outputs.READ, [tensor])
    dtype = None if tensor is None else tensor.facts.dtype
    whole = made.name == "__int__" or (dtype is not None and dtype.startswith(("int", "uint")))
    kind = "bool" if dtype == "bool" else "int" if whole else "float"
    return Unknown("numbers of a tensor", kind, cuts=_ended_in(made, tensor), amount=of_any(tensor))


def _ended_in(made: Call, tensor: Tensor | None) -> tuple[Cut, ...]:
    """Where the graph of a tensor ends whose numbers are read."""
    return () if tensor is None else ended(tensor, DETACHED, made.place)


register("__float__ __int__ item", read, METHOD)


def exported(made: Call) -> Value:
    """Numbers as a list or as an array, which have no graph."""
    tensor = operand(made)
    if tensor is not None:
        made.emit("read", tensor)
        outputs.used(made, outputs.READ, [tensor])
        if made.name != "tolist":
            made.emit("array", tensor, needs=bool(roots_of(tensor)), starts=tensor.facts.graph.starts)
    given = () if tensor is None else tensor.facts.outputs
    cuts = tuple(replace(one, outputs=given) for one in _ended_in(made, tensor))
    return Unknown("numbers of a tensor", DATA, cuts=cuts, amount=of_any(tensor))


register("__array__ numpy tolist", exported, METHOD)


@stub("numpy.array", "numpy.asarray")
def as_array(made: Call) -> Value:
    """An array of what is no tensor is one of data."""
    if made.args and isinstance(made.args[0], Tensor):
        return exported(made)
    result = numbers(made)
    if isinstance(result, Unknown) and made.args:
        result.amount = of_one_batch(made.machine, made.args[0]) or side_by_side(made.args[0])
    return result


def compared(made: Call) -> Value:
    """A verdict about all numbers of a tensor, which Python reads."""
    tensor = operand(made)
    if tensor is not None:
        made.emit("read", tensor)
        outputs.used(made, outputs.READ, [tensor])
    return Unknown("a verdict about a tensor", "bool")


register("allclose equal is_nonzero", compared)


def number(made: Call) -> Value:
    """A number about the tensor."""
    shape = own(made)
    name = made.name
    if shape is not None and name in ("dim", "ndimension"):
        return Known(len(shape))
    if name == "size":
        index = made.constant(1, "dim", None)
        if index is None:
            return sizes_of(shape, made)
        if shape is not None and isinstance(index, int) and -len(shape) <= index < len(shape):
            return size_of(shape[index], made)
        return size_of(None, made) if index == 0 else size_of(None)
    if name in ("numel", "nelement"):
        known = shape is not None and all(isinstance(one, int) for one in shape)
        return size_of(prod(shape) if known and shape is not None else None, made)
    if name.startswith("is_"):
        return Unknown("a verdict about a tensor", "bool")
    return Unknown("a number", "int")


def sizes_of(shape: Shape | None, made: Call) -> Value:
    """The sizes of all dimensions, of which the first grows with the batch."""
    first = size_of(shape[0] if shape else None, made)
    if shape is None:
        return tuple_of([first], size_of(None))
    return tuple_of([first, *map(size_of, shape[1:])][: len(shape)])


def size_of(size: object, made: Call | None = None) -> Value:
    """A size as a value; with the call that asks for it, one that grows with the batch."""
    if isinstance(size, int):
        return Known(size)
    grows = None if made is None else of_batch(made.machine, grows=True, counts=True)
    return Unknown("a size", "int", amount=grows)


register("""
    data_ptr dense_dim dim element_size get_device is_coalesced is_contiguous is_distributed is_pinned is_set_to is_shared ndimension nelement
    numel size sparse_dim storage_offset
""", number, METHOD)  # fmt: skip
register(
    "get_device is_complex is_conj is_floating_point is_inference is_neg is_same_size is_signed numel", number
)


def strides(made: Call) -> Value:
    """How far the elements lie apart."""
    return tuple_of((), Unknown("a stride", "int")) if len(made.args) == 1 else Unknown("a stride", "int")


register("stride", strides, METHOD)


def quiet(made: Call) -> Value:
    """It does nothing to the numbers."""
    return NONE


register("record_stream retain_grad", quiet, METHOD)


def handle(made: Call) -> Value:
    """A hook is put on the tensor."""
    return Unknown("the handle of a hook", "handle")


register("storage untyped_storage", lambda made: Unknown("the storage of a tensor", "storage"), METHOD)


def itself(made: Call) -> Value:
    """The tensor as it is."""
    return made.args[0] if made.args else NONE


register("align_to as_subclass names rename share_memory_", itself, METHOD)


@stub("torch.broadcast_shapes")
def _shapes(made: Call) -> Value:
    return tuple_of((), Unknown("a size", "int"))


@stub("torch.is_tensor")
def _is_tensor(made: Call) -> Value:
    value = made.argument(0, "obj")
    return Known(isinstance(value, Tensor)) if not isinstance(value, Unknown) else Unknown("a kind", "bool")
