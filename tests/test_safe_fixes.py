"""Safe means equal: a program and the same with its safe fixes print, raise and compute the same."""

import ast
import json
import re
import symtable
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from executed import Outcome, executed
from marked import blocks
from torch.utils.data import DataLoader, TensorDataset

from ta_lint.core.catalogue import catalogue
from ta_lint.core.config import Configs, Options
from ta_lint.facts.torch.symbols import symbols as torch_symbols
from ta_lint.file import File
from ta_lint.fixing import fix_file

ROOT = Path(__file__).resolve().parent.parent
SAFE = sorted(rule.id for rule in catalogue().values() if rule.fix == "safe")

pytestmark = pytest.mark.filterwarnings("ignore")


# -- programs -------------------------------------------------------------------------------------------------

# Each use by itself, that of a symbol with what must be imported for it; it names nothing else of torch.
USES = {
    "torch.cuda.amp.autocast": ("from torch.cuda import amp; from torch import bfloat16", "amp.autocast(False, bfloat16).fast_dtype"),
    "torch.cuda.amp.autocast_mode.autocast": ("from torch.cuda.amp import autocast_mode; from torch import half", "autocast_mode.autocast(dtype=half, enabled=False).fast_dtype"),
    "torch.cpu.amp.autocast": ("from torch.cpu import amp; from torch import bfloat16", "amp.autocast(dtype=bfloat16)._enabled"),
    "torch.cuda.amp.GradScaler": ("from torch.cuda import amp", "amp.GradScaler(8.0, enabled=False).state_dict()"),
    "torch.cuda.amp.grad_scaler.GradScaler": ("from torch.cuda.amp import grad_scaler", "grad_scaler.GradScaler(enabled=False).get_scale()"),
    "torch.cpu.amp.GradScaler": ("from torch.cpu import amp", "amp.GradScaler(4.0).get_scale()"),
    "torch.cuda.amp.custom_fwd": ("from torch.cuda import amp; from torch import half, ones", "amp.custom_fwd(lambda ctx, x: x + 1, cast_inputs=half)(type('C', (), {})(), ones(2))"),
    "torch.cuda.amp.custom_bwd": ("from torch.cuda import amp; from torch import ones", "amp.custom_bwd(lambda ctx, x: x + 1)(type('C', (), {'_fwd_used_autocast': False, '_dtype': None})(), ones(2))"),
    "torch.cuda.amp.autocast_mode.custom_fwd": ("from torch.cuda.amp import autocast_mode; from torch import ones", "autocast_mode.custom_fwd(lambda ctx, x: x + 1)(type('C', (), {})(), ones(2))"),
    "torch.cuda.amp.autocast_mode.custom_bwd": ("from torch.cuda.amp import autocast_mode; from torch import ones", "autocast_mode.custom_bwd(lambda ctx, x: x + 1)(type('C', (), {'_fwd_used_autocast': False, '_dtype': None})(), ones(2))"),
    "torch.qr": ("import torch as t", "t.qr(t.randn(4, 3), some=False)"),
    "Tensor.qr": ("from torch import randn", "randn(4, 3).qr()"),
    "torch.cholesky": ("import torch as t", "t.cholesky(t.eye(3) * 2, upper=True)"),
    "Tensor.cholesky": ("from torch import eye", "eye(3).cholesky()"),
    "torch.chain_matmul": ("import torch as t", "t.chain_matmul(t.randn(2, 3), t.randn(3, 4), t.randn(4, 1))"),
    "torch.ger": ("import torch as t", "t.ger(t.randn(2), t.randn(3))"),
    "Tensor.ger": ("from torch import ones", "ones(2).ger(ones(3))"),
    "torch.range": ("import torch as t", "t.range(1, 9, 2, device='cpu')"),
    "torch.has_cuda": ("import torch as t", "t.has_cuda"),
    "torch.has_mps": ("import torch as t", "t.has_mps"),
    "torch.has_cudnn": ("import torch as t", "t.has_cudnn"),
    "torch.has_mkldnn": ("import torch as t", "t.has_mkldnn"),
    "torch._utils.is_compiling": ("from torch import _utils", "_utils.is_compiling()"),
    "torch._dynamo.external_utils.is_compiling": ("from torch._dynamo import external_utils", "external_utils.is_compiling()"),
    "torch.library.impl_abstract": ("from torch import library", "library.impl_abstract('ta::none')(len)"),
    "torch.accelerator.current_device_idx": ("from torch import accelerator", "accelerator.current_device_idx()"),
    "torch.accelerator.set_device_idx": ("from torch import accelerator", "accelerator.set_device_idx(0)"),
    "torch.cuda.memory_cached": ("from torch import cuda", "cuda.memory_cached()"),
    "torch.cuda.max_memory_cached": ("from torch import cuda", "cuda.max_memory_cached()"),
    "torch.cuda.reset_max_memory_allocated": ("from torch import cuda", "cuda.reset_max_memory_allocated()"),
    "torch.cuda.reset_max_memory_cached": ("from torch import cuda", "cuda.reset_max_memory_cached()"),
    "torch.nn.UpsamplingNearest2d": ("from torch import nn, ones", "nn.UpsamplingNearest2d(scale_factor=2)(ones(1, 1, 2, 2))"),
    "torch.nn.UpsamplingBilinear2d": ("from torch import nn, ones", "nn.UpsamplingBilinear2d(5)(ones(1, 1, 2, 2))"),
    "torch.nn.NLLLoss2d": ("from torch import nn, ones, zeros, long", "nn.NLLLoss2d(reduction='sum')(ones(1, 2, 2, 2), zeros(1, 2, 2, dtype=long))"),
    "torch.nn.parallel.DistributedDataParallelCPU": ("from torch import nn", "nn.parallel.DistributedDataParallelCPU(nn.Linear(1, 1))"),
    "torch.nn.functional.upsample": ("from torch.nn import functional as F; from torch import ones", "F.upsample(ones(1, 1, 2, 2), scale_factor=2, mode='bilinear')"),
    "torch.nn.functional.upsample_nearest": ("from torch.nn import functional as F; from torch import ones", "F.upsample_nearest(ones(1, 1, 2, 2), 3)"),
    "torch.nn.functional.upsample_bilinear": ("from torch.nn import functional as F; from torch import rand", "F.upsample_bilinear(rand(1, 1, 2, 2), scale_factor=3)"),
    "torch.nn.utils.clip_grad_norm": ("from torch import nn", "nn.utils.clip_grad_norm(nn.Linear(1, 1).parameters(), 1.0)"),
    "torch.nn.utils.clip_grad.clip_grad_norm": ("from torch.nn.utils import clip_grad; from torch.nn import Linear", "clip_grad.clip_grad_norm(Linear(1, 1).parameters(), max_norm=1.0)"),
    "torch.nn.utils.stateless.functional_call": ("from torch.nn.utils import stateless; from torch import nn, ones", "stateless.functional_call(nn.Linear(1, 1, bias=False), parameters_and_buffers={'weight': ones(1, 1)}, args=(ones(1),))"),
    **{
        f"torch.nn.init.{name}": ("from torch.nn import init; from torch import empty", f"init.{name}(empty({shape}){more})")
        for name, shape, more in (
            ("uniform", "3", ""), ("normal", "3", ", 1.0"), ("constant", "3", ", 2.0"), ("eye", "2, 3", ""), ("dirac", "2, 2, 3", ""),
            ("xavier_uniform", "2, 3", ""), ("xavier_normal", "2, 3", ""), ("kaiming_uniform", "2, 3", ""),
            ("kaiming_normal", "2, 3", ""), ("orthogonal", "2, 3", ""), ("sparse", "4, 3", ", 0.5"),
        )
    },
    "functorch.vmap": ("import functorch; from torch import ones", "functorch.vmap(lambda x: x * 2)(ones(3))"),
    "functorch.grad": ("import functorch; from torch import ones", "functorch.grad(lambda x: (x ** 3).sum())(ones(3))"),
    "functorch.grad_and_value": ("import functorch; from torch import ones", "functorch.grad_and_value(lambda x: (x ** 3).sum())(ones(3))"),
    "functorch.vjp": ("import functorch; from torch import ones", "functorch.vjp(lambda x: x ** 3, ones(3))[1](ones(3))"),
    "functorch.jvp": ("import functorch; from torch import ones", "functorch.jvp(lambda x: x ** 3, (ones(3),), (ones(3),))"),
    "functorch.jacrev": ("import functorch; from torch import ones", "functorch.jacrev(lambda x: x ** 3)(ones(3))"),
    "functorch.jacfwd": ("import functorch; from torch import ones", "functorch.jacfwd(lambda x: x ** 3)(ones(3))"),
    "functorch.hessian": ("import functorch; from torch import ones", "functorch.hessian(lambda x: (x ** 3).sum())(ones(2))"),
    "functorch.functionalize": ("import functorch; from torch import ones", "functorch.functionalize(lambda x: x.clone().add_(1))(ones(3))"),
    **{
        f"torch.distributed.{name}": ("from torch import distributed, zeros, ones", f"(distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1), distributed.{name}(zeros(2), ones(2)))[1]")
        for name in ("_all_gather_base", "_reduce_scatter_base")
    },
    "torch.distributed.reduce_op": ("from torch import distributed", "distributed.reduce_op.SUM == distributed.ReduceOp.SUM"),
    "torch.distributed.distributed_c10d._get_global_rank": ("from torch.distributed import distributed_c10d", "(distributed_c10d.init_process_group('gloo', store=distributed_c10d.HashStore(), rank=0, world_size=1), distributed_c10d._get_global_rank(distributed_c10d.new_group([0]), rank=0))[1]"),
    "torch.utils.data._utils.collate.default_collate": ("from torch.utils.data import _utils", "_utils.collate.default_collate([1, 2])"),
    "torch.utils.data._utils.collate.default_convert": ("from torch.utils.data._utils import collate", "collate.default_convert([1.5])"),
    "torch.utils.data._utils.worker.get_worker_info": ("from torch.utils.data._utils import worker", "worker.get_worker_info()"),
    "torch._dynamo.is_compiling": ("import torch._dynamo as dynamo", "dynamo.is_compiling()"),
    "torch.backends.cuda.SDPBackend": ("from torch.backends import cuda", "cuda.SDPBackend(1).name"),
    "torch.distributed._tensor": ("from torch.distributed._tensor import Shard, Replicate as R", "(Shard(0).dim, R() == R())"),
    "torch.distributed._composable.fsdp": ("from torch.distributed._composable.fsdp import MixedPrecisionPolicy", "MixedPrecisionPolicy().param_dtype"),
}  # fmt: skip

