"""The log-probabilities of distributions."""

from torch import distributions

from ta_runtime.probes.patching import attribute

_KINDS = (
    distributions.Bernoulli,
    distributions.Beta,
    distributions.Categorical,
    distributions.Independent,
    distributions.MultivariateNormal,
    distributions.Normal,
    distributions.OneHotCategorical,
    distributions.TransformedDistribution,
)

PLACES = {"log_prob": tuple(attribute(kind, "log_prob") for kind in _KINDS)}
