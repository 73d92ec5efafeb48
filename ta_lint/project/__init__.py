"""A project as its folders and its import statements show it, without parsing what only checks need."""
