"""What is not installed with the package: libraries that come with its extras."""

from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.core.errors import UsageError


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
        text = f"there is no {library}; install it by `pip install 'ta-lint[{extra}]'`"
        raise UsageError(f"{why}: {text}" if why else text) from error
