"""The dry run: a program is executed on values that are known only in part, without torch and without data."""
