"""The refined coordinate check beside its formulas, and what it leaves as it was."""

import copy
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ta_runtime.monitor import ModuleMonitor, MonitorMixin, RefinedCoordinateCheck

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))


def moved(model: nn.Module, by: float = 0.1) -> None:
    """What training does."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += by * torch.randn_like(parameter)


class Checked:
    """A model some steps after its initialisation, which is its reference, and both under a check."""

    def __init__(self, make: Callable[[], nn.Module], by: float = 0.1, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = make()
        self.reference = copy.deepcopy(self.model)
        self.monitor = ModuleMonitor(monitor_step_fn=lambda step: step % 2 == 0, **options)
        self.monitor.set_module(self.model)
        self.monitor.set_reference_module(self.reference)
        self.check = RefinedCoordinateCheck(self.monitor)
        moved(self.model, by)

    def metrics(self, *args: Any, step: int = 0, **kwargs: Any) -> dict[str, float]:
        self.monitor.begin_step(step)
        self.monitor.run_reference(*args, **kwargs)
        self.model(*args, **kwargs)
        self.check.refined_coordinate_check()
        self.monitor.end_step()
        return self.monitor.get_step_metrics()


def l2(tensor: Tensor) -> float:
    return tensor.float().norm(dim=-1).mean().item()


class Tokens(nn.Module):
    """Each kind of layer that has formulas of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 6)
        self.relu = nn.ReLU()
        self.plain = nn.Linear(6, 3, bias=False)
        self.unused = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, ids: Tensor) -> Tensor:
        return self.plain(self.relu(self.linear(self.norm(self.embed(ids)))))


def test_the_formulas_are_those_of_the_original() -> None:
    checked = Checked(Tokens)
    now, then = checked.model, checked.reference
    nn.init.normal_(now.norm.bias), nn.init.normal_(then.norm.bias)
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    metrics = checked.metrics(ids)

    def normal(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (8,))

    e_t, e_0 = now.embed(ids), then.embed(ids)
    n_t, n_0 = now.norm(e_t), then.norm(e_0)
    l_t, l_0 = now.linear(n_t), then.linear(n_0)
    r_t, r_0 = l_t.relu(), l_0.relu()
    bias, norm = now.linear.bias, now.norm
    expected = {
        "RCC (W_t-W_0)x_t/embed/l2norm": l2(e_t - e_0),
        "RCC (W_t-W_0)x_t/norm/l2norm": l2(n_t - then.norm(e_t)),
        "RCC W_0(x_t-x_0)/norm/l2norm": l2(then.norm(e_t) - n_0),
        "RCC x_t/norm/l2norm": l2(e_t),
        "RCC (x_t-x_0)/norm/l2norm": l2(e_t - e_0),
        "RCC (W_t-W_0)x_t/norm.weight/l2norm": l2(normal(e_t) * (norm.weight - then.norm.weight)),
        "RCC W_0(x_t-x_0)/norm.weight/l2norm": l2((normal(e_t) - normal(e_0)) * then.norm.weight),
        "RCC (W_t-W_0)x_t/norm.weight/W_t x_t/l2norm": l2(normal(e_t) * norm.weight),
        "RCC W_0(x_t-x_0)/norm.weight/W_0 x_0/l2norm": l2(normal(e_0) * then.norm.weight),
        "RCC (W_t-W_0)x_t/norm.weight/x_t/l2norm": l2(normal(e_t)),
        "RCC W_0(x_t-x_0)/norm.weight/x_t-x_0/l2norm": l2(normal(e_t) - normal(e_0)),
        "RCC (W_t-W_0)x_t/linear/l2norm": l2(l_t - then.linear(n_t)),
        "RCC W_0(x_t-x_0)/linear/l2norm": l2(then.linear(n_t) - l_0),
        "RCC x_t/linear/l2norm": l2(n_t),
        "RCC (x_t-x_0)/linear/l2norm": l2(n_t - n_0),
        "RCC (W_t-W_0)x_t/linear.weight/l2norm": l2(n_t @ (now.linear.weight - then.linear.weight).T),
        "RCC W_0(x_t-x_0)/linear.weight/l2norm": l2((n_t - n_0) @ then.linear.weight.T),
        "RCC (W_t-W_0)x_t/linear.weight/W_t x_t/l2norm": l2(l_t - bias),
        "RCC W_0(x_t-x_0)/linear.weight/W_0 x_0/l2norm": l2(l_0 - then.linear.bias),
        "RCC (W_t-W_0)x_t/relu/l2norm": 0.0,
        "RCC W_0(x_t-x_0)/relu/l2norm": l2(r_t - r_0),
        "RCC x_t/relu/l2norm": l2(l_t),
        "RCC (x_t-x_0)/relu/l2norm": l2(l_t - l_0),
        "RCC (W_t-W_0)x_t/plain/l2norm": l2(r_t @ (now.plain.weight - then.plain.weight).T),
        "RCC W_0(x_t-x_0)/plain/l2norm": l2((r_t - r_0) @ then.plain.weight.T),
        "RCC x_t/plain/l2norm": l2(r_t),
        "RCC (x_t-x_0)/plain/l2norm": l2(r_t - r_0),
        "RCC (W_t-W_0)x_t/plain.weight/l2norm": l2(r_t @ (now.plain.weight - then.plain.weight).T),
        "RCC W_0(x_t-x_0)/plain.weight/l2norm": l2((r_t - r_0) @ then.plain.weight.T),
        "RCC (W_t-W_0)x_t/plain.weight/W_t x_t/l2norm": l2(now.plain(r_t)),
        "RCC W_0(x_t-x_0)/plain.weight/W_0 x_0/l2norm": l2(then.plain(r_0)),
    }
    assert metrics == pytest.approx(expected, rel=1e-5, abs=1e-6)