# How a file may bring in what a fix could name, or not.
SURROUNDINGS = {
    "not": "{imports}\nfound = {use}\n",
    "at the top": "import torch\n{imports}\nfound = {use}\n",
    "below the use": "{imports}\nfound = {use}\nimport torch\n",
    "below the function": "{imports}\ndef f():\n    return {use}\nfound = f()\nimport torch\n",
    "above the function": "import torch\n{imports}\ndef f():\n    return {use}\nfound = f()\n",
    "between the function and its call": "{imports}\ndef f():\n    return {use}\nimport torch\nfound = f()\n",
    "in the function": "{imports}\ndef f():\n    import torch\n    return {use}\nfound = f()\n",
    "in the function, after": "{imports}\ndef f():\n    found = {use}\n    import torch\n    return found\nfound = f()\n",
    "in another function": "{imports}\ndef g():\n    import torch\ndef f():\n    return {use}\nfound = f()\n",
    "in a branch of the function": "{imports}\nimport torch\ndef f(x=0):\n    if x:\n        import torch\n    return {use}\nfound = f()\n",
    "for type checkers": "from typing import TYPE_CHECKING\n{imports}\nif TYPE_CHECKING:\n    import torch\ndef f():\n    return {use}\nfound = f()\n",
    "tried": "try:\n    import torch\nexcept ImportError:\n    torch = None\n{imports}\nfound = {use}\n",
    "tried, and missing": "try:\n    import torch.missing\n    import torch\nexcept ImportError:\n    pass\n{imports}\nfound = {use}\n",
    "tried, in the else": "{imports}\ntry:\n    import missing_module\nexcept ImportError:\n    pass\nelse:\n    import torch\nfound = {use}\n",
    "tried, else raised": "try:\n    import torch\nexcept ImportError:\n    raise\n{imports}\nfound = {use}\n",
    "tried, and something else follows": "{imports}\nfrom contextlib import suppress\nwith suppress(ImportError):\n    import missing_module\n    import torch\nfound = {use}\n",
    "by another name": "import torch as th\n{imports}\nfound = {use}\n",
    "one name of it": "from torch import tensor as make\n{imports}\nfound = {use}\n",
    "by star": "from torch import *\n{imports}\nfound = {use}\n",
    "hidden by a star": "import torch\n{imports}\nfrom other_names import *\nfound = {use}\n",
    "a star above": "from other_names import *\nimport torch\n{imports}\nfound = {use}\n",
    "hidden by a parameter": "import torch\n{imports}\ndef f(torch=None):\n    return {use}\nfound = f()\n",
    "hidden by a variable": "import torch\n{imports}\ndef f():\n    torch = None\n    return {use}\nfound = f()\n",
    "hidden by a lambda": "import torch\n{imports}\nfound = (lambda torch: {use})(None)\n",
    "hidden in a comprehension": "import torch\n{imports}\nfound = [{use} for torch in range(2)]\n",
    "hidden for a while": "import torch\n{imports}\ndef f():\n    found = {use}\n    for torch in (): pass\n    return found\nfound = f()\n",
    "set": "import torch\n{imports}\ntorch = None\nfound = {use}\n",
    "set elsewhere": "import torch\n{imports}\ndef g():\n    global torch\n    torch = None\ng()\nfound = {use}\n",
    "set by exec": "import torch\n{imports}\nexec('torch = None')\nfound = {use}\n",
    "set in the globals": "import torch\n{imports}\nglobals()['torch'] = None\nfound = {use}\n",
    "deleted": "import torch\n{imports}\ndel torch\nfound = {use}\n",
    "deleted as an error": "import torch\n{imports}\ntry:\n    1 / 0\nexcept ZeroDivisionError as torch:\n    pass\nfound = {use}\n",
    "of a class": "{imports}\nclass C:\n    import torch\n    def f(self):\n        return {use}\nfound = C().f()\n",
    "in a class": "{imports}\nclass C:\n    import torch\n    found = {use}\nfound = C.found\n",
    "in the main block": "{imports}\ndef f():\n    return {use}\nif __name__ == '__main__':\n    found = f()\n    import torch\n",
    "in the main block, before": "{imports}\ndef f():\n    return {use}\nif __name__ == '__main__':\n    import torch\n    found = {use}\n",
    "in a loop": "{imports}\nfor _ in ():\n    import torch\nfound = {use}\n",
    "in a loop, after": "{imports}\nfor _ in range(2):\n    found = {use}\n    import torch\n",
    "in a case": "{imports}\nmatch 1:\n    case 2:\n        import torch\nfound = {use}\n",
    "at the end of a try": "{imports}\ntry:\n    1 / 0\n    import torch\nexcept ZeroDivisionError:\n    found = {use}\n",
    "before the environment is set": "import os\nos.environ['TA_TEST'] = '1'\n{imports}\nfound = {use}\n",
    "below a docstring": '"""Doc."""\nfrom __future__ import annotations\n{imports}\ndef f(x: int):\n    return {use}\nfound = f(1)\n',
}  # fmt: skip

