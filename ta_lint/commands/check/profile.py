"""`--profile`: runs in this process and prints where the time went."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ta_lint.profiling import profiling


@contextmanager
def profiled(arguments: argparse.Namespace) -> Iterator[None]:
    """Profile the block, which lints in one process, and print the result on standard error."""
    arguments.jobs = 1
    with profiling() as profile:
        yield
    sys.stdout.flush()
    print(f"\n{profile.rendered()}", end="", file=sys.stderr)
