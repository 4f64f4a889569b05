"""Tables of axis groups (:mod:`tilewright.formulation.tables`), under the name that solvers use."""

from tilewright.formulation.tables import GroupTable, Indices, Tables, local_nodes

__all__ = ["GroupTable", "Indices", "Tables", "local_nodes"]
