"""Regular expressions that are compiled on first use: of the hundreds there are, one file needs few."""

import re
from typing import Any, cast


class _Expression:
    """Stands in for a compiled pattern: the first access to an attribute compiles it and copies its methods."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._arguments)
        for method in ("findall", "finditer", "fullmatch", "match", "search", "sub"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compiled on first use, which is also when a mistake raises `re.error`."""
    return cast("re.Pattern[str]", _Expression(pattern, flags))
