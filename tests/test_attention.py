"""Attention, head by head: its entropy beside a float64 matrix of all weights, and what of it a monitor logs."""

import copy
import gc
import itertools
import logging
import math
import weakref
from typing import Any

import pytest
import torch
from runtime import Seeing
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ta_runtime.monitor import ModuleMonitor, MonitorMixin, monitor_scaled_dot_product_attention
from ta_runtime.monitor.attention import attention_entropy, watch_attention

NOTHING = -math.inf


def reference(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """The entropy of each row of the whole matrix of weights, in float64."""
    query, key = query.double(), key.double()
    key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), NOTHING)
    if mask is not None:
        scores = scores.masked_fill(~mask, NOTHING) if mask.dtype is torch.bool else scores + mask.double()
    entropy = torch.special.entr(scores.softmax(-1)).sum(-1)
    return entropy.masked_fill((scores == NOTHING).all(-1), NOTHING)


def assert_alike(entropy: Tensor, expected: Tensor, tolerance: float = 5e-6) -> None:
    assert entropy.shape == expected.shape
    assert torch.equal(entropy == NOTHING, expected == NOTHING)
    looking = expected != NOTHING
    assert (entropy[looking] >= 0).all()
    assert ((entropy[looking].double() - expected[looking]).abs() < tolerance).all()


def masks(batch: int, queries: int, keys: int) -> dict[str, Tensor | None]:
    return {
        "none": None,
        "matrix": torch.rand(queries, keys) > 0.5,
        "numbers of each head": torch.randn(batch, 4, queries, keys),
        "padding": torch.rand(batch, 1, 1, keys) > 0.3,
        "padding as numbers": torch.where(torch.rand(batch, 1, 1, keys) > 0.3, 0.0, torch.finfo(torch.float32).min),
    }  # fmt: skip


@pytest.mark.parametrize("mask", masks(1, 1, 1))
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_entropy_is_that_of_the_matrix_of_all_weights(mask: str, is_causal: bool, key_heads: int) -> None:
    torch.manual_seed(0)
    for queries, keys in ((1, 1), (1, 9), (9, 1), (40, 40), (17, 70), (70, 17)):
        query, key = 2 * torch.randn(2, 4, queries, 8), torch.randn(2, key_heads, keys, 8)
        given = masks(2, queries, keys)[mask]
        expected = reference(query, key, given, is_causal)
        assert_alike(attention_entropy(query, key, given, is_causal), expected)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1000), (2, 4, 300), (40, 6, 50)], ids=str)
def test_many_blocks_give_what_one_does(shape: tuple[int, int, int], is_causal: bool) -> None:
    torch.manual_seed(0)
    batch, heads, length = shape
    query, key = torch.randn(2, batch, heads, length, 4)
    mask = torch.rand(batch, 1, length, length) > 0.2
    assert_alike(
        attention_entropy(query, key, mask, is_causal, scale=1.0), reference(query, key, mask, is_causal, 1.0)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    query, key = (30 * torch.randn(2, 1, 2, 50, 64)).to(dtype)
    entropy = attention_entropy(query, key)
    assert entropy.dtype is torch.float32
    assert_alike(entropy, reference(query, key), tolerance=1e-4)  # of scores of some thousands
    with torch.autocast("cpu", dtype):
        assert torch.equal(attention_entropy(query, key), entropy)


def test_double_precision_stays() -> None:
    query, key = torch.randn(2, 1, 2, 50, 8, dtype=torch.float64)
    assert (attention_entropy(query, key) - reference(query, key)).abs().max() < 1e-13


def test_entropy_of_equal_weights_is_the_logarithm_of_their_number() -> None:
    entropy = attention_entropy(torch.zeros(1, 1, 5, 4), torch.randn(1, 1, 5, 4), is_causal=True)
    assert entropy.flatten().tolist() == pytest.approx([math.log(n) for n in range(1, 6)])


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e3, 1e15])
def test_entropy_is_never_negative(size: float) -> None:
    torch.manual_seed(0)
    query, key = size * torch.randn(2, 4, 2, 64, 16)
    for is_causal in (False, True):
        assert (attention_entropy(query, key, is_causal=is_causal) >= 0).all()


def test_a_query_that_may_look_at_nothing_has_no_entropy() -> None:
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    for given in (mask, torch.zeros(4, 4).masked_fill(~mask, NOTHING)):
        entropy = attention_entropy(torch.zeros(1, 4, 8), torch.randn(1, 4, 8), given)
        assert entropy[0, 2] == NOTHING
        assert entropy[0, [0, 1, 3]].tolist() == pytest.approx([math.log(4)] * 3)


