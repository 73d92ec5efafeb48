"""Regular expressions that are compiled when first used: there are hundreds, and what one file needs are few."""

import re
from typing import Any, cast


class _Expression:
    """Stands for a compiled expression: the first use of any attribute compiles it, and takes over its methods."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._arguments)
        for method in ("findall", "finditer", "fullmatch", "match", "search", "sub"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, compiled when it is first used; so that is when a mistake in it raises `re.error`."""
    return cast("re.Pattern[str]", _Expression(pattern, flags))
