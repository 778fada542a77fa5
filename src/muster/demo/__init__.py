"""A demonstration that needs nothing: a simulated site with a week behind it, served by the real server."""
