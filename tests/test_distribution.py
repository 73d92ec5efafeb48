"""Each statistic of a tensor beside that of NumPy or SciPy, on every dtype that torch has."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ta_lint.core.errors import UsageError
from ta_runtime.measure.distribution import NAMES, columns, measure
from ta_runtime.runs.schema import STATISTICS

Array = NDArray[Any]

TRUTH: dict[str, Callable[[Array], float]] = {
    "pos_infs": lambda values: np.isposinf(values).sum(),
    "neg_infs": lambda values: np.isneginf(values).sum(),
    "nans": lambda values: np.isnan(values).sum(),
    "zeros": lambda values: (values == 0).sum(),
    "med": np.median,
    "mean": np.mean,
    "amean": lambda values: np.abs(values).mean(),
    "std": lambda values: np.std(values, ddof=1),  # type: ignore[dict-item, return-value]
    "var": np.var,
    "uvar": lambda values: np.var(values, ddof=1),  # type: ignore[dict-item, return-value]
    "skew": scipy.stats.skew,
    "kurt": lambda values: scipy.stats.kurtosis(values, fisher=False),
    "mode": lambda values: scipy.stats.mode(values).mode,
    "min": np.min,
    "max": np.max,
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def measured(tensor: Tensor, *names: str) -> dict[str, float]:
    return {name: float(value) for name, value in measure(tensor, names or STATISTICS).items()}


def numbers(tensor: Tensor) -> Array:
    """What a tensor holds, in float64: the magnitudes of complex numbers."""
    if tensor.is_complex():
        return np.abs(tensor.to(torch.complex128).numpy()).reshape(-1)
    return np.array([float(value) for value in tensor.double().flatten()], dtype=np.float64)


def dtypes() -> list[torch.dtype]:
    """Every dtype of which this torch can make a tensor with numbers."""
    found = []
    for name in dir(torch):
        dtype = getattr(torch, name)
        if isinstance(dtype, torch.dtype) and dtype not in found:
            try:
                torch.zeros(16, dtype=torch.uint8).view(dtype).double()
            except (RuntimeError, TypeError):
                continue
            found.append(dtype)
    return found


def sample(dtype: torch.dtype) -> Tensor:
    drawn = torch.Generator().manual_seed(0)
    values = torch.randn(7, 143, generator=drawn, dtype=torch.float64) * 3
    if dtype.is_complex:
        return torch.complex(values, values.flip(0)).to(dtype)
    if dtype is torch.bool:
        return values > 1
    if dtype.is_floating_point and dtype.itemsize == 1 and "e8m0" in str(dtype):
        return values.abs().float().to(dtype)
    if dtype.is_signed:
        return values.float().to(dtype)
    return (values.abs() * 10).long().to(dtype)


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_each_statistic_is_that_of_numpy_on_every_dtype(dtype: torch.dtype) -> None:
    values = sample(dtype)
    truth = numbers(values)
    for name in STATISTICS:
        found = measured(values, name)[name]
        assert found == pytest.approx(TRUTH[name](truth), rel=1e-6 if dtype.is_complex else 1e-9), name


SPECIAL = {
    "one": [3.0],
    "two": [1.0, 2.0],
    "constant": [2.0] * 9,
    "even": [4.0, 1.0, 3.0, 2.0],
    "zeros": [0.0, -0.0, 0.0],
    "infinities": [1.0, math.inf, -math.inf, math.inf, 0.0],
    "one infinity": [1.0, math.inf, 2.0],
    "a NaN": [1.0, math.nan, 0.0, 2.0, 2.0],
    "only NaN": [math.nan] * 4,
    "ties": [5.0, 1.0, 5.0, 1.0, 2.0],
    "far from zero": [1e8 + step for step in range(100)],
    "negative": [-3.0, -1.0, -1.0, -7.0],
}


@pytest.mark.parametrize("case", SPECIAL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_each_statistic_of_special_values_is_that_of_numpy(case: str, dtype: torch.dtype) -> None:
    values = torch.tensor(SPECIAL[case], dtype=dtype)
    for name in STATISTICS:
        expected = float(TRUTH[name](numbers(values)))
        if case in ("constant", "one") and name in ("skew", "kurt"):
            expected = math.nan  # it divides nothing by nothing
        assert measured(values, name)[name] == pytest.approx(expected, nan_ok=True, rel=1e-9), name


def test_a_scalar_has_the_statistics_of_one_element() -> None:
    """fkat printed the value of a 0-d tensor, and nothing else."""
    for name in STATISTICS:
        one = measured(torch.tensor([2.0]), name)
        assert measured(torch.tensor(2.0), name) == pytest.approx(one, nan_ok=True), name


def test_an_empty_tensor_has_counts_and_nothing_else() -> None:
    """fkat raised IndexError."""
    assert measured(torch.zeros(0, 3)) == dict.fromkeys(("pos_infs", "neg_infs", "nans", "zeros"), 0.0)


def test_a_median_of_booleans_is_taken() -> None:
    """fkat raised: torch has no median of them."""
    assert measured(torch.tensor([True, False, True]), "med", "mean", "mode") == {
        "med": 1.0,
        "mean": pytest.approx(2 / 3),
        "mode": 1.0,
    }


def test_complex_numbers_count_by_their_magnitudes() -> None:
    """fkat dropped the imaginary part."""
    found = measured(
        torch.tensor([3 + 4j, 0, complex("nan+0j"), complex("0-infj")]), "zeros", "nans", "pos_infs"
    )
    assert found == {"zeros": 1, "nans": 1, "pos_infs": 1}
    assert measured(torch.tensor([3 + 4j, 0]), "mean", "max") == {"mean": 2.5, "max": 5.0}


def test_the_mean_of_a_large_half_precision_tensor_does_not_overflow() -> None:
    values = torch.full((70_000,), 60_000.0, dtype=torch.float16)
    assert measured(values, "mean", "var") == {"mean": 60_000.0 - 0.0, "var": 0.0}


def test_sums_over_many_chunks_are_exact() -> None:
    values = torch.rand(1 << 20) + 1000
    expected = values.double().numpy()
    found = measured(values)
    for name in ("mean", "var", "skew", "kurt"):
        assert found[name] == pytest.approx(float(TRUTH[name](expected)), rel=1e-7), name


def test_integers_are_summed_without_overflow() -> None:
    values = torch.full((10,), 2**62, dtype=torch.int64)
    assert measured(values, "mean", "max") == {"mean": 2.0**62, "max": 2.0**62}


def test_the_order_of_dimensions_and_strides_does_not_matter() -> None:
    values = torch.randn(30, 40)
    assert measured(values.t()) == pytest.approx(measured(values))


def test_sparse_quantised_and_nested_tensors_have_statistics() -> None:
    dense = torch.tensor([0.0, 2.0, 4.0])
    assert measured(dense.to_sparse(), "mean", "max") == {"mean": 3.0, "max": 4.0}
    quantised = torch.quantize_per_tensor(dense, 0.5, 0, torch.qint8)
    assert measured(quantised, "mean", "max") == {"mean": 2.0, "max": 4.0}
    nested = torch.nested.nested_tensor([dense, dense[:1]])
    assert measured(nested, "mean", "max") == {"mean": 1.5, "max": 4.0}


def test_what_has_no_numbers_has_no_statistics() -> None:
    assert measured(torch.empty(3, device="meta")) == {}
    packed = getattr(torch, "float4_e2m1fn_x2", None)
    if packed is not None:
        assert measured(torch.zeros(4, dtype=torch.uint8).view(packed)) == {}


def test_a_tensor_that_is_measured_stays_as_it_is() -> None:
    values = torch.randn(5, 4, requires_grad=True)
    before = values.detach().clone()
    found = measure(values, STATISTICS)
    assert torch.equal(values.detach(), before)
    assert not any(value.requires_grad for value in found.values())


# -- what is asked for ----------------------------------------------------------------------------------------


def test_the_seventeen_names_are_those_of_fkat() -> None:
    expected = "shape dtype infs nans zeros med mean amean std var uvar skew kurt mode min max hash".split()
    assert list(NAMES) == expected
    assert set(columns("all")) == set(STATISTICS)


def test_infinities_are_counted_by_their_sign() -> None:
    assert columns(["infs", "mean", "hash"]) == ("pos_infs", "neg_infs", "mean")


def test_a_statistic_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"statistics: 'avg' is none of shape, dtype, infs.*, or 'all'"):
        columns(["mean", "avg"])


class Operations(TorchDispatchMode):
    """Counts operations, and those that wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_what_is_not_asked_for_is_not_computed() -> None:
    values = torch.randn(100)
    with Operations() as nothing:
        measure(values, ())
    with Operations() as few:
        measure(values, ("zeros", "min"))
    assert nothing.names == []
    assert not any(word in name for name in few.names for word in ("sort", "dot", "sum"))


def test_no_statistic_waits_for_the_device() -> None:
    with Operations() as counted:
        measure(torch.randn(100), STATISTICS)
    assert not any(
        word in name for name in counted.names for word in ("_local_scalar", "aten.nonzero", "unique")
    )
