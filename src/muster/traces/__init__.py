"""Readers of public trace formats, and a generator of synthetic ones."""
