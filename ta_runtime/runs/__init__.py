"""The folder of a run: what was measured, digested and found, to be looked at and compared later.

`Run` reads one and needs no torch; `RunWriter` writes one. Both load pyarrow, when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ta_runtime.extras import needs

if TYPE_CHECKING:
    from ta_runtime.runs.reader import Run
    from ta_runtime.runs.writer import RunWriter

__all__ = ["Run", "RunWriter"]

_MODULES = {"Run": "reader", "RunWriter": "writer"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("pyarrow", "record", "a run is recorded and read by pyarrow"):
        value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
