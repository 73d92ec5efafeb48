"""What two tensors must differ in to have different digests, on the CPU and in the way of a device."""

import math
import random
import struct
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ta_runtime.measure import digests
from ta_runtime.measure.digests import BLOCKS, Digests, Weights
from ta_runtime.snapshot.contents import KEPT, Contents
from ta_runtime.trace import numbers

WAYS = pytest.mark.parametrize("weighted", [False, True], ids=["host", "device"])


def contents(tensor: Tensor, weighted: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {}
    batch = Contents(weighted=weighted)
    batch.add(tensor, row)
    batch.deliver()
    return row


def digest(tensor: Tensor, weighted: bool = False) -> str:
    found = contents(tensor, weighted)["digest"]
    assert isinstance(found, str)
    return found


def dtypes() -> list[torch.dtype]:
    """Every dtype of which this torch can make a tensor."""
    found = []
    for name in dir(torch):
        dtype = getattr(torch, name)
        if isinstance(dtype, torch.dtype) and dtype not in found:
            try:
                torch.zeros(8, dtype=torch.uint8).view(dtype)
            except (RuntimeError, TypeError):
                continue
            found.append(dtype)
    return found


# -- what a digest knows --------------------------------------------------------------------------------------


@WAYS
def test_equal_tensors_have_one_digest(weighted: bool) -> None:
    values = torch.randn(1000, 30)
    assert contents(values, weighted) == contents(values.clone(), weighted)


@WAYS
@pytest.mark.parametrize("count", [2, 300, 100_000])
def test_a_digest_knows_the_order_of_elements(weighted: bool, count: int) -> None:
    values = torch.randn(count)
    assert digest(values, weighted) != digest(values.flip(0), weighted)


@WAYS
def test_a_digest_knows_the_dtype(weighted: bool) -> None:
    """Zeros of all these dtypes are the same bytes: fkat's digests were equal."""
    of_zeros = [torch.zeros(4), torch.zeros(4, dtype=torch.int32), torch.zeros(2, dtype=torch.float64)]
    of_zeros += [torch.zeros(16, dtype=torch.uint8), torch.zeros(16, dtype=torch.bool)]
    assert len({digest(tensor, weighted) for tensor in of_zeros}) == 5


@WAYS
def test_a_digest_knows_the_shape(weighted: bool) -> None:
    values = torch.arange(6.0)
    shapes = [(6,), (2, 3), (3, 2), (1, 6), (6, 1), (1, 2, 3)]
    assert len({digest(values.view(shape), weighted) for shape in shapes}) == len(shapes)


@WAYS
def test_a_digest_tells_bfloat16_from_the_same_numbers_in_float32(weighted: bool) -> None:
    values = torch.tensor([1.0, 0.5, -2.0])
    assert digest(values, weighted) != digest(values.bfloat16(), weighted)


@WAYS
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_empty_tensors_and_scalars_have_digests_of_their_own(weighted: bool, shape: tuple[int, ...]) -> None:
    others = [torch.zeros(other) for other in [(0,), (0, 3), (3, 0), (), (1,)] if other != shape]
    assert digest(torch.zeros(shape), weighted) not in {digest(other, weighted) for other in others}


@WAYS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("index", [0, 5_000, 99_999])
def test_one_ulp_is_seen(weighted: bool, dtype: torch.dtype, index: int) -> None:
    values = torch.randn(100_000).to(dtype)
    words = {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
    moved = values.clone()
    moved.view(words)[index] += 1
    assert digest(values, weighted) != digest(moved, weighted)


@WAYS
@pytest.mark.parametrize(("a", "b"), [(0, 1), (17, 4096 + 17), (3, 99_999)])
def test_an_exchange_of_two_elements_is_seen(weighted: bool, a: int, b: int) -> None:
    values = torch.randn(100_000)
    swapped = values.clone()
    swapped[[a, b]] = values[[b, a]]
    assert digest(values, weighted) != digest(swapped, weighted)


@WAYS
def test_an_exchange_of_two_rows_is_seen(weighted: bool) -> None:
    values = torch.randn(64, 4096)
    assert digest(values, weighted) != digest(values[[1, 0, *range(2, 64)]], weighted)


@WAYS
def test_flips_of_the_sign_of_two_elements_do_not_cancel_out(weighted: bool) -> None:
    """Each adds 2^31 or 2^63 to a sum: without weights of their own they are lost together."""
    values = torch.randn(10_000)
    drawn = random.Random(0)
    seen = {digest(values, weighted)}
    for _ in range(200):
        flipped = values.clone()
        flipped[drawn.sample(range(10_000), 2)] *= -1
        seen.add(digest(flipped, weighted))
    assert len(seen) == 201


@WAYS
def test_permutation_matrices_of_equal_row_and_column_sums_differ(weighted: bool) -> None:
    eye = torch.eye(64)
    assert digest(eye, weighted) != digest(eye[[1, 0, *range(2, 64)]], weighted)


@WAYS
def test_ones_and_zeros_of_other_lengths_differ(weighted: bool) -> None:
    """`torch.hash_tensor` gives 0 for all of them."""
    tensors = [torch.ones(4), torch.zeros(7), torch.zeros(8), torch.ones(2)]
    assert len({digest(tensor, weighted) for tensor in tensors}) == len(tensors)


@WAYS
@pytest.mark.parametrize(
    "strided",
    [
        lambda values: values.t().contiguous().t(),
        lambda values: torch.cat([values, values])[:100],
        lambda values: torch.stack([values, values], -1)[..., 0],
        lambda values: values.expand(2, *values.shape)[1],
        lambda values: torch.cat([torch.zeros(3), values.flatten()])[3:].view(values.shape),
    ],
)
def test_a_digest_does_not_depend_on_how_a_tensor_lies_in_memory(
    weighted: bool, strided: Callable[[Tensor], Tensor]
) -> None:
    values = torch.randn(100, 64)
    assert contents(values, weighted) == contents(strided(values), weighted)


@WAYS
def test_views_of_conjugates_and_negatives_are_what_they_say(weighted: bool) -> None:
    values = torch.randn(8, dtype=torch.complex64)
    assert digest(values.conj(), weighted) == digest(values.conj().resolve_conj(), weighted)
    assert digest(values.conj(), weighted) != digest(values, weighted)
    negative = values.conj().imag
    assert negative.is_neg()
    assert digest(negative, weighted) == digest(negative.resolve_neg(), weighted)


@WAYS
def test_random_changes_of_bits_never_go_unseen(weighted: bool) -> None:
    drawn = random.Random(1)
    values = torch.randint(256, (5000,), dtype=torch.uint8)
    seen = {digest(values, weighted)}
    for _ in range(300):
        changed = values.clone()
        for place in drawn.sample(range(5000), drawn.randint(1, 4)):
            changed[place] ^= 1 << drawn.randrange(8)
        seen.add(digest(changed, weighted))
    assert len(seen) == 301


# -- every kind of tensor -------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_every_dtype_has_a_digest(weighted: bool, dtype: torch.dtype) -> None:
    data = torch.arange(1, 65, dtype=torch.uint8)
    tensor, other = data.view(dtype), data.flip(0).contiguous().view(dtype)
    row = contents(tensor, weighted)
    assert row["dtype"] == str(dtype).removeprefix("torch.")
    assert row["digest"] is not None
    assert row["digest"] != digest(other, weighted)
    assert row["values"] == bytes(data.tolist())


@WAYS
def test_sparse_tensors_have_digests(weighted: bool) -> None:
    dense = torch.eye(6)
    kinds = [dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2))]
    assert len({digest(tensor, weighted) for tensor in (dense, *kinds)}) == 5
    moved = dense.roll(1, 0)
    for kind in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
        assert digest(getattr(dense, kind)(), weighted) != digest(getattr(moved, kind)(), weighted)


