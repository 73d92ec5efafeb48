"""A rule is three new files and no edit: one is added to a copy of the project, by its files alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

PAGE = """\
# TA999: constant-learning-rate
```toml
severity = "note"
observers = ["static"]
default = true
precision = "low"
fix = "none"
tags = ["review"]
since = "0.1"
```
A learning rate is written in the middle of the code.

## Bad
```python bad
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)  # static: TA999
```

## Good
```python good
import torch

rate = float(input())
optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=rate)
```

## What each observer sees
The linter sees a number.

## Limits
None.
"""

CHECK = '''\
"""TA999: a learning rate in the middle of the code."""

from collections.abc import Iterator

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.tree import argument

NEEDS = (r"torch\\.optim",)


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.calls_to("torch.optim.SGD"):
        rate = argument(call, "lr", 1)
        if rate is not None and module.number(rate) is not None:
            yield Suspicion(call, "`lr` is a constant")
'''

CASES = """\
# By position

```python
import torch

optimizer = torch.optim.SGD(parameters, 0.1)  # static: TA999
```

# Unknown is silent

```python
import torch

optimizer = torch.optim.SGD(parameters, lr)
```
"""


def test_three_new_files_are_a_rule(tmp_path: Path) -> None:
    for name in ("ta_lint", "rules", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (tmp_path / "rules" / "TA999-constant-learning-rate.md").write_text(PAGE)
    (tmp_path / "ta_lint" / "checks" / "ta999_constant_learning_rate.py").write_text(CHECK)
    (tmp_path / "tests" / "cases" / "TA999-constant-learning-rate.md").write_text(CASES)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*command: str) -> str:
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return ran.stdout + ran.stderr

    assert "TA999  constant-learning-rate" in run("-m", "ta_lint", "rules")
    (tmp_path / "train.py").write_text("import torch\noptimizer = torch.optim.SGD([], lr=0.1)\n")
    assert "train.py:2:13: TA999 note" in run("-m", "ta_lint", "check", "--format=concise", "train.py")
    passed = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_rules.py", "-k", "TA999 or ta999"
    )
    assert "failed" not in passed
    assert "7 passed" in passed, passed
