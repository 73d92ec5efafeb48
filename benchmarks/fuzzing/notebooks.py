"""Notebooks that nobody would write: programs in cells, with all that the format, its dialects and its victims allow."""

import json
import re
from random import Random
from typing import Any

from fuzzing.originals import Originals
from fuzzing.programs import broken, mutated

_MAGICS = """\
%matplotlib inline|!pip install torch|%%time|%%bash|%%capture out|%%writefile x.py|?torch|torch?|files = !ls|%%html|%pip install x
%%timeit -n 1|x = %time y|%%script false --no-raise-error|%sql select 1|%md # a|%%R|  %cd x|!echo {x} \\\n  y|/f x|,f x|;f x|ls -l|>>> x = 1|In [1]: x
%%javascript|%env A=1|%run x.py|%load_ext autoreload|%%wandb|%%prun|    indented = 1|# noqa|%%latex|get_ipython().system("ls")|%%time x = 1|x;|??x""".replace(
    "\n", "|"
).split("|")

_ODD: list[Any] = [
    None,
    1,
    -1,
    1.5,
    True,
    "",
    "x",
    [],
    {},
    [[]],
    {"a": {}},
    "python",
    "\ud800",
    "9" * 50,
    ["a", 1, None],
    "é\u2028",
]

_METADATA: list[Any] = [
    {}, {"language_info": {"name": "python"}}, {"kernelspec": {"name": "python3", "language": "python"}},
    {"language_info": {"name": "python", "version": "3.12.1"}}, {"language_info": {"name": "R"}}, {"kernelspec": {"name": "ir"}},
    {"kernelspec": {"name": "julia-1.9"}}, {"language_info": {"name": "Python", "version": "3"}}, {"language_info": {"version": "3.99.0"}},
    {"application/vnd.databricks.v1+notebook": {"language": "python"}}, {"language_info": "python"}, {"kernelspec": None}, [], None, "x",
]  # fmt: skip


def notebook(programs: list[str], rng: Random, pool: Originals) -> bytes:
    """Some programs as the cells of one notebook, which is then mutated as JSON and written in one of many ways."""
    cells: list[Any] = []
    for program in programs:
        for part in _parts(program, rng):
            cells.append(_cell(part, rng))
    for _ in range(rng.choice([0, 0, 1, 2])):
        cells.insert(rng.randrange(len(cells) + 1), _other_cell(rng))
    if rng.random() < 0.03:
        cells = [_other_cell(rng) for _ in range(rng.randrange(3))]
    metadata = rng.choice(_METADATA) if rng.random() < 0.4 else {"language_info": {"name": "python"}}
    content: Any = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    if rng.random() < 0.12:
        sheets = [{"cells": list(map(_of_version_3, cells)), "metadata": {}}]
        content = {"metadata": metadata, "nbformat": 3, "nbformat_minor": 0, "worksheets": sheets}
    return _written(content, rng)


def mutated_notebook(data: bytes, rng: Random, pool: Originals) -> bytes:
    """A notebook of somebody, some of its cells mutated; its bytes where it is none."""
    try:
        content = json.loads(data)
        cells = [cell for cell in content["cells"] if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return broken(data, rng)
    for cell in cells:
        cell["outputs"] = []
        if rng.random() < 0.5 and isinstance(cell.get("source"), str | list):
            cell["source"] = _source(mutated("".join(cell["source"]), rng, pool), rng)
    if rng.random() < 0.7:
        content["cells"] += [_cell(part, rng) for part in _parts(mutated(pool.block(rng), rng, pool), rng)]
    return _written(content, rng)


def _parts(program: str, rng: Random) -> list[str]:
    """A program cut where a statement begins at the margin, most of the time."""
    parts = [""]
    for line in program.split("\n"):
        if line[:1].strip() and line[0] not in ")]}#" and rng.random() < 0.3:
            parts.append("")
        parts[-1] += line + "\n"
    return [part if rng.random() < 0.3 else part.rstrip("\n") for part in parts]


def _cell(text: str, rng: Random) -> Any:
    if rng.random() < 0.15:
        lines = text.split("\n")
        lines.insert(0 if rng.random() < 0.5 else rng.randrange(len(lines) + 1), rng.choice(_MAGICS))
        text = "\n".join(lines)
    if rng.random() < 0.05:
        text = text.replace("\n", rng.choice(["\r\n", "\r", "\u2028", "\x0c\n", "\x85", "\x1e"]))
    if rng.random() < 0.03:
        place = rng.randrange(len(text) + 1)
        text = (
            text[:place]
            + rng.choice(["\ud800", "\0", "\ufeff", "😀", "\u2029", "# next cell\n\n", "  # IPython: x"])
            + text[place:]
        )
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": f"{rng.randrange(16**8):08x}",
        "metadata": {},
        "outputs": [],
    }
    if rng.random() < 0.05:
        cell["metadata"] = rng.choice([{"vscode": {"languageId": rng.choice(["python", "r", "sql"])}}, *_ODD])
    return {**cell, "source": _source(text, rng)}


def _source(text: str, rng: Random) -> str | list[Any]:
    """As one string, as its lines, or as nobody would cut it."""
    what = rng.random()
    if what < 0.25:
        return text
    if what < 0.9:
        return re.findall(r"[^\n]*\n|[^\n]+", text)
    if what < 0.93:
        return [text]
    if what < 0.96:
        return text.split("\n")
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def _other_cell(rng: Random) -> Any:
    """What is no code, or hardly a cell."""
    markdown = {"cell_type": "markdown", "metadata": {}, "source": ["# torch\n", "```\nloss.backward()\n```"]}
    empty = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "source": rng.choice(["", [], "\n", ["", "\n"], " ", "#", "# noqa"]),
    }
    return rng.choice([markdown, markdown, empty, empty, {**markdown, "cell_type": "raw"}, *_ODD, {"cell_type": "code"}, {"source": "x"},
                       {**empty, "source": rng.choice(_ODD)}, {**empty, "source": ["import torch\n", rng.choice(_ODD)]}])  # fmt: skip


def _of_version_3(cell: Any) -> Any:
    if not isinstance(cell, dict) or "source" not in cell:
        return cell
    return {("input" if key == "source" else key): value for key, value in cell.items()} | {
        "language": "python"
    }


def _written(content: Any, rng: Random) -> bytes:
    if rng.random() < 0.1:
        _disturb(content, rng)
    text = json.dumps(
        content, indent=rng.choice([None, 0, 1, 1, 1, 2, 4, "\t"]), ensure_ascii=rng.random() < 0.5
    )
    if rng.random() < 0.03:  # a key twice
        key = rng.choice(['"source"', '"cells"', '"cell_type"', '"metadata"', '"nbformat"'])
        value = rng.choice(["[]", "null", '"code"', "{}", '["import torch"]'])
        text = text.replace(key, f"{key}: {value}, {key}", rng.choice([1, -1]))
    if rng.random() < 0.05:
        text = text.replace("torch", "\\u0074orch", rng.choice([1, -1]))
    if rng.random() < 0.04:
        text = text.replace("\n", "\r\n")
    if rng.random() < 0.03:
        text = "\ufeff" + text
    if rng.random() < 0.5:
        text += "\n"
    data = text.encode("utf-8", "surrogatepass")
    return broken(data, rng) if rng.random() < 0.06 else data


def _disturb(content: Any, rng: Random) -> None:
    """One value somewhere becomes another, or goes."""
    here: Any = content
    while True:
        keys: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and rng.random() < 0.7:
            here = here[key]
        elif rng.random() < 0.3:
            del here[key]
            return
        else:
            here[key] = rng.choice(_ODD)
            return