# Programs of rules whose cases do not run, or would not without what they take for granted.
PROGRAMS = {
    "TA002": [
        "import torch\nx = torch.ones(2)  # noqa: TA600\nprint(x)  # noqa: TA600, E501\ny = '# noqa: TA600'\n",
    ],
    "TA206": [
        """
        import torch
        def train(model, optimizer):
            total, losses = 0.0, []
            for step in range(5):
                loss = model(torch.randn(8, 4)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss
                losses.append(loss)
                print(f"{total / (step + 1):.3f}", losses[-1].item())
            return float(total), (sum(losses) / len(losses)).item()
        model = torch.nn.Linear(4, 1)
        found = train(model, torch.optim.SGD(model.parameters(), lr=0.1))
        """,
        """
        import torch
        def train(model, optimizer):
            total = torch.zeros(())
            for _ in range(5):
                loss = (model.weight * torch.randn(4)).sum()
                loss.backward()
                optimizer.step()
                total = total + loss
            return total.item()
        layer = torch.nn.Linear(4, 1)
        found = train(layer, torch.optim.SGD(layer.parameters(), lr=0.1))
        """,
        *(
            f"""
            import numpy as np
            import torch
            weight = torch.ones(3, requires_grad=True)
            total, losses = 0.0, []
            for _ in range(3):
                loss = weight.sum()
                loss.backward()
                total += loss
                losses.append(loss)
            {use}
            """
            for use in (
                "print(total, losses)",
                "total.backward()",
                "found = np.asarray(total)",
                "found = total.requires_grad",
                "torch.stack(losses).sum().backward()",
                "def show(x=total):\n                print(x)\n            show()",
                "losses[0].mul_(2); print(loss)",
                "print('%s' % total)",
            )
        ),
    ],
    "TA906": [
        """
        import torch
        from torch.autograd import Variable
        start = torch.zeros(3)
        point = Variable(start, requires_grad=True)
        (point - 1).square().sum().backward()
        noise = Variable(torch.randn(2, 3).mul(2))
        batch = Variable(torch.arange(3.0), requires_grad=False)
        batch += noise[0]
        table = Variable(torch.ones(2, 2), requires_grad=True).t()
        """,
        """
        import torch
        from torch.autograd import Variable
        weight = torch.ones(3, requires_grad=True)
        held = torch.zeros(3)
        held[0] = weight.sum()
        held = Variable(held)
        grown = torch.zeros(3)
        grown += weight
        grown = Variable(grown)
        drawn = Variable(torch.normal(weight, 1.0))
        filled = torch.zeros(3)
        filled.copy_(weight)
        filled = Variable(filled)
        """,
        """
        import torch
        from torch.autograd import Variable
        class Marked(torch.Tensor):
            pass
        marked = torch.ones(2).as_subclass(Marked)
        found = [Variable(marked), Variable(torch.zeros_like(marked)), Variable(marked.float())]
        """,
        """
        from torch.autograd import Variable
        def wrap(x):
            try:
                return Variable(x)
            except TypeError as error:
                return str(error)
        found = [wrap([1]), wrap(2), wrap(None)]
        """,
        "import torch\nfrom torch.autograd import Variable\nVariable(torch.zeros(2), requires_grad=True).add_(1)\n",
    ],
    "TA657": [
        """
        from transformers import Trainer

        class Ours(Trainer):
            def compute_loss(self, model, inputs: dict, return_outputs=False):
                return sum(inputs), return_outputs

        class Short(Trainer):
            def compute_loss(self, model, inputs):
                return model(inputs)

        print(Ours.compute_loss(None, None, [1, 2]), Ours.compute_loss(None, None, [3], True))
        print(Short.compute_loss(None, len, "abc"))
        """,
    ],
    "TA909": [
        "import torchvision.models as models\nmodel = models.resnet18()\n",
        "def f():\n    import torchvision.models as models\n    return models.resnet18()\nmodel = f()\n",
        "class C:\n    import torchvision.models as models\nmodel = C.models.resnet18()\n",
        "try:\n    import torchvision.missing as missing\nexcept ModuleNotFoundError:\n    missing = 'none'\n",
        "import torchvision.transforms as transforms, torchvision.models as models\nmodel = models.resnet18()\n",
        "models = 1\nimport torchvision.models as models\nmodel = models.resnet18()\n",
    ],
    "TA901": [
        """
        import torch
        x = torch.ones(4, 4)
        with torch.autocast("cpu", dtype=torch.float16):
            with torch.cpu.amp.autocast(enabled=False):
                with torch.autocast("cpu"):
                    found = (x @ x).dtype
        """,
        "from torch import ger, ones\nfound = ger(ones(2), ones(2))\nnames = sorted(dir())\n",
        "import torch\nwith torch.device('meta'):\n    found = torch.range(0, 3).shape, torch.range(0, 3).device.type\n",
        "import torch\ntorch.set_default_dtype(torch.float64)\nfound = torch.range(0, 3, device='cpu')\n",
        """
        class Old:
            from torch import ger
        from torch import ones
        found = Old.ger(ones(2), ones(2))
        """,
        """
        import torch
        kept, torch.outer = torch.outer, None
        try:
            found = torch.ger(torch.ones(2), torch.ones(2))
        finally:
            torch.outer = kept
        """,
    ],
    "TA904": [
        """
        from torch.utils.data import default_collate
        default_collate = len
        from torch.utils.data._utils.collate import default_collate, default_collate_fn_map
        found = default_collate([1, 2])
        """,
    ],
}  # fmt: skip


