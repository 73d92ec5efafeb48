"""What both observers share: the rule catalogue, findings and everything that happens to a finding after it is made.

Nothing here imports libcst or torch, nor anything of `ta_lint` or `ta_runtime` outside this package.
"""
