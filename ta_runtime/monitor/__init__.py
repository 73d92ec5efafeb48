"""Metrics of activations, parameters and gradients, step by step."""

from ta_runtime.monitor import statistics
from ta_runtime.monitor.attention import (
    attention_entropy,
    monitor_scaled_dot_product_attention,
    watch_attention,
)
from ta_runtime.monitor.mixin import MonitorMixin
from ta_runtime.monitor.monitor import ModuleMonitor
from ta_runtime.monitor.refined_coordinate_check import RefinedCoordinateCheck
from ta_runtime.monitor.storage import StorageManager

__all__ = [
    "ModuleMonitor",
    "MonitorMixin",
    "RefinedCoordinateCheck",
    "StorageManager",
    "attention_entropy",
    "monitor_scaled_dot_product_attention",
    "statistics",
    "watch_attention",
]
