"""What `fuzz.py` is made of: inputs that nobody would write, what must hold of each, and how a failure is made small."""
