"""From what a person wrote (options, an application file, a batch script) to a Job, or to a sentence why not.

Every source is read into the same flat form, ``Asked``, in base units, which says nothing where nothing was
said; so one is laid over the other: command line over file, file over defaults.
"""
