"""What `benchmarks/lint.py` measures: trees of real code, commands over them, and rows that compare two commands."""
