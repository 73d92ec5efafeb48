"""A linter for PyTorch training code; `ta_lint.cli` is the command, `ta_lint.engine` the library entry."""

__version__ = "0.1.0"

__all__ = ["__version__"]
