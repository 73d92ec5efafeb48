"""The process-wide audit: `enable()` and nothing else to change."""

import atexit
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ta_lint.core.finding import Finding
from ta_runtime import reports
from ta_runtime.audit import Audit
from ta_runtime.settings import OnFinding, resolve

_audit: Audit | None = None


def enable(
    *,
    every_n_steps: int = 1000,
    gradients_every_n_steps: int = 1,
    rules: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    output: str | Path | None = "ta-runtime.sarif",
    fail_level: str | None = None,
    on_finding: OnFinding | None = None,
    baseline: str | Path | None = None,
    compiled: Literal["skip", "eager"] = "skip",
    live: bool = True,
) -> None:
    """Watch every training step of this process from here on; call it before the model is built.

    Args:
        every_n_steps: audit the first step and then each n-th in full: activations, inputs, losses, updates. 0: none.
        gradients_every_n_steps: between audits, look at the gradients and the loss of each n-th step: two operations
            on the device, and no waiting for it. 0: never.
        rules: what to look for instead of the default rules and `[tool.ta] select`: ids, prefixes, names, tags.
        ignore: what not to look for.
        output: the report, rewritten whole at each new finding: SARIF for `.sarif`, JSON for `.json`, else text.
            In a distributed run, rank 1 writes `ta-runtime.rank1.sarif`, and rank 0 gathers all at the end.
        fail_level: `note`, `warning` or `error`: stop the run by `AuditFailed` at the first such finding.
        on_finding: called with each new `Finding`.
        baseline: findings that were accepted, as `ta-runtime run --update-baseline` writes them.
        compiled: models under `torch.compile` hide their layers. `skip` says so in the report; `eager` runs audited
            steps uncompiled, which differs in rounding and in the random numbers of dropout.
        live: print a line to standard error for each new finding, and a table at the end.

    Raises:
        UsageError: an argument or the project's `[tool.ta]` is wrong.
        RuntimeError: it is enabled already.
    """
    global _audit
    if _audit is not None:
        raise RuntimeError("ta_runtime is enabled already; call ta_runtime.disable() first")
    settings = resolve(
        every_n_steps=every_n_steps,
        gradients_every_n_steps=gradients_every_n_steps,
        rules=rules,
        ignore=ignore,
        output=output,
        fail_level=fail_level,
        on_finding=on_finding,
        baseline=baseline,
        compiled=compiled,
        live=live,
    )
    _audit = Audit(settings)
    _audit.start()
    atexit.register(disable)


def disable() -> list[Finding]:
    """Let go of torch, write the report, and return the findings; nothing happens if it is not enabled."""
    global _audit
    if _audit is None:
        return []
    audit, _audit = _audit, None
    atexit.unregister(disable)
    audit.stop()
    if audit.settings.live:
        reports.summary(audit.findings, audit.settings.root, audit.output, audit.not_seen)
    return audit.findings


def findings() -> list[Finding]:
    """The findings so far, in order of place; none if it is not enabled."""
    return _audit.findings if _audit is not None else []
