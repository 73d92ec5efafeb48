"""The tables of torch's operations say what torch does: each is called with small tensors, by both, and compared."""

import ast
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ta_lint.dryrun import dryrun  # noqa: F401 - it fills the library
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.program import Program
from ta_lint.dryrun.stubs.torch.rows import PARTS
from ta_lint.dryrun.stubs.torch.tensors import NOTHING, PARAMETER, TENSOR, Facts, Tensor
from ta_lint.dryrun.values import External, Known, Native, Object, Sequence, Unknown, Value
from ta_lint.project.layout import Layout

pytestmark = pytest.mark.filterwarnings("ignore")

# What the operations are called with, one line for each that needs more than one matrix of numbers between 0 and 1. `x` and `y` are such
# matrices, `a` to `d` have one to four dimensions, `i` are indices, `b` booleans, `n` whole numbers, `u` and `l` triangular matrices.
ARGUMENTS = """
    x: mH
    x, y: __add__ __eq__ __ge__ __gt__ __iadd__ __imul__ __isub__ __itruediv__ __ipow__ __le__ __lt__ __matmul__ __mod__ __mul__ __ne__ __pow__
    x, y: __radd__ __rmod__ __rmul__ __rpow__ __rsub__ __rtruediv__ __sub__ __truediv__ __rmatmul__ __imod__ __ifloordiv__ __floordiv__
    x, y: __rfloordiv__ add add_ allclose arctan2 arctan2_ atan2 atan2_ cdist clamp_max clamp_max_ clamp_min clamp_min_ copysign copysign_
    x, y: cosine_similarity cross dist div div_ divide divide_ eq eq_ equal fmax fmin float_power floor_divide floor_divide_
    x, y: fmod fmod_ ge ge_ greater greater_ greater_equal greater_equal_ gt gt_ heaviside heaviside_ hypot hypot_ igamma igamma_ igammac
    x, y: igammac_ inner isclose kron ldexp ldexp_ le le_ less less_ less_equal less_equal_ logaddexp logaddexp2 logical_and logical_and_
    x, y: logical_or logical_or_ logical_xor logical_xor_ lt lt_ matmul maximum minimum mm mul mul_ multiply multiply_ ne ne_ nextafter
    x, y: nextafter_ not_equal not_equal_ pairwise_distance pow pow_ remainder remainder_ rsub sub sub_ subtract subtract_ true_divide
    x, y: true_divide_ view_as expand_as reshape_as vecdot xlogy xlogy_ xlog1py copy_ complex polar lstsq solve l1_loss mse_loss gammainc
    x, y: gammaincc linear is_same_size type_as
    n, m: __and__ __or__ __xor__ __rand__ __ror__ __rxor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__
    n, m: bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_
    n, m: bitwise_xor bitwise_xor_ gcd gcd_ lcm lcm_
    n: bitwise_not bitwise_not_ __invert__
    x, 0.1, 0.9: clamp clamp_ clip clip_ threshold threshold_ uniform_ normal_
    x, 0.5: fill fill_ fill_diagonal_
    x, 0.5, True: torch.alpha_dropout torch.alpha_dropout_ torch.dropout torch.dropout_ torch.feature_alpha_dropout torch.feature_alpha_dropout_
    x, 0.5, True: torch.feature_dropout_
    d, 0.5: dropout2d
    c, 0.5: dropout1d
    e, 0.5: dropout3d
    x, y, 0.5: lerp lerp_
    x, y, y: addcdiv addcdiv_ addcmul addcmul_ addmm addmm_
    x, c, c: addbmm addbmm_
    c, c, c: baddbmm baddbmm_
    a, x, a: addmv addmv_
    x, a, a: addr addr_
    c, c: bmm
    x, a: mv prelu
    x, y: solve_ex
    a, a: dot vdot ger outer chain_matmul_
    x, 2: matrix_power mvlgamma multigammaln mvlgamma_
    2, x: torch.polygamma torch.special.polygamma
    x, 2: polygamma polygamma_ pow
    b, x, y: torch.where
    b, x, 0.5: torch.where
    b: torch.where
    x, b, y: torch.Tensor.where
    one: item is_nonzero __float__ __int__
    x, b: masked_select
    x, b, 0.0: masked_fill masked_fill_
    x, b, y: masked_scatter masked_scatter_
    x, 0: all any amax amin argmax argmin argsort count_nonzero cummax cummin cumprod cumprod_ cumsum cumsum_ log_softmax logcumsumexp logsumexp
    x, 0: max mean median min mode nanmean nanmedian nansum prod softmax softmin sort squeeze squeeze_ sum unsqueeze unsqueeze_ unbind
    x, 0: gumbel_softmax_ diff_
    x, -1, True: all any amax amin argmax argmin logsumexp max mean median min mode sum
    x, (0, 1): amax amin logsumexp mean permute sum
    x, 1: kthvalue
    x, 2: topk chunk split tensor_split_ unsafe_chunk unsafe_split
    x, 3: tensor_split hsplit vsplit
    d, 2: dsplit
    x, 1, 0: swapaxes swapdims transpose swapaxes_ swapdims_ transpose_ moveaxis movedim select
    x, [1, 2]: split split_with_sizes
    x, 0.5: quantile nanquantile hardshrink softshrink
    x, 0, i: index_select
    x, 1, j: gather take_along_dim_
    x, j, 1: take_along_dim
    x, j: take
    x, 0, i, y: index_add index_add_ index_copy index_copy_
    x, 0, i, 0.5: index_fill index_fill_
    x, (i,), y: index_put index_put_
    x, 0, i, y, 'mean': index_reduce index_reduce_
    x, 1, j, y: scatter scatter_ scatter_add scatter_add_
    x, 1, j, y, 'sum': scatter_reduce scatter_reduce_
    x, j, y: put put_
    x, 1, 0, 2: narrow
    x, a, 0, 1: select_scatter
    x, a: diagonal_scatter
    x, y, 0, 0, 3: slice_scatter
    x, y, (3, 3), (3, 1): as_strided_scatter
    x, (3, 3), (3, 1): as_strided as_strided_
    x, 2, 0, 1: renorm renorm_
    x, (9,): torch.reshape torch.Tensor.reshape torch.Tensor.view
    x, 3, -1: torch.Tensor.reshape torch.Tensor.view
    x, (-1, 3): torch.reshape torch.Tensor.view
    a, (3, 3): broadcast_to expand sum_to_size_
    a, 2, -1: expand
    x, (1, 3): sum_to_size
    x, 2, 2: repeat
    x, (2, 2): tile
    x, 2: repeat_interleave
    x, 0, (3, 1): unflatten
    x, 0, 2, 1: torch.Tensor.unfold
    x, (0,): flip
    x, 1: roll
    x, 1, (0, 1): rot90
    [x, y]: cat concat concatenate stack hstack vstack dstack column_stack row_stack
    [x, y], 1: cat concat concatenate stack
    [x, y], -1: cat stack
    x, y: block_diag broadcast_tensors atleast_1d_ combinations_
    a, a: meshgrid cartesian_prod
    'ij,jk->ik', x, y: einsum
    x, y, 1: tensordot
    [x, y]: multi_dot chain_matmul_
    p: cholesky cholesky_inverse cholesky_ex
    x, l: cholesky_solve
    x, u: triangular_solve
    a: combinations diag_embed cartesian_prod cov
    x, 3: bucketize_ histc
    n1: bincount
    x, a: bucketize
    a, x: searchsorted
    x, 3: histogram
    x, (3, 3), (3, 1): as_strided_copy
    x, (3, 3): expand_copy
    x, (1, 0): permute_copy
    x, 0: unbind_copy unsqueeze_copy
    x, 0, 1: torch.select_copy
    x, 1, 0: transpose_copy
    x, 0, 2, 1: unfold_copy
    x, (9,): view_copy
    x, 2: split_copy
    x, [1, 2]: split_with_sizes_copy unsafe_split_with_sizes
    x, 1, 0, 2: narrow_copy
    i, (3, 3): unravel_index
    x, 1: frobenius_norm
    x, y: chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
    x, y: hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    x, y: shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w zeta
    x, 0.5, True: native_dropout torch.feature_dropout
    x, y: isin
    x, 1: multinomial
    a, 2: vander_
    a, 4: stft_
    n: one_hot numpy tolist __array__
    s: indices values coalesce is_coalesced to_dense dense_dim sparse_dim
    s, x: smm spmm dsmm
    k: crow_indices col_indices
    x: to_sparse
    z: imag view_as_real
    q: view_as_complex
    # torch.nn.functional
    c, v: conv1d conv_transpose1d
    d, f: conv2d conv_transpose2d
    e, g: conv3d conv_transpose3d
    c, c, a: conv_tbc
    x, x, c, None: bilinear
    x, a0, a1: torch.nn.functional.batch_norm
    c: torch.nn.functional.instance_norm
    c, None, None, None, None, True, 0.1, 1e-5, False: torch.instance_norm
    c, 2: local_response_norm
    x, None, None, None, None, True, 0.1, 1e-5, False: torch.batch_norm
    x, (3,): layer_norm rms_norm
    d, 1: group_norm
    d, 3: channel_shuffle
    c, 2, 2: lp_pool1d avg_pool1d max_pool1d max_pool1d_with_indices
    d, 2, 2: lp_pool2d avg_pool2d max_pool2d max_pool2d_with_indices
    e, 2, 2: lp_pool3d avg_pool3d max_pool3d max_pool3d_with_indices
    c, 2: adaptive_avg_pool1d adaptive_max_pool1d adaptive_max_pool1d_with_indices
    d, 2: adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_with_indices torch.nn.functional.unfold
    d, (2, 1): adaptive_avg_pool2d adaptive_max_pool2d
    e, 2: adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices
    d, 2, 2: fractional_max_pool2d fractional_max_pool2d_with_indices
    e, 2, 2: fractional_max_pool3d fractional_max_pool3d_with_indices
    r, 2: pixel_shuffle
    h, 2: pixel_unshuffle
    h, -1: glu
    h, 8: interpolate upsample upsample_bilinear upsample_nearest
    x, (1, 1): pad constant_pad_nd
    x, i: torch.embedding
    i, x: torch.nn.functional.embedding
    j, x: torch.nn.functional.embedding_bag
    i, 4: one_hot
    x, x, x: scaled_dot_product_attention
    t, (1, 1, 2, 2): affine_grid
    o, o2: grid_sample
    o, o2, 0, 0, False: grid_sampler grid_sampler_2d
    # torch
    x, 0.0, 1.0: log_normal_ cauchy_ hardtanh hardtanh_
    x, 0.5: geometric_
    x, (2, 2): new_zeros new_ones new_empty
    x, (2, 2), 0.5: new_full
    x, [1.0]: new_tensor
    (2, 3): zeros ones rand randn empty broadcast_shapes
    2, 3: zeros ones rand randn empty
    (2, 3), 1.5: full
    (2, 3), 1: full
    0, 5, (2, 3): randint
    5, (2, 3): randint
    0, 5: range
    5: arange randperm eye hann_window hamming_window bartlett_window blackman_window kaiser_window
    0, 1, 0.5: arange
    0.0, 1.0, 5: linspace logspace
    x, 0.5: full_like
    x, 5: randint_like
    2, 2: tril_indices triu_indices
    [1.0, 2.0]: tensor as_tensor asarray
    [[1, 2], [3, 4]]: tensor
    1: tensor scalar_tensor
    True: tensor
    x: tensor as_tensor asarray
    x, y: normal
    0.0, 1.0, (2, 3): normal
    x, float64: to type
    x, int64: to type
    x, 'cpu': to
    x, 'torch.LongTensor': type
    x, y: to
    (2, 3), (0, 1): empty_permuted
    (2, 3), (3, 1): empty_strided
"""
WITH_NAMES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "chunk": [("x, 2", {"dim": 1})],
    "div": [("x, y", {"rounding_mode": "floor"})],
    "torch.nn.functional.dropout": [("x", {}), ("x", {"inplace": True})],
    "max": [("x", {"dim": 0, "keepdim": True})],
    "torch.linalg.solve_triangular": [("u, x", {"upper": True})],
    "torch.nn.functional.max_pool2d": [("d, 2, 2", {}), ("d, 2", {"return_indices": True})],
    "nonzero": [("x", {}), ("x", {"as_tuple": True})],
    "norm": [("x", {}), ("x", {"dim": 1})],
    "quantile": [("x, 0.5", {"dim": 1})],
    "torch.nn.functional.relu": [("x", {}), ("x", {"inplace": True})],
    "std": [("x", {}), ("x", {"dim": 0, "keepdim": True})],
    "sum": [("x", {"dim": 0}), ("b", {})],
    "unique": [("x", {}), ("x", {"return_counts": True}), ("x", {"return_inverse": True, "return_counts": True})],
    "var": [("x", {}), ("x", {"dim": 0})],
    "zeros": [("2, 2", {"dtype": torch.int64}), ("2, 2", {"requires_grad": True})],
}  # fmt: skip

