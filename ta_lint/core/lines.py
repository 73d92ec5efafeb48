"""The line ends of Python."""

import re

LINE_END = re.compile(r"\r\n|\r|\n")
"""A line end in a Python file, and in a cell of a notebook."""
