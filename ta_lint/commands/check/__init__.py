"""`ta-lint check`: from its arguments to its exit status, one module per step."""

import argparse

from ta_lint.commands import CLEAN, ERROR, FINDINGS
from ta_lint.commands.check.options import add_arguments
from ta_lint.core.collector import paused

TYPE_CHECKING = False  # `--help` needs no `typing`
if TYPE_CHECKING:
    from ta_lint.commands.check.outcome import Outcome
    from ta_lint.core.config import Config

__all__ = ["add_arguments", "run"]


@paused()
def run(arguments: argparse.Namespace) -> int:
    """Lint or fix; return the exit status."""
    from ta_lint.commands.check.options import refuse_contradictions

    refuse_contradictions(arguments)
    if not arguments.profile:
        return _check(arguments)
    from ta_lint.commands.check.profile import profiled

    with profiled(arguments):
        return _check(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from ta_lint.commands.check import baseline, report
    from ta_lint.commands.check.files import choose, warn_of_idle_ignores
    from ta_lint.commands.check.settings import read_settings, shown, warn_of_overlooked, working_folder

    if arguments.watch and not (arguments.show_settings or arguments.show_files):
        from ta_lint.commands.check import watch

        return watch.run(arguments)
    settings = read_settings(arguments, working_folder())
    warn_of_overlooked(settings)
    if arguments.show_settings:
        from ta_lint.commands.check.show_settings import as_toml

        print(as_toml(shown(arguments, settings)), end="")
        return CLEAN
    if arguments.show_files:
        from ta_lint.commands.check.files import show

        show(choose(arguments, settings))
        return CLEAN
    accepted = baseline.accepted(arguments, settings.config)
    chosen = choose(arguments, settings)
    warn_of_idle_ignores(arguments, chosen)
    if arguments.add_noqa:
        from ta_lint.commands.check import add_noqa

        return add_noqa.add(arguments, settings, chosen, accepted)
    if arguments.fix or arguments.diff:
        from ta_lint.commands.check import fix

        fixed = fix.fixed(arguments, chosen.files, accepted)
        if arguments.diff:
            from ta_lint.commands.check import diff

            return diff.show(arguments, fixed, accepted)
        outcome = fix.write(fixed, chosen, settings.root)
    else:
        from ta_lint.commands.check.lint import lint

        outcome = lint(arguments, settings, chosen)
    compared = baseline.compare(outcome.findings, accepted, chosen.files, settings.root)
    if arguments.update_baseline:
        baseline.update(arguments, settings.config, compared)
        return CLEAN
    outcome = outcome._replace(findings=compared.findings)
    report.write(arguments, settings, chosen, outcome)
    if not arguments.quiet:
        baseline.warn_of_stale(compared, settings.config)
    return _status(arguments, settings.config, outcome)


def _status(arguments: argparse.Namespace, config: "Config", outcome: "Outcome") -> int:
    """The exit status after the report is written."""
    if outcome.unwritten:
        return ERROR
    least = config.fail_level.rank
    failing = any(finding.counts and finding.severity.rank >= least for finding in outcome.findings)
    failing = failing or (arguments.exit_non_zero_on_fix and outcome.fixed > 0)
    return FINDINGS if failing and not arguments.exit_zero else CLEAN
