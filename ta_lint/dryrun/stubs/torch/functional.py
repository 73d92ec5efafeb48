"""What the functions of `torch.nn.functional`, `torch.linalg`, `torch.fft` and `torch.special` do; its losses are in `losses`."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import stub, tuple_of
from ta_lint.dryrun.stubs.torch import dtypes, shapes
from ta_lint.dryrun.stubs.torch.conversions import without
from ta_lint.dryrun.stubs.torch.dtypes import floating, int64, same
from ta_lint.dryrun.stubs.torch.in_place import in_place
from ta_lint.dryrun.stubs.torch.rows import (
    CUTS,
    FLAT,
    FOLLOWS,
    FUNCTION,
    FUNCTIONAL,
    METHOD,
    Row,
    define,
    operand,
    register,
)
from ta_lint.dryrun.stubs.torch.shapes import broadcast, own, unknown
from ta_lint.dryrun.values import Known, Value

LINALG = ("torch.linalg.",)
FFT = ("torch.fft.",)
SPECIAL = ("torch.special.",)
BOTH = (*FUNCTION, *FUNCTIONAL)

define((
    # -- torch.nn.functional ---------------------------------------------------------------------------------------------------
    Row(FOLLOWS, own, floating, "sigmoid tanh", FUNCTIONAL),
    Row(FOLLOWS, own, floating, "softmin", FUNCTIONAL, means="probabilities"),
    Row(FOLLOWS, own, floating, "softsign tanhshrink", FUNCTIONAL),
    Row(FOLLOWS, own, dtypes.unknown, "gumbel_softmax", FUNCTIONAL, means="probabilities"),
    Row(FOLLOWS, own, same, "logsigmoid", FUNCTIONAL, means="log-probabilities"),
    Row(FOLLOWS, own, dtypes.product, "batch_norm instance_norm layer_norm rms_norm group_norm", BOTH),
    Row(FOLLOWS, own, dtypes.product, "local_response_norm normalize", FUNCTIONAL),
    Row(FOLLOWS, own, dtypes.product, "prelu", (*BOTH, *METHOD)),
    Row(FOLLOWS, shapes.embedded, dtypes.of_weight, "embedding", FUNCTIONAL),
    Row(FOLLOWS, unknown, dtypes.of_first, "embedding", FUNCTION),
    Row(FOLLOWS, shapes.linear, dtypes.product, "linear", FUNCTIONAL),
    Row(FOLLOWS, unknown, dtypes.product, "bilinear conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d", BOTH),
    Row(FOLLOWS, unknown, dtypes.unknown, "embedding_bag", FUNCTIONAL),
    Row(FOLLOWS, unknown, dtypes.product, "scaled_dot_product_attention", FUNCTIONAL),
    Row(FOLLOWS, unknown, dtypes.unknown, "multi_head_attention_forward", FUNCTIONAL, parts="*"),
    Row(FOLLOWS, shapes.pooled_to(1), same, "adaptive_avg_pool1d", BOTH),
    Row(FOLLOWS, shapes.pooled_to(2), same, "adaptive_avg_pool2d", FUNCTIONAL),
    Row(FOLLOWS, shapes.pooled_to(3), same, "adaptive_avg_pool3d", FUNCTIONAL),
    Row(FOLLOWS, unknown, same, "avg_pool1d", BOTH),
    Row(FOLLOWS, unknown, same, "avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_unpool1d max_unpool2d max_unpool3d", FUNCTIONAL),
    Row(FOLLOWS, own, same, "channel_shuffle", BOTH),
    Row(FOLLOWS, unknown, same, "fold glu interpolate pad unfold upsample upsample_bilinear upsample_nearest", FUNCTIONAL),
    Row(FOLLOWS, unknown, same, "pixel_shuffle pixel_unshuffle", BOTH),
    Row(FOLLOWS, unknown, dtypes.unknown, "affine_grid grid_sample", FUNCTIONAL),
    Row(FOLLOWS, unknown, dtypes.product, "cosine_similarity pairwise_distance pdist", BOTH),
    Row(CUTS, shapes.classes, int64, "one_hot", FUNCTIONAL),
    Row(FOLLOWS, unknown, same, """
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices
        fractional_max_pool3d_with_indices max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
    """, FUNCTIONAL, parts="output #indices"),
    Row(FOLLOWS, unknown, same, "adaptive_max_pool1d", FUNCTION, parts="output #indices"),
    # -- torch.fft -------------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, unknown, dtypes.unknown, """
        fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn
    """, FFT),
    Row(FOLLOWS, own, same, "fftshift ifftshift", FFT),
    Row(FOLLOWS, unknown, dtypes.unknown, "fftfreq rfftfreq", FFT),
    # -- torch.linalg ----------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, broadcast, same, "cross", LINALG),
    Row(FOLLOWS, unknown, dtypes.unknown, """
        cholesky cond det diagonal eigvals eigvalsh householder_product inv lu_solve matmul matrix_exp matrix_norm matrix_power multi_dot norm
        pinv solve solve_triangular svdvals tensorinv tensorsolve vander vecdot vector_norm
    """, LINALG),
    Row(CUTS, unknown, int64, "matrix_rank", LINALG),
    Row(FOLLOWS, unknown, dtypes.unknown, "cholesky_ex", LINALG, parts="L ~info"),
    Row(FOLLOWS, unknown, dtypes.unknown, "eig eigh", LINALG, parts="eigenvalues eigenvectors"),
    Row(FOLLOWS, unknown, dtypes.unknown, "inv_ex", LINALG, parts="inverse ~info"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lstsq", LINALG, parts="solution residuals ~rank ~singular_values"),
    Row(FOLLOWS, unknown, dtypes.unknown, "ldl_factor", LINALG, parts="LD ~pivots"),
    Row(FOLLOWS, unknown, dtypes.unknown, "ldl_factor_ex", LINALG, parts="LD ~pivots ~info"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lu", LINALG, parts="~P L U"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lu_factor", LINALG, parts="LU ~pivots"),
    Row(FOLLOWS, unknown, dtypes.unknown, "lu_factor_ex", LINALG, parts="LU ~pivots ~info"),
    Row(FOLLOWS, unknown, dtypes.unknown, "qr", LINALG, parts="Q R"),
    Row(FOLLOWS, unknown, dtypes.unknown, "slogdet", LINALG, parts="sign logabsdet"),
    Row(FOLLOWS, unknown, dtypes.unknown, "solve_ex", LINALG, parts="result ~info"),
    Row(FOLLOWS, unknown, dtypes.unknown, "svd", LINALG, parts="U S Vh"),
    # -- torch.special ---------------------------------------------------------------------------------------------------------
    Row(FOLLOWS, own, floating, """
        digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit multigammaln ndtr ndtri psi sinc
    """, SPECIAL),
    Row(FLAT, own, same, "round", SPECIAL),
    Row(FOLLOWS, broadcast, floating, "xlog1py xlogy zeta", SPECIAL),
    Row(FOLLOWS, unknown, floating, "logsumexp", SPECIAL),
    Row(FOLLOWS, own, floating, "log_softmax", SPECIAL, means="log-probabilities"),
    Row(FOLLOWS, own, floating, "softmax", SPECIAL, means="probabilities"),
    Row(FOLLOWS, unknown, dtypes.unknown, "polygamma", ("torch.", "torch.Tensor.", "torch.special.")),
    Row(FOLLOWS, unknown, dtypes.unknown, "gammainc gammaincc", SPECIAL),
    Row(CUTS, own, floating, """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
    """, SPECIAL),
    Row(CUTS, broadcast, floating, """
        chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
        hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
    """, SPECIAL),
    # -- torch, for what lies below layers -------------------------------------------------------------------------------------
    Row(FOLLOWS, unknown, dtypes.unknown, "gru lstm rnn_relu rnn_tanh lstm_cell", FUNCTION, parts="*"),
    Row(FOLLOWS, unknown, dtypes.unknown, "gru_cell rnn_relu_cell rnn_tanh_cell", FUNCTION),
    Row(FOLLOWS, unknown, dtypes.unknown, """
        binary_cross_entropy_with_logits convolution cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss
        poisson_nll_loss triplet_margin_loss
    """, FUNCTION),
    Row(FOLLOWS, unknown, dtypes.unknown, "native_batch_norm native_layer_norm", FUNCTION, parts="output ~mean ~deviation"),
    Row(FOLLOWS, unknown, dtypes.unknown, "native_dropout", FUNCTION, parts="output ~mask"),
    Row(FOLLOWS, unknown, dtypes.unknown, "native_group_norm", FUNCTION, parts="output mean deviation"),
    Row(FOLLOWS, unknown, same, "max_pool1d_with_indices", FUNCTION, parts="output #indices"),
    Row(FOLLOWS, own, dtypes.unknown, "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine", FUNCTION),
))  # fmt: skip

_activated = Row(FOLLOWS, own, same, "")


def activation(made: Call) -> Value:
    """A function of each number, or of the tensor itself with `inplace=True`."""
    if made.constant(99, "inplace", False) is True:
        return in_place(made)
    return _activated.run(made)


register("relu", activation, (*BOTH, *METHOD))
register("celu rrelu selu threshold", activation, BOTH)
register("""
    elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu mish relu6 silu softplus softshrink
