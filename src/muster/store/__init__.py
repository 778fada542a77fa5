"""Facts and what follows from them."""
