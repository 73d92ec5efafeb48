"""Models that are put into training and into evaluation mode."""

from torch import nn

from ta_runtime.probes.patching import attribute

PLACES = {"train": (attribute(nn.Module, "train"),), "eval": (attribute(nn.Module, "eval"),)}
