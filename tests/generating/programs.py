"""Whole training scripts: data, models, optimizers, and loops of steps inside of whatever Python has."""

from typing import Any

from hypothesis import strategies as st

from generating.models import LEARNING, own_class
from generating.optimizers import optimizer, scheduler
from generating.steps import Scope, evaluation
from generating.wrapping import block
from generating.writer import Lines, Writer, indented

IMPORTS = ["import contextlib", "import copy", "import functools", "import itertools", "import os", "import random", "import sys",
           "from collections import OrderedDict", "from dataclasses import dataclass, field", "import torch", "import torch.nn.functional as F",
           "from torch import nn", "from torch.utils.data import DataLoader, Dataset, TensorDataset"]  # fmt: skip


@st.composite
def programs(draw: Any) -> str:
    """The text of a program."""
    w = Writer(draw)
    scope = Scope(w)
    above: Lines = [
        "torch.manual_seed(0)",
        "random.seed(0)",
        f"FLAG = {w.pick('True', 'False')}",
        f"EVERY = {w.pick('2', '1', '3')}",
    ]
    for _ in range(1 + w.number(2)):
        name = w.fresh("model")
        above.append(f"{name} = {own_class(w) if w.sometimes() else w.pick(*LEARNING)}")
        scope.models.append(name)
    above += _before_optimizers(scope)
    for _ in range(1 + w.number(1)):
        name = w.fresh("optimizer")
        above += optimizer(w, name, scope.models)
        scope.optimizers.append(name)
    if w.sometimes(3):
        name = w.fresh("scheduler")
        above.append(scheduler(w, name, w.pick(*scope.optimizers)))
        scope.schedulers.append(name)
    if w.sometimes(4):
        above.append("scaler = torch.amp.GradScaler('cpu', enabled=False)")
        scope.scaler = True
    body = _epochs(scope)
    definitions = w.definitions
    if w.sometimes(4):
        lines = [
            *IMPORTS,
            "def main():",
            *indented([*above[:4], *definitions, *above[4:], *body]),
            "if __name__ == '__main__':",
            "    main()",
        ]
    else:
        lines = [*IMPORTS, *above[:4], *definitions, *above[4:], *body]
    return "\n".join(lines) + "\n"


def _before_optimizers(scope: Scope) -> Lines:
    """What happens to the models once they are made: copies, freezing, aliases, wrapping."""
    w, lines = scope.w, []
    model = w.pick(*scope.models)
    kind = w.number(7)
    if kind == 1:
        name = w.fresh("model")
        lines.append(f"{name} = copy.deepcopy({model})")
        scope.models.append(name)
    elif kind == 2:
        lines += (
            [w.pick(f"{model}.requires_grad_(False)", f"{model}.requires_grad_(True)"), "teacher = " + model]
            if len(scope.models) > 1
            else []
        )
    elif kind == 3:
        lines += (
            [f"for p in {model}.parameters():", "    p.requires_grad = False"]
            if len(scope.models) > 1
            else []
        )
    elif kind == 4:
        lines.append(f"alias = {model}")
        scope.models.append("alias")
    elif kind == 5:
        name = w.fresh("model")
        lines.append(f"{name} = nn.Sequential({model}, nn.Linear(4, 4))")
        scope.models.append(name)
    elif kind == 6:
        lines += [
            "teacher = copy.deepcopy(" + model + ")",
            w.pick(
                "teacher.eval()",
                "teacher.requires_grad_(False)",
                "teacher = teacher.eval().requires_grad_(False)",
            ),
        ]
        scope.teacher = True
    elif kind == 7:
        lines += [
            f"{model}.apply(lambda module: nn.init.zeros_(module.bias) if isinstance(module, nn.Linear) and module.bias is not None else None)"
        ]
    return lines


def _epochs(scope: Scope) -> Lines:
    """The data, and the loops over it."""
    w = scope.w
    rows = w.pick(2, 3, 4, 1, 0)
    lines, data = _data(w, rows)
    loop = _passes(w, data, rows, block(scope, 2 + w.number(1)))
    after = block(scope, 1) if w.sometimes(3) else []
    if after:
        after = ["x, y = torch.randn(2, 4), torch.randn(2, 4)", "step = 7", *after]
    epochs = w.number(3)
    if epochs == 0:
        return [*lines, *loop, *after]
    inner = [
        *([w.pick(*(f"{one}.train()" for one in scope.models))] if w.sometimes() else []),
        *loop,
        *(f"{one}.step()" for one in scope.schedulers),
        *(evaluation(scope) if w.sometimes(3) else []),
    ]
    if epochs == 1 and w.sometimes():
        return [*lines, "epoch = 0", "while epoch < 2:", *indented([*inner, "epoch += 1"]), *after]
    return [*lines, f"for epoch in range({epochs}):", *indented(inner), *after]


def _data(w: Writer, rows: int) -> tuple[Lines, str]:
    """Lines that make batches, and the expression to go over."""
    data = w.fresh("data")
    both = f"torch.randn({2 * rows}, 4), torch.randn({2 * rows}, 4)"
    one = "torch.randn(2, 4), torch.randn(2, 4)"
    kind = w.number(6)
    name = w.fresh("Rows")
    if kind == 3:
        w.define(f"class {name}(Dataset):", *indented(["def __init__(self, count):", "    self.count = count", "def __len__(self):",
                 "    return self.count", "def __getitem__(self, index):", "    return torch.randn(4), torch.randn(4)"]))  # fmt: skip
    elif kind == 4:
        w.define(f"def {name}(count={rows}):", "    for _ in range(count):", f"        yield {one}")
    elif kind == 5:
        w.define(
            f"class {name}:",
            "    def __iter__(self):",
            f"        for _ in range({rows}):",
            f"            yield {one}",
        )
    made = (
        f"[({one}) for _ in range({rows})]",
        f"DataLoader(TensorDataset({both}), batch_size=2)",
        f"DataLoader(TensorDataset({both}), batch_size=2, shuffle=True)",
        f"DataLoader({name}({2 * rows}), 2)",
        "",
        f"{name}()",
        f"list(zip(torch.randn({rows}, 2, 4), torch.randn({rows}, 2, 4)))",
    )[kind]
    return ([f"{data} = {made}"], data) if made else ([], f"{name}()")


def _passes(w: Writer, data: str, rows: int, body: Lines) -> Lines:
    """A loop over batches whose body has `x`, `y` and `step`."""
    fresh = "x, y = torch.randn(2, 4), torch.randn(2, 4)"
    more = rows + w.number(1)
    forms: list[Lines] = [
        ["step = 0", f"for x, y in {data}:", *indented([*body, "step += 1"])],
        [f"for step, (x, y) in enumerate({data}):", *indented(body)],
        [f"for step in range({rows}):", *indented([fresh, *body])],
        ["step = 0", f"while step < {rows}:", *indented([fresh, *body, "step += 1"])],
        [f"for (x, y), step in zip({data}, range({more})):", *indented(body)],
        [f"rows = iter({data})", "step = 0", "x, y = next(rows)", *body],
        [f"for step, batch in enumerate({data}, start=1):", *indented(["x, y = batch", *body])],
        [
            "step = 0",
            "while True:",
            *indented([fresh, *body, "step += 1", f"if step >= {rows}:", "    break"]),
        ],
        [f"for step, batch in list(enumerate({data})):", *indented(["x = batch[0]", "y = batch[1]", *body])],
    ]
    return w.pick(*forms)  # type: ignore[no-any-return]
