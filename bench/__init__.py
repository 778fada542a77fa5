"""Measurements: one harness, public traces, ratios out. ``python -m bench NAME``."""
