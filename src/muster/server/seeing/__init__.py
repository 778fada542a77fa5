"""Seeing where: the map of the place, what every GPU on it does, and where a job's processes are."""