def test_entries_of_a_sparse_tensor_may_come_in_any_order() -> None:
    entries = torch.tensor([[0, 1, 1]]), torch.tensor([1.0, 2.0, 3.0])
    others = torch.tensor([[1, 0, 1]]), torch.tensor([2.0, 1.0, 3.0])
    assert digest(torch.sparse_coo_tensor(*entries, (2,))) == digest(torch.sparse_coo_tensor(*others, (2,)))


@WAYS
def test_nested_tensors_know_where_each_part_ends(weighted: bool) -> None:
    for layout in (torch.strided, torch.jagged):
        one, other = (
            torch.nested.nested_tensor([torch.arange(float(n)) for n in lengths], layout=layout)
            for lengths in ((2, 4), (4, 2))
        )
        assert digest(one, weighted) != digest(other, weighted)


@WAYS
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantised_tensors_know_their_scale(weighted: bool) -> None:
    values = torch.arange(8.0)
    of_scale = {
        digest(torch.quantize_per_tensor(values * scale, scale, 0, torch.qint8), weighted)
        for scale in (1.0, 0.5)
    }
    by_channel = torch.quantize_per_channel(
        values.view(2, 4), torch.tensor([1.0, 0.5]), torch.tensor([0, 0]), 0, torch.qint8
    )
    assert len(of_scale | {digest(by_channel, weighted)}) == 3