WHERE = {
    "torch.": torch,
    "torch.Tensor.": torch.Tensor,
    "torch.fft.": torch.fft,
    "torch.linalg.": torch.linalg,
    "torch.nn.functional.": torch.nn.functional,
    "torch.special.": torch.special,
}
ROOT = torch.ones((), requires_grad=True)
NAMED_DTYPES = {"float64": torch.float64, "int64": torch.int64}


def leads(*shape: int) -> torch.Tensor:
    """Numbers between 0 and 1 from which autograd leads to `ROOT`."""
    return torch.rand(shape).mul_(0.8).add_(0.1) * ROOT


def tensors() -> dict[str, torch.Tensor]:
    """The tensors of `ARGUMENTS`."""
    positive = torch.rand(3, 3)
    return {
        "x": leads(3, 3), "y": leads(3, 3), "a": leads(3), "a0": torch.zeros(3), "a1": torch.ones(3), "c": leads(3, 3, 3), "d": leads(1, 3, 4, 4),
        "e": leads(1, 3, 4, 4, 4), "b": torch.rand(3, 3) > 0.5, "n": torch.randint(0, 3, (3, 3)), "m": torch.randint(1, 3, (3, 3)),
        "n1": torch.randint(0, 3, (5,)), "i": torch.tensor([0, 2, 1]), "j": torch.zeros(3, 3, dtype=torch.int64),
        "u": torch.triu(leads(3, 3)) + torch.eye(3), "l": torch.tril(leads(3, 3)) + torch.eye(3), "p": (positive @ positive.T + torch.eye(3)) * ROOT,
        "s": leads(3, 3).detach().to_sparse().coalesce(), "k": torch.rand(3, 3).to_sparse_csr(), "z": torch.complex(leads(3, 3), leads(3, 3)),
        "q": leads(3, 2), "v": leads(3, 3, 2), "f": leads(3, 3, 2, 2), "g": leads(3, 3, 2, 2, 2), "r": leads(1, 4, 2, 2),
        "one": leads(), "h": leads(1, 1, 4, 4), "t": leads(1, 2, 3), "o": leads(1, 1, 3, 3), "o2": leads(1, 2, 2, 2),
    }  # fmt: skip


