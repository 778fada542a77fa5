"""Pages: server-made HTML and SVG, a stream of changes, and forms that do what the command line does."""
