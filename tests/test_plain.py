"""D5: whatever is written as YAML can be read by `yaml.safe_load`, and is what it was."""

import enum
import math
from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from ta_runtime.snapshot.plain import plain, read, read_word

Pair = namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Text(str):
    pass


class Number(int):
    pass


class Ratio(float):
    pass


class Names(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


@dataclass
class Settings:
    lr: float = 0.1
    layers: list[int] = field(default_factory=lambda: [1, 2])


class Strange:
    def __str__(self) -> str:
        return "strange"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None), (True, True), (3, 3), (0.5, 0.5), ("a", "a"), (math.inf, math.inf),
        (torch.__version__, str(torch.__version__)), (Text("a"), "a"), (Number(3), 3), (Ratio(0.5), 0.5),
        (Names(a=Row([1])), {"a": [1]}), ((0.9, 0.999), [0.9, 0.999]), ({3, 1}, [1, 3]), (Pair(1, 2), {"left": 1, "right": 2}),
        (Color.RED, "RED"), (Level.HIGH, "HIGH"), (Path("a/b"), "a/b"), (b"\x01\xff", "01ff"), (1 + 2j, "(1+2j)"),
        (np.float32(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), True), (np.str_("a"), "a"), (np.arange(2), [0, 1]),
        (torch.tensor(1.5), 1.5), (torch.arange(2), [0, 1]), (torch.float16, "float16"), (torch.device("cpu"), "cpu"),
        (torch.Size([2, 3]), [2, 3]), (torch.strided, "strided"), (Settings(), {"lr": 0.1, "layers": [1, 2]}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}), (UserDict(a=1), {"a": 1}), (MappingProxyType({"a": 1}), {"a": 1}),
        ({Color.RED: 1, (1, 2): 2, 3: 4}, {"RED": 1, "[1, 2]": 2, 3: 4}), (Strange(), "strange"), ("caf\udce9", "caf\\udce9"),
        ("off", "off"), ("1.0", "1.0"), ("2026-11-22", "2026-11-22"), ("a\n- b: 'c'\x00\x85", "a\n- b: 'c'\x00\x85"),
    ],
)  # fmt: skip
def test_a_value_of_any_kind_is_written_as_a_plain_one(value: Any, expected: Any) -> None:
    found = plain({"value": value})
    assert found == {"value": expected}
    for dumper in (yaml.SafeDumper, getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
        text = yaml.dump(found, Dumper=dumper, allow_unicode=True)
        assert yaml.safe_load(text.encode()) == found


def test_a_value_that_holds_itself_comes_to_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    yaml.safe_load(yaml.safe_dump(plain(endless)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.01", 0.01), ("(0.9, 0.999)", [0.9, 0.999]), ("[0.9, 0.999]", [0.9, 0.999]), ("None", None), ("True", True),
     ("'a'", "a"), ("inf", math.inf), ("max", "max"), ("[" * 5000, "[" * 5000), ("1e-08", 1e-8)],
)  # fmt: skip
def test_a_hyperparameter_is_read_as_the_value_that_it_was(text: str, expected: Any) -> None:
    """D12: they were strings, `'0.01'`."""
    assert read(text) == expected


def test_a_setting_is_a_number_only_where_it_is_no_version() -> None:
    assert [read_word(text) for text in ("8", "-1", "True", "None", "12.10", "2.13.0", "off")] == [
        8, -1, True, None, "12.10", "2.13.0", "off"
    ]  # fmt: skip
