"""Cost models and constraints as expressions over decision variables, and the readers of them.

An expression is written once; every reader gives it another meaning: exact numbers, numpy batches,
intervals (lower and upper bounds), text.  Solvers add their own readers of the same nodes.
"""

from tilewright.formulation.expression.nodes import (
    Choice,
    Constant,
    Expr,
    Function,
    IsOne,
    Maximum,
    Product,
    Quotient,
    Rounded,
    Sum,
    Tightened,
    Variable,
    Where,
    as_expr,
    as_node,
    product,
    total,
)
from tilewright.formulation.expression.operations import (
    ceil_div,
    choose,
    function,
    is_one,
    maximum,
    rounded,
    tighten,
    where,
)

__all__ = [
    "Choice",
    "Constant",
    "Expr",
    "Function",
    "IsOne",
    "Maximum",
    "Product",
    "Quotient",
    "Rounded",
    "Sum",
    "Tightened",
    "Variable",
    "Where",
    "as_expr",
    "as_node",
    "ceil_div",
    "choose",
    "function",
    "is_one",
    "maximum",
    "product",
    "rounded",
    "tighten",
    "total",
    "where",
]
