"""A trace: what a run did, as one stream of events of fixed columns, which `ta-runtime infer` learns from."""

from importlib import import_module
from typing import TYPE_CHECKING

from ta_runtime.extras import needs

if TYPE_CHECKING:
    from ta_runtime.trace.collection import collecting

__all__ = ["collecting"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("pyarrow", "invariants", "a trace is written by pyarrow"):
        value: object = import_module(f"{__name__}.collection").collecting
    globals()[name] = value
    return value
