"""`ta_lint/data/*.toml`: every file is read, and none that is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ta_lint.checks import ta668_column_dropped_before_collator
from ta_lint.core import data, datasets, libraries
from ta_lint.core.data import DataError
from ta_lint.core.toml import parsed
from ta_lint.dryrun.stubs import guess, plain
from ta_lint.facts.torch import symbols, torchvision
from ta_lint.facts.values import differentiation, outputs

FILES = sorted(Path(data.FOLDER).glob("*.toml"))
READERS: dict[str, Any] = {
    "columns.toml": ta668_column_dropped_before_collator._parameters,
    "graphs.toml": differentiation.differentiation,
    "datasets.toml": lambda: datasets.samples_of("torchvision.datasets.MNIST"),
    "libraries.toml": libraries.libraries,
    "names.toml": guess.names,
    "outputs.toml": outputs._table,
    "plain.toml": lambda: plain._PLAIN,
    "torch_symbols.toml": symbols.symbols,
    "torchvision.toml": torchvision._data,
}


def test_every_file_has_a_reader() -> None:
    assert [path.name for path in FILES] == sorted(READERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_read_and_says_what_tomllib_finds_in_it(path: Path) -> None:
    assert READERS[path.name]()
    assert parsed(path.read_text(encoding="utf-8")) == tomllib.loads(path.read_text(encoding="utf-8"))


OF_A_SYMBOL = (
    'deprecated = "1.9"\nremoved = "2.0"\nreplacement = "torch.linalg.eigh"\nreplacement_since = "1.8"\n'
)
WRONG = {
    "libraries.toml": {
        'x = "sometimes"': "x: 'sometimes' is not mentioned or imported",
        "x = 1": "x: 1 is not mentioned or imported",
        '[x]\ny = "imported"': "x: {'y': 'imported'} is not mentioned or imported",
        "x = ": "Invalid value (at line 1, column 5)",
        'x = "imported"\nx = "imported"': "Cannot overwrite a value (at line 2, column 15)",
    },
    "torch_symbols.toml": {
        f'["torch.symeig"]\n{OF_A_SYMBOL}replacment = "x"': "torch.symeig: there is no key 'replacment'; the keys are kind,",
        f'["torch.symeig"]\n{OF_A_SYMBOL}name = "x"': "torch.symeig: there is no key 'name'",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig"]\n{OF_A_SYMBOL}': "Cannot declare ('torch.symeig',) twice (at line 6",
        f'["torch.symeig"]\n{OF_A_SYMBOL}removed = "2.1"': "Cannot overwrite a value (at line 6",
        f'["torch.symeig"]\n{OF_A_SYMBOL}fix = "remove"': "torch.symeig: fix: 'remove' is not rename, nor a table",
        f'["torch.symeig"]\n{OF_A_SYMBOL}fix = "rename"\n["torch.symeig".fix]\nsuffix = ""': "(at line 7, column 20)",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix]\nlast = "x"': "torch.symeig: fix: there is no key 'last'",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix]\npositional = "1"': "torch.symeig: fix: positional: '1' is not a whole number",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix]\npositional = true': "torch.symeig: fix: positional: True is not a whole number",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix]\nparameters = "input"': "torch.symeig: fix: parameters: 'input' is not a list",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix]\nparameters = [1]': "torch.symeig: fix: parameters: 1 is not text",
        f'["torch.symeig"]\n{OF_A_SYMBOL}["torch.symeig".fix.drops]\neigenvectors = true': "torch.symeig: fix: drops: eigenvectors: True is not text",
        f'["torch.symeig"]\n{OF_A_SYMBOL}same_result = "yes"': "torch.symeig: same_result: 'yes' is not true or false",
        f'["torch.symeig"]\n{OF_A_SYMBOL}kind = "function"': "torch.symeig: kind: 'function' is not callable or attribute or method or module",
        '["torch.symeig"]\nremoved = 2.0': "torch.symeig: removed: 2.0 is not text",
        '["torch.symeig"]\n["torch.symeig".removed]\nmajor = 2\nminor = 0': "torch.symeig: removed: {'major': 2, 'minor': 0} is not text",
        '["torch.symeig"]\nremoved = "1.14"': "torch.symeig: removed: '1.14' is no release of torch",
        '["torch.symeig"]\nremoved = "2.0.1"': "torch.symeig: removed: '2.0.1' is no release of torch",
        '["torch.symeig"]\nremoved = "1.09"': "torch.symeig: removed: '1.09' is no release of torch",
        '["torch.symeig"]\ndeprecated = "2.0"\nremoved = "1.9"': "torch.symeig: deprecated: 2.0 is not before removed: 1.9",
        '["torch.symeig"]\nreplacement = "torch.eigh"': "torch.symeig: neither deprecated nor removed nor private",
        '["torch.symeig"]\nremoved = "2.0"\nreplacement = "torch.eigh"': "torch.symeig: replacement and replacement_since: one",
        '["torch.symeig"]\nremoved = "2.0"\nfix = "rename"': "torch.symeig: replacement: missing",
        'torch.symeig = "2.0"': "torch: there is no key 'symeig'",
        "symeig = 2": "symeig: 2 is not a table",
    },
    "graphs.toml": {
        "[methods]": "methods: of_one: missing",
        '[methods]\nof_one = ["abs"]': "methods: of_one: ['abs'] is not text",
        '[methods]\nof_none = "abs"': "methods: there is no key 'of_none'; the keys are of_one, of_several",
    },
    "outputs.toml": {
        '[hands_on]\nall = "clone"': "hands_on: all: 'clone' is not a list",
        '[meanings]\nsoftmax = "chance"': "meanings: softmax: 'chance' is not probability or log-probability or score or",
        "[layer]": "there is no key 'layer'; the keys are hands_on, picks, between, distributions, given_out, ",
    },
    "torchvision.toml": {
        "[weights]\n[backbone_weights]\n[successors]": "renamed_parameters: missing",
        "[builders]": "there is no key 'builders'; the keys are weights, backbone_weights, successors, renamed_parameters",
        '[weights]\nalexnet = "AlexNet_Weights.IMAGENET1K_V1"': "weights: alexnet: 'AlexNet_Weights.IMAGENET1K_V1' is not a table",
        "[successors]\nScale = [1]": "successors: Scale: [1] is not text",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [(file, text, message) for file, wrong in WRONG.items() for text, message in wrong.items()],
)
def test_a_wrong_file_is_refused(
    file: str, text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text(text + "\n")
    monkeypatch.setattr(data, "FOLDER", str(tmp_path))
    data.tables.cache_clear()
    try:
        with pytest.raises(DataError, match=re.escape(message)) as refused:
            READERS[file].__wrapped__()
    finally:
        data.tables.cache_clear()
    assert str(refused.value).startswith(f"{file}: ")


SIMPLE = [
    "a = 1",
    "[a]\nb = 'c\"d'",
    '["a.b".c-d]\ne = ["f"]',
    "",
    "# nothing",
    "[a.b]\nc = 1\n[a]\nd = 1",
    "a.b = 1",
    "a = '''b'''",
]


@pytest.mark.parametrize("text", SIMPLE)
def test_toml_is_read_as_tomllib_reads_it(text: str) -> None:
    assert parsed(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text", ['a = 1}, {"b": 2', 'a = 1, "b": 2', "a=", "[a]\n[a]", "a = 1\n[a]\nb = 1", "a = null"]
)
def test_what_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|line 2|document"):
        parsed(text)
