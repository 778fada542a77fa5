"""``muster agent``: the meters of one node of a cluster, told to a server elsewhere.

Slurm's jobs are found by the groups that slurmd makes for them (``groups``), or by their processes
(``processes``); ``look`` reads them with the meters of one machine, ``run`` does so again and again and tells
the server.
"""