def programs(rule: str) -> Iterator[str]:
    """The cases of a rule and programs of its own, each also with its imports elsewhere, and each use of a symbol in each of
    the surroundings."""
    for code in [*cases(rule), *map(textwrap.dedent, PROGRAMS.get(rule, ()))]:
        yield code
        yield from varied(code)
    for symbol, (imports, use) in USES.items():
        if (rule == "TA904") == torch_symbols()[symbol].private and rule in ("TA901", "TA904"):
            for template in SURROUNDINGS.values():
                yield template.format(imports=imports, use=use)


def cases(rule: str) -> Iterator[str]:
    for folder in ("rules", "tests/cases"):
        for page in sorted((ROOT / folder).glob(f"{rule}*.md")):
            for block in blocks(page):
                if any(rule == found for _, found in block.expected("static")):
                    yield block.unmarked


def varied(code: str) -> Iterator[str]:
    """A program in a function, and with torch brought in by another way."""
    if " import *" not in code and "__future__" not in code:
        symbols = symtable.symtable(code, "<program>", "exec").get_symbols()
        values = [
            symbol.get_name()
            for symbol in symbols
            if symbol.is_assigned() and not symbol.is_imported() and not symbol.is_namespace()
        ]
        body = textwrap.indent(code, "    ")
        yield f"def main():\n{body}\n    return [{', '.join(values)}]\n\n\nfound = main()\n"
    before, line, after = code.partition("import torch\n")
    if line and not before.strip():
        yield f"{after}\nimport torch\n"
        yield f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n{after}"
        yield f"try:\n    import torch\nexcept ImportError:\n    torch = None\n{after}"
        yield f"import torch\nfrom torch import *\n{after}"
        yield f"from other_names import *\nimport torch\n{after}"
        yield "import torch as th\n" + re.sub(r"(?<!from )(?<!import )\btorch\.", "th.", after)


