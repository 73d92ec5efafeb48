"""`ta-runtime report`: the page of a run, as it is written, and as a browser shows it."""

import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import commands
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from plotly import graph_objects

from ta_lint.core.errors import UsageError
from ta_runtime import extras
from ta_runtime.cli import main
from ta_runtime.report import html
from ta_runtime.report.layers import ordered
from ta_runtime.report.logged import _parts
from ta_runtime.report.words import json_of
from ta_runtime.runs import Run, RunWriter

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>&amp;<b>"

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 4)
        self.add_module("<script>hit = 1<", nn.Linear(8, 16))

    def forward(self, x):
        for layer in reversed(self._modules.values()):
            x = layer(x)
        return x


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=0.1)  # <script>window.hit = 1</script>
loader = DataLoader(TensorDataset(torch.randn(160, 8)), batch_size=4)
for step, (x,) in enumerate(loader):
    loss = model(x).square().mean() * (1 if step < 30 else float("inf"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if model is None:
    optimizer.param_groups[0]["betas"] = torch.load("never", weights_only=False)
"""

Points = dict[int, float]
NUMBERS = count()


def write(
    folder: Path,
    metrics: dict[str, Points],
    *,
    rank: int = 0,
    ranks: int = 1,
    findings: list[Any] | None = None,
) -> Run:
    """A run with these numbers by key and step."""
    writer = RunWriter(folder, rank=rank, world_size=ranks)
    writer.begin()
    rows = [
        {"step": step, "key": key, "value": value}
        for key, points in metrics.items()
        for step, value in points.items()
    ]
    writer.metrics.add(rows)
    writer.flush()
    if findings is not None:
        (folder / "findings.json").write_text(json.dumps(findings))
    return Run(folder)


def finding(**fields: Any) -> dict[str, Any]:
    return {
        "rule": "TA102", "name": "exploding-gradient", "severity": "error", "message": "the norm is `1e9`",
        "path": "train.py", "cell": None, "line": 3, "column": 1, "end_line": 3, "end_column": 9, "scope": "",
        "observer": "runtime", "verdict": None, "evidence": {"norm": 1e9, "step": 7, "times": 2}, "related": [],
        "fix": None, "fingerprint": f"{next(NUMBERS)}:1", "suppression": None, "baselined": False, "url": "https://example.org/TA102",
        **fields,
    }  # fmt: skip


def figures(page: str) -> dict[str, Any]:
    """What the page gives to plotly.js."""
    [found] = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    return dict(json.loads(found))


def text(page: str) -> str:
    """What a reader sees, with single spaces."""
    body = re.sub(r"(?s)<(script|style).*?</\1>", "", page.partition("<body>")[2])

    class Text(HTMLParser):
        parts: list[str] = []  # noqa: RUF012

        def handle_data(self, data: str) -> None:
            self.parts.append(data)

    parser = Text()
    parser.parts = []
    parser.feed(body)
    return " ".join("".join(parser.parts).split())


def curve(steps: int, value: Callable[[int], float] = lambda step: 1 / (1 + step)) -> Points:
    return {step: value(step) for step in range(steps)}


# -- numbers ------------------------------------------------------------------------------------------------------


def test_of_a_long_run_no_extreme_is_lost(tmp_path: Path) -> None:
    losses = curve(200_000, lambda step: 2 + math.sin(step))
    losses |= {77_777: 1e6, 123_456: 1e-6, 150_001: math.nan}
    page = html(write(tmp_path / "run", {"step/loss": losses}))
    raw, medians = figures(page)["loss"]["data"]
    drawn = dict(zip(raw["x"], raw["y"], strict=True))
    assert (drawn[77_777], drawn[123_456]) == (1e6, 1e-6)
    assert 0 in drawn
    assert 199_999 in drawn
    assert len(drawn) <= 1202
    assert max(medians["y"]) < 4
    shown = text(page)
    assert "largest 1,000,000 at step 77,777" in shown
    assert "Not finite at 1 step, from step 150,001 on" in shown
    assert "199,999 values are drawn as the smallest and the largest of each of 600 intervals" in shown
    assert len(page) < 5_200_000


def test_a_short_run_is_drawn_as_it_is(tmp_path: Path) -> None:
    page = html(write(tmp_path / "run", {"step/loss": curve(50)}))
    [line] = figures(page)["loss"]["data"]
    assert (line["x"], line["y"][1]) == (list(range(50)), 0.5)
    assert "drawn as" not in text(page)


def test_steps_that_are_not_finite_are_a_band_of_their_own(tmp_path: Path) -> None:
    losses = curve(20) | {5: math.inf, 6: math.nan, 12: -math.inf}
    layout = figures(html(write(tmp_path / "run", {"step/loss": losses})))["loss"]["layout"]
    assert [(shape["x0"], shape["x1"]) for shape in layout["shapes"]] == [(4.5, 6.5), (11.5, 12.5)]


def test_a_loss_that_was_never_finite_is_said_to_be_so(tmp_path: Path) -> None:
    shown = text(html(write(tmp_path / "run", {"step/loss": curve(3, lambda _: math.nan)})))
    assert "Loss: not finite at all 3 steps." in shown
    assert "never finite" in shown


def test_each_optimizer_has_a_line(tmp_path: Path) -> None:
    page = html(
        write(tmp_path / "run", {"step/loss": curve(9), "step/loss/1": curve(9), "step/loss/10": curve(9)})
    )
    assert [line["name"] for line in figures(page)["loss"]["data"]] == [
        "optimizer 0",
        "optimizer 1",
        "optimizer 10",
    ]


def test_of_several_ranks_the_range_is_drawn(tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        run = write(
            tmp_path / "run",
            {
                "step/loss": curve(5, lambda step: 10 * rank + step),  # noqa: B023
                "step/seconds": curve(5, lambda _: 1.0),
                "step/waited_seconds": curve(5, lambda _: rank / 4),  # noqa: B023
                "gradient/a.weight/norm": {0: 1.0 + rank},
            },
            rank=rank,
            ranks=3,
        )
    page = html(run)
    low, high, line = figures(page)["loss"]["data"]
    assert (low["y"][0], high["y"][0], line["y"]) == (0, 20, [0, 1, 2, 3, 4])
    assert figures(page)["gradients"]["data"][0]["text"] == [["3"]]
    assert "waiting for data25 %" in text(page)
    assert "3 ranks" in text(page)


def test_the_first_step_waits_and_has_no_time_so_it_is_no_part_of_the_share(tmp_path: Path) -> None:
    metrics = {"step/seconds": {1: 2.0, 2: 2.0}, "step/waited_seconds": {0: 9.0, 1: 1.0, 2: 0.0}}
    assert "25 % was spent waiting for data" in text(html(write(tmp_path / "run", metrics)))


def test_nothing_is_said_of_waiting_where_no_loader_was_asked(tmp_path: Path) -> None:
    page = html(write(tmp_path / "run", {"step/seconds": curve(5)}))
    assert "No DataLoader was asked for a batch" in text(page)
    assert [bar["name"] for bar in figures(page)["step-time"]["data"]] == ["a step"]


def test_every_chart_is_one_that_plotly_knows(pages: dict[str, Path]) -> None:
    """It passes over what it does not know, and so over what is misspelt."""
    for path in pages.values():
        for figure in figures(path.read_text()).values():
            graph_objects.Figure(
                json.loads(
                    re.sub(r'"--[a-z0-9-]+(?:,--[a-z]+)?"', '"red"', json.dumps(figure)).replace(
                        '"colorscale": "red"', '"colorscale": "reds"'
                    )
                )
            )


# -- what the script logs -----------------------------------------------------------------------------------------


def test_what_the_script_logged_is_drawn_over_the_same_steps(tmp_path: Path) -> None:
    """Of one metric the values of training and of evaluation are in one chart."""
    logged = {
        "train/loss": curve(200),
        "val/loss": {50: 2.0, 199: 1.0},
        "epoch": {199: 1.0},
        "eval_f1": {9: 0.5},
    }
    metrics = {f"logged/{name}": points for name, points in logged.items()}
    page = html(write(tmp_path / "run", {"step/loss": curve(400), **metrics}))
    drawn = figures(page)
    assert [list(dict.fromkeys(line["name"] for line in drawn[f"logged-{place}"]["data"])) for place in range(3)] == [
        ["train", "val"], [""], [""],
    ]  # fmt: skip
    assert re.findall('<h3>([^<]*)</h3><figure id="logged', page) == ["loss", "eval_f1", "epoch"]
    assert drawn["logged-0"]["data"][-1]["x"] == [50, 199]
    ranges = {tuple(drawn[id_]["layout"]["xaxis"]["range"]) for id_ in ("loss", "logged-0", "logged-2")}
    assert len(ranges) == 1
    assert "loss of val: from 2 at step 50 to 1 at step 199" in text(page)
    assert "Other metrics" not in page


def test_a_split_of_the_data_is_told_by_its_name() -> None:
    parts = {
        name: _parts(name)
        for name in (
            "val/acc",
            "val_loss",
            "loss/train",
            "top1.test",
            "value",
            "evaluate_x",
            "val",
            "a/b",
            "",
        )
    }
    assert parts == {
        "val/acc": ("acc", "val"), "val_loss": ("loss", "val"), "loss/train": ("loss", "train"), "top1.test": ("top1", "test"),
        "value": ("value", ""), "evaluate_x": ("evaluate_x", ""), "val": ("val", ""), "a/b": ("a/b", ""), "": ("", ""),
    }  # fmt: skip


def test_of_very_many_logged_values_the_rest_is_at_the_end(tmp_path: Path) -> None:
    page = html(write(tmp_path / "run", {f"logged/{number}": curve(3) for number in range(40)}))
    assert sum(id_.startswith("logged-") for id_ in figures(page)) == 24
    assert "logged 24, 25, 26, 27 and 12 more" in text(page)


# -- what the run was set to, and others beside it ------------------------------------------------------------------

SETTINGS = {
    "git": {"commit": "0123456789abcdef", "dirty": True},
    "optimizers": [
        {
            "class": "AdamW",
            "groups": [
                {"lr": 5e-5, "initial_lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.1, "elements": 1200},
                {
                    "lr": 5e-5,
                    "initial_lr": 1e-3,
                    "betas": [0.9, 0.95],
                    "weight_decay": 0.0,
                    "fused": True,
                    "elements": 8,
                },
            ],
        }
    ],
    "batch_size": [32],
    "seed": 0,
    "device": {"name": "NVIDIA H100", "memory": 85_000_000_000},
}


def set_to(run: Run, **settings: Any) -> Run:
    path = run.folder / "rank0.json"
    assert isinstance(path, Path)
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return Run(run.folder)


def test_a_page_says_what_the_run_was_set_to(tmp_path: Path) -> None:
    run = set_to(
        write(tmp_path / "run", {"step/loss": curve(5), "memory/device": curve(5, lambda s: s * 1e9)}),
        **SETTINGS,
    )
    shown = text(html(run))
    for fact in (
        "commit0123456789, with changes that are not committed",
        "optimizerAdamW, lr 0.001, betas 0.9 0.95, weight_decay 0.1 / 0, fused off / on, parameters 1,200 / 8",
        "batch size32",
        "seed0",
        "deviceNVIDIA H100, 85 GB",
        "memory of the device4 GB",
        "Memory in GB of tensors on the device, at most so far: from 0 at step 0 to 4 at step 4",
    ):
        assert fact in shown


def test_runs_are_laid_over_one_another_each_in_its_colour(tmp_path: Path) -> None:
    metrics = {
        "step/loss": curve(9),
        "step/loss/1": curve(9),
        "logged/val/accuracy": dict.fromkeys(range(3), 0.5),
    }
    one = set_to(write(tmp_path / "one", metrics, findings=[finding()]), **SETTINGS)
    two = set_to(write(tmp_path / "two", {"step/loss": curve(300)}), **SETTINGS | {"seed": 7})
    page = html(one, two)
    loss, accuracy = (figures(page)[id_]["data"] for id_ in ("loss", "logged-0"))
    a, b = str(one.folder), str(two.folder)
    assert list(dict.fromkeys(line["name"] for line in loss)) == [f"{a}, optimizer 0", f"{a}, optimizer 1", b]
    assert {line["line"]["color"] for line in loss[:2]} == {"--series-1"}
    assert {line["line"]["color"] for line in loss[2:]} == {"--series-2"}
    assert loss[0]["line"]["dash"] != loss[1]["line"]["dash"]
    assert [line["name"] for line in accuracy] == [a]
    shown = text(page)
    assert "seed07" in shown
    assert "batch size" not in shown  # it is the same
    assert "1 error, the first at step 7." in shown
    assert re.findall("<h2>(.*?)</h2>", page) == ["Runs", "Settings that differ", "Timelines"]


def test_runs_side_by_side_name_the_findings_that_they_count(tmp_path: Path) -> None:
    """D26: the findings stood in red as a number alone."""
    healthy = write(tmp_path / "healthy", {"step/loss": curve(30)}, findings=[])
    accepted = finding(rule="TA401", baselined=True)
    ill = write(tmp_path / "ill", {"step/loss": curve(30)}, findings=[finding(), accepted])
    page = html(ill, healthy)
    named = re.findall(r'<ul class="named">(.*?)</ul>', page)
    assert [re.findall(r"<b>(\w+)</b> ([\w-]+) <code>(.*?)</code>", entries) for entries in named] == [
        [("TA102", "exploding-gradient", "train.py:3")]
    ]


def test_many_runs_are_told_apart_and_told_of_in_short(tmp_path: Path) -> None:
    runs = [write(tmp_path / str(number), {"step/loss": curve(9)}) for number in range(8)]
    page = html(*runs)
    styles = [(line["line"]["color"], line["line"]["dash"]) for line in figures(page)["loss"]["data"]]
    assert len(set(styles)) == 8
    assert "Loss, the last value of each of 8 lines:" in text(page)


# -- layers -------------------------------------------------------------------------------------------------------


def test_a_layer_is_a_row_in_the_order_in_which_layers_ran(tmp_path: Path) -> None:
    """The optimizer has weights in its first group and all else in its second."""
    metrics = {
        f"gradient/{name}/norm": {0: 3.0} for name in ("h.0.fc.weight", "h.10.fc.weight", "head.weight")
    }
    metrics |= {
        f"gradient/{name}/norm": {0: 4.0} for name in ("h.0.fc.bias", "h.0.ln.weight", "h.10.ln.weight")
    }
    metrics |= {
        f"activation/{name}/rms": {0: 1.0}
        for name in ("h.0.ln", "h.0.fc", "h.0.relu", "h.10.ln", "h.10.fc", "head")
    }
    metrics |= {"update/h.0.fc.weight/ratio": {0: 1e-3}}
    drawn = figures(html(write(tmp_path / "run", metrics)))
    assert drawn["gradients"]["data"][0]["y"] == ["h.0.ln", "h.0.fc", "h.10.ln", "h.10.fc", "head"]
    assert drawn["gradients"]["data"][0]["text"][1] == ["5"]  # of weight and bias
    assert drawn["activations"]["data"][0]["y"][2] == "h.0.relu"
    assert drawn["updates"]["data"][0]["z"] == [[-3.0]]


def test_what_is_never_called_stays_with_its_block() -> None:
    names = ["h.0.attn", "h.0.attn.out", "h.0.mlp", "h.1.attn", "h.1.mlp", "h.0.ln", "h.1.ln"]
    executed = ["h.0.ln", "h.0.mlp", "h.1.ln", "h.1.mlp"]
    assert ordered(names, executed) == [
        "h.0.attn",
        "h.0.attn.out",
        "h.0.ln",
        "h.0.mlp",
        "h.1.attn",
        "h.1.ln",
        "h.1.mlp",
    ]
    assert ordered(names, []) == [
        "h.0.attn",
        "h.0.attn.out",
        "h.0.mlp",
        "h.0.ln",
        "h.1.attn",
        "h.1.mlp",
        "h.1.ln",
    ]


def test_a_map_of_many_steps_has_the_largest_of_each_column(tmp_path: Path) -> None:
    norms = curve(5000, lambda _: 1.0) | {3333: 1e9, 4444: math.nan}
    page = html(
        write(tmp_path / "run", {"gradient/fc.weight/norm": norms, "gradient/ln.weight/norm": {0: 0.0}})
    )
    cells, zero, infinite = figures(page)["gradients"]["data"]
    assert len(cells["x"]) == 200
    assert cells["text"][0][3333 // 25] == "1e+09"
    assert infinite["z"][0].index(1) == 4444 // 25
    assert zero["z"][1][0] == 1
    assert "Not finite in fc, first at step 4,425" in text(page)
    assert "the largest of 25 recorded steps each" in text(page)


def test_metrics_of_a_monitor_are_in_groups(tmp_path: Path) -> None:
    metrics = {f"activation/h.{layer}/std": curve(9) for layer in range(8)}
    metrics |= {
        "activation/h.0/mean": {0: -1.0, 1: 2.0},
        "attention_entropy/attn.head_0": curve(9),
        "accuracy": curve(9),
    }
    page = html(write(tmp_path / "run", metrics))
    shown = text(page)
    assert "activation 2 metrics of 8 names" in shown
    assert "attention_entropy attn.head_0" in shown
    assert "others accuracy" in shown
    kinds = [figure["data"][0]["type"] for figure in figures(page).values()]
    assert kinds == ["heatmap", "scatter", "scatter", "scatter"]


# -- findings -----------------------------------------------------------------------------------------------------


def test_the_first_line_says_what_became_of_the_run(tmp_path: Path) -> None:
    lines = {}
    cases: dict[str, list[Any] | None] = {
        "none": None,
        "clean": [],
        "bad": [
            finding(),
            finding(severity="note", evidence={}),
            finding(severity="note", verdict="refuted", observer="both"),
        ],
        "suppressed": [finding(suppression={"in_source": True, "justification": "noqa"})],
    }
    for name, findings in cases.items():
        run = write(tmp_path / name, {"step/loss": curve(1200)}, findings=findings)
        lines[name] = re.sub("<.*?>", "", re.findall('class="judged .*?</p>', html(run))[0]).partition(">")[2]
    assert lines == {
        "none": "?No report of findings was recorded: nothing is known of this run but its numbers.",
        "clean": "?Nothing wrong was found in the 1,200 recorded steps, but the run did not end properly.",
        "bad": "✕1 error and 2 notes, the first at step 7. 1 suspicion of the linter: 1 refuted; 2 findings of the run alone.",
        "suppressed": "?Nothing wrong was found in the 1,200 recorded steps, but the run did not end properly. 1 finding does not count.",
    }


@pytest.mark.parametrize(
    ("full", "unjudged", "told"),
    [
        (29, [], "✓Nothing wrong was found. Looked at 29 of 1,200 steps in full."),
        (
            2,
            [],
            "iNothing wrong was found, but too little was looked at to say that all is well. Looked at 2 of",
        ),
        (
            29,
            ["TA500"],
            "iNothing wrong was found, but too little was looked at to say that all is well. Looked at 29",
        ),
    ],
)
def test_the_first_line_is_green_only_where_enough_was_looked_at(
    full: int, unjudged: list[str], told: str, tmp_path: Path
) -> None:
    """D25: it was green where 2 of 192 steps were looked at."""
    run = write(tmp_path / "run", {"step/loss": curve(1200)}, findings=[])
    for about in run.about.values():
        about["looked"] = {"steps": 1200, "full": full, "unjudged": unjudged}
    line = re.sub("<.*?>", "", re.findall('class="judged .*?</p>', html(run))[0]).partition(">")[2]
    assert line.startswith(told)
    assert ("Too few steps to judge TA500." in line) == bool(unjudged)


def test_incidents_are_marked_at_their_steps_and_those_side_by_side_share_a_mark(tmp_path: Path) -> None:
    findings = [finding(evidence={"step": step}, severity=severity) for step, severity in
                ((100, "note"), (101, "error"), (900, "warning"))]  # fmt: skip
    run = write(tmp_path / "run", {"step/loss": curve(1200)}, findings=[*findings, finding(evidence={})])
    marks = figures(html(run))["loss"]["data"][-1]
    assert marks["x"] == [101, 900]
    assert marks["marker"]["color"] == ["--error", "--warning"]
    assert [line.rpartition(",")[2] for line in marks["text"][0].split("<br>")] == [" step 101", " step 100"]


def test_the_source_is_shown_only_while_it_is_what_the_finding_is_about(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = shutil.copytree(recorded, tmp_path / "copy")
    monkeypatch.chdir(folder)
    marked = r'<span class="at marked"><i>20</i>optimizer = <mark>torch.optim.Adam\('
    assert re.search(marked, html(Run(Path("run"))))
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("lr=1e-2", "lr=1e-3"))
    page = html(Run(Path("run")))
    assert not re.search(marked, page)
    assert "The source is not at hand, or was changed since the run." in page
    script.unlink()
    assert "The source is not at hand, or was changed since the run." in html(Run(Path("run")))


def test_a_line_with_a_credential_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("a = 1\nb = 2\ntoken = 'hf_secret'\n")
    monkeypatch.chdir(tmp_path)
    from ta_lint.core.fingerprint import _digest
    from ta_lint.core.source import Source

    for rule, is_shown in (("TA708", False), ("TA102", True)):
        print_ = _digest(rule, "train.py", Source("train.py", Path("train.py").read_text()).statement_at(3))
        run = write(tmp_path / rule, {}, findings=[finding(rule=rule, fingerprint=f"{print_}:1")])
        assert ("hf_secret" in html(run)) is is_shown


def test_everything_that_comes_from_a_run_is_escaped(tmp_path: Path) -> None:
    hostile = finding(
        rule=HOSTILE, name=HOSTILE, message=HOSTILE, path=HOSTILE, scope=HOSTILE, severity=HOSTILE, verdict=HOSTILE,
        evidence={HOSTILE: HOSTILE, "step": 3, "times": HOSTILE}, url="javascript:alert(1)", cell=1, line=1,
        related=[{"path": HOSTILE, "cell": None, "line": 1, "column": 1, "end_line": 1, "end_column": 2, "message": HOSTILE}],
        suppression=None, fingerprint=HOSTILE, observer=HOSTILE,
    )  # fmt: skip
    metrics = {
        key: curve(5)
        for key in (f"gradient/{HOSTILE}.weight/norm", f"{HOSTILE}/{HOSTILE}/{HOSTILE}", "step/loss")
    }
    run = write(
        tmp_path / "run",
        metrics,
        findings=[hostile, hostile | {"suppression": {"in_source": True, "justification": HOSTILE}}],
    )
    about = json.loads((tmp_path / "run" / "rank0.json").read_text())
    group = {HOSTILE: HOSTILE, "lr": [HOSTILE, None], "elements": HOSTILE}
    about |= {
        "git": {"commit": HOSTILE, "dirty": HOSTILE}, "device": {"name": HOSTILE, "memory": HOSTILE},
        "optimizers": [{"class": HOSTILE, "groups": [group, 5]}, {"groups": 5}, {}],
    }  # fmt: skip
    about |= {"command": ["python", f"{HOSTILE}.py"], "torch": HOSTILE, "python": HOSTILE, "started": HOSTILE}
    addresses = (
        "javascript:window.hit = 1",
        f'https://example.org/{HOSTILE}"',
        "http://[",
        "data:text/html,x",
    )
    about["trackers"] = [
        {"tool": HOSTILE, "name": HOSTILE, "url": url, "folder": HOSTILE} for url in addresses
    ]
    about["trackers"] += [5, {}, {"tool": 5, "name": [], "url": 7}]
    (tmp_path / "run" / "rank0.json").write_text(json.dumps(about))
    page = html(Run(run.folder))
    assert "<img src=x" not in page
    assert page.count("<script") == page.count("</script>") - page.partition("<body>")[2].count(
        "\\u003c/script"
    )
    assert 'href="javascript' not in page
    assert 'href="data:text' not in page
    assert page.count(' rel="noopener noreferrer"') == 1
    assert HOSTILE in text(page)
    other = write(tmp_path / "other", metrics | {f"logged/{HOSTILE}": curve(5)})
    page = html(run, other)
    assert "<img src=x" not in page
    assert HOSTILE in text(page)


def test_a_page_names_the_script_and_no_path_of_an_interpreter(tmp_path: Path) -> None:
    """N22. The lowest loss is called that as well."""
    run = write(tmp_path / "run", {"step/loss": curve(5)})
    path = tmp_path / "run" / "rank0.json"
    about = json.loads(path.read_text())
    for command, shown in (
        (
            ["/opt/venv/bin/python3.11", "/opt/venv/bin/ta-runtime", "run", "train.py"],
            "ta-runtime run train.py",
        ),
        (
            ["/opt/venv/bin/python3.11", "-m", "ta_runtime", "run", "train.py"],
            "ta-runtime run train.py",
        ),
        (["/opt/venv/bin/python", "train.py", "--lr", "1 e"], "python train.py --lr '1 e'"),
    ):
        path.write_text(json.dumps(about | {"command": command}))
        page = text(html(Run(run.folder)))
        assert f"command{shown}" in page
        assert "/opt/venv" not in page
        assert "lowest 0.2, step 4" in page


def test_a_page_links_to_where_else_the_run_is_told_of(tmp_path: Path) -> None:
    """N24."""
    run = write(tmp_path / "run", {"step/loss": curve(5)})
    path = tmp_path / "run" / "rank0.json"
    trackers = [
        {
            "tool": "Weights & Biases",
            "name": "fine-sun-3",
            "id": "3kq9x1zv",
            "url": "https://wandb.ai/a/b/runs/3kq9x1zv",
        },
        {"tool": "TensorBoard", "folder": "/logs/1"},
    ]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"trackers": trackers}))
    page = html(Run(run.folder))
    assert '<a href="https://wandb.ai/a/b/runs/3kq9x1zv" rel="noopener noreferrer">fine-sun-3</a>' in page
    assert "TensorBoard/logs/1" in text(page)


def test_nothing_in_the_data_of_the_charts_ends_their_element() -> None:
    assert json_of({"a": "</script><!--"}) == '{"a":"\\u003c/script\\u003e\\u003c!--"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_of(math.nan)


# -- the command --------------------------------------------------------------------------------------------------


def test_the_page_lies_in_the_folder_of_the_run_or_where_one_wants_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("run"), {"step/loss": curve(5)})
    assert main(["report", "run"]) == 0
    assert re.search(r"ta-runtime: wrote run/report.html, 4\.\d MB\n", capsys.readouterr().err)
    assert main(["report", "run", "--output", "other.html"]) == 0
    assert Path("run/report.html").read_text() == Path("other.html").read_text()
    assert Run(Path("run")).metrics.num_rows == 5  # the page is no part of the run
    write(Path("second"), {"step/loss": curve(5)})
    assert main(["report", "run", "second", "run"]) == 0
    assert "wrote report.html" in capsys.readouterr().err
    assert Path("report.html").read_text() == html(Run("run"), Run("second"))


def test_what_cannot_be_shown_is_an_error_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    write(Path("begun"), {})
    write(Path("run"), {"step/loss": curve(5)})
    (tmp_path / "folder").mkdir()
    cases = {
        ("report", "missing"): "missing: no such folder; `ta-runtime run --record FOLDER SCRIPT` records one",
        ("report", "empty"): "empty: holds no run; `ta-runtime run --record FOLDER SCRIPT` records one",
        ("report", "begun"): "begun: nothing is recorded yet; numbers are written after the first step",
        ("report", "run", "--output", "folder"): "cannot write folder: it is a folder",
        ("report", "run", "--output", "no/such.html"): "cannot write no/such.html: No such file or directory",
    }
    for words, error in cases.items():
        assert main(list(words)) == 2
        assert f"ta-runtime: error: {error}" in capsys.readouterr().err
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "plotly" else find_spec(name))
    assert main(["report", "run"]) == 2
    assert capsys.readouterr().err.endswith(
        "there is no plotly; install it by `pip install 'ta-lint[report]'`\n"
    )


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    run = write(tmp_path / "run", {"step/loss": curve(5)})
    (run.folder / "metrics" / "rank0-00000.parquet").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"rank0-00000\.parquet: damaged"):
        html(Run(run.folder))


def test_a_run_without_a_step_is_a_page_that_says_so(tmp_path: Path) -> None:
    page = html(write(tmp_path / "run", {}, findings=[]))
    assert "No training step was seen: no optimizer stepped." in text(page)
    assert len(page) < 30_000  # there is nothing to draw, so nothing that draws it


def test_one_who_waits_at_a_terminal_is_told_what_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    run = write(tmp_path / "run", {"step/loss": curve(5)})
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["report", str(run.folder)]) == 0
    lines = sys.stderr.getvalue().split("\r\033[K")  # type: ignore[union-attr]
    assert [line.split()[0] for line in lines if line] == ["reading", "drawing", "ta-runtime:"]


def test_neither_torch_nor_pyarrow_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    run = write(tmp_path / "run", {"step/loss": curve(5)})
    code = (
        "import sys; from ta_runtime.cli import main\n"
        "assert not {'torch', 'pyarrow', 'plotly'} & set(sys.modules)\n"
        "main(['report', sys.argv[1]]); print('torch' in sys.modules)"
    )
    assert commands.python(tmp_path, "-c", code, str(run.folder)).stdout == "False\n"


def test_the_page_of_the_documentation_is_true(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_of_recorded: str
) -> None:
    document = (ROOT / "docs" / "report.md").read_text()
    shutil.copytree(recorded / "run", tmp_path / "runs" / "1")
    monkeypatch.chdir(tmp_path)
    [console] = re.findall(r"```console\n(.*?)```", document, re.DOTALL)
    record, show = [line.removeprefix("$ ta-runtime ").split() for line in console.splitlines()]
    assert record == ["run", "--record", "runs/1", "train.py"]
    assert main(show) == 0
    [example] = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    exec(compile(example, "report.md", "exec"), {})  # noqa: S102
    assert Path("report.html").read_text() == Path("runs/1/report.html").read_text()
    library = len(max(re.findall(r"<script>(.*?)</script>", page_of_recorded, re.DOTALL), key=len)) / 1e6
    assert f"{library:.1f} MB are plotly.js" in document
    headings = re.findall(r"^\| ([a-z, ]+) \|", document, re.MULTILINE)
    assert headings[1:] == [
        re.sub(r" \(\d+\)", "", title.lower()) for title in re.findall("<h2>(.*?)</h2>", page_of_recorded)
    ] + ["other metrics"]


def test_the_sweep_of_the_documentation_is_laid_over_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = (ROOT / "docs" / "report.md").read_text()
    [script] = re.findall(r"```python title=train.py\n(.*?)```", document, re.DOTALL)
    [console] = re.findall(r"```console title=sweep\n(.*?)```", document, re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    said = ""
    for words in re.findall(r"^\$ ta-runtime (.*)$", console, re.MULTILINE):
        ran = commands.ta_runtime(tmp_path, *words.split())
        assert ran.returncode == 0, ran.stderr
        said += ran.stderr
    assert said == "".join(re.findall(r"^[^$].*\n", console, re.MULTILINE))
    page = (tmp_path / "report.html").read_text()
    assert re.findall("<h3>([^<]*)</h3>", page) == [
        "Loss",
        "Gradient norm",
        "Learning rate",
        "val/loss",
        "accuracy",
    ]
    assert "optimizer lr0.10.5" in text(page)
    assert "seed" not in text(page)


# -- in a browser -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script, and its run, which has findings, verdicts and numbers that are not finite."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / ".git").mkdir()
    (folder / "train.py").write_text(SCRIPT)
    ran = commands.ta_runtime(folder, "run", "--lint", "--every", "5", "--record", "run", "train.py")
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="module")
def page_of_recorded(recorded: Path) -> str:
    before = Path.cwd()
    os.chdir(recorded)
    try:
        return html(Run(Path("run")))
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def pages(page_of_recorded: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of several runs, by name."""
    folder = tmp_path_factory.mktemp("pages")
    found = {"recorded": page_of_recorded}
    deep = {f"gradient/transformer.decoder.layers.{layer}.self_attention.projection.weight/norm": curve(40, lambda s: 1e-3 + s)
            for layer in range(150)}  # fmt: skip
    deep |= {f"activation/layers.{layer}/kurtosis": curve(30, lambda s: s - 9) for layer in range(12)}
    deep |= {f"{HOSTILE}/{layer}{HOSTILE}/{HOSTILE}": curve(30) for layer in range(2)}
    deep |= {f"gradient/{HOSTILE}.weight/norm": {3: 0.0, 4: math.inf}}
    hostile = finding(rule=HOSTILE, name=HOSTILE, message=HOSTILE, path=HOSTILE * 3)
    for rank in range(2):
        losses = curve(400, lambda s: 1 / (1 + s) + rank)  # noqa: B023
        run = write(folder / "run", {"step/loss": losses, **deep}, rank=rank, ranks=2, findings=[hostile])
    found["deep"] = html(run)
    found["empty"] = html(write(folder / "none", {}, findings=[]))
    logs = {f"logged/{name}": curve(300) for name in ("train/loss", "val/loss", HOSTILE)}
    others = [write(folder / f"other {number}", {"step/loss": curve(200), **logs}) for number in range(7)]
    found["overlay"] = html(set_to(others[0], seed=1), *others[1:])
    for name, page in found.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in found}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        assert not os.environ.get("CI"), "install chromium"
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Opened:
    """A page in the browser, with what it complained of and whom it asked."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN)


DRAWN = """() => [...document.querySelectorAll("[data-figure]")]
  .every((plot) => !plot.offsetParent || (plot.dataset.drawn && plot.querySelector(".main-svg")))"""
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def opened(browser: Browser, pages: dict[str, Path]) -> Iterator[Callable[..., Opened]]:
    """Opens a page of a name; at the end of the test it must not have complained nor asked anybody for anything."""
    found: list[Opened] = []

    def open_(name: str, **options: Any) -> Opened:
        found.append(Opened(browser, pages[name], **(DESKTOP | options)))
        return found[-1]

    yield open_
    for one in found:
        assert one.complaints == []
        assert {url.partition(":")[0] for url in one.requests} <= {"file", "data", "blob"}
        assert [url for url in one.requests if url.startswith("file:")] == [one.page.url.partition("#")[0]]
        assert one.page.evaluate("window.hit") is None
        one.context.close()


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("recorded", "light"),
        ("deep", "dark"),
        ("empty", "light"),
        ("empty", "dark"),
        ("overlay", "light"),
        ("overlay", "dark"),
    ],
)
def test_a_browser_draws_every_chart_and_asks_nobody_for_anything(
    name: str, scheme: str, opened: Callable[..., Opened], pages: dict[str, Path]
) -> None:
    page = opened(name, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.wait_for_function(DRAWN)
    for button in page.locator("[data-shows]").all():
        button.click()
        page.wait_for_function(DRAWN)
    traces = page.evaluate(
        """[...document.querySelectorAll("[data-figure]")].map((plot) =>
             plot.querySelectorAll(".scatterlayer .trace, .hm image, .barlayer .trace").length)"""
    )
    assert len(traces) == len(figures(pages[name].read_text()))
    assert all(traces)
    assert unreadable(page) == []


@pytest.mark.parametrize("name", ["recorded", "deep", "overlay"])
def test_a_phone_scrolls_in_one_direction(name: str, opened: Callable[..., Opened]) -> None:
    page = opened(name, **PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.wait_for_function(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth && innerWidth === 390")
    for button in page.locator("[data-shows]").all():
        button.tap()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drags = page.evaluate(
        "[...document.querySelectorAll('.nsewdrag')].map((one) => getComputedStyle(one).touchAction)"
    )
    assert set(drags) <= {"pan-y"}  # a finger on a chart scrolls the page


def test_the_map_is_switched(opened: Callable[..., Opened]) -> None:
    page = opened("recorded").page
    assert [one.inner_text() for one in page.locator("[data-shows]").all()] == [
        "Gradients",
        "Activations",
        "Updates",
        "Weights",
    ]
    assert page.locator("#gradients").is_visible()
    assert [one.text_content() for one in page.locator("#gradients .ytick text").all()] == [
        "<script>hit = 1<",
        "head",
    ]
    page.locator("[data-shows=updates]").click()
    page.wait_for_selector("#updates .hm image")
    assert not page.locator("#gradients").is_visible()
    assert page.locator("[aria-pressed=true]").inner_text() == "Updates"


def test_nothing_lies_over_a_chart_and_its_tools_stand_above_it(opened: Callable[..., Opened]) -> None:
    """N8: the mode bar of plotly covered the top right of each chart while the mouse was on it."""
    page = opened("recorded").page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.wait_for_function(DRAWN)
    charts = [one for one in page.locator("[data-figure]").all() if one.is_visible()]
    assert len(charts) > 4
    for chart in charts:
        chart.hover()
        over = chart.evaluate(
            """(plot) => {
                 const at = plot.getBoundingClientRect();
                 const bars = [...document.querySelectorAll(".tools, .modebar")].map((one) => one.getBoundingClientRect());
                 return bars.filter((one) => one.width && one.height && one.left < at.right && one.right > at.left
                                             && one.top < at.bottom - 1 && one.bottom > at.top + 1).length; }"""
        )
        assert over == 0
    assert page.locator(".tools").count() == page.locator("[data-drawn]").count()


def test_smoothing_is_switched_off_and_on(opened: Callable[..., Opened]) -> None:
    page = opened("deep").page
    lines = "[...document.querySelectorAll('#loss .scatterlayer .js-line')].map((one) => getComputedStyle(one).strokeWidth)"
    smoothed = page.evaluate(lines)
    assert "2.5px" in smoothed
    page.get_by_role("button", name="Raw").click()
    page.wait_for_function(f"() => !{lines}.includes('2.5px')")
    assert "1.5px" in page.evaluate(lines)
    assert page.evaluate("document.querySelector('#loss .plot').layout.xaxis.range") == pytest.approx(
        [-6.65, 405.65]
    )
    page.get_by_role("button", name="Smoothed").click()
    page.wait_for_function(f"() => {lines}.includes('2.5px')")
    assert page.evaluate(lines) == smoothed


def test_a_page_without_medians_has_no_switch_for_them(opened: Callable[..., Opened]) -> None:
    assert opened("recorded").page.get_by_role("button", name="Raw").count() == 0


def test_a_zoomed_chart_shows_all_its_steps_again_and_can_be_saved(opened: Callable[..., Opened]) -> None:
    page = opened("recorded").page
    range_of = "(id) => document.querySelector(`#${id} .plot`).layout.xaxis.range"
    before = page.evaluate(range_of, "loss")
    page.evaluate("Plotly.relayout(document.querySelector('#loss .plot'), { 'xaxis.range': [3, 5] })")
    page.wait_for_function("() => document.querySelector('#learning-rate .plot').layout.xaxis.range[0] === 3")
    tools = page.locator("#loss .tools button")
    tools.filter(has_text="Show all steps").click()
    page.wait_for_function(
        "(begin) => document.querySelector('#learning-rate .plot').layout.xaxis.range[0] === begin",
        arg=before[0],
    )
    assert page.evaluate(range_of, "loss") == before
    with page.expect_download() as saved:
        tools.filter(has_text="Save as image").click()
    assert saved.value.suggested_filename == "loss.png"


def test_an_incident_leads_to_its_finding_and_that_back_to_its_step(opened: Callable[..., Opened]) -> None:
    page = opened("recorded").page
    mark = page.locator(
        "#loss .scatterlayer .points path"
    ).last  # of the last step at which anything was found
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => location.hash.startsWith('#finding-')")
    card = page.locator(page.evaluate("location.hash"))
    assert "TA100" in card.inner_text()
    assert page.evaluate("document.activeElement.id") == card.get_attribute("id")
    card.locator("[data-step]").click()
    for chart in ("loss", "gradient-norm", "learning-rate"):
        page.wait_for_function(
            "(id) => { const [a, b] = document.querySelector(`#${id} .plot`).layout.xaxis.range; return a > 20 && b < 40 }",
            arg=chart,
        )
    page.locator(".incidents a").first.click()
    assert page.evaluate("location.hash") != ""


def test_a_page_that_is_printed_is_light_and_fits_the_paper(opened: Callable[..., Opened]) -> None:
    page = opened("recorded", color_scheme="dark").page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(
        "() => document.querySelector('#loss .main-svg').getBoundingClientRect().width === 660"
    )
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 32, 36)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(
        "() => document.querySelector('#loss .main-svg').getBoundingClientRect().width > 900"
    )
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(237, 238, 240)"
    assert len(page.pdf()) > 50_000


def test_the_colours_follow_the_system_while_the_page_is_open(opened: Callable[..., Opened]) -> None:
    page = opened("recorded", color_scheme="light").page
    color = "getComputedStyle(document.querySelector('#loss .js-line')).stroke"
    before = page.evaluate(color)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {color} !== '{before}'")


def test_a_script_that_got_into_the_page_would_not_run(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    page = pages["recorded"].read_text()
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(
        page.replace("<main>", "<main><script>window.hit = 1</script><img src='https://example.org/x'>")
    )
    one = Opened(browser, spoilt, **DESKTOP)
    assert one.page.evaluate("window.hit") is None
    assert len([text for text in one.complaints if "Content Security Policy" in text]) == 2
    one.context.close()


def unreadable(page: Page) -> list[str]:
    """What a checker of accessibility would say: text of little contrast, drawings without words, headings out of order."""
    return list(page.evaluate(UNREADABLE))


UNREADABLE = """() => {
  const wrong = [];
  const parsed = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parsed(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return parsed(getComputedStyle(document.body).backgroundColor);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest("script, style")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parsed(element.closest("svg") ? style.fill : style.color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`${contrast.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) wrong.push(`after h${level}: ${heading.outerHTML.slice(0, 60)}`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1) wrong.push("h1, main");
  for (const plot of document.querySelectorAll("[role=img]")) {
    if (!(plot.getAttribute("aria-label")?.length > 20)) wrong.push(`no words: ${plot.outerHTML.slice(0, 60)}`);
  }
  for (const control of document.querySelectorAll("a[href], button, summary, [tabindex='0']")) {
    if (!(control.textContent.trim() || control.getAttribute("aria-label"))) wrong.push(`no name: ${control.outerHTML}`);
  }
  const ids = [...document.querySelectorAll("body [id]")].map((each) => each.id).filter((id) => !id.includes("-"));
  if (new Set(ids).size !== ids.length) wrong.push("ids twice");
  for (const link of document.querySelectorAll("a[href^='#']")) {
    if (!document.getElementById(link.getAttribute("href").slice(1))) wrong.push(`leads nowhere: ${link.outerHTML}`);
  }
  return wrong;
}"""