def calls() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The arguments of each operation, by its name."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for line in ARGUMENTS.splitlines():
        arguments, _, names = line.strip().rpartition(": ")
        if not line.strip().startswith("#"):
            for name in names.split():
                found.setdefault(name, []).append((arguments, {}))
    for name, more in WITH_NAMES.items():
        found.setdefault(name, []).extend(more)
    return found


CALLS = calls()
NOT_CALLED = frozenset("""
    from_numpy from_file from_dlpack frombuffer sparse_coo_tensor sparse_csr_tensor gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh
    rnn_tanh_cell stft istft multi_head_attention_forward fake_quantize_per_channel_affine fake_quantize_per_tensor_affine apply_ map_ map2_ __new__
    register_hook register_post_accumulate_grad_hook record_stream storage untyped_storage names align_to rename as_subclass new xpu cuda
    pin_memory set_ sparse_resize_ new_empty_strided sparse_mask to_padded_tensor orgqr ormqr lu_solve binomial norm_except_dim binary_cross_entropy_with_logits convolution cosine_embedding_loss ctc_loss
    hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss native_batch_norm native_layer_norm native_group_norm
    lobpcg lu_unpack nonzero_static ldl_factor ldl_factor_ex max_unpool1d max_unpool2d
    max_unpool3d fold householder_product tensorsolve tensorinv fftfreq rfftfreq is_set_to empty_quantized float_power_ resize_
    resize_as_ fused_moving_avg_obs_fake_quant grid_sampler_3d
""".split())  # fmt: skip
"""They need what a line of `ARGUMENTS` cannot say: files, other devices, states, functions."""