def as_notebook(code: str) -> bytes:
    """A program with each of its statements in a cell of its own."""
    lines = code.splitlines(keepends=True)
    starts = [statement.lineno - 1 for statement in ast.parse(code).body]
    texts = ["".join(lines[start:end]) for start, end in pairwise([0, *starts[1:], len(lines)])]
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": str(number),
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": text.strip("\n"),
        }
        for number, text in enumerate(texts)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def of_notebook(data: bytes) -> str:
    return "\n".join("".join(cell["source"]) for cell in json.loads(data)["cells"])


# -- what they do ---------------------------------------------------------------------------------------------


def given() -> dict[str, Any]:
    """What cases take for granted."""
    torch.default_generator.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    data = torch.randn(8, 4), torch.randn(8, 1)
    return {
        "criterion": torch.nn.functional.mse_loss,
        "dataset": TensorDataset(*data),
        "device": "cpu",
        "layer": torch.nn.Linear(2, 2),
        "loader": DataLoader(TensorDataset(*data), batch_size=4),
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "scores": torch.randn(3, requires_grad=True),
    }


@pytest.fixture(autouse=True)
def _libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins of what the programs import: two modules of torchvision, the trainer of transformers, and a name that hides torch."""
    names = ["", ".datasets", ".models", ".transforms", ".transforms.functional", ".utils"]
    found = {name: types.ModuleType(f"torchvision{name}") for name in names}
    for name, module in found.items():
        module.__path__ = []
        for path, inner in found.items():
            if path and path.rpartition(".")[0] == name:
                setattr(module, path.rpartition(".")[2], inner)
    models, transforms = found[".models"], found[".transforms"]
    models.resnet18 = lambda: torch.nn.Linear(2, 2)  # type: ignore[attr-defined]
    transforms.CenterCrop = lambda size: size  # type: ignore[attr-defined]
    other = types.ModuleType("other_names")
    other.torch = None  # type: ignore[attr-defined]
    trainers = types.ModuleType("transformers")
    trainers.Trainer = type("Trainer", (), {})  # type: ignore[attr-defined]
    for module in (*found.values(), other, trainers):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@cache
def config(folder: Path, rule: str) -> Any:
    return Configs(Options(select=[rule, "TA600"]), folder).root_config  # one that a comment may suppress


def safely_fixed(code: str, rule: str, folder: Path) -> str:
    path = folder / "train.py"
    return fix_file(File(path, "train.py", config(folder, rule), code.encode())).after.decode()


def difference(before: Outcome, after: Outcome) -> str | None:
    """How two runs differ: what one printed, raised or left, and the other not. The modules and functions that a program
    imports are not compared, as a fix may import others."""
    for name, one, other in zip(Outcome._fields, before, after, strict=True):
        if one != other:
            return f"{name}: {one} != {other}"
    return None


@pytest.mark.parametrize("rule", SAFE)
def test_a_program_does_the_same_after_its_safe_fixes(
    rule: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """D2: cases of the rule, and each symbol that a fix renames in each way to bring the new name in, or not."""
    counts: Counter[str] = Counter()
    for code in programs(rule):
        fixed = safely_fixed(code, rule, tmp_path)
        counts["programs"] += 1
        if fixed == code:
            continue
        before, after = executed(code, given), executed(fixed, given)
        counts["fixed"] += 1
        counts["fixed and run to the end"] += before.ended
        assert (found := difference(before, after)) is None, f"{found}\n\n{code}\n\n{fixed}"
    for name, count in counts.items():
        record_property(name, count)
    assert counts["fixed and run to the end"], counts


@pytest.mark.parametrize("symbol", ["torch.utils.data._utils.collate.default_collate", "functorch.vmap"])
def test_a_notebook_does_the_same_after_its_safe_fixes(symbol: str, tmp_path: Path) -> None:
    """D2: what a cell above has imported is there, what one below will import is not."""
    rule = "TA904" if torch_symbols()[symbol].private else "TA901"
    imports, use = USES[symbol]
    counts: Counter[str] = Counter()
    for template in SURROUNDINGS.values():
        data = as_notebook(template.format(imports=imports, use=use))
        file = File(tmp_path / "train.ipynb", "train.ipynb", config(tmp_path, rule), data)
        result = fix_file(file)
        assert not result.complaints
        before, after = executed(of_notebook(data), given), executed(of_notebook(result.after), given)
        counts["fixed"] += result.changes
        counts["fixed and run to the end"] += result.changes and before.ended
        counts["left alone"] += not result.changes
        assert (found := difference(before, after)) is None, f"{found}\n\n{of_notebook(result.after)}"
    assert min(counts.values()) > 0, counts


def test_each_symbol_that_is_renamed_safely_has_a_program() -> None:
    assert set(USES) == {
        symbol.name
        for symbol in torch_symbols().values()
        if symbol.same_result and (symbol.fix or symbol.moved)
    }
