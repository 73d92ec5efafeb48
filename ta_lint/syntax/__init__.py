"""The tree of one file as libcst nodes: building, indexing and editing it."""
