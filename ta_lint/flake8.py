"""The flake8 plugin: ta-lint's findings among those of flake8."""

import ast
from collections.abc import Iterator

from ta_lint import __version__, lint_text


class Plugin:
    """Lints one file. flake8 passes arguments by parameter name; `tree` makes it run the plugin once per file."""

    name = "ta-lint"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        self._path = filename
        self._text = "".join(lines)

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """The line, column from 0, text and plugin type of each finding that counts."""
        from ta_lint.core.errors import UsageError
        from ta_lint.core.report import in_cell

        try:
            findings = lint_text(self._text, self._path)
        except UsageError as error:
            from flake8.exceptions import ExecutionError

            raise ExecutionError(f"ta-lint: {error}") from error
        for finding in findings:
            if finding.counts:
                site = finding.site
                line = site.cell.file_line if site.cell is not None else site.line
                yield line, site.column - 1, f"{finding.rule} {in_cell(finding.message, site)}", type(self)
