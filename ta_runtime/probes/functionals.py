"""Functions of `torch.nn.functional`, which layers and criteria call too: losses, dropout and attention."""

from torch.nn import functional

from ta_runtime.probes.patching import PutOn, attribute, code

_LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
)
_DROPPING = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def _codes(names: tuple[str, ...]) -> tuple[PutOn, ...]:
    """Of those that nobody has replaced by now."""
    functions = [getattr(functional, name) for name in names]
    return tuple(
        code(function)
        for function in functions
        if getattr(function, "__module__", "") == functional.__name__
        and not getattr(function, "__closure__", ())
    )


PLACES = {
    "loss": _codes(_LOSSES),
    "drop": _codes(_DROPPING),
    "attend": (attribute(functional, "scaled_dot_product_attention"),),
}
