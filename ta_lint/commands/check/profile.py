"""`--profile`: the run in this process, and then what took how long."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.profiling import profiling


@contextmanager
def profiled(arguments: argparse.Namespace) -> Iterator[None]:
    """Measure what happens in this block, which lints in one process, and print it on standard error."""
    arguments.jobs = 1
    with profiling() as profile:
        yield
    sys.stdout.flush()
    print(f"\n{profile.rendered()}", end="", file=sys.stderr)