def test_a_score_that_is_no_number_is_not_hidden() -> None:
    query = torch.randn(1, 4, 8)
    query[0, 1, 3] = math.nan
    assert attention_entropy(query, torch.randn(1, 4, 8))[0].isnan().tolist() == [False, True, False, False]


def test_heads_that_do_not_fit_are_an_error_that_names_the_shapes() -> None:
    with pytest.raises(ValueError, match=r"key is \(1, 3, 5, 8\) beside a query of \(1, 4, 5, 8\)"):
        attention_entropy(torch.randn(1, 4, 5, 8), torch.randn(1, 3, 5, 8))
    with pytest.raises(ValueError, match=r"\(\.\.\., heads, length, width\)"):
        attention_entropy(torch.randn(5, 8), torch.randn(5, 8))


class Largest(Seeing):
    """The most elements that an operation put out."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_new = isinstance(result, Tensor) and not result._is_view() and 0 not in result.stride()
        self.elements = max(self.elements, result.untyped_storage().nbytes() // 4 if is_new else 0)
        return result


@pytest.mark.parametrize("masked", [False, True])
def test_the_matrix_of_all_weights_is_never_there(masked: bool) -> None:
    length = 2048
    query, key = torch.randn(2, 1, 2, length, 8)
    mask = torch.ones(1, 1, 1, length, dtype=torch.bool) if masked else None
    with Largest() as largest:
        attention_entropy(query, key, mask, is_causal=True)
    assert largest.elements * 8 <= length * length


# -- what a monitor logs --------------------------------------------------------------------------------------


class Attention(nn.Module, MonitorMixin):
    """Self-attention that tells its monitor, as the README of the original has it."""

    def __init__(self, tells: bool = True, dropout: float = 0.0, key_heads: int = 4, **options: Any) -> None:
        super().__init__()
        self.into = nn.Linear(16, 16 + 2 * 4 * key_heads)
        self.tells = tells
        self.sizes = 4, key_heads, key_heads
        self.options = {"dropout_p": dropout, "is_causal": True, **options}

    def forward(self, x: Tensor) -> Tensor:
        parts = self.into(x).split([4 * heads for heads in self.sizes], -1)
        query, key, value = (part.unflatten(-1, (-1, 4)).transpose(1, 2) for part in parts)
        gqa = self.sizes[0] != self.sizes[1]
        output = functional.scaled_dot_product_attention(query, key, value, enable_gqa=gqa, **self.options)
        if self.tells and self.is_monitoring:
            monitor_scaled_dot_product_attention(
                self.get_module_monitor(), module=self, query=query, key=key, value=value, activation=output,
                **self.options,
            )  # fmt: skip
        return output.transpose(1, 2).flatten(2)


def watching(model: nn.Module, **options: Any) -> ModuleMonitor:
    monitor = ModuleMonitor(monitor_step_fn=lambda step: step % 2 == 0, **options)
    monitor.set_module(model)
    return monitor


def model(**options: Any) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), Attention(**options), nn.Linear(16, 16))


def step(monitor: ModuleMonitor, run: nn.Module, x: Tensor, number: int = 0) -> dict[str, float]:
    monitor.begin_step(number)
    run(x).sum().backward()
    monitor.end_step()
    return monitor.get_step_metrics()


def entropies(metrics: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in metrics.items() if key.startswith("attention_entropy/")}


X = torch.randn(2, 12, 16, generator=torch.Generator().manual_seed(1))
HEADS = [f"attention_entropy/1.head_{head}" for head in range(4)]


def test_each_head_has_its_activations_and_its_entropy() -> None:
    watched = model()
    monitor = watching(watched)
    monitor.add_activation_metric("norm", lambda x: x.norm(), r".*head_")
    metrics = step(monitor, watched, X)
    query, key, value = watched[1].into(watched[0](X)).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
    expected = {
        **dict(zip(HEADS, reference(query, key, is_causal=True).mean((0, 2)).tolist(), strict=True)),
        **{
            f"activation/1.head_{head}.{kind}/norm": tensor[:, head].norm().item()
            for kind, tensor in {
                "query": query,
                "key": key,
                "value": value,
                "activation": functional.scaled_dot_product_attention(query, key, value, is_causal=True),
            }.items()
            for head in range(4)
        },
    }
    assert metrics == pytest.approx(expected, rel=1e-5)


def test_shared_keys_are_those_of_each_head_that_uses_them() -> None:
    watched = model(key_heads=2)
    monitor = watching(watched)
    monitor.add_activation_metric("norm", lambda x: x.norm(), r".*head_.*key")
    metrics = step(monitor, watched, X)
    norms = [metrics[f"activation/1.head_{head}.key/norm"] for head in range(4)]
    assert norms[0] == norms[1] != norms[2] == norms[3]
    assert list(entropies(metrics)) == HEADS


def test_peer_defect_dropout_makes_entropy_negative() -> None:
    plain, dropping = (step(watching(run), run, X) for run in (model(), model(dropout=0.5)))
    assert entropies(dropping) == entropies(plain)
    assert all(value > 0 for value in plain.values())


def test_peer_defect_a_mask_beside_is_causal_is_refused() -> None:
    mask = torch.ones(12, 12, dtype=torch.bool)
    mask[:, 0] = False  # so the first query looks at nothing
    query, key, value = torch.randn(3, 2, 4, 12, 4)
    watched = model()
    monitor = watching(watched)
    monitor.begin_step(0)
    monitor_scaled_dot_product_attention(
        monitor, watched[1], query, key, value, attn_mask=mask, is_causal=True
    )
    monitor.end_step()
    expected = reference(query, key, mask, is_causal=True)[:, :, 1:].mean((0, 2))
    assert [monitor.get_step_metrics()[key] for key in HEADS] == pytest.approx(expected.tolist(), rel=1e-5)


def test_peer_defect_attention_to_other_tokens_is_not_seen() -> None:
    """Where there are more keys than queries, or the values have another width."""
    query, key, value = torch.randn(2, 4, 3, 4), torch.randn(2, 4, 12, 4), torch.randn(2, 4, 12, 6)
    watched = model()
    monitor = watching(watched)
    monitor.begin_step(0)
    monitor_scaled_dot_product_attention(monitor, "1", query, key, value)
    monitor.end_step()
    expected = reference(query, key).mean((0, 2)).tolist()
    assert list(monitor.get_step_metrics().values()) == pytest.approx(expected, rel=1e-5)


def test_peer_defect_the_entropy_of_the_reference_is_mixed_into_the_model_s() -> None:
    watched = model()
    monitor = watching(watched)
    alone = step(monitor, watched, X)
    other = copy.deepcopy(watched)
    with torch.no_grad():
        other[1].into.weight.mul_(10)
    monitor.set_reference_module(other)
    monitor.add_activation_difference_metric("norm", lambda x, y: (x - y).norm(), r".*head_")
    monitor.begin_step(2)
    with torch.no_grad():
        other(X)
    watched(X)
    monitor.end_step()
    metrics = monitor.get_step_metrics()
    assert entropies(metrics) == alone
    assert metrics["activation_difference/1.head_0.query/norm"] > 1


def test_micro_batches_count_by_their_queries() -> None:
    watched = model()
    monitor = watching(watched)
    parts = [X[:, :4], X[:, :10]]
    each = [step(monitor, watched, part, 2 * number) for number, part in enumerate(parts)]
    monitor.begin_step(6)
    for part in parts:
        watched(part)
        monitor.after_micro_batch()
    monitor.end_step()
    expected = {key: (4 * each[0][key] + 10 * each[1][key]) / 14 for key in HEADS}
    assert monitor.get_step_metrics() == pytest.approx(expected, rel=1e-5)


def test_a_recomputed_attention_counts_once() -> None:
    class Checkpointed(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(super().forward, x, use_reentrant=False)

    torch.manual_seed(0)
    watched = Checkpointed(nn.Linear(16, 16), Attention(), nn.Linear(16, 16))
    monitor = watching(watched)
    first, second = X[:, :4], X[:, :10]
    monitor.begin_step(0)
    watched(first).sum().backward()  # in which it is computed again
    watched(second)
    monitor.end_step()
    both = monitor.get_step_metrics()
    each = [step(monitor, watched, part, 2 + 2 * number) for number, part in enumerate((first, second))]
    assert both == pytest.approx({key: (4 * each[0][key] + 10 * each[1][key]) / 14 for key in HEADS})


def test_what_cannot_be_measured_is_told_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    watched = model()
    monitor = watching(watched)
    monitor.begin_step(0)
    with caplog.at_level(logging.WARNING):
        monitor_scaled_dot_product_attention(monitor, watched[1], *torch.randn(3, 5, 8))
    assert "(..., heads, length, width)" in caplog.text
    monitor.end_step()


def test_excluded_modules_and_steps_that_are_not_monitored_cost_nothing() -> None:
    class Counted(Seeing):
        operations = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.operations += 1
            return func(*args, **(kwargs or {}))

    def operations(number: int, **options: Any) -> int:
        watched = model()
        monitor = watching(watched, **options)
        monitor.begin_step(number)
        with Counted() as counts:
            watched(X)
        monitor.end_step()
        return counts.operations

    assert operations(1) == operations(0, excluded_modules_regex="1") < operations(0)


def test_no_number_of_the_run_changes() -> None:
    def losses(watched: nn.Module, monitor: ModuleMonitor | None) -> list[float]:
        torch.manual_seed(3)
        found = []
        for number in range(3):
            if monitor is not None:
                monitor.begin_step(2 * number)
            loss = watched(X + torch.rand(())).square().mean()
            loss.backward()
            found += [loss.item(), torch.rand(()).item()]
            if monitor is not None:
                monitor.end_step()
        return [*found, *(p.grad.sum().item() for p in watched.parameters())]

    watched = model(dropout=0.5)
    assert losses(watched, watching(watched)) == losses(model(dropout=0.5), None)


# -- without a word in the model ------------------------------------------------------------------------------


def test_watched_attention_gives_what_the_model_would_tell_by_itself() -> None:
    def metrics(tells: bool) -> dict[str, float]:
        watched = model(tells=tells)
        monitor = watching(watched)
        monitor.add_activation_metric("std", "std")
        stop = watch_attention(monitor)
        if tells:
            stop()
        try:
            return step(monitor, watched, X)
        finally:
            stop()

    assert metrics(tells=False) == metrics(tells=True)
    assert functional.scaled_dot_product_attention is torch._C._nn.scaled_dot_product_attention


def test_attention_of_torch_s_own_layers_is_seen() -> None:
    torch.manual_seed(0)
    watched = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    monitor = watching(watched)
    stop = watch_attention(monitor)
    try:
        metrics = step(monitor, watched, X)
    finally:
        stop()
    attention = watched.self_attn
    query, key, _ = functional.linear(X, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1)
    query, key = (part.unflatten(-1, (4, 4)).transpose(1, 2) for part in (query, key))
    expected = reference(query, key).mean((0, 2)).tolist()
    keys = [f"attention_entropy/self_attn.head_{head}" for head in range(4)]
    assert [metrics[key] for key in keys] == pytest.approx(expected, rel=1e-5)


def test_a_step_that_is_not_monitored_is_not_watched() -> None:
    watched = model(tells=False)
    monitor = watching(watched)
    stop = watch_attention(monitor)
    try:
        assert step(monitor, watched, X, 1) == {}
        monitor.begin_step(2)
        with monitor.no_monitor():
            watched(X)
        functional.scaled_dot_product_attention(*torch.randn(3, 1, 1, 2, 2))  # of no module
        monitor.end_step()
        assert monitor.get_step_metrics() == {}
    finally:
        stop()


def test_each_monitor_sees_its_own_model() -> None:
    models = [model(tells=False), nn.Sequential(model(tells=False))]
    monitors = [watching(each) for each in models]
    stops = [watch_attention(monitor) for monitor in monitors]
    try:
        found = []
        for monitor in monitors:
            monitor.begin_step(0)
        for each in models:
            each(X)
        for monitor in monitors:
            monitor.end_step()
            found.append(monitor.get_step_metrics())
    finally:
        for stop in stops:
            stop()
    assert list(found[0]) == HEADS
    assert list(found[1]) == [key.replace("/1.", "/0.1.") for key in HEADS]
    assert list(found[0].values()) == list(found[1].values())


def test_a_monitor_that_is_gone_leaves_nothing_behind() -> None:
    before = functional.scaled_dot_product_attention
    monitor = watching(model(tells=False))
    watch_attention(monitor)
    assert functional.scaled_dot_product_attention is not before
    gone = weakref.ref(monitor)
    del monitor
    gc.collect()
    assert gone() is None
    assert functional.scaled_dot_product_attention is before


def test_watched_attention_still_compiles_and_scripts() -> None:
    watched = model(tells=False)
    monitor = watching(watched)
    stop = watch_attention(monitor)
    try:
        frames = itertools.count()

        def backend(graph: Any, inputs: Any) -> Any:
            next(frames)
            return graph.forward

        compiled = torch.compile(watched, backend=backend, fullgraph=True)
        for number in (1, 3, 5):
            monitor.begin_step(number)
            assert torch.equal(compiled(X), watched(X))
            monitor.end_step()
        assert next(frames) == 1
    finally:
        stop()
