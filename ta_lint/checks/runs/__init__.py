"""The checks over what happens in a run, which both observers share: see `ta_lint.checks`."""
