"""What is not installed with the package: libraries that come with its extras."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from ta_lint.core.errors import UsageError

_PACKAGES = {"mlflow": "mlflow-skinny", "yaml": "pyyaml"}
_asked: ContextVar[str] = ContextVar("asked", default="")


def asked_for(extra: str) -> None:
    """Name the extra that holds all that the command needs which runs now: then no library of it is asked for by another."""
    _asked.set(extra)


def remedy(library: str, extra: str) -> str:
    """What to do about a library that is missing: install the command's extra if it holds it, else this one."""
    asked = _asked.get()
    extra = asked if asked and _PACKAGES.get(library, library) in _packages(asked) else extra
    return f"there is no {library}; install it by `pip install 'ta-lint[{extra}]'`"


def need(library: str, extra: str) -> None:
    """Find out whether a library is installed, without loading it.

    Raises:
        UsageError: it is not; the text says what to install.
    """
    if find_spec(library) is None:
        raise UsageError(remedy(library, extra))


@contextmanager
def needs(library: str, extra: str, why: str = "") -> Iterator[None]:
    """Import a library inside. `why` stands before the text, such as the module that needs it.

    Raises:
        UsageError: it is not installed; the text says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != library:  # it is there, and lacks something itself
            raise
        text = remedy(library, extra)
        raise UsageError(f"{why}: {text}" if why else text) from error


def _packages(extra: str) -> set[str]:
    """The names of the packages that an extra installs."""
    from packaging.requirements import Requirement  # only when something is missing

    try:
        wanted = [Requirement(line) for line in requires("ta-lint") or ()]
    except PackageNotFoundError:  # a source tree on the path
        return set()
    return {
        re.sub(r"[-_.]+", "-", each.name).lower()
        for each in wanted
        if each.marker is not None and each.marker.evaluate({"extra": extra})
    }
