"""The audit of a run: a session that asks the checks, its findings, and where they go."""
