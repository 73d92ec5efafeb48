"""The shape of what an operation gives, from the shapes and arguments of a call."""

from collections.abc import Callable
from math import prod
from typing import Any

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.stubs.torch.tensors import Shape, Tensor
from ta_lint.dryrun.values import Known, Sequence, Unknown, Value

Rule = Callable[[Call], Shape | None]
"""The shape of the result of a call, None if it is not known."""


def of(value: Value | None) -> Shape | None:
    """The shape of a tensor."""
    return value.facts.shape if isinstance(value, Tensor) else None


def own(made: Call) -> Shape | None:
    """That of the first argument."""
    return of(made.given(0, "input"))


def unknown(made: Call) -> Shape | None:
    """Nobody knows."""
    return None


def scalar(made: Call) -> Shape | None:
    """One number."""
    return ()


def like_second(made: Call) -> Shape | None:
    """That of the second argument."""
    return of(made.given(1, "other"))


def like_index(made: Call) -> Shape | None:
    """That of the index of `gather`."""
    return of(made.given(2, "index"))


def broadcast(made: Call) -> Shape | None:
    """That of all operands together."""
    if made.loose:
        return None
    shapes: list[Shape] = []
    for value in made.values():
        if isinstance(value, Tensor):
            if value.facts.shape is None:
                return None
            shapes.append(value.facts.shape)
        elif not (
            isinstance(value, Known)
            or (isinstance(value, Unknown) and value.type in ("int", "float", "bool"))
        ):
            return None
    return together(shapes)


def together(shapes: list[Shape]) -> Shape | None:
    """The shape that several are broadcast to."""
    result: list[Any] = []
    for shape in shapes:
        longer, shorter = (list(shape), result) if len(shape) >= len(result) else (result, list(shape))
        result = longer[: len(longer) - len(shorter)]
        for one, other in zip(longer[len(longer) - len(shorter) :], shorter, strict=True):
            if one == other or other == 1:
                result.append(one)
            elif one == 1:
                result.append(other)
            else:
                result.append(
                    other if one is None and isinstance(other, int) else one if other is None else None
                )
    return tuple(result)


def count(numbers: range) -> int | None:
    """How many numbers there are, None if more than any tensor has."""
    try:
        return len(numbers)
    except OverflowError:
        return None


def _at(shape: Shape, dim: Any) -> int | None:
    """The position of a dimension."""
    return dim % len(shape) if isinstance(dim, int) and shape and -len(shape) <= dim < len(shape) else None


def _numbers(value: Value | None) -> list[Any] | None:
    """The numbers in a tuple or list, or the only one; None for each that is not known."""
    if isinstance(value, Sequence):
        return None if value.rest is not None else [_number(one) for one in value.items]
    if isinstance(value, Known):
        if isinstance(value.value, tuple):
            return list(value.value)
        return [value.value] if isinstance(value.value, int) else None
    return None


def _number(value: Value) -> int | None:
    return value.value if isinstance(value, Known) and isinstance(value.value, int) else None


def sizes(made: Call, start: int, name: str = "size") -> list[Any] | None:
    """The sizes of a call, one by one or as one tuple; None if nobody knows how many."""
    if made.loose:
        return None
    given = made.args[start:] or ([made.kwargs[name]] if name in made.kwargs else [])
    if len(given) == 1 and not isinstance(given[0], Unknown):
        return _numbers(given[0])
    if len(given) == 1 and given[0].type != "int":  # type: ignore[attr-defined]
        return None
    return [_number(one) for one in given]


def reduced(made: Call) -> Shape | None:
    """Without the dimensions that the second argument says; all of them if it says none."""
    return _reduced(made, made.given(1, "dim") or made.kwargs.get("axis"), made.constant(2, "keepdim", False))


def reduced_by_name(made: Call) -> Shape | None:
    """The same where only names tell: `dim` and `keepdim` of `norm`, `std` or `quantile`."""
    if len(made.args) > 1 and "dim" not in made.kwargs:
        return None
    return _reduced(made, made.kwargs.get("dim"), made.constant(99, "keepdim", False))