""", activation, FUNCTIONAL)  # fmt: skip
register("hardshrink", activation, (*FUNCTION, *METHOD))


def dropped(made: Call) -> Value:
    """Some numbers less, or the tensor itself where nothing is dropped."""
    training = made.constant(2, "training", made.constant(2, "train", True))
    if made.machine.layers and training is True and made.given(2, "training") is not None:
        made.emit("drop", made.machine.layers[0])
    if training is True and made.machine.layers and not made.loose and made.given(2, "training") is None:
        made.emit("dropped", made.machine.layers[-1], share=made.argument(1, "p", 0.5), by=made.name)
    return without(made, operand(made), made.constant(1, "p"), training, activation(made))


register("alpha_dropout dropout feature_alpha_dropout", dropped, BOTH)
register("feature_dropout", dropped, FUNCTION)
register("dropout1d dropout2d dropout3d", dropped, FUNCTIONAL)

_pooled = Row(FOLLOWS, unknown, same, "")


def pooled(made: Call) -> Value:
    """The greatest numbers of each window, with their places if that is asked for."""
    asked = made.constant(99, "return_indices", False)
    result = _pooled.run(made)
    return tuple_of([result, _places.run(made)]) if asked is True else result


_places = Row(CUTS, unknown, int64, "")
register("""
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_pool1d max_pool2d max_pool3d
""", pooled, FUNCTIONAL)  # fmt: skip
register("max_pool1d max_pool2d max_pool3d", pooled, FUNCTION)


@stub("torch.nn.functional.has_torch_function", "torch.overrides.has_torch_function")
def _has_override(made: Call) -> Value:
    return Known(False)
