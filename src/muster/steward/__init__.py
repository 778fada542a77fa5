"""Looking after what runs: values in, findings and advice out. As pure as ``schedule``."""
