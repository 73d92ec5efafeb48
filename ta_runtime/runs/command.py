"""The command line of a recorded run, as whoever typed it would know it again."""

from collections.abc import Sequence
from pathlib import PurePath


def typed(words: Sequence[object]) -> list[str]:
    """The words without the path of the interpreter, and without the interpreter where it runs a command of ours."""
    found = [str(word) for word in words]
    if not found:
        return []
    interpreter, *rest = found
    if rest[:2] == ["-m", "ta_runtime"]:
        return ["ta-runtime", *rest[2:]]
    if rest and PurePath(rest[0]).stem == "ta-runtime":
        return ["ta-runtime", *rest[1:]]
    return [PurePath(interpreter).name, *rest]
