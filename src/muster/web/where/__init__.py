"""What the page of the map is made of: what is in view, how it is coloured, what is looked for, a machine."""
