"""`torch.nn.utils.spectral_norm`, which hooks the forward passes of a layer."""

from torch.nn.utils.spectral_norm import SpectralNorm, SpectralNormLoadStateDictPreHook

from ta_runtime.probes.patching import attribute

PLACES = {
    "build_spectral_norm": (attribute(SpectralNorm, "__init__"),),
    "apply_spectral_norm": (attribute(SpectralNorm, "__call__"),),
    "load_spectral_norm": (attribute(SpectralNormLoadStateDictPreHook, "__call__"),),
}