class Wrapped(Tensor):
    """A tensor that holds others, as those of torchao do."""

    scale: Tensor
    data_: Tensor

    @staticmethod
    def __new__(cls: type[Self], data: Tensor, scale: Tensor) -> Self:
        return Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)

    def __init__(self, data: Tensor, scale: Tensor) -> None:
        self.data_, self.scale = data, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["data_", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *rest: Any) -> "Wrapped":
        return Wrapped(inner["data_"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise NotImplementedError


@WAYS
def test_a_subclass_has_the_digest_of_what_it_wraps(weighted: bool) -> None:
    one, two = torch.ones(1), torch.full((1,), 2.0)
    data = torch.arange(4, dtype=torch.int8)
    assert digest(Wrapped(data, one), weighted) == digest(Wrapped(data.clone(), one), weighted)
    assert digest(Wrapped(data, one), weighted) != digest(Wrapped(data, two), weighted)
    assert digest(Wrapped(data, one), weighted) != digest(Wrapped(data + 1, one), weighted)


class Silent(Wrapped):
    """A tensor that does not say what it holds."""

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        raise RuntimeError("no")


class Shy(Tensor):
    """A tensor that lets nobody look at it from Python."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("no")


@WAYS
def test_a_subclass_that_overrides_functions_is_read_below_them(weighted: bool) -> None:
    assert digest(torch.ones(3).as_subclass(Shy), weighted) == digest(torch.ones(3), weighted)


def undigestible() -> dict[str, tuple[Tensor, str]]:
    with FakeTensorMode():
        fake = torch.ones(3)
    lazy = nn.LazyLinear(2)
    return {
        "meta": (torch.empty(3, device="meta"), "none: on the meta device"),
        "fake": (fake, "none: a fake tensor"),
        "uninitialised": (lazy.weight, "none: not initialised yet"),
        "mkldnn": (torch.ones(3).to_mkldnn(), "none: of layout _mkldnn"),
        "silent": (Silent(torch.ones(3), torch.ones(1)), "none: RuntimeError"),
    }


@WAYS
@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("kind", ["meta", "fake", "uninitialised", "mkldnn", "silent"])
def test_what_has_no_memory_to_read_is_said_not_to(weighted: bool, kind: str) -> None:
    tensor, why = undigestible()[kind]
    row = contents(tensor, weighted)
    assert row["algorithm"] == why
    assert "digest" not in row


def test_the_reason_for_a_row_without_digest_stands_in_the_place_of_its_algorithm() -> None:
    row = contents(torch.empty(2, 3, device="meta"))
    assert (row["dtype"], row["shape"]) == ("float32", [2, 3])


# -- what is beside a digest ----------------------------------------------------------------------------------


@WAYS
def test_blocks_say_where_tensors_differ(weighted: bool) -> None:
    values = torch.randn(1 << 21)
    changed = values.clone()
    changed[700_000] += 1
    blocks, others = contents(values, weighted)["blocks"], contents(changed, weighted)["blocks"]
    assert len(blocks) == BLOCKS
    assert [index for index in range(BLOCKS) if blocks[index] != others[index]] == [700_000 * 64 >> 21]


@WAYS
@pytest.mark.parametrize("count", [1, 4097, 262_144, 1_000_001, 20_000_003])
def test_there_are_64_blocks_at_most(weighted: bool, count: int) -> None:
    assert 1 <= len(contents(torch.zeros(count, dtype=torch.uint8), weighted)["blocks"]) <= BLOCKS


@WAYS
def test_a_small_tensor_is_kept_whole(weighted: bool) -> None:
    values = torch.randn(KEPT)
    assert contents(values, weighted)["values"] == struct.pack(f"<{KEPT}f", *values.tolist())


@WAYS
def test_of_a_large_tensor_values_are_kept_from_all_over_it(weighted: bool) -> None:
    kept = np.frombuffer(contents(torch.arange(1 << 20), weighted)["values"], dtype=np.int64)
    assert kept.tolist() == list(range(0, 1 << 20, (1 << 20) // KEPT))


DRAWN: dict[str, Callable[[int], Tensor]] = {
    "normal": lambda count: torch.randn(count) * 3,
    "constant": lambda count: torch.full((count,), 0.1),
    "far apart": lambda count: torch.randn(count).abs() ** 8,
}


@WAYS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int32, torch.bool])
def test_the_norm_is_right_to_a_millionth(weighted: bool, dtype: torch.dtype) -> None:
    """As sums of 1,024 squares in float32 are; of float64 and whole numbers to a part in 10^12."""
    exactly = dtype not in (torch.float32, torch.bfloat16)
    for draw in DRAWN.values():
        for count in (1, 1023, 1025, 700_001):
            values = draw(count).to(dtype)
            exact = math.sqrt(math.fsum((values.double() ** 2).tolist()))
            assert contents(values, weighted)["norm"] == pytest.approx(exact, rel=1e-12 if exactly else 1e-6)


@WAYS
def test_the_norm_of_a_large_tensor_is_not_summed_in_float32_alone(weighted: bool) -> None:
    """Over all of its 16 million elements that is wrong by more than a hundred times as much."""
    values = torch.full((1 << 24,), 0.1)
    exact = float(values.double().norm())
    assert abs(float(torch.linalg.vector_norm(values)) / exact - 1) > 1e-4
    assert contents(values, weighted)["norm"] == pytest.approx(exact, rel=1e-6)


@WAYS
@pytest.mark.parametrize("value", [1e-30, 0.0, float("inf")])
def test_the_norm_of_what_is_lost_in_float32_is_not(weighted: bool, value: float) -> None:
    exact = math.sqrt(5000) * float(torch.tensor(value))
    assert contents(torch.full((5000,), value), weighted)["norm"] == pytest.approx(exact, rel=1e-12)


@WAYS
def test_the_norm_of_what_overflows_in_float32_is_finite(weighted: bool) -> None:
    assert contents(torch.full((4,), 3e38), weighted)["norm"] == pytest.approx(6e38)


@WAYS
def test_the_norm_of_complex_numbers_is_that_of_their_magnitudes(weighted: bool) -> None:
    assert contents(torch.tensor([3 + 4j, 0]), weighted)["norm"] == 5.0


# -- the two ways ---------------------------------------------------------------------------------------------


def test_a_digest_names_its_algorithm() -> None:
    assert contents(torch.ones(3))["algorithm"] == "xxh3-128"
    assert contents(torch.ones(3), weighted=True)["algorithm"] == "weighted sums, xxh3-128"


def test_without_xxhash_digests_are_of_sha1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_xxh3", None)
    values = torch.randn(10)
    assert contents(values)["algorithm"] == "sha1-128"
    assert digest(values) != digest(values.flip(0))


def test_sums_on_a_device_do_not_depend_on_how_many_rows_are_summed_at_once() -> None:
    """The rows of a long tensor are those of its parts."""
    length = 1 << 15
    values = torch.randint(-(2**31), 2**31 - 1, (64 * length,), dtype=torch.int32)
    sums, rows = Weights().sums(values)
    assert (len(sums), rows) == (64, 1)
    one, _ = Weights().sums(values[length * 9 : length * 10])
    assert torch.equal(one[0], sums[9])


def test_sums_on_a_device_are_those_of_exact_integers() -> None:
    values = torch.randint(-(2**31), 2**31 - 1, (500,), dtype=torch.int32)
    weights = Weights()
    sums, _ = weights.sums(values)
    ones = torch.eye(500, dtype=torch.int32)
    each = [weights.sums(row)[0][0].tolist() for row in ones]
    for lane in (0, 1):
        exact = sum(value * weight[lane] for value, weight in zip(values.tolist(), each, strict=True))
        assert (exact - int(sums[0, lane])) % 2**64 == 0


def test_many_tensors_come_over_together() -> None:
    tensors = [torch.randn(n) for n in (3, 70_000, 1)] + [torch.ones(2, dtype=torch.int8)]
    batch = Contents(weighted=True)
    rows: list[dict[Any, Any]] = [{} for _ in tensors]
    for tensor, row in zip(tensors, rows, strict=True):
        batch.add(tensor, row)
    batch.deliver()
    assert rows == [contents(tensor, weighted=True) for tensor in tensors]


def test_what_is_written_in_place_afterwards_is_not_in_the_digest() -> None:
    values = torch.randn(100)
    before = contents(values, weighted=True)
    row: dict[str, Any] = {}
    batch = Contents(weighted=True)
    batch.add(values, row)
    values.zero_()
    batch.deliver()
    assert row == before


# -- what ranks tell each other -------------------------------------------------------------------------------


def test_ranks_compare_numbers_of_tensors_and_a_few_of_their_values() -> None:
    values = torch.randn(1000)
    [one], [other] = Digests([values]).read(), Digests([values.clone()]).read()
    assert one == other
    assert one.varies
    [moved] = Digests([values + 1]).read()
    assert moved.bits != one.bits
    assert moved.apart(one) > 0


# -- what a trace says ----------------------------------------------------------------------------------------


def test_the_number_of_a_tensor_tells_its_bits_its_dtype_and_its_shape() -> None:
    values = torch.arange(12, dtype=torch.float32)
    views = [values, values.view(3, 4), values.view(torch.int32), values.flip(0), values + 1e-6]
    assert len(set(numbers.numbers(views))) == len(views)
    assert numbers.numbers([values.view(3, 4).t()]) == numbers.numbers(
        [values.view(3, 4).t().clone().contiguous()]
    )


def test_what_has_no_memory_has_no_number() -> None:
    assert numbers.numbers([None, torch.empty(3, device="meta"), torch.empty(0)])[:2] == [None, None]
    assert numbers.combined([1, None]) is None
    assert numbers.combined([1, 2]) != numbers.combined([2, 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_zeros_have_the_number_of_zeros(dtype: torch.dtype) -> None:
    zeros = torch.zeros(5, 3, dtype=dtype)
    assert numbers.numbers([zeros]) == [numbers.number_of_zeros(zeros)]
    ones = torch.ones(5, 3, dtype=dtype)
    assert numbers.numbers([ones]) != [numbers.number_of_zeros(ones)]