def _reduced(made: Call, dim: Value | None, keep: Any) -> Shape | None:
    shape = own(made)
    if shape is None or made.loose or not isinstance(keep, bool):
        return None
    if dim is None or (isinstance(dim, Known) and dim.value is None):
        return (1,) * len(shape) if keep else ()
    numbers = _numbers(dim)
    gone = None if numbers is None else [_at(shape, one) for one in numbers]
    if not gone or None in gone:
        return () if shape == () else None
    return tuple(
        1 if index in gone else size for index, size in enumerate(shape) if keep or index not in gone
    )


def one_less(made: Call) -> Shape | None:
    """Values along a dimension, the last by default: `median(x, dim)`, `kthvalue`, `mode`."""
    shape = own(made)
    index = 2 if made.name == "kthvalue" else 1
    dim, keep = made.constant(index, "dim", -1), made.constant(index + 1, "keepdim", False)
    at = None if shape is None else _at(shape, dim)
    if shape is None or at is None or not isinstance(keep, bool) or made.loose:
        return None
    return (*shape[:at], *((1,) if keep else ()), *shape[at + 1 :])


def top(made: Call) -> Shape | None:
    """`topk`."""
    shape, count, dim = own(made), made.constant(1, "k"), made.constant(2, "dim", -1)
    at = None if shape is None else _at(shape, dim)
    return (
        None
        if shape is None or at is None
        else (*shape[:at], count if isinstance(count, int) else None, *shape[at + 1 :])
    )


def swapped(made: Call) -> Shape | None:
    """`transpose(x, dim0, dim1)`."""
    shape = own(made)
    dims = [made.constant(1, "dim0"), made.constant(2, "dim1")]
    if shape is None or any(_at(shape, one) is None for one in dims):
        return None
    result, (one, other) = list(shape), dims
    result[one], result[other] = result[other], result[one]
    return tuple(result)


def turned(made: Call) -> Shape | None:
    """`t`, and `T` of a matrix."""
    shape = own(made)
    return None if shape is None or len(shape) > 2 else shape[::-1]


def permuted(made: Call) -> Shape | None:
    """`permute`."""
    shape, dims = own(made), sizes(made, 1, "dims")
    if (
        shape is None
        or dims is None
        or len(dims) != len(shape)
        or any(_at(shape, one) is None for one in dims)
    ):
        return None
    return tuple(shape[one] for one in dims)


def viewed(made: Call) -> Shape | None:
    """`view` and `reshape`."""
    wanted, shape = sizes(made, 1, "shape"), own(made)
    if wanted is None:
        return None
    if -1 not in wanted:
        return tuple(wanted)
    rest = [one for one in wanted if one != -1]
    known = shape is not None and all(isinstance(one, int) for one in (*shape, *rest)) and prod(rest)
    inferred = prod(shape) // prod(rest) if known and shape is not None else None
    return tuple(inferred if one == -1 else one for one in wanted)


def flattened(made: Call) -> Shape | None:
    """`flatten`."""
    shape, start, end = own(made), made.constant(1, "start_dim", 0), made.constant(2, "end_dim", -1)
    if made.loose:
        return None
    if shape == () or (shape is None and (start, end) == (0, -1)):
        return (1,) if shape == () else (None,)
    if shape is None:
        return None
    first, last = _at(shape, start), _at(shape, end)
    if first is None or last is None:
        return None
    middle = shape[first : last + 1]
    return (
        *shape[:first],
        prod(middle) if all(isinstance(one, int) for one in middle) else None,
        *shape[last + 1 :],
    )


def with_one(made: Call) -> Shape | None:
    """`unsqueeze`."""
    shape, dim = own(made), made.constant(1, "dim")
    if shape is None or not isinstance(dim, int):
        return None
    at = dim if dim >= 0 else dim + len(shape) + 1
    return (*shape[:at], 1, *shape[at:])


def without_one(made: Call) -> Shape | None:
    """`squeeze`."""
    shape = own(made)
    if shape is None or made.loose:
        return None
    given = made.given(1, "dim")
    numbers = list(range(len(shape))) if given is None else _numbers(given)
    gone = None if numbers is None else [_at(shape, one) for one in numbers]
    if gone is None or any(one is None or not isinstance(shape[one], int) for one in gone):
        return None
    return tuple(size for index, size in enumerate(shape) if not (index in gone and size == 1))


