"""What every page of ours begins with: one palette, light and dark, and one frame; it needs nothing else, from anywhere."""

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from ta_lint.core.files import encodable

_CODE = re.compile(r"`([^`]+)`")


def page(title: str, style: str, body: str, scripts: Sequence[str] = ()) -> str:
    """A page of HTML: `style` follows the sheet that all have, and no other scripts than these may run."""
    base = Path(__file__).with_name("base.css").read_text(encoding="utf-8")
    return encodable(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{base}{style}</style>\n</head>\n<body>\n{body}\n"
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body>\n</html>\n"
    )


def marked(text: str) -> str:
    """The text of a finding or a rule as HTML: what stands in back-ticks is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _policy(scripts: Sequence[str]) -> str:
    """What a browser lets the page do: run these scripts and no other, and ask nobody for anything."""
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return f"default-src 'none'; script-src {hashes or chr(39) + 'none' + chr(39)}; style-src 'unsafe-inline'; img-src data: blob:"
