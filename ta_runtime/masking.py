"""Secrets, and what stands for them in what a run leaves behind, which people show to others."""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

MASK = (
    "*TOKEN*", "*KEY*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*CREDENTIAL*", "*COOKIE*", "*AUTH*",
    "*DSN*", "*CONNECTION_STRING*", "*WEBHOOK*", "*SIGNATURE*",
)  # fmt: skip
"""The names of variables whose values are masked."""

_SECRET = re.compile(
    r"""://[^/\s:@]*:[^/\s@]+@                 # a password in an address
    |-----BEGIN\ |\beyJ[\w-]{10,}\.[\w-]+      # a private key, a signed token
    |\b(?:sk|pk|rk|hf|gh[pousr]|glpat|xox[abeprs]|AKIA|ASIA|AIza|npm|pypi|wandb)[-_A-Za-z0-9]{16,}
    |^(?=[^/]*\d)(?=[^/]*[A-Za-z])[\w+=~.-]{32,}$  # one long word of letters and digits
    """,
    re.VERBOSE,
)
_IN_WORDS = re.compile(  # narrower: names of files and runs are long as well
    r"""://[^/\s:@]*:[^/\s@]+@|-----BEGIN\ |\beyJ[\w-]{10,}\.[\w-]+
    |\b(?:sk|pk|rk|hf|gh[pousr]|glpat|xox[abeprs]|AKIA|ASIA|AIza|npm|pypi)(?:[-_][a-z]+)?[-_]?(?=[a-zA-Z]*\d)[A-Za-z0-9]{16,}
    """,
    re.VERBOSE,
)
_NAME = re.compile(
    r"(?:^|[-_.+~/:])(?:tokens?|secret|password|passwd|pwd|passphrase|credentials?|bearer|cookie|dsn|webhook"
    r"|(?:api|access|secret|private|auth|account|wandb)[-_]?key)$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"[-+.\d]*|<.*>|\[.*\]|true|false|none", re.IGNORECASE
)  # numbers, a tokenizer's `<pad>`


def looks_secret(value: str) -> bool:
    """Whether it has the looks of a key, a signed token or an address with a password."""
    return bool(_SECRET.search(value))


def command(words: Sequence[str]) -> Iterator[str]:
    """The words of a command line; secrets masked.

    Masked is what has the looks of a secret, and the value of an option whose name ends in that of one: `--api-key X`,
    `--api-key=X`, `logger.token=X`. Numbers are not, nor a tokenizer's `<pad>`.
    """
    follows = False
    for word in words:
        name, equals, value = word.partition("=")
        if follows and not word.startswith("-"):
            yield _as_value(word)
        elif equals and _NAME.search(name):
            yield f"{name}={_as_value(value)}"
        else:
            yield masked(word) if _IN_WORDS.search(word) else word
        follows = not equals and word.startswith("-") and bool(_NAME.search(word))


def _as_value(value: str) -> str:
    return value if not value or _HARMLESS.fullmatch(value) else masked(value)


def masked(value: str) -> str:
    """What stands for a secret: equal for equal values, if both were masked with one key.

    The key is random and stays with the user, so that nobody can try out values who only has the folder of a run.
    """
    key = _key()
    digest = hmac.digest(key, value.encode(errors="surrogateescape"), "sha256").hex()
    return f"<masked {digest[:16]}, key {hashlib.sha256(b'ta-lint mask ' + key).hexdigest()[:8]}>"


@cache
def _key() -> bytes:
    """That of this user, made when it is first needed; without a place for it one for this process."""
    home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    path = Path(home) / "ta-lint" / "mask.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as stream:
                stream.write(secrets.token_bytes(32))
        if len(key := path.read_bytes()) >= 32:
            return key
    except (OSError, RuntimeError):  # RuntimeError: nobody knows the home
        pass
    return secrets.token_bytes(32)
