"""How jobs tell how they are doing: what they report, print, or write for others to read."""