def blocks() -> nn.Sequential:
    """Layers whose passes leave something behind in training: drawn numbers, running statistics."""
    return nn.Sequential(
        nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3))
    )


def test_peer_defect_the_reference_counts_the_batches_of_the_check() -> None:
    checked = Checked(blocks)
    before = copy.deepcopy(checked.reference.state_dict())
    checked.metrics(X)
    after = checked.reference.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert checked.model[1].num_batches_tracked == 1


def test_peer_defect_the_check_draws_random_numbers() -> None:
    def drawn(checked: Checked, check: bool) -> tuple[list[Tensor], Tensor]:
        torch.manual_seed(5)
        checked.monitor.begin_step(0)
        if check:
            checked.monitor.run_reference(X)
        outputs = []
        for _ in range(2):
            outputs += [checked.model(X), torch.rand(3)]
            if check:
                checked.check.refined_coordinate_check()
                checked.monitor.run_reference(X)
        return outputs, torch.get_rng_state()

    with_it, state = drawn(Checked(blocks), True)
    without, other = drawn(Checked(blocks), False)
    assert all(map(torch.equal, with_it, without))
    assert torch.equal(state, other)


def test_equal_weights_differ_by_nothing_though_dropout_drops() -> None:
    checked = Checked(blocks, by=0.0)
    metrics = checked.metrics(X)
    assert checked.model.training
    assert metrics["RCC x_t/3.1/l2norm"] > 0
    scales = ("RCC x_t/", "/W_t x_t/", "/W_0 x_0/")
    differences = {key: value for key, value in metrics.items() if not any(scale in key for scale in scales)}
    assert differences == dict.fromkeys(differences, 0.0)


def test_the_reference_runs_in_the_mode_of_the_model_and_its_own_comes_back() -> None:
    checked = Checked(lambda: nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 2)), by=0.0)
    checked.reference.eval()
    assert checked.metrics(X)["RCC (W_t-W_0)x_t/0/l2norm"] == 0
    assert not any(module.training for module in checked.reference.modules())
    checked.model.load_state_dict(
        checked.reference.state_dict()
    )  # statistics that are those of the reference
    checked.model.eval(), checked.reference.train()
    assert checked.metrics(X, step=2)["RCC (W_t-W_0)x_t/0/l2norm"] == 0
    assert all(module.training for module in checked.reference.modules())


class Outer(nn.Module):
    """A module around another, which it calls in a way of its own."""

    def __init__(self, inner: nn.Module, call: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = inner
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.inner, x)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, *, hidden: Tensor, options: dict[str, Any], mask: Tensor | None = None) -> Tensor:
        return hidden * self.weight * options["factors"][0]


def test_peer_defect_modules_called_by_keyword_crash() -> None:
    checked = Checked(
        lambda: Outer(Scaled(), lambda inner, x: inner(hidden=x, options={"factors": (x * 2, 1)}))
    )
    assert checked.metrics(X) == pytest.approx(
        {
            "RCC (W_t-W_0)x_t/inner/l2norm": l2(X * X * 2 * (checked.model.inner.weight - 1)),
            "RCC W_0(x_t-x_0)/inner/l2norm": 0.0,
            "RCC x_t/inner/l2norm": l2(X),
            "RCC (x_t-x_0)/inner/l2norm": 0.0,
        },
        rel=1e-5,
    )


