"""Replaying a trace in virtual time: the run, its figures, and the page that shows them."""
