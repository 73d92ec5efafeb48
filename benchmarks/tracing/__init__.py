"""What `benchmarks/invariants.py` traces, learns from and measures beside."""
