"""What a run depends on beside its code and data: environment variables, packages, settings of torch, random states."""

import os
import platform
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import distributions
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import RandomSampler

from ta_runtime.faults import keep
from ta_runtime.measure.devices import accelerator
from ta_runtime.runs import masking
from ta_runtime.snapshot.plain import plain

_ABOUT = ("METADATA", "PKG-INFO", "")
"""Where a distribution says what it is: a wheel, a folder of an egg, an egg of one file."""
_FIELD = re.compile(r"^(Name|Version):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def variables(mask: "bool | Sequence[str]" = True) -> Iterator[tuple[str, str]]:
    """The environment variables by name; secrets masked, as `masking.variable` tells them.

    `mask` may be patterns of further names whose values are masked, in any case; False: nothing is masked.
    """
    patterns = () if isinstance(mask, bool) else [pattern.upper() for pattern in mask]
    for name, value in sorted(os.environ.items()):
        if value and any(fnmatchcase(name.upper(), pattern) for pattern in patterns):
            yield name, masking.masked(value)
        else:
            yield name, value if mask is False else masking.variable(name, value)


def packages() -> Iterator[tuple[str, str]]:
    """The installed distributions and their versions, by normalised name.

    `distribution.metadata` parses the description too, which takes six times as long.
    """
    found: dict[str, str] = {}
    for distribution in distributions():
        about = next(filter(None, map(distribution.read_text, _ABOUT)), "")
        fields = dict(_FIELD.findall(about.partition("\n\n")[0]))
        name = fields.get("Name", "").lower().replace("_", "-")
        if name:
            found.setdefault(name, fields.get("Version", ""))  # the first is the one that is imported
    yield from sorted(found.items())


def software() -> Iterator[tuple[str, str]]:
    """What neither a variable nor a package says: the interpreter, the system, the build of torch."""
    yield "python", platform.python_version()
    yield "platform", platform.platform()
    yield "torch", str(torch.__version__)  # a subclass, which YAML would name
    yield "torch.debug", str(torch.version.debug)
    yield "torch.git_version", str(torch.version.git_version)
    yield "torch.cuda", str(torch.version.cuda)
    yield "torch.hip", str(torch.version.hip)
    yield "cpu_capability", torch.backends.cpu.get_cpu_capability()
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for index in range(torch.cuda.device_count()):
            yield f"cuda:{index}", torch.cuda.get_device_name(index)
        yield "cudnn", str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]


def settings() -> Iterator[tuple[str, str]]:
    """The flags of torch that numbers depend on, as they are now."""
    backends = torch.backends
    yield "default_dtype", _word(torch.get_default_dtype())
    yield "deterministic_algorithms", str(torch.are_deterministic_algorithms_enabled())
    yield "deterministic_warn_only", str(torch.is_deterministic_algorithms_warn_only_enabled())
    yield "float32_matmul_precision", torch.get_float32_matmul_precision()
    for name in ("enabled", "benchmark", "deterministic", "allow_tf32"):
        yield f"cudnn.{name}", str(getattr(backends.cudnn, name))
    yield "mkldnn.enabled", str(backends.mkldnn.enabled)
    for name in (
        "allow_tf32",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        yield f"cuda.matmul.{name}", str(getattr(backends.cuda.matmul, name))
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        enabled = getattr(backends.cuda, f"{name}_sdp_enabled", None)
        if enabled is not None:
            yield f"attention.{name}", str(enabled())
    yield "threads", str(torch.get_num_threads())
    yield "interop_threads", str(torch.get_num_interop_threads())
    yield "flush_denormal", str(_flushes())
    found = accelerator()
    for device in ("cpu", *([found.type] if found is not None else [])):
        on = torch.is_autocast_enabled(device)
        yield f"autocast.{device}", _word(torch.get_autocast_dtype(device)) if on else "off"


def random_states() -> Iterator[tuple[str, "Tensor | bytes"]]:
    """The states of all generators of random numbers that this process has in use. None of them draws by it."""
    yield "python", repr(random.getstate()).encode()
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        name, keys, *rest = numpy.random.get_state()
        yield "numpy", repr((name, rest)).encode() + keys.tobytes()
    yield "torch", torch.get_rng_state()
    for device, module in (("cuda", torch.cuda), ("xpu", torch.xpu)):
        if module.is_initialized():
            for index, generator in enumerate(module.default_generators):
                yield f"{device}:{index}", generator.get_state()
    if torch.backends.mps.is_available():
        yield "mps", torch.mps.get_rng_state()


def loader(made: Any) -> Iterator[tuple[str, str]]:
    """How a `DataLoader` makes batches."""
    dataset = made.dataset
    yield "dataset", type(dataset).__qualname__
    yield "length", _length(dataset)
    for name in (
        "batch_size",
        "num_workers",
        "drop_last",
        "prefetch_factor",
        "persistent_workers",
        "pin_memory",
    ):
        yield name, str(getattr(made, name, None))
    for name in ("sampler", "batch_sampler", "collate_fn", "worker_init_fn"):
        value: Any = getattr(made, name, None)
        named = value if hasattr(value, "__qualname__") else type(value)
        yield name, "None" if value is None else str(named.__qualname__)
    shuffles = isinstance(made.sampler, RandomSampler) or getattr(made.sampler, "shuffle", False)
    yield "shuffle", str(shuffles)
    yield "generator", "None" if made.generator is None else f"seed {made.generator.initial_seed()}"


def hyperparameters(group: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a parameter group of an optimizer sets, or its defaults: each as the `repr` of a plain value."""
    for name, value in group.items():
        if name not in ("params", "param_names"):
            yield name, repr(masking.nested(plain(value), name))


def _length(dataset: Any) -> str:
    try:
        return str(len(dataset))
    except Exception as error:  # noqa: BLE001 - the user's code
        keep(error)
        return "unknown"


def _flushes() -> bool:
    """Whether numbers below the normal ones become zero, which no function of torch tells."""
    return sys.float_info.min * 0.5 == 0


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
