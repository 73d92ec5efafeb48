"""Turns notebook cells with IPython syntax into Python, line for line, and recognises cells in other languages.

IPython's own transformer is heavy and does not keep lines; the tests compare with it.
"""

import ast
import io
import re
import tokenize
import warnings

from ta_lint.core.lines import LINE_END

# Magics that run the rest of their cell as Python in this process; others run another language or another process.
_PYTHON_MAGICS = re.compile(r"%%(?:capture|prun|time|timeit|wandb)\b")

# Magics whose cells cannot define names for later cells.
_NAMELESS_MAGICS = re.compile(
    r"%%(?:bash|cmd|file|html|javascript|js|latex|markdown|perl|ruby|script|sh|shell|svg|writefile)\b"
    r"(?!.*--(?:out|err|proc)\b)",
    re.IGNORECASE,
)

# On Databricks, a magic with one percent sign switches the language of the whole cell.
_DATABRICKS = re.compile(r"%(?:fs|md|md-sandbox|r|scala|sh|sql)\b(?P<more>.*)")

# Magics that IPython accepts without the percent sign, in a cell of one line.
_AUTOMAGIC = re.compile(
    r"(?:cat|cd|conda|cp|env|less|ll|load|load_ext|ls|mamba|man|matplotlib|mkdir|more|mv|pip|reload_ext|rm|rmdir|run"
    r"|time|timeit|uv|who|whos)[ \t].*"
)

# `%matplotlib`, `!pip`, `?help`, `help?`, the prefixes of automatic calls, and `files = !ls`.
_MAGIC = re.compile(r"(?P<indent>\s*)(?:[%!?/,;].*|%{0,2}[^\W\d][\w.*\[\]'\"]*\?{1,2}\s*)")
_ASSIGNED_MAGIC = re.compile(r"(?P<indent>\s*)(?P<target>[^\W\d][\w., \[\]'\"]*?)\s*=\s*[%!].*")

_PROMPT = re.compile(r">>> |In \[\d+\]: ")  # prompts of a pasted session
_CLOSING = re.compile(r"[\"')\]}]")


def as_python(source: str, mark: str) -> str | None:
    """The cell as Python, line for line; None if it is in another language or runs elsewhere.

    `mark` begins the comment that holds a line only IPython understands.
    """
    lines, ends = LINE_END.split(source), [*LINE_END.findall(source), ""]
    filled = [line for line in lines if line.strip()]
    code = [line for line in filled if not line.lstrip().startswith("#")]  # Colab: a title above the magic
    if filled[0][0].isspace() or _PROMPT.match(filled[0]):  # IPython removes these
        return None
    body_is_python = code and _PYTHON_MAGICS.match(code[0]) and not (code[1:] and code[1][0].isspace())
    if code and code[0].startswith("%%") and not body_is_python:
        return None
    if code and _is_of_databricks(code):
        return None
    if len(filled) == 1 and _AUTOMAGIC.fullmatch(filled[0]) and refusal(source) is not None:
        done = [f"pass{mark}{line}" if line.strip() else line for line in lines]
        return "".join(map(str.__add__, done, ends))
    if not any(map(_magic, lines)) or refusal(source) is None:
        return source
    done = []
    begin = seen = 0  # number of lines done before the current statement, and at its last bracket check
    is_open = False
    indent: str | None = None  # of a magic that continues on the next line
    for line in lines:
        magic = _magic(line) if indent is None and not "".join(done[-1:]).endswith("\\") else None
        if magic is not None:
            if not is_open or any(map(_CLOSING.search, done[seen:])):
                is_open = _is_open(done[begin:])
            seen = len(done)
            begin = begin if is_open else seen
            magic = None if is_open else magic
            indent = magic["indent"] if magic is not None else None
        if indent is None:
            done.append(line)
            continue
        target = magic.groupdict().get("target") if magic is not None else None
        statement = f"{target} = get_ipython()" if target is not None else "pass"
        done.append(f"{indent}{statement}{mark}{line}")
        if not line.endswith("\\"):
            indent = None
    return "".join(map(str.__add__, done, ends))


def leaves_no_names(source: str) -> bool:
    """Whether a cell that is not Python certainly defines no names for other cells."""
    return _NAMELESS_MAGICS.match(source.lstrip()) is not None


def _magic(line: str) -> re.Match[str] | None:
    return _MAGIC.fullmatch(line) or _ASSIGNED_MAGIC.fullmatch(line)


def _is_of_databricks(code: list[str]) -> bool:
    """Whether a Databricks magic at the top of a cell switches its language."""
    found = _DATABRICKS.fullmatch(code[0].rstrip())
    if found is None or not code[1:]:
        return False
    return not found["more"] or refusal("\n".join(code[1:])) is not None


def refusal(text: str) -> SyntaxError | None:
    """Why Python cannot parse a text; also None if it is too large for the parser, which the engine reports."""
    tree = parsed(text)
    return tree if isinstance(tree, SyntaxError) else None


def parsed(text: str) -> ast.Module | SyntaxError | None:
    """The tree of a text, or the error if Python cannot parse it; None if it is too large for the parser."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return None


def _is_open(lines: list[str]) -> bool:
    """Whether a bracket or a string is still open after these lines."""
    text = "\n".join(map(str.lstrip, lines))  # indentation opens no bracket, and may be inconsistent
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            pass
    except tokenize.TokenError:
        return True
    except SyntaxError:
        return False
    return False
