"""Real processes on this machine: an engine in the server, and a keeper that outlives it.

The keeper imports this package too, and must stay small: import from the modules.
"""
