"""Secrets, and what stands for them in what a run leaves behind, which people show to others.

A secret is told by the name of what it is set to (`DB_PASS`, `--hf-token`, `"private_key"`) or by its shape (`ghp_...`, a
password in an address, `Authorization: Bearer ...`). Only the secret itself is masked, where it can be told apart, so that the
rest stays of use. A name is read by whole words: `--max-tokens`, `--key-frames` and `TOKENIZERS_PARALLELISM` are no secrets.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from ta_lint.core.keys import user_key

# -- what names tell ------------------------------------------------------------------------------------------

_PASSWORDS = frozenset(
    "pass passcode passphrase passwd password pw pwd secret secrets sshpass userpwd".split()
)
_TELLING = _PASSWORDS | frozenset(
    "apikey bearer cookie cookies credential credentials dsn jwt pat sas sig signature token webhook".split()
)
"""A name that ends in one of these is that of a secret, whatever its value, unless that is a number or a path."""
_ENDINGS = ("apikey", "credentials", "passphrase", "passwd", "password", "secret", "webhook")
"""The same of a last word that ends so, as in `PGPASSWORD`."""
_HINTING = _TELLING | frozenset("auth hook key keys login p pin session tokens".split())
"""A name with one of these is that of a secret if its value looks made up by a machine."""
_OF_KEYS = frozenset(
    "access account api auth client encryption license master private secret service shared signing ssh subscription".split()
)
"""What comes before `key` in the name of a secret; a variable in capitals that ends in `KEY` is taken for one as well."""
_OF_TEXT = frozenset(
    "assistant audio begin blank bos cls context end eod eom eos eot fim first forced image img initializer last mask max min n new"
    " newline next num pad padding per placeholder prefix prompt role sep separator sos special start stop suffix system think tool"
    " trigger unk unknown video vocab word".split()
)
"""What comes before `token` in the name of a piece of text."""
_TRAILING = frozenset("b64 base base64 env id str value".split())
"""Words at the end of a name that are not what it is about, as in `AWS_ACCESS_KEY_ID`."""
_USERS = frozenset("auth login u user userpwd".split())
"""Names whose value may be a user and a password: `--user me:hunter2`."""
_OF_DIGESTS = frozenset(
    "build checksum commit data dataset digest fingerprint guid hash id image job md5 model ref rev revision run sha sha1"
    " sha256 tag uid uuid version".split()
)
"""Words of variables that say why a value is a long hexadecimal number."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# -- what values tell -----------------------------------------------------------------------------------------

