"""A fix writes a name only where it is certainly bound when that line runs, to what is meant."""

from pathlib import Path

import libcst as cst
import pytest
from modules import module_of

from ta_lint.core.config import Configs, Options
from ta_lint.file import File
from ta_lint.fixing import fix_file


def spelled(code: str, qualified: str = "torch.outer") -> tuple[str, tuple[str, ...]] | None:
    """How the place of `HERE` in a file can name something: the spelling, and the imports that it needs."""
    module = module_of(code)
    (here,) = (name for name in module.tree.all(cst.Name) if name.value == "HERE")
    return module.spelled(qualified, at=here)


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nHERE",
        "import torch.nn\nHERE",
        "import torch\nimport torch.nn\nHERE",
        "import torch\ndef f():\n    HERE",
        "import torch\nclass C:\n    x = HERE\n    def f(self):\n        pass",
        "import torch\n@HERE\ndef f(): pass",
        "import torch\nf = lambda x=HERE: x",
        "import torch\nfor x in y:\n    x = [z for z in HERE]",
        "def f():\n    import torch\n    HERE",
        "def f():\n    import torch\n    def g():\n        HERE",
        "if x:\n    import torch\n    HERE",
        "if x: import torch; HERE",
        "try:\n    import torch\n    HERE\nexcept ImportError:\n    pass",
        "try:\n    import torch\nexcept ImportError:\n    x\nelse:\n    HERE",
        "try:\n    import torch\nexcept ImportError:\n    raise\nHERE",
        "try:\n    import torch\nexcept ImportError as error:\n    raise SystemExit from error\ndef f():\n    HERE",
        "import sys\ntry:\n    import torch\nexcept ImportError:\n    print()\n    sys.exit(1)\nHERE",
        "try:\n    import torch\nfinally:\n    x\nHERE",
        "def f():\n    try:\n        import torch\n    except ImportError:\n        return\n    HERE",
        "from x import *\nimport torch\nHERE",
        "import torch\nfrom torch import *\nHERE",
        "import torch\ndef f(torch):\n    torch\nHERE",
        "import torch\nx = [torch for torch in y], HERE",
        "import torch\nif x:\n    import torch\nHERE",
        "def f():\n    global torch\n    import torch\n    HERE",
    ],
)
def test_an_import_that_has_certainly_run_is_used(code: str) -> None:
    """D2: what stands before a place, in a statement list around it, has run when the place does."""
    assert spelled(code) == ("torch.outer", ())


@pytest.mark.parametrize(
    "code",
    [
        "if TYPE_CHECKING:\n    import torch\nHERE",
        "if TYPE_CHECKING:\n    import torch\ndef f():\n    HERE",
        "try:\n    import x\nexcept ImportError:\n    x = None\nelse:\n    import torch\nHERE",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nHERE",
        "try:\n    import torch\nexcept ImportError:\n    print()\nHERE",
        "try:\n    import torch\nexcept ImportError:\n    if x:\n        raise\nHERE",
        "try:\n    import torch\nexcept ImportError:\n    raise\nexcept OSError:\n    pass\nHERE",
        "try:\n    import torch\nexcept ImportError:\n    pass\nfinally:\n    HERE",
        "try:\n    x\nexcept ImportError:\n    import torch\nHERE",
        "HERE\nimport torch",
        "def f():\n    HERE\nimport torch",
        "def f():\n    HERE\nif __name__ == '__main__':\n    f()\n    import torch",
        "def f():\n    HERE\n    import torch",
        "def f():\n    def g():\n        HERE\n    g()\n    import torch",
        "import torch\ndef f():\n    if x:\n        import torch\n    HERE",
        "for x in y:\n    import torch\nHERE",
        "while x:\n    HERE\n    import torch",
        "with suppress(ImportError):\n    import torch\nHERE",
        "match x:\n    case 1:\n        import torch\nHERE",
        "class C:\n    import torch\n    def f(self):\n        HERE",
        "def f():\n    global torch\n    import torch\nHERE",
        "import torch\ndel torch\nHERE",
        "import torch\ndef f():\n    global torch\n    del torch\nHERE",
        "import torch\ntorch = wrap(torch)\nHERE",
        "import torch\ndef f():\n    global torch\n    torch = None\nHERE",
        "import torch\nfor torch in x: pass\nHERE",
        "import torch\nwith x as torch: pass\nHERE",
        "import torch\ntry: pass\nexcept E as torch: pass\nHERE",
        "import torch\nmatch x:\n    case [torch]: pass\nHERE",
        "import torch\nfrom x import torch\nHERE",
        "import torch\nfrom x import *\nHERE",
        "import torch\ndef f():\n    HERE\nfrom x import *",
        "import torch\nexec(x)\nHERE",
        "import torch\nglobals()[x] = 1\nHERE",
        "import torch\ndef f(torch):\n    HERE",
        "import torch\ndef f():\n    torch = x\n    def g():\n        HERE",
        "import torch\nf = lambda torch: HERE",
        "import torch\nx = [HERE for torch in y]",
        "import torch\ndef f():\n    HERE\n    for torch in x: pass",
        "import torch\ntorch.outer = x\nHERE",
        "import torch\nmock.patch('torch.outer')\nHERE",
        "import os\nos.environ[x] = y\nHERE",
        "from x import *\nHERE",
        "def f():\n    from torch import nn\nHERE",
    ],
)
def test_a_name_that_may_be_missing_or_mean_something_else_is_not_written(code: str) -> None:
    """D2: an import that may not have run, may be undone, or is hidden where the fix would use it, is no way to a name."""
    assert spelled(code) is None


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import torch as t\nHERE", ("t.outer", ())),
        ("from torch import outer as o\nHERE", ("o", ())),
        ("import torch\nfrom torch import outer\nHERE", ("outer", ())),
        ("import torch\nif x:\n    from torch import outer\nHERE", ("torch.outer", ())),
        ("from torch import nn\nHERE", ("torch.outer", ("import torch",))),
        ("import functorch\nHERE", ("torch.outer", ("import torch",))),
        ("if x:\n    import torch\nimport torch as t\nHERE", ("t.outer", ())),
    ],
)
def test_the_way_that_is_certain_is_taken(code: str, found: tuple[str, tuple[str, ...]]) -> None:
    assert spelled(code) == found


def test_a_new_import_of_torch_stands_where_torch_is_loaded_anyway(tmp_path: Path) -> None:
    """D2: above it the file may set what torch reads when it is loaded."""
    code = "import os\n\nos.environ['OMP_NUM_THREADS'] = '1'\nfrom torch.utils.data import _utils\n\nprint(_utils.collate.default_collate([1]))\n"
    path = tmp_path / "train.py"
    file = File(path, "train.py", Configs(Options(select=["TA904"]), tmp_path).root_config, code.encode())
    head, line, _ = code.partition("from torch.utils")
    fixed = fix_file(file).after.decode()
    assert fixed.startswith(f"{head}import torch.utils.data\n{line}")
    assert fixed.endswith("print(torch.utils.data.default_collate([1]))\n")


def test_an_import_of_the_standard_library_may_be_added_anywhere() -> None:
    assert spelled("HERE", "copy.deepcopy") == ("copy.deepcopy", ("import copy",))