def described() -> Iterator[tuple[str, str]]:
    """The operations that a row or a function of the stubs describes, and that torch has."""
    names = {*library.known_names(), *(f"torch.Tensor.{name}" for name in TENSOR.fields)}
    for name in sorted(names):
        prefix, _, last = name.rpartition(".")
        real = getattr(WHERE.get(f"{prefix}."), last, None)
        if (
            real is None
            or last in NOT_CALLED
            or (not isinstance(library.find(name), Native) and prefix != "torch.Tensor")
        ):
            continue
        if prefix == "torch.Tensor" and not isinstance(TENSOR.fields[last], Native):
            continue
        if _is_operation(name, real):
            yield f"{prefix}.", last


def _is_operation(name: str, real: Any) -> bool:
    kinds = (
        types.BuiltinFunctionType,
        types.FunctionType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
    )
    effect = (
        TENSOR.fields[name.rpartition(".")[2]] if name.startswith("torch.Tensor.") else library.find(name)
    )
    assert isinstance(effect, Native)
    module = getattr(effect.run, "__self__", effect.run)
    home = type(module).__module__ if hasattr(module, "graph") else getattr(effect.run, "__module__", "")
    return isinstance(real, kinds) and home.rpartition(".")[2] in (
        "creation",
        "functional",
        "in_place",
        "operations",
        "rows",
    )