_HARMLESS = re.compile(r"[-+.\deE]*|<.*>|\[.*\]|true|false|none|null|yes|no|on|off", re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}")  # of a password, it may be one
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+ -]+)+[/\\]?|[\w-]+\.(?:env|json|key|pem|toml|txt|ya?ml)"
)
_LONG_NUMBER = re.compile(r"[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MADE_OF = re.compile(r"[-A-Za-z0-9+/=_~.!$%^*#]{8,}")
_CAMEL = r"(?:[AEIOU][a-z]{2,}|[A-Z](?=[a-z]*[aeiouy])[a-z]{2,})"
_NATURAL = re.compile(
    rf"\d*(?:[a-z]*|[A-Z]*|[a-z]*{_CAMEL}+[A-Z]{{0,3}})\d*[a-z]?"
)  # `LlamaForCausalLM`, `resnet50d`
_BETWEEN = re.compile(r"[-_.]")

_KEYS = re.compile(
    r"""-----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----(?:.*?-----END\ [A-Z ]{0,40}-----|.*)
    |\beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]+)?                       # a signed token
    |\b(?:hf|gh[pousr]|npm|r8|gsk)_[A-Za-z0-9]{28,}|\bdckr_pat_[\w-]{20,}|\bnvapi-[\w-]{30,}
    |\bgithub_pat_\w{30,}|\bglpat-[\w-]{18,}|\bxox[a-z]-[\w-]{10,}|\bpypi-[\w-]{30,}
    |\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}
    |\bsk-(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{20,}|\b[prs]k_(?:live|test)_[A-Za-z0-9]{16,}
    |\b\d{8,10}:AA[\w-]{30,}                                    # of a bot of Telegram
    """,
    re.VERBOSE | re.DOTALL,
)
_HOOK = re.compile(
    r"(https?://(?:hooks\.slack\.com/\w+|(?:\w+\.)?discord(?:app)?\.com/api/webhooks)/)([\w/-]+)"
)
_IN_ADDRESS = re.compile(r"(://[^/\s:@]{0,200}:)([^/\s]+)(?=@)|(://)([^/\s:@]+)(?=@)")
_SCHEME = re.compile(r"\b((?:bearer|basic|token)\s+)([-A-Za-z0-9+/=._~]{8,})", re.IGNORECASE)
_QUOTED = re.compile(r"""((["'])([\w. -]{1,80})\2\s*:\s*)(["'])((?:(?!\4)[^\\]|\\.)+)(?=\4)""")
_PAIR = re.compile(r"((?:^|(?<=[?&;,\s(]))([\w.-]{1,80})=)(['\"]?)([^&;,\s'\")]+)")
_LINE = re.compile(r"(^[ \t]*([\w-]{1,80}):[ \t]+)()(\S+)[ \t]*$", re.MULTILINE)
_OPTION = re.compile(r"((?:^|(?<=[\s'\"]))--?([A-Za-z][\w.-]{0,80})[ \t]+)([^\s'\"-][^\s'\"]*)")
_ASSIGNED = re.compile(r"([-+~]*[\w.:/@-]+)=(.*)", re.DOTALL)


def variable(name: str, value: str) -> str:
    """The value of an environment variable; secrets masked.

    A long hexadecimal number is one as well, unless a word of the name says that it is a digest or an identity.
    """
    kept = setting(name, value)
    if kept == value and _LONG_NUMBER.fullmatch(value) and not _OF_DIGESTS & set(_words(name)):
        return masked(value)
    return masked(value) if kept == value and _random(value) else kept


def command(words: Sequence[str]) -> Iterator[str]:
    """The words of a command line; secrets masked.

    The name of a value is the option before it, or what stands before `=`: `--api-key X`, `--api-key=X`, `logger.token=X`.
    """
    option = ""
    for word in words:
        if option and not word.startswith("-"):
            yield setting(option, word)
            option = ""
        elif (found := _ASSIGNED.fullmatch(word)) is not None and "://" not in found[1]:
            yield f"{found[1]}={setting(found[1], found[2])}"
            option = ""
        else:
            yield text(word)
            option = word if word.startswith("-") else ""


def setting(name: str, value: str) -> str:
    """A value by its name; secrets masked."""
    if not value or "<masked" in value:  # it was done before
        return value
    words = _words(name)
    head = next((word for word in reversed(words) if word not in _TRAILING and not word.isdigit()), "")
    if _NUMBER.fullmatch(value):
        return masked(value) if head in _PASSWORDS - {"pass"} or head == "pin" else value
    if _HARMLESS.fullmatch(value):
        return value
    kept = text(value)
    if _tells(name, words, head):
        if _is_path(value, 8) or (words == ["pwd"] and _PATH.fullmatch(value)):  # where the shell is
            return value
        in_part = kept != value and ("://" in value or " " in value) and head not in _PASSWORDS
        return kept if in_part else masked(value)
    if kept != value:
        return kept
    if head in _USERS and (pair := re.fullmatch(r"([^:/\s]+):(\S*[^\d\s]\S*)", value)) is not None:
        return f"{pair[1]}:{masked(pair[2])}"
    return masked(value) if _HINTING & set(words) and _made_up(value) else kept


def text(value: str) -> str:
    """Any text; what has the shape of a secret masked, and what is written beside a name that tells.

    That is `name=value`, `"name": "value"`, `Name: value` on a line of its own, and the options of a command line.
    """
    if len(value) < 8:
        return value
    if value[0] in "{[" and (parsed := _parsed(value)) is not None:
        kept = nested(parsed)
        return value if kept == parsed else json.dumps(kept, ensure_ascii=False)
    found = _KEYS.sub(lambda match: masked(match[0]), value)
    found = _HOOK.sub(lambda match: match[1] + masked(match[2]), found)
    found = _IN_ADDRESS.sub(_of_address, found)
    found = _SCHEME.sub(
        lambda match: match[1] + (masked(match[2]) if _made_up(match[2]) else match[2]), found
    )
    found = _QUOTED.sub(lambda match: match[1] + match[4] + _beside(match[3], match[5]), found)
    found = _PAIR.sub(lambda match: match[1] + match[3] + _beside(match[2], match[4]), found)
    found = _LINE.sub(lambda match: match[1] + _beside(match[2], match[4]), found)
    return _OPTION.sub(lambda match: match[1] + setting(match[2], match[3]), found)


def nested(value: Any, name: str = "") -> Any:
    """What JSON can say, its texts masked by the names of what they lie in."""
    if isinstance(value, str):
        return setting(name, value) if name else text(value)
    if isinstance(value, dict):
        return {key: nested(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [nested(item, name) for item in value]
    return value


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _tells(name: str, words: list[str], head: str) -> bool:
    """Whether a name is that of a secret, whatever its value."""
    before = next((word for word, after in pairwise(words) if after == head), "")
    if head == "key":
        return before in _OF_KEYS or name.isupper()
    if head == "token" and (before in _OF_TEXT or words[-1] == "id"):
        return False
    return head in _TELLING or head.endswith(_ENDINGS)


def _beside(name: str, value: str) -> str:
    """The value that a text has beside a name. It may be prose or data: but for passwords it has to look made up."""
    words = _words(name) or [""]
    certain = words[-1] in _PASSWORDS - {"pass", "secret", "secrets"} or words[-1].endswith(_ENDINGS)
    likely = _HINTING & set(words) and (_made_up(value) or (words[-1] in _USERS and ":" in value))
    return setting(name, value) if certain or likely else value


def _of_address(found: "re.Match[str]") -> str:
    if found[1] is not None:
        return found[1] + masked(found[2])
    is_name = len(found[4]) < 16 and not _made_up(found[4])  # `ssh://git@...`
    return found[3] + (found[4] if is_name else masked(found[4]))


def _made_up(value: str) -> bool:
    """Whether a value is one word, and not of words of a language and numbers, such as `clip_grad_norm` and `resnet50`."""
    if not _MADE_OF.fullmatch(value) or _HARMLESS.fullmatch(value) or _is_path(value, 20):
        return False
    if _LONG_NUMBER.fullmatch(value):
        return True
    return _changes(value) >= 2 and not _natural(value)


def _is_path(value: str, length: int) -> bool:
    """Whether a value is a path, no part of which is so long and made up: a secret may have a slash in it, or begin with one."""
    parts = re.split(r"[/\\]", value)
    is_deep = len(parts) > 2 or "." in parts[-1]
    return (
        is_deep
        and bool(_PATH.fullmatch(value))
        and all(len(part) < length or _natural(part) for part in parts)
    )


def _natural(value: str) -> bool:
    """Whether it is of words of a language and numbers."""
    return all(_NATURAL.fullmatch(part) for part in _BETWEEN.split(value))


def _random(value: str) -> bool:
    """Whether a value is one long word of capitals, small letters and digits in no order: hardly a name."""
    word = value.rstrip("=")
    if len(word) < 20 or not word.isalnum() or word.isupper() or word.islower() or not re.search(r"\d", word):
        return False
    return _changes(word) >= 0.45 * len(word) and 10 * len(re.findall(r"[A-Z][a-z]{3}", word)) < len(word)


def _changes(value: str) -> int:
    """How often a capital, a small letter and a digit follow one another."""
    return sum(_kind(a) != _kind(b) for a, b in pairwise(filter(str.isalnum, value)))


def _kind(letter: str) -> int:
    return 0 if letter.isdigit() else 1 if letter.isupper() else 2


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def masked(value: str) -> str:
    """What stands for a secret: equal for equal values, if both were masked with one key.

    The key is random and stays with the user, so that nobody can try out values who only has the folder of a run.
    """
    key = _key()
    digest = hmac.digest(key, value.encode(errors="surrogateescape"), "sha256").hex()
    return f"<masked {digest[:16]}, key {hashlib.sha256(b'ta-lint mask ' + key).hexdigest()[:8]}>"


@cache
def _key() -> bytes:
    """That of this user; without a place for it one for this process."""
    try:
        return user_key("mask.key")
    except OSError:
        return secrets.token_bytes(32)
