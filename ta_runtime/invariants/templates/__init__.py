"""One module for each template; see `ta_runtime.invariants.template`. Nothing lists them: the folder is the list."""