def expanded(made: Call) -> Shape | None:
    """`expand` and `broadcast_to`."""
    shape, wanted = own(made), sizes(made, 1, "size")
    if wanted is None:
        return None
    old = [None] * len(wanted) if shape is None else [None] * (len(wanted) - len(shape)) + list(shape)
    return tuple(before if size == -1 else size for size, before in zip(wanted, old, strict=False))


def repeated(made: Call) -> Shape | None:
    """`repeat`."""
    shape, times = own(made), sizes(made, 1, "repeats")
    if shape is None or times is None or len(times) < len(shape):
        return None
    every = (*((1,) * (len(times) - len(shape))), *shape)
    return tuple(
        size * count if isinstance(size, int) and isinstance(count, int) else None
        for size, count in zip(every, times, strict=True)
    )


def _tensors(made: Call) -> list[Shape] | None:
    """The shapes of the tensors of `cat` and `stack`."""
    given = made.given(0, "tensors")
    if not isinstance(given, Sequence) or given.rest is not None or made.loose or not given.items:
        return None
    shapes = [of(one) for one in given.items]
    return None if any(one is None for one in shapes) else shapes  # type: ignore[return-value]


def joined(made: Call) -> Shape | None:
    """`cat`."""
    given, dim = made.given(0, "tensors"), made.constant(1, "dim", 0)
    if not isinstance(given, Sequence) or given.rest is not None or made.loose or not given.items:
        return None
    shapes = [shape for one in given.items if (shape := of(one)) is not None]
    if len({len(one) for one in shapes}) != 1 or (at := _at(shapes[0], dim)) is None:
        return None
    parts = [one[at] for one in shapes]
    is_whole = len(shapes) == len(given.items) and all(isinstance(one, int) for one in parts)
    return (*shapes[0][:at], sum(parts) if is_whole else None, *shapes[0][at + 1 :])


def stacked(made: Call) -> Shape | None:
    """`stack`."""
    shapes, dim = _tensors(made), made.constant(1, "dim", 0)
    if shapes is None or not isinstance(dim, int) or len(set(shapes)) > 1:
        return None
    at = dim if dim >= 0 else dim + len(shapes[0]) + 1
    return (*shapes[0][:at], len(shapes), *shapes[0][at:])


def product(made: Call) -> Shape | None:
    """A product of matrices: `matmul`, `mm`, `bmm`, `mv`, `@`."""
    left, right = own(made), of(made.given(1, "other"))
    if made.name == "__rmatmul__":
        left, right = right, left
    if not left or not right:
        return None
    if len(right) == 1:
        return left[:-1]
    if len(left) == 1:
        return (*right[:-2], right[-1])
    front = together([left[:-2], right[:-2]])
    return None if front is None else (*front, left[-2], right[-1])


def outer(made: Call) -> Shape | None:
    """`outer`."""
    left, right = own(made), of(made.given(1, "vec2"))
    return (*left, *right) if left and right else None


def linear(made: Call) -> Shape | None:
    """`F.linear`."""
    shape, weight = own(made), of(made.given(1, "weight"))
    return (*shape[:-1], weight[0]) if shape and weight and len(weight) == 2 else None


def embedded(made: Call) -> Shape | None:
    """`F.embedding`."""
    shape, weight = own(made), of(made.given(1, "weight"))
    return (*shape, weight[1]) if shape is not None and weight and len(weight) == 2 else None


def classes(made: Call) -> Shape | None:
    """`F.one_hot`."""
    shape, count = own(made), made.constant(1, "num_classes", -1)
    return None if shape is None else (*shape, count if isinstance(count, int) and count > 0 else None)


def without_dim(made: Call) -> Shape | None:
    """`select`."""
    shape, dim = own(made), made.constant(1, "dim")
    at = None if shape is None else _at(shape, dim)
    return None if shape is None or at is None else (*shape[:at], *shape[at + 1 :])


