"""The physical map: what stands where, who says so, and how it is drawn.

``file`` reads what people wrote, ``discover`` looks at this machine, ``merge`` lays the one over the other,
and ``geometry`` turns the result into plain boxes, from which the terminal and the page draw, so that they
can't disagree. Only ``discover`` and ``read`` touch anything; the rest is pure.
"""
