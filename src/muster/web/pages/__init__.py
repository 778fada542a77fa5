"""One module for each question that a page answers."""
