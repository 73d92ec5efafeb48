"""`python -m ta_lint`."""

from ta_lint.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
