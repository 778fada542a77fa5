"""The command line: verbs, and how their answers look."""