def test_peer_defect_modules_that_put_out_several_tensors_crash() -> None:
    checked = Checked(lambda: Outer(nn.LSTM(8, 5), lambda inner, x: inner(x)[0]))
    metrics = checked.metrics(X)
    outputs, (hidden, cell) = checked.model.inner(X)
    before, (hidden_0, cell_0) = checked.reference.inner(X)
    found = {key: value for key, value in metrics.items() if key.startswith("RCC (W_t-W_0)x_t/")}
    assert found == pytest.approx(
        {
            "RCC (W_t-W_0)x_t/inner[0]/l2norm": l2(outputs - before),
            "RCC (W_t-W_0)x_t/inner[1.0]/l2norm": l2(hidden - hidden_0),
            "RCC (W_t-W_0)x_t/inner[1.1]/l2norm": l2(cell - cell_0),
        },
        rel=1e-5,
    )
    assert {key for key in metrics if "x_0" not in key and "W" not in key} == {"RCC x_t/inner/l2norm"}


def test_peer_defect_modules_called_twice_crash() -> None:
    checked = Checked(lambda: Outer(nn.Linear(8, 8, bias=False), lambda inner, x: inner(inner(x))))
    metrics = checked.metrics(X)
    w_t, w_0 = checked.model.inner, checked.reference.inner
    first, second = w_t(X) - w_0(X), w_t(w_t(X)) - w_0(w_t(X))
    assert metrics["RCC (W_t-W_0)x_t/inner/l2norm"] == pytest.approx((l2(first) + l2(second)) / 2)
    second = w_0(w_t(X)) - w_0(w_0(X))
    assert metrics["RCC W_0(x_t-x_0)/inner/l2norm"] == pytest.approx(l2(second) / 2)


def test_peer_defect_the_check_of_an_autocast_model_crashes() -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), by=0.0)
    checked.monitor.begin_step(0)
    with torch.autocast("cpu", torch.bfloat16):
        checked.monitor.run_reference(X)
        checked.model(X)
    checked.check.refined_coordinate_check()  # outside, and in bfloat16 all the same
    checked.monitor.end_step()
    metrics = checked.monitor.get_step_metrics()
    assert metrics["RCC (W_t-W_0)x_t/2/l2norm"] == 0
    assert "RCC (W_t-W_0)x_t/2.weight/l2norm" in metrics


def test_peer_defect_modules_that_are_given_ids_crash() -> None:
    checked = Checked(lambda: Outer(Tokens(), lambda inner, x: inner(x)))
    metrics = checked.metrics(torch.arange(10))
    assert metrics["RCC (W_t-W_0)x_t/inner/l2norm"] > 0
    assert "RCC x_t/inner/l2norm" not in metrics


def test_peer_defect_what_a_module_overwrites_is_taken_for_its_input() -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True)))
    given = checked.model[0](X)
    metrics = checked.metrics(X)
    assert metrics["RCC x_t/1/l2norm"] == pytest.approx(l2(given))
    assert metrics["RCC (W_t-W_0)x_t/0/l2norm"] == pytest.approx(l2(given - checked.reference[0](X)))


def test_peer_defect_the_bias_is_that_after_the_optimizer_s_step() -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 8)))
    expected = checked.metrics(X)
    checked.monitor.begin_step(2)
    checked.monitor.run_reference(X)
    checked.model(X)
    moved(checked.model)
    checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    key = "RCC (W_t-W_0)x_t/0.weight/W_t x_t/l2norm"
    assert checked.monitor.get_step_metrics()[key] == expected[key]


def test_what_readme_of_the_original_does_under_no_monitor_works() -> None:
    checked = Checked(Tokens)
    ids = torch.arange(10)
    expected = checked.metrics(ids)
    checked.monitor.begin_step(2)
    with checked.monitor.no_monitor():
        checked.reference(ids)
        checked.model(ids + 0)  # a validation, which is not monitored
    checked.model(ids)
    checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    assert checked.monitor.get_step_metrics() == expected