def chosen(made: Call) -> Shape | None:
    """`index_select` and `narrow`."""
    shape, dim = own(made), made.constant(1, "dim")
    at = None if shape is None else _at(shape, dim)
    if shape is None or at is None:
        return None
    index, length = of(made.given(2, "index")), made.constant(3, "length")
    count = length if made.name == "narrow" else index[0] if index else None
    return (*shape[:at], count if isinstance(count, int) else None, *shape[at + 1 :])


def unfolded_dim(made: Call) -> Shape | None:
    """`unflatten`."""
    shape, dim = own(made), made.constant(1, "dim")
    parts = _numbers(made.given(2, "sizes"))
    at = None if shape is None else _at(shape, dim)
    if shape is None or at is None or parts is None:
        return None
    return (*shape[:at], *(None if one == -1 else one for one in parts), *shape[at + 1 :])


def flat_list(made: Call) -> Shape | None:
    """One dimension of a length that nobody knows: `masked_select`, `unique`."""
    return (None,)


def loss(made: Call) -> Shape | None:
    """One number, unless `reduction` says otherwise."""
    return (
        ()
        if made.constant(99, "reduction", "mean") in ("mean", "sum", "batchmean") and not made.loose
        else None
    )


def pooled_to(dimensions: int) -> Rule:
    """`adaptive_avg_pool2d`."""

    def rule(made: Call) -> Shape | None:
        shape, given = own(made), made.given(1, "output_size")
        wanted = _numbers(given)
        if shape is None or wanted is None or len(shape) < dimensions:
            return None
        wanted = wanted * dimensions if isinstance(given, Known) and isinstance(given.value, int) else wanted
        return (*shape[: len(shape) - dimensions], *wanted) if len(wanted) == dimensions else None

    return rule


def indexed(shape: Shape, key: Value) -> Shape | None:
    """`x[key]`, for numbers, slices, `None` and `...`, or for tensors of indices."""
    keys = (
        list(key.items)
        if isinstance(key, Sequence) and key.cls.name == "tuple" and key.rest is None
        else [key]
    )
    tensors = [one for one in keys if isinstance(one, Tensor)]
    if tensors:
        return _gathered(shape, tensors) if len(tensors) == len(keys) <= len(shape) else None
    plain = [
        one.value if isinstance(one, Known) else _UNKNOWN.get(getattr(one, "type", None), "?") for one in keys
    ]
    if any(isinstance(one, bool | tuple | list | str) for one in plain):
        return None
    fixed = [isinstance(one, Known) and one.value is ... for one in keys]
    taken = sum(one is not None and not dots for one, dots in zip(plain, fixed, strict=True))
    result: list[Any] = []
    at = 0
    for one, dots in zip(plain, fixed, strict=True):
        if dots:
            count = len(shape) - taken
            result += shape[at : at + count]
            at += count
        elif one is None:
            result.append(1)
        elif at >= len(shape):
            return None
        else:
            if isinstance(one, slice):
                result.append(_sliced(shape[at], one))
            at += 1
    return (*result, *shape[at:])


def _gathered(shape: Shape, keys: list[Tensor]) -> Shape | None:
    """`x[mask]`, `x[rows]` and `x[rows, columns]`."""
    own = [one.facts.shape for one in keys]
    if [one.facts.dtype for one in keys] == ["bool"]:
        masked = 1 if len(shape) == 1 else own[0] and len(own[0])
        return (None, *shape[masked:]) if masked else None
    known = [one for one in own if one is not None]
    are_indices = len(known) == len(keys) and all(one.facts.dtype == "int64" for one in keys)
    return (*(together(known) or ()), *shape[len(keys) :]) if are_indices else None


_SOME = slice(...)
_UNKNOWN: dict[str | None, Any] = {"int": ..., "slice": _SOME}
"""What an index is that is a number or a slice which nobody knows."""


def _sliced(size: Any, part: slice) -> int | None:
    if part == slice(None):
        return size  # type: ignore[no-any-return]
    if not isinstance(size, int) or part == _SOME:
        return None
    try:
        return count(range(size)[part])
    except (TypeError, ValueError):  # it is no slice of whole numbers
        return None
