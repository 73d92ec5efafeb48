"""What ends a line."""

import re

LINE_END = re.compile(r"\r\n|\r|\n")
"""To Python, in a file and in a cell of a notebook."""