@pytest.mark.parametrize("at_the_end", [False, True])
def test_micro_batches_count_by_their_tokens(at_the_end: bool) -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 4)))
    together = checked.metrics(X)
    checked.monitor.begin_step(2)
    for part in (X[:1], X[1:]):
        checked.monitor.run_reference(part)
        checked.model(part)
        if not at_the_end:
            checked.check.refined_coordinate_check()
        checked.monitor.after_micro_batch()
    if at_the_end:
        checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    assert checked.monitor.get_step_metrics() == pytest.approx(together, rel=1e-5)


def test_experts_that_see_other_tokens_than_the_reference_s_are_compared_by_their_weights_alone() -> None:
    checked = Checked(lambda: Outer(nn.Linear(8, 4, bias=False), lambda inner, x: inner(x)))
    checked.monitor.begin_step(0)
    checked.monitor.run_reference(X[:3])
    checked.model(X)
    checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    metrics = checked.monitor.get_step_metrics()
    weight = checked.model.inner.weight - checked.reference.inner.weight
    assert metrics["RCC (W_t-W_0)x_t/inner/l2norm"] == pytest.approx(l2(X @ weight.T), rel=1e-5)
    assert "RCC W_0(x_t-x_0)/inner/l2norm" not in metrics
    assert "RCC (x_t-x_0)/inner/l2norm" not in metrics


def test_activations_kept_on_the_cpu_give_the_same() -> None:
    ids = torch.arange(10)
    assert Checked(Tokens, cpu_offload=True).metrics(ids) == Checked(Tokens).metrics(ids)


def test_excluded_modules_and_other_steps_are_left_out() -> None:
    checked = Checked(Tokens, excluded_modules_regex="norm|relu")
    ids = torch.arange(10)
    assert {key.split("/")[1].removesuffix(".weight") for key in checked.metrics(ids)} == {
        "embed", "linear", "plain",
    }  # fmt: skip
    assert checked.metrics(ids, step=1) == {}


def test_a_check_without_a_forward_pass_says_what_is_missing() -> None:
    checked = Checked(Tokens)
    checked.monitor.begin_step(0)
    with pytest.raises(ValueError, match="no forward pass of the model in step 0"):
        checked.check.refined_coordinate_check()
    checked.model(torch.arange(10))
    with pytest.raises(
        ValueError, match="no forward pass of the reference in step 0: run it after `begin_step`"
    ):
        checked.check.refined_coordinate_check()
    checked.monitor.run_reference(torch.arange(10))
    checked.model(torch.arange(10))
    checked.monitor.begin_step(2)
    with pytest.raises(ValueError, match="no forward pass of the model in step 2"):  # that of step 0 is over
        checked.check.refined_coordinate_check()


def test_a_check_needs_a_module_and_its_reference() -> None:
    monitor = ModuleMonitor()
    with pytest.raises(ValueError, match="set the module"):
        RefinedCoordinateCheck(monitor)
    monitor.set_module(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="set the reference"):
        RefinedCoordinateCheck(monitor)


def test_a_module_that_cannot_run_by_itself_is_told_and_the_others_are_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Borrowing(nn.Module):
        borrowed: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            assert self.borrowed is not None, "nothing is borrowed"
            return x + self.borrowed

    def lend(inner: nn.Module, x: Tensor) -> Tensor:
        inner[0].borrowed = x
        try:
            return inner(x)
        finally:
            inner[0].borrowed = None

    checked = Checked(lambda: Outer(nn.Sequential(Borrowing(), nn.Linear(8, 2)), lend))
    with caplog.at_level(logging.WARNING):
        metrics = checked.metrics(X)
    assert "the refined coordinate check of inner.0 could not be measured" in caplog.text
    assert "nothing is borrowed" in caplog.text
    assert metrics["RCC (W_t-W_0)x_t/inner.1/l2norm"] > 0
    assert not checked.monitor.ignore_reference_module_activations


def test_a_module_that_runs_more_often_than_its_reference_is_told(caplog: pytest.LogCaptureFixture) -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
    checked.monitor.begin_step(0)
    checked.monitor.run_reference(X)
    checked.model[0](X)
    checked.model(X)
    with caplog.at_level(logging.WARNING):
        checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    assert "0: it ran 2 times in the model and 1 times in the reference" in caplog.text
    assert {key.split("/")[1][0] for key in checked.monitor.get_step_metrics()} == {"1"}


