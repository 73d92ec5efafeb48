"""`python -m ta_runtime`, as in `torchrun -m ta_runtime run train.py`."""

from ta_runtime.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
