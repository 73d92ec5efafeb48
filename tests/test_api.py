"""Every table of `ta_lint/data/torch_symbols.toml`, held against the installed torch."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from modules import module_of

from ta_lint import lint_text
from ta_lint.checks import load
from ta_lint.checks.gate import Text
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Severity
from ta_lint.facts.torch.symbols import Release, Symbol, symbols
from ta_lint.file import File
from ta_lint.fixing import fix_file, save

SYMBOLS = [symbol for symbol in symbols().values() if symbol.kind != "argument"]
ARGUMENTS = [symbol for symbol in symbols().values() if symbol.kind == "argument"]
INSTALLED = Release.of(".".join(torch.__version__.split(".")[:2]))
STATUSES = {"removed": "TA900", "deprecated": "TA901", "private": "TA904"}

pytestmark = pytest.mark.filterwarnings("ignore")


def place(symbol: Symbol) -> str:
    """Where a symbol is found: `torch.Tensor.symeig` for `Tensor.symeig`."""
    if symbol.kind != "method":
        return symbol.name
    return f"torch.nn.{symbol.name}" if symbol.name.startswith("Module.") else f"torch.{symbol.name}"


def found(path: str) -> Any:
    """What a full name leads to; `LookupError` where it leads to nothing."""
    top, *parts = path.split(".")
    value = importlib.import_module(top)
    reached = top
    for part in parts:
        reached += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(reached)
            except ImportError as error:
                raise LookupError(path) from error
    return value


def is_gone(symbol: Symbol) -> bool:
    """Whether a symbol is absent, or left as a function that raises and says so."""
    try:
        value = found(place(symbol))
    except LookupError:
        return True
    square = torch.eye(2)
    for arguments in ((square,), (square, square)):
        try:
            value(*arguments)
        except RuntimeError as error:
            if "now removed" in str(error):
                return True
        except TypeError:
            continue
    return False


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.name)
def test_a_table_says_what_the_installed_torch_has(symbol: Symbol) -> None:
    removed = symbol.removed and symbol.removed <= INSTALLED
    if removed:
        assert is_gone(symbol)
    else:
        found(place(symbol))
    if symbol.replacement:
        found(symbol.replacement)
        assert symbol.replacement_since is not None
        assert symbol.replacement_since <= INSTALLED
    for name in symbol.moved:
        moved = found(f"{symbol.replacement}.{name}")
        if not removed:
            assert moved is found(f"{symbol.name}.{name}")


@pytest.mark.parametrize("symbol", ARGUMENTS, ids=lambda symbol: symbol.name)
def test_an_argument_is_gone_from_all_that_took_it(symbol: Symbol) -> None:
    owner, _, name = symbol.name.removesuffix(")").partition("(")
    taker = found(f"torch.{owner}" if owner.startswith("Tensor.") else owner)
    classes = [one for one in vars(taker).values() if inspect.isclass(one)]
    takers = [one.__init__ for one in classes if inspect.isfunction(one.__init__)] or [taker]
    takes = [one for one in takers if name in inspect.signature(one).parameters]
    assert bool(takes) is not (symbol.removed is not None and symbol.removed <= INSTALLED)


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.name)
def test_what_is_private_and_equal_is_the_same_object(symbol: Symbol) -> None:
    if symbol.private and symbol.same_result and symbol.fix is not None:
        assert found(symbol.name) is found(symbol.replacement) or symbol.last == "is_compiling"


def test_what_a_fix_writes_is_there_after_import_torch_alone() -> None:
    """D2: of a module that is bound, not every submodule is loaded."""
    names = [
        symbol.replacement.removeprefix("torch.")
        for symbol in SYMBOLS
        if symbol.fix is not None and symbol.kind != "module"
    ]
    code = f"import torch, operator\nfor name in {names}: operator.attrgetter(name)(torch)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_called_equal_is_still_there_to_be_compared() -> None:
    assert not [symbol.name for symbol in SYMBOLS if symbol.same_result and symbol.removed]


def written(symbol: Symbol) -> str:
    """A file that uses a symbol by its path."""
    if symbol.kind == "method":
        receiver = "torch.nn.Linear(1, 1)" if symbol.name.startswith("Module.") else "torch.eye(2)"
        return f"import torch\n\nx = {receiver}\nx.{symbol.last}()\n"
    top = symbol.name.partition(".")[0]
    if symbol.kind == "module":
        return f"import {symbol.name}\n"
    if symbol.kind == "attribute":
        return f"import {top}\n\nprint({symbol.name})\n"
    return f"import {top}\n\nprint({symbol.name}(x))\n"


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: symbol.name)
def test_the_gate_lets_every_symbol_through(symbol: Symbol) -> None:
    texts = [written(symbol)]
    if symbol.kind == "callable":
        package, _, name = symbol.name.rpartition(".")
        texts.append(f"from {package} import {name}\n\n{name}(x)\n")
        texts.append(f"from {package} import (\n    other,\n    {name},\n)\n\n{name}(x)\n")
        if package == "torch":
            texts.append(f"import torch as th\n\nth.{name}(x)\n")
    for text in texts:
        module = module_of(text)
        assert [use.symbol for use in module.api.uses] == [symbol]
        for status, rule in STATUSES.items():
            check = load(rule)
            assert check is not None
            assert not getattr(symbol, status) or check.wants(Text(text.encode() + b"torch"))


SQUARE, IMAGE = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)), torch.randn(1, 3, 6, 6)
NAMES = {
    "torch": torch,
    "functorch": importlib.import_module("functorch"),
    "x": SQUARE @ SQUARE.T + torch.eye(4),
    "v": SQUARE[0],
    "image": IMAGE,
}
CALLS = """
torch.qr(x)
x.qr()
torch.qr(input=x, some=True)
torch.qr(x, False)
x.qr(some=False)
torch.cholesky(x)
x.cholesky()
torch.cholesky(x, upper=True)
torch.cholesky(x, False)
torch.cholesky(x.triu(), upper=True)
x.cholesky(True)
torch.chain_matmul(x, x, x, out=torch.empty(0))
torch.range(0, 3, device="cpu")
torch.range(-2, end=2, device="cpu")
torch.range(start=0, end=9, step=2, device="cpu")
torch.range(5, 1, -2, device="cpu")
torch.range(3, 3, requires_grad=True, device="cpu")
torch.range(0, 255, dtype=torch.int64, device="cpu")
torch.range(1, 4, dtype=torch.float64, device="cpu")
torch.chain_matmul(x, x, x)
torch.ger(v, v)
v.ger(v)
torch.chain_matmul(x, x)
torch.ger(input=v, vec2=v)
torch.nn.functional.upsample(image, scale_factor=2)
torch.nn.functional.upsample_nearest(image, scale_factor=2)
torch.nn.functional.upsample_bilinear(image, (9, 9))
torch.nn.functional.upsample(image, (9, 9), None, "bilinear", True)
torch.nn.functional.upsample_nearest(input=image, size=9)
torch.nn.UpsamplingNearest2d(scale_factor=2)(image)
torch.nn.UpsamplingBilinear2d((9, 9))(image)
torch.nn.init.uniform(torch.empty(4, 4))
torch.nn.init.normal(torch.empty(4, 4), 1.0)
torch.nn.init.constant(torch.empty(4, 4), 2.0)
torch.nn.init.eye(torch.empty(4, 4))
torch.nn.init.dirac(torch.empty(4, 4, 1))
torch.nn.init.xavier_uniform(torch.empty(4, 4))
torch.nn.init.xavier_normal(torch.empty(4, 4))
torch.nn.init.kaiming_uniform(torch.empty(4, 4))
torch.nn.init.kaiming_normal(torch.empty(4, 4))
torch.nn.init.orthogonal(torch.empty(4, 4))
torch.nn.init.sparse(torch.empty(4, 4), 0.5)
torch.has_cuda
torch.has_mps
torch.has_cudnn
torch.has_mkldnn
functorch.grad(torch.sum)(x)
functorch.vmap(torch.sum)(x)
functorch.jacrev(torch.sin)(v)
functorch.hessian(torch.sum)(v)
torch.cuda.amp.autocast(False, torch.bfloat16).fast_dtype
torch.cpu.amp.autocast(True, torch.bfloat16).fast_dtype
torch.cpu.amp.autocast(dtype=torch.float16, cache_enabled=False)._cache_enabled
torch.cpu.amp.GradScaler(4.0, enabled=True).get_scale()
""".strip().splitlines()


@pytest.mark.parametrize("code", CALLS)
def test_a_fix_that_is_called_equal_computes_the_same_to_the_last_bit(code: str, tmp_path: Path) -> None:
    after = safely_fixed(code, tmp_path)
    assert after != code
    for dtype in (torch.float32, torch.float64, torch.complex128):
        for cut in (slice(None), slice(0)):
            one, other = (outcome(line, dtype, cut) for line in (code, after))
            assert len(one) == len(other)
            for value, same in zip(one, other, strict=True):
                assert torch.equal(value, same) if isinstance(value, torch.Tensor) else value == same


# By each of these the two forms differ, or it depends on what is not in the call: sparse matrices and devices with norms
# of their own, a matrix that has no inverse, an autocast around or inside, one matrix, a second registration, a default
# device, the end of a range.
UNEQUAL = """
torch.norm(x)
torch.norm(x, p=2, dim=1)
torch.lu(x)
x.lu()
torch.chain_matmul(x)
torch.cuda.amp.autocast()
torch.cuda.amp.autocast(enabled=v)
torch.cpu.amp.autocast(True, cache_enabled=False)
torch.utils._pytree._register_pytree_node(a, b, c)
torch.library.impl_abstract(qualname="a::b")
torch.chain_matmul(*v)
torch.chain_matmul(x, out=x)
torch.cuda.amp.autocast(enabled=False)
torch.cpu.amp.autocast(False)
torch.qr(x, v)
torch.qr(x, out=v)
torch.cholesky(x, upper=v)
x.cholesky(**v)
torch.range(0, 3)
torch.range(0, 256, device="cpu")
torch.range(0, 5.5, device="cpu")
torch.range(0, 1, 0.1, device="cpu")
torch.range(5, 1, device="cpu")
torch.range(0, 1 << 24, device="cpu")
torch.range(0, 4096, device="cpu")
torch.range(0, 3, 0, device="cpu")
torch.range(0, 3, out=x, device="cpu")
torch.range(0, 3, dtype=torch.uint8, device="cpu")
torch.range(0, 3, dtype=v, device="cpu")
torch.range(0, len(v), device="cpu")
torch.range(0, v - 1, device="cpu")
torch.cuda.amp.autocast(**v)
""".strip().splitlines()


@pytest.mark.parametrize("code", UNEQUAL)
def test_a_fix_that_may_compute_something_else_is_not_safe(code: str, tmp_path: Path) -> None:
    assert safely_fixed(code, tmp_path) == code


def safely_fixed(code: str, folder: Path) -> str:
    before = f"import functorch\nimport torch\n\nx = v = image = torch.eye(4)\nprint({code})\n"
    path = folder / "train.py"
    path.write_text(before)
    save(fix_file(File(path, "train.py", Configs(Options(select=["TA901"]), folder).root_config)))
    found: list[str] = re.findall(r"print\((.*)\)\n", path.read_text())
    return found[0]


def outcome(code: str, dtype: torch.dtype, cut: slice) -> list[Any]:
    """What a call gives, and the gradients that come back to what it is given; or that it raises."""
    torch.manual_seed(0)
    names = {
        name: value[(cut,) * min(value.ndim, 2)].to(dtype).requires_grad_(dtype.is_floating_point)
        for name, value in NAMES.items()
        if isinstance(value, torch.Tensor)
    }
    try:
        value = eval(code, NAMES | names)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        return ["raises"]
    found = list(value) if isinstance(value, tuple) else [value]
    for result in list(found):
        if isinstance(result, torch.Tensor) and result.requires_grad and not result.is_leaf:
            inputs = list(names.values())
            given = torch.autograd.grad(result.square().sum(), inputs, retain_graph=True, allow_unused=True)
            found += [gradient for gradient in given if gradient is not None]
    return found


QUIET = {
    "torch.norm": "torch.norm(torch.eye(3))",
    "torch.ger": "torch.ger(torch.ones(3), torch.ones(3))",
    "Tensor.ger": "torch.ones(3).ger(torch.ones(3))",
    "torch.svd": "torch.svd(torch.eye(3))",
    "Tensor.svd": "torch.eye(3).svd()",
    "torch.nn.UpsamplingNearest2d": "torch.nn.UpsamplingNearest2d(2)(torch.ones(1, 1, 3, 3))",
    "torch.nn.UpsamplingBilinear2d": "torch.nn.UpsamplingBilinear2d(2)(torch.ones(1, 1, 3, 3))",
}


def test_each_quiet_symbol_is_used_below() -> None:
    assert {symbol.name for symbol in SYMBOLS if symbol.quiet and symbol.deprecated} == set(QUIET)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("use", QUIET.values(), ids=list(QUIET))
def test_torch_does_not_warn_of_a_quiet_symbol_and_its_use_is_a_note(use: str, tmp_path: Path) -> None:
    code = f"import torch\n\nprint({use})\n"
    exec(code, {})  # noqa: S102 - the code above
    findings = [one for one in lint_text(code, tmp_path / "train.py") if one.rule == "TA901"]
    assert [one.severity for one in findings] == [Severity.NOTE]


@pytest.mark.filterwarnings("error")
def test_a_base_class_that_torch_keeps_for_old_code_is_a_note(tmp_path: Path) -> None:
    assert [symbol.name for symbol in SYMBOLS if symbol.quiet and symbol.private] == [
        "torch.optim.lr_scheduler._LRScheduler"
    ]
    code = "from torch.optim import lr_scheduler\n\n\nclass Own(lr_scheduler._LRScheduler):\n    pass\n"
    exec(code, {"__name__": "own"})  # noqa: S102 - the code above
    assert [(one.rule, one.severity) for one in lint_text(code, tmp_path / "own.py")] == [
        ("TA904", Severity.NOTE)
    ]


def test_false_on_a_new_tensor_is_a_note(tmp_path: Path) -> None:
    code = "import torch\nx = torch.zeros(3).float()\nx.require_grad = False\nx.require_grad = True\n"
    found = [one for one in lint_text(code, tmp_path / "train.py") if one.rule == "TA902"]
    assert [(one.site.line, one.severity.value) for one in found] == [(3, "note"), (4, "error")]
