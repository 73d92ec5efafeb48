"""One file as nodes of libcst: made, indexed, and edited."""
