"""What happens inside attention: queries, keys, values and results of each head, and how widely each head looks.

The entropy of a row of weights is 0 for a query that looks at one key, and log(n) for one that looks at n keys alike.
It is taken from the scores, some rows at a time, so that the matrix of all weights is never there.
"""

import math
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from ta_runtime.faults import keep
from ta_runtime.measure.kinds import local
from ta_runtime.monitor.interface import Monitor
from ta_runtime.probes import hub
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.compile import traced
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.work import own_work

_NOTHING = -80.0
"""The logarithm of a weight that counts as none: beyond it `exp` leaves the normal numbers, and is 10 times as slow."""


@own_work
def monitor_scaled_dot_product_attention(
    monitor: Monitor,
    module: str | nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    activation: Tensor | None = None,
    is_reference: bool = False,
) -> None:
    """Monitor one attention, head by head: for modules to call with what they give `scaled_dot_product_attention`.

    The metrics of activations are taken of `{module}.head_{i}.query`, `.key`, `.value` and, if it is given,
    `.activation`; `attention_entropy/{module}.head_{i}` is the mean over all queries of the entropy of their weights, in
    nats. A query that the mask lets look at nothing has no weights, and is left out. Nothing happens outside of a
    monitored step, and while a checkpointed forward pass is computed again.

    Args:
        monitor: what monitors the module, or has it as a part of its reference.
        module: the module, or its name in the keys.
        query: (..., heads, queries, width).
        key: (..., heads, keys, width); where there are fewer of its heads, each is that of several in a row.
        value: (..., heads, keys, width of the values), likewise.
        attn_mask: as for `scaled_dot_product_attention`; it may come with `is_causal`, and both then hold.
        dropout_p: not looked at: the entropy is that of the weights before dropout.
        is_causal: the query `i` sees the keys up to `i`.
        scale: by default 1 / sqrt(width).
        enable_gqa: not looked at: the numbers of heads tell.
        activation: (..., heads, queries, width of the values), the result.
        is_reference: whether it runs for the reference, which a module tells by itself and a name does not. Its entropy
            is not logged.
    """
    if isinstance(module, nn.Module):
        is_reference = is_reference or module in monitor.reference_module_names
    heard = monitor.current_step_monitored if is_reference else monitor.is_monitoring()
    if not heard or traced() or in_backward():
        return
    name = monitor._get_module_name(module, is_reference)
    if monitor._is_excluded(name):
        return
    tensors = {"query": query, "key": key, "value": value, "activation": activation}
    try:
        with torch.no_grad():
            given = {kind: local(tensor.detach()) for kind, tensor in tensors.items() if tensor is not None}
            sharing = {kind: _sharing(given["query"], tensor, kind) for kind, tensor in given.items()}
            for head in range(given["query"].shape[-3]):
                for kind, tensor in given.items():
                    part = tensor[..., head // sharing[kind], :, :]
                    monitor.monitor_activations(f"{name}.head_{head}.{kind}", part, is_reference)
            if not is_reference:
                entropy = attention_entropy(given["query"], given["key"], attn_mask, is_causal, scale)
                for head, rows in enumerate(entropy.unbind(-2)):
                    monitor.log_tensor(f"attention_entropy/{name}.head_{head}", rows, _mean_of_rows)
    except Exception as error:  # noqa: BLE001 - such as heads that do not fit; the training goes on
        keep(error)
        monitor._failed(f"the attention of {name}", error)


def watch_attention(monitor: Monitor) -> Callable[[], None]:
    """Monitor each attention of a model that is not written to be: all that its modules call in monitored steps.

    What is seen is each call of `torch.nn.functional.scaled_dot_product_attention` by that name, as `nn.MultiheadAttention`
    (with `need_weights=False`) and the models of transformers (with `attn_implementation="sdpa"`) make it; it counts for
    the innermost module that runs. A name that was imported from there before keeps what it stands for, and goes unseen.

    Returns:
        A function that ends it.
    """
    if is_watched(monitor):
        return _watching[id(monitor)]
    key = id(monitor)
    watcher = weakref.ref(monitor, lambda _: stop())

    def stop() -> None:
        undo()
        if _watching.get(key) is stop:
            del _watching[key]

    undo = hub.watch("attend", partial(_watch, watcher), hub.directly)
    _watching[key] = stop
    return stop


def is_watched(monitor: Monitor) -> bool:
    """Whether `watch_attention` is on for this monitor."""
    return id(monitor) in _watching


_watching: dict[int, Callable[[], None]] = {}  # what ends it, by the id of the monitor


def _watch(watcher: "weakref.ref[Monitor]", call: Call) -> End | None:
    monitor = watcher()
    if monitor is None or not monitor.current_step_monitored or traced():
        return None
    return partial(_observe, watcher)


def _observe(watcher: "weakref.ref[Monitor]", call: Call) -> None:
    monitor = watcher()
    if monitor is not None and not call.raised:
        _attribute(monitor, call.result, call.args, call.kwargs)


def _attribute(monitor: Monitor, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """An attention is that of the innermost module of the monitor that runs; where none does, it is not looked at."""
    for module in _running(sys._getframe(1)):
        if module in monitor.module_names or module in monitor.reference_module_names:
            told = partial(monitor_scaled_dot_product_attention, monitor, module, activation=result)
            told(*args, **kwargs)
            return


def _running(frame: FrameType | None) -> Iterator[nn.Module]:
    """The modules whose calls are on the stack, the innermost first."""
    code = nn.Module._call_impl.__code__
    while frame is not None:
        if frame.f_code is code:
            yield frame.f_locals["self"]
        frame = frame.f_back


def attention_entropy(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """How widely each query looks: the entropy of its weights, in nats; (..., heads, queries).

    It is computed in float32 at least, and never negative. Of a query that the mask lets look at nothing it is minus
    infinity, the logarithm of no choice; if a score is NaN, it is NaN. Beside the result there is never more memory
    than for a block of scores, or for those of one query where these are more.

    Args:
        query: (..., heads, queries, width).
        key: (..., heads, keys, width); where there are fewer of its heads, each is that of several in a row.
        attn_mask: broadcast to (..., heads, queries, keys): what is True is seen, what is a number is added.
        is_causal: the query `i` sees the keys up to `i`.
        scale: by default 1 / sqrt(width).

    Raises:
        ValueError: the heads of `key` cannot be shared out among those of `query`.
    """
    sharing = _sharing(query, key, "key")
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        mask = None
        if attn_mask is not None:
            mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
            mask = torch.unflatten(mask, -3, (-1, sharing))
        query = torch.unflatten(query, -3, (-1, sharing))
        key = key.unsqueeze(-3).expand(*query.shape[:-2], *key.shape[-2:])
        return _entropy(query, key, mask, 0 if is_causal else None, scale).flatten(-3, -2)


def _entropy(query: Tensor, key: Tensor, mask: Tensor | None, first: int | None, scale: float) -> Tensor:
    """The same in blocks. All have the same dimensions but for the last two; `first` is the number of the first query."""
    scores = query.shape[:-1].numel() * key.shape[-2]
    block = 1 << 18 if query.device.type == "cpu" else 1 << 22  # what a cache holds; what is worth a launch
    rows = query.dim() - 2
    for dim in range(rows + 1):
        size = query.shape[dim]
        if scores <= block or size == 1:
            continue
        step = max(1, size * block // scores)
        parts = []
        for start in range(0, size, step):
            part = (slice(None),) * dim + (slice(start, start + step),)
            parts.append(
                _entropy(
                    query[part],
                    key if dim == rows else key[part],
                    None if mask is None else mask[part],
                    first if first is None or dim < rows else first + start,
                    scale,
                )
            )
        return torch.cat(parts, dim)
    return _entropy_of_block(query, key, mask, first, scale)


def _entropy_of_block(
    query: Tensor, key: Tensor, mask: Tensor | None, first: int | None, scale: float
) -> Tensor:
    dtype = torch.promote_types(query.dtype, torch.float32)
    if first is not None:  # what comes after the last query is seen by none
        seen = first + query.shape[-2]
        key, mask = key[..., :seen, :], None if mask is None else mask[..., :seen]
    scores = (query.to(dtype) * scale) @ key.to(dtype).mT
    if first is not None:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu_(first + 1)
        scores.masked_fill_(later, -math.inf)
    if mask is not None and mask.dtype is torch.bool:
        scores.masked_fill_(~mask, -math.inf)
    elif mask is not None:
        scores += mask
    logarithms = scores.log_softmax(-1).clamp_(min=_NOTHING)
    entropy = -(logarithms.exp() * logarithms).sum(-1)  # each of these is 0 or less, so it is never negative
    if mask is not None:
        entropy.masked_fill_(scores.amax(-1) == -math.inf, -math.inf)
    return entropy


def _mean_of_rows(entropy: Tensor) -> Tensor:
    """Over the queries that look at something; NaN if none does."""
    return entropy.clamp(min=0).sum() / (entropy != -math.inf).sum()


def _sharing(query: Tensor, tensor: Tensor, kind: str) -> int:
    """How many heads of the queries have one head of this tensor."""
    if min(query.dim(), tensor.dim()) < 3 or query.shape[-3] % tensor.shape[-3]:
        raise ValueError(
            f"{kind} is {tuple(tensor.shape)} beside a query of {tuple(query.shape)}: both are (..., heads, length, "
            "width), and the heads of the query a multiple of the others"
        )
    return query.shape[-3] // tensor.shape[-3]
