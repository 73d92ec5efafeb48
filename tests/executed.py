"""What a program does: what it prints, what it raises, and the values it leaves, to compare it with another one."""

import contextlib
import io
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

LINES = 100_000  # that one program may run

# Names that torch gives what it shows: of nodes of a graph, results, layers, functions in messages; and addresses.
_SHOWN = re.compile(
    r"grad_fn=<\w+>|torch\.return_types\.\w+|0x[0-9a-f]+|\b[\w.]*cholesky\b|\bUpsamp\w+|\bUpsample\b"
)


class Outcome(NamedTuple):
    raised: str | None
    printed: str
    values: dict[str, Any]

    @property
    def ended(self) -> bool:
        return self.raised is None


class TooLong(Exception):
    """A program runs more lines than any here should."""


def executed(code: str, given: Callable[[], Mapping[str, object]] = dict) -> Outcome:
    """What a program does in a namespace of its own, which may hold what it takes for granted."""
    module = types.ModuleType("__main__")
    printed = io.StringIO()
    raised = None
    with _restored(), contextlib.redirect_stdout(printed):
        module.__dict__.update(given())
        torch.default_generator.manual_seed(
            0
        )  # `torch.manual_seed` writes the stack down for each kind of device
        random.seed(0)
        np.random.seed(0)
        sys.settrace(_limited())
        try:
            exec(compile(code, "<program>", "exec"), module.__dict__)  # noqa: S102
        except (Exception, SystemExit) as error:  # noqa: BLE001
            raised = f"{type(error).__name__}: {_SHOWN.sub('', str(error))}"
        finally:
            sys.settrace(None)
        values = {
            name: seen
            for name, value in module.__dict__.items()
            if not name.startswith("__") and (seen := _seen(value)) is not None
        }
    return Outcome(raised, _SHOWN.sub("", printed.getvalue()), values)


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """What a program may leave behind in this process is as before."""
    modules = sys.modules.get("__main__")
    dtype, enabled = torch.get_default_dtype(), torch.is_grad_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(enabled)
            assert sys.modules.get("__main__") is modules
            if torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()


def _limited() -> Callable[..., Any]:
    """A trace function that counts the lines of the program alone."""
    left = LINES

    def count(frame: types.FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != "<program>":
            return None
        left -= event == "line"
        if left < 0:
            raise TooLong
        return count

    return count


def _seen(value: object, depth: int = 6) -> Any:
    """A value as something that can be compared; None for what cannot, as a function."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu().resolve_conj().resolve_neg().reshape(-1)
        bits = plain.contiguous().view(torch.uint8).tolist() if plain.numel() else []
        gradient = _seen(value.grad) if value.is_leaf and value.grad is not None else None
        return type(value).__name__, str(value.dtype), tuple(value.shape), value.requires_grad, bits, gradient
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, torch.nn.Module):
        return value.training, [
            (name, _seen(part)) for name, part in value.state_dict(keep_vars=True).items()
        ]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype):
        return repr(value)
    if depth and isinstance(value, Mapping):
        return [(repr(key), _seen(part, depth - 1)) for key, part in value.items()]
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_seen(part, depth - 1) for part in value]
    if (
        depth
        and hasattr(value, "__dict__")
        and not isinstance(value, type | types.ModuleType | types.FunctionType)
    ):
        return _seen(vars(value), depth - 1)
    return None
