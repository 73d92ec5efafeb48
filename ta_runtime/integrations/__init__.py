"""Ways in for those who let a framework train: one module for each, which needs that framework and is needed by none."""

from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.core.errors import UsageError


@contextmanager
def needs(framework: str, *packages: str) -> Iterator[None]:
    """Import a framework inside; `packages` are what it may be called, by default as the framework.

    Raises:
        UsageError: it is not installed; the text says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in (packages or (framework,)):  # it is there, and lacks something itself
            raise
        remedy = f"pip install 'ta-lint[{framework}]'"
        raise UsageError(
            f"ta_runtime.integrations.{framework}: {error.name} is not installed; {remedy}"
        ) from error
