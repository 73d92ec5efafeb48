"""What watches the run: each module here attaches to one part of torch, notes what passes, and lets go again."""

import re
from functools import cache
from importlib import import_module
from importlib.resources import files

from ta_runtime.observers.observer import Observer


@cache
def observers() -> list[type[Observer]]:
    """The observers that a session tells of its steps, in order of name: every `Observer` defined in this folder."""
    names = {
        entry.name[:-3] for entry in files(__name__).iterdir() if re.fullmatch(r"[a-z]\w*\.py", entry.name)
    }
    modules = [import_module(f"{__name__}.{name}") for name in sorted(names - {"observer"})]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Observer) and kind.__module__ == module.__name__
    ]
