"""Names of files: how they are put together, and what is found under a pattern."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.library import find, list_of, method, stub
from ta_lint.dryrun.sources import Pieces, pieces_of, text
from ta_lint.dryrun.values import DATA, Class, Known, Object, Unknown, Value

PATH = find("pathlib.Path")
assert isinstance(PATH, Class)


def _joined(parts: list[Value]) -> Value:
    pieces = [piece for part in parts for piece in (Known("/"), part)]
    return text(*pieces[1:])


@stub("os.path.join")
def _join(made: Call) -> Value:
    return _joined(made.args)


@stub("os.path.abspath", "os.path.expanduser", "os.path.expandvars", "os.path.normpath", "os.path.realpath", "os.fspath")  # fmt: skip
def _same(made: Call) -> Value:
    return text(made.args[0])


@method(PATH, "__new__")
def _path(made: Call) -> Value:
    cls = made.own(Class)
    return (
        Unknown("a path", DATA, source=Pieces((_joined(made.args[1:]),)))
        if cls is PATH
        else Object(cls, made.place)
    )


@stub("glob.glob", "glob.iglob")
def _glob(made: Call) -> Value:
    return list_of((), _found(made.argument(0, "pathname")))


def _found(pattern: Value) -> Value:
    """The name of a file that is found under a pattern."""
    anything = Unknown("a part of a name", "str")
    pieces = [anything if one in ("*", "?") else one for one in pieces_of(pattern)]
    known = [Known(one) if isinstance(one, str) else one for one in pieces]
    return Unknown("a file that is found", "str", source=Pieces(tuple(known)))
