"""Muster: a compute resource manager for teams that share GPUs."""

__version__ = "0.1.0"