NOT_DESCRIBED = """
    affine_grid_generator batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats ccol_indices ccol_indices_copy chalf choose_qparams_optimized
    col_indices_copy const_data_ptr crow_indices_copy dequantize dim_order embedding_bag hash_tensor histogramdd hsmm hspmm index indices_copy
    int_repr ipu is_distributed ldl_solve linear_cross_entropy module_load mtia native_channel_shuffle native_norm qscheme resize resize_as
    resize_as_sparse_ row_indices row_indices_copy saddmm slice_inverse sparse_resize_and_clear_ sspaddmm storage_type to_mkldnn values_copy
    view_as_complex_copy view_as_real_copy
"""
"""What the tables leave out: kernels below the layers, and what only old programs call."""
LEFT_OUT = ("fbgemm_", "miopen_", "q_", "quantize", "sym_")


def test_each_operation_that_torch_has_is_described() -> None:
    overridable = torch.overrides.get_overridable_functions()
    missing = []
    for prefix, space in WHERE.items():
        for name in dir(space):
            real = getattr(space, name)
            if (
                name.startswith("_")
                or name.startswith(LEFT_OUT)
                or not any(real is one for one in overridable.get(space, ()))
            ):
                continue
            known = (
                name in TENSOR.fields
                if prefix == "torch.Tensor."
                else not isinstance(library.find(prefix + name), External)
            )
            if not known and name not in NOT_DESCRIBED.split():
                missing.append(prefix + name)
    assert missing == []


