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

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument

KEYWORDS = ("optim", "SGD")


def check(module: FileFacts) -> Iterator[Suspicion]:
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


RUNTIME_PAGE = """\
# TA998: large-learning-rate
```toml
severity = "note"
observers = ["runtime"]
default = true
precision = "low"
fix = "none"
tags = ["review"]
since = "0.1"
```
A learning rate is above one.

## Bad
```python bad
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=2.0)  # runtime: TA998
```

## Good
```python good
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
```

## What each observer sees
The run sees the rate.

## Limits
None.
"""

RUNTIME_CHECK = '''\
"""TA998: a learning rate above one."""

from collections.abc import Iterator

from ta_runtime.facts import Optimizer, Suspicion


def check_optimizer(optimizer: Optimizer) -> Iterator[Suspicion]:
    if any(group["lr"] > 1 for group in optimizer.groups):
        yield Suspicion(optimizer.place, "the learning rate is above one")
'''

RUNTIME_CASES = """\
# In a group

```python runtime
import torch

groups = [{"params": torch.nn.Linear(2, 2).parameters(), "lr": 3.0}]
optimizer = torch.optim.SGD(groups, lr=0.1)  # runtime: TA998
```

# One itself

```python runtime
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=1.0)
```

# No optimizer

```python runtime
import torch
```
"""


def copied(folder: Path, *names: str) -> Path:
    for name in ("pyproject.toml", "rules", "tests", *names):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    return ran.stdout + ran.stderr


def test_three_new_files_are_a_rule(tmp_path: Path) -> None:
    folder = copied(tmp_path, "ta_lint", "ta_runtime")
    (folder / "rules" / "TA999-constant-learning-rate.md").write_text(PAGE)
    (folder / "ta_lint" / "checks" / "ta999_constant_learning_rate.py").write_text(CHECK)
    (folder / "tests" / "cases" / "TA999-constant-learning-rate.md").write_text(CASES)
    assert "TA999  constant-learning-rate" in run(folder, "-m", "ta_lint", "rules")
    (folder / "train.py").write_text("import torch\noptimizer = torch.optim.SGD([], lr=0.1)\n")
    found = run(folder, "-m", "ta_lint", "check", "--format=concise", "train.py")
    assert "train.py:2:13: TA999 note" in found
    passed = run(
        folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_rules.py", "-k", "TA999 or ta999"
    )
    assert "failed" not in passed
    assert "8 passed" in passed, passed


def test_three_new_files_are_a_rule_that_a_run_sees(tmp_path: Path) -> None:
    folder = copied(tmp_path, "ta_lint", "ta_runtime")
    (folder / "rules" / "TA998-large-learning-rate.md").write_text(RUNTIME_PAGE)
    (folder / "ta_runtime" / "checks" / "ta998_large_learning_rate.py").write_text(RUNTIME_CHECK)
    (folder / "tests" / "cases" / "TA998-large-learning-rate.md").write_text(RUNTIME_CASES)
    passed = run(
        folder,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_runtime_rules.py"),
        *("-k", "TA998 or ta998"),
    )
    assert "failed" not in passed
    assert "7 passed" in passed, passed
