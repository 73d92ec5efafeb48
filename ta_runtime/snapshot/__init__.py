"""Snapshots of a training: what each tensor and setting was, to find where two runs part.

with Snapshots("runs/a", schedule="first 3, every 1000"):
    train()
"""

from ta_runtime.snapshot.introspection import to_yaml
from ta_runtime.snapshot.snapshots import Snapshots

__all__ = ["Snapshots", "to_yaml"]
