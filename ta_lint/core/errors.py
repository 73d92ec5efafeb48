"""What went wrong, said so that the user can mend it."""


class UsageError(Exception):
    """A mistake in what the user gave: the message names the file or key and the remedy. Exit status 2."""


def oneline(error: BaseException) -> str:
    """The first line of an exception's text, or its class name: never a page of it."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