def test_recomputed_layers_ran_once() -> None:
    checked = Checked(
        lambda: Outer(nn.Linear(8, 8), lambda inner, x: checkpoint(inner, x, use_reentrant=False))
    )
    expected = checked.metrics(X)
    checked.monitor.begin_step(2)
    checked.monitor.run_reference(X)
    checked.model(X).sum().backward()
    checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    assert checked.monitor.get_step_metrics() == expected


def test_what_modules_log_by_themselves_is_logged_once() -> None:
    class Telling(nn.Linear, MonitorMixin):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            if self.is_monitoring:
                self.get_module_monitor().log_tensor("scale", y.abs())
            return y

    checked = Checked(lambda: nn.Sequential(Telling(8, 8)), by=1.0)
    assert checked.metrics(X)["scale"] == pytest.approx(checked.model(X).abs().mean().item())


def test_a_compiled_model_has_no_break_and_runs_uncompiled_in_steps_that_are_checked() -> None:
    checked = Checked(Tokens, compiled="eager")
    checked.monitor.add_activation_metric("mean")
    ids = torch.arange(10)
    frames = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        frames.append(graph)
        return graph.forward

    checked.model.compile(backend=backend, fullgraph=True)
    for step in (1, 2, 3, 4):
        if checked.monitor.is_step_monitored(step):
            metrics = checked.metrics(ids, step=step)
            assert "RCC (W_t-W_0)x_t/embed/l2norm" in metrics
        else:
            checked.model(ids)
    assert len(frames) == 1


def test_a_copy_of_the_model_is_not_heard() -> None:
    checked = Checked(Tokens)
    ids = torch.arange(10)
    expected = checked.metrics(ids)
    checked.monitor.begin_step(2)
    copied = copy.deepcopy(checked.model)
    checked.monitor.run_reference(ids)
    copied(ids)
    checked.model(ids)
    checked.check.refined_coordinate_check()
    checked.monitor.end_step()
    assert checked.monitor.get_step_metrics() == expected


def test_a_check_that_is_gone_leaves_no_hook() -> None:
    checked = Checked(Tokens)
    checked.metrics(torch.arange(10))
    del checked.check
    gc.collect()
    for model in (checked.model, checked.reference):
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_layer_that_raised_is_not_taken_for_the_one_that_caught_it() -> None:
    class Raising(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("never works")

    class Catching(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            try:
                return super().forward(1000 * x)
            except RuntimeError:
                return x

    checked = Checked(lambda: nn.Sequential(Catching(Raising()), nn.Linear(8, 2)))
    metrics = checked.metrics(X)
    assert metrics["RCC x_t/0/l2norm"] == pytest.approx(l2(X))
    assert not any("/0.0/" in key for key in metrics)


def test_half_precision_is_compared_in_single() -> None:
    checked = Checked(lambda: nn.Sequential(nn.Linear(8, 64)).bfloat16(), by=0.01)
    x = X.bfloat16()
    expected = l2(checked.model(x).float() - checked.reference(x).float())
    assert checked.metrics(x)["RCC (W_t-W_0)x_t/0/l2norm"] == pytest.approx(expected, rel=1e-5)


def test_its_hooks_are_there_in_monitored_steps_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    monitor = ModuleMonitor(monitor_step_fn=lambda step: step % 2 == 0)
    monitor.set_module(model)
    monitor.set_reference_module(copy.deepcopy(model))
    check = RefinedCoordinateCheck(monitor)
    found = []
    for step in range(3):
        monitor.begin_step(step)
        found.append(len(model[0]._forward_hooks))
        monitor.end_step()
        found.append(len(model[0]._forward_hooks))
    assert found == [1, 0, 0, 0, 1, 0]
    monitor.begin_step(4)
    del check
    gc.collect()
    assert not model[0]._forward_hooks


def test_of_a_compiled_model_there_is_one_warning_and_no_check(caplog: pytest.LogCaptureFixture) -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    monitor = ModuleMonitor(monitor_step_fn=None)
    monitor.set_module(model)
    monitor.set_reference_module(copy.deepcopy(model))
    check = RefinedCoordinateCheck(monitor)
    model.compile(backend="eager")
    stop = monitor.watch_attention()
    try:
        for step in range(2):
            monitor.begin_step(step)
            monitor.run_reference(torch.ones(2, 3))
            model(torch.ones(2, 3))
            check.refined_coordinate_check()
            monitor.end_step()
            assert monitor.get_step_metrics() == {}
    finally:
        stop()
        torch._dynamo.reset()
    assert [record.getMessage().count("the model is compiled") for record in caplog.records] == [1]
