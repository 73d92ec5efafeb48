"""Shared by linter and run: the rule catalogue, findings, and everything that happens to a finding afterwards.

Nothing here imports libcst or torch, nor anything of `ta_lint` or `ta_runtime` outside this package.
"""
