"""The SARIF of a run is held to what the linter's is: the published schema and both sets of the validator's rules."""

import json
from pathlib import Path

from observed import observed
from sarif_validator import unexplained, validate

from ta_lint.core.catalogue import catalogue
from ta_lint.core.sarif import sarif_log
from ta_runtime.reports import CATEGORY, rendered

SCRIPT = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-2)
for step in range(4):
    inputs = torch.randn(16, 4)
    if step == 2:
        inputs[0, 0] = float("nan")
    loss = torch.nn.functional.mse_loss(model(inputs), torch.zeros(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_the_sarif_of_a_run_is_valid(tmp_path: Path) -> None:
    findings = observed(SCRIPT, tmp_path)
    assert {"TA401"} < {finding.rule for finding in findings}
    text = rendered(findings, "sarif", tmp_path, not_seen=["the layers inside a compiled model"])
    folder = tmp_path / "validated"
    folder.mkdir()
    assert not unexplained(validate(text, folder))


def test_a_result_of_a_run_tells_what_was_measured_and_when(tmp_path: Path) -> None:
    findings = observed(SCRIPT, tmp_path)
    log = json.loads(rendered(findings, "sarif", tmp_path))["runs"][0]
    assert log["automationDetails"]["id"] == CATEGORY != "ta-lint/"
    [adam] = [result for result in log["results"] if result["ruleId"] == "TA401"]
    assert adam["properties"]["observer"] == "runtime"
    assert adam["properties"]["evidence"] == {"weight_decay": 0.01, "step": 0, "times": 1}
    [location] = adam["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "example.py"
    assert location["physicalLocation"]["region"]["startLine"] == 4


def test_what_a_run_hid_is_a_notification(tmp_path: Path) -> None:
    text = sarif_log(
        [], catalogue(), version="0.1.0", notes=["Not seen: the layers inside a compiled model."]
    )
    [invocation] = json.loads(text)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is True
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["level"] == "note"
    assert notification["message"]["text"] == "Not seen: the layers inside a compiled model."


def test_the_linter_leaves_suppressions_of_what_only_a_run_sees_alone(tmp_path: Path) -> None:
    from ta_lint.core.config import Configs, Options
    from ta_lint.engine import lint_file
    from ta_lint.file import File

    path = tmp_path / "train.py"
    path.write_text("import torch\n\nx = torch.ones(1)  # noqa: TA102 - the first steps are wild\n")
    config = Configs(Options(), tmp_path).root_config
    assert lint_file(File(path, "train.py", config)) == []


def test_a_comment_suppresses_a_finding_of_the_run(tmp_path: Path) -> None:
    script = SCRIPT.replace("weight_decay=1e-2)", "weight_decay=1e-2)  # noqa: TA401 - as in the paper")
    [adam] = [finding for finding in observed(script, tmp_path) if finding.rule == "TA401"]
    assert adam.suppression is not None
    assert not adam.counts
