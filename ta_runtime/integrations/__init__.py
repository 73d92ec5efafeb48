"""Ways in for those who let a framework train: one module for each, which needs that framework and is needed by none."""

from contextlib import AbstractContextManager

from ta_runtime import extras


def needs(framework: str) -> AbstractContextManager[None]:
    """Import a framework inside.

    Raises:
        UsageError: it is not installed; the text says what to install.
    """
    return extras.needs(framework, framework, f"ta_runtime.integrations.{framework}")
