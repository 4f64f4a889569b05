"""Built-in networks, one module each.

A module here named ``some_net`` becomes the model ``some_net``.  It defines ``build(batch)``, which returns
the `tilewright.workloads.network.Network` for that many samples; the first line of its docstring describes
the network.
"""
