"""Slurm: calling it (``client``) and understanding it (the readers) are apart.

A command's answer goes ``wire`` (bytes → what we use of them) → ``lift…`` (older versions, one step at
a time, to the shape of the newest) → ``jobs``, ``nodes``, ``attempts`` … (values of ``answers``) →
``states`` and ``reasons`` (what it means to Muster). Everything after the client is a function of
bytes, tried on recordings of real answers.
"""
