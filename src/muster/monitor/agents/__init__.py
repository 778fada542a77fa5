"""What agents on the nodes tell (``message``), who did last (``board``), and what it makes (``merge``)."""
