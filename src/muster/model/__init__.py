"""The nouns: frozen, typed values that every other part speaks of. Nothing here does I/O or reads a clock."""
