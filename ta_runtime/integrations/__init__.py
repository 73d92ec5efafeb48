"""Ways in for those who let a framework train: one module for each, which needs that framework and is needed by none."""

from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.core.errors import UsageError


@contextmanager
def needs(framework: str) -> Iterator[None]:
    """Import a framework inside.

    Raises:
        UsageError: it is not installed; the text says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != framework:  # it is there, and lacks something itself
            raise
        remedy = f"install it by `pip install 'ta-lint[{framework}]'`"
        raise UsageError(f"ta_runtime.integrations.{framework}: there is no {framework}; {remedy}") from error