@pytest.mark.parametrize(("prefix", "name"), list(described()), ids=lambda part: str(part))
def test_an_operation_does_what_its_row_says(prefix: str, name: str) -> None:
    for text, named in CALLS.get(prefix + name) or CALLS.get(name, [("x", {})]):
        torch.manual_seed(0)
        every = tensors()
        arguments = eval(f"[{text}]", {**every, **NAMED_DTYPES}, {})
        machine = Machine(Program(Layout(str(Path(__file__).parent))))
        root = Tensor(Facts(requires=True), None, PARAMETER)
        given = [abstract(one, root) for one in arguments]
        wanted = {key: abstract(value, root) for key, value in named.items()}
        function = TENSOR.fields[name] if prefix == "torch.Tensor." else library.find(prefix + name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = getattr(WHERE[prefix], name)(*arguments, **named)
        said = call(machine, function, given, wanted, ast.parse("f()").body[0])
        assert differences(result, said) == [], f"{prefix}{name}({text}, {named})"


def abstract(value: Any, root: Tensor) -> Value:
    """What the machine knows of an argument."""
    if isinstance(value, torch.Tensor):
        roots = frozenset({root}) if value.requires_grad else NOTHING
        return Tensor(
            Facts(
                roots,
                requires=value.requires_grad,
                leaf=not roots,
                shape=tuple(value.shape),
                dtype=short(value.dtype),
            )
        )
    if isinstance(value, torch.dtype):
        return External(str(value))
    if isinstance(value, list | tuple):
        make = library.list_of if isinstance(value, list) else library.tuple_of
        return make([abstract(one, root) for one in value])
    return Known(value)


def short(dtype: torch.dtype) -> str:
    """Its name in the tables."""
    return str(dtype).removeprefix("torch.")


def differences(real: Any, said: Value, where: str = "result") -> list[str]:
    """How what torch gives differs from what the machine says."""
    if isinstance(real, torch.Tensor):
        return of_tensors(real, said, where)
    if isinstance(real, list | tuple) and not isinstance(real, torch.Size):
        if isinstance(said, Unknown):
            return []
        if isinstance(said, Sequence) and said.rest is not None:
            return [text for one in real for text in differences(one, said.rest, where)]
        parts = (
            list(said.fields.values())
            if isinstance(said, Object) and said.cls is PARTS
            else list(getattr(said, "items", ()))
        )
        if len(parts) != len(real):
            return [f"{where} has {len(real)} parts, not {len(parts)}"]
        return [
            text
            for index, (one, part) in enumerate(zip(real, parts, strict=True))
            for text in differences(one, part, f"{where}[{index}]")
        ]
    if isinstance(said, Known):
        return [] if said.value == real else [f"{where} is {real!r}, not {said.value!r}"]
    if isinstance(said, Unknown) and said.type in ("int", "float", "bool", "str"):
        return (
            []
            if type(real).__name__ == said.type
            else [f"{where} is a {type(real).__name__}, not a {said.type}"]
        )
    return [f"{where} is {real!r}, and no tensor"] if isinstance(said, Tensor) else []


def of_tensors(real: torch.Tensor, said: Value, where: str) -> list[str]:
    """The same for tensors: the graph, and dtype and shape where the machine claims to know them."""
    if not isinstance(said, Tensor):
        return [f"{where} is a tensor, not {said!r}"]
    facts = said.facts
    found = []
    if facts.open:
        found.append(f"{where} may lead to {facts.open}")
    if bool(facts.roots) != (real.requires_grad and reaches(real)) and not (facts.leaf and facts.requires):
        found.append(f"{where} {'leads' if real.requires_grad else 'does not lead'} to its input")
    if facts.dtype is not None and facts.dtype != short(real.dtype):
        found.append(f"{where} is {real.dtype}, not {facts.dtype}")
    if facts.shape is not None and (
        len(facts.shape) != real.dim()
        or any(
            isinstance(one, int) and one != size for one, size in zip(facts.shape, real.shape, strict=True)
        )
    ):
        found.append(f"{where} has the shape {tuple(real.shape)}, not {facts.shape}")
    return found


def reaches(real: torch.Tensor) -> bool:
    """Whether autograd leads from a tensor to `ROOT`."""
    pending, seen = [real.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        if getattr(node, "variable", None) is ROOT:
            return True
        seen.add(node)
        pending += [one for one, _ in node.next_functions]
    return False
