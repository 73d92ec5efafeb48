import sys

from . import train

print(__name__, __package__, sys.argv[1:], __spec__.name)
