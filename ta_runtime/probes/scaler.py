"""Gradient scalers: what they scale, unscale, step and update."""

from torch.amp import GradScaler

from ta_runtime.probes.patching import attribute

PLACES = {
    "scale": (attribute(GradScaler, "scale"),),
    "unscale": (attribute(GradScaler, "unscale_"),),
    "scaler_step": (attribute(GradScaler, "step"),),
    "update": (attribute(GradScaler, "update"),),
}
