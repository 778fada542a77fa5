"""What will be: start estimates by simulation from the present, and what follows from them for people."""
