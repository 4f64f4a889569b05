"""A mapping as MLIR: the layer as a ``linalg.generic`` op, and a transform script that tiles it.

Loops in time, and reductions on an array, become ``scf.for`` loops of the mapping's tiles, outermost first;
other loops on an array become ``scf.forall``.  The named sequence ``@__transform_main`` applies to the module
that has both.  Tensors have 32-bit floating-point elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Tensor

_KINDS = ("conv2d", "depthwise", "gemm", "matmul", "weight_update", "nest", "elementwise")


def mlir_module(operator: Operator, mapping: Mapping, name: str = "layer") -> str:
    """Text of a module: the function ``name`` and the transform script.

    Raises
    ------
    InputError : for a layer that is no sum of products
    """
    if operator.kind not in _KINDS:
        raise InputError("--to", "mlir", f"a layer of kind {operator.kind} is no sum of products")
    body = "\n".join([*_function(operator, name), *_script(operator, mapping)])
    return f"module attributes {{transform.with_named_sequence}} {{\n{body}\n}}\n"


def _function(operator: Operator, name: str) -> Iterator[str]:
    dims = [dim.name for dim in operator.dimensions]
    loops = ", ".join(f"d{index}" for index in range(len(dims)))
    maps = ",\n      ".join(
        f"affine_map<({loops}) -> ({_index(tensor, dims)})>" for tensor in operator.tensors
    )
    output = operator.tensors[-1]
    kinds = ", ".join(f'"{"parallel" if dim in output.dims else "reduction"}"' for dim in dims)
    types = [_type(tensor) for tensor in operator.tensors]
    inputs = [f"%arg{index}" for index in range(len(types) - 1)]
    arguments = ", ".join(f"%arg{index}: {kind}" for index, kind in enumerate(types))
    scalars = ", ".join(f"%in{index}: f32" for index in range(len(inputs)))
    yield f"  func.func @{name}({arguments}) -> {types[-1]} {{"
    yield "    %0 = linalg.generic {indexing_maps = ["
    yield f"      {maps}],"
    yield f"      iterator_types = [{kinds}]}}"
    yield f"      ins({', '.join(inputs)} : {', '.join(types[:-1])}) outs(%arg{len(inputs)} : {types[-1]}) {{"
    yield f"    ^bb0({scalars}, %out: f32):"
    value = "%in0"
    for index in range(1, len(inputs)):
        yield f"      %p{index} = arith.mulf {value}, %in{index} : f32"
        value = f"%p{index}"
    yield f"      %sum = arith.addf %out, {value} : f32"
    yield "      linalg.yield %sum : f32"
    yield f"    }} -> {types[-1]}"
    yield f"    return %0 : {types[-1]}"
    yield "  }"


def _script(operator: Operator, mapping: Mapping) -> Iterator[str]:
    dims = [dim.name for dim in operator.dimensions]
    left, handle, number = dict(operator.bounds), "%op", 0
    yield "  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {"
    yield (
        '    %op = transform.structured.match ops{["linalg.generic"]} in %root'
        " : (!transform.any_op) -> !transform.any_op"
    )
    for node in mapping.nodes:
        if isinstance(node, Storage) or node.tile >= left[node.dim]:
            continue
        number += 1
        sizes = ", ".join(str(node.tile if dim == node.dim else 0) for dim in dims)
        tiled, loop = f"%tiled{number}", f"%loop{number}"
        parallel = isinstance(node, Spatial) and node.dim in operator.tensors[-1].dims
        kind = "forall" if parallel else "for"
        yield (
            f"    {tiled}, {loop} = transform.structured.tile_using_{kind} {handle} tile_sizes [{sizes}]"
            " : (!transform.any_op) -> (!transform.any_op, !transform.any_op)"
        )
        handle, left[node.dim] = tiled, node.tile
    yield "    transform.yield"
    yield "  }"


def _index(tensor: Tensor, dims: list[str]) -> str:
    axes = []
    for axis in tensor.axes:
        terms = [
            f"d{dims.index(term.dim)}" + (f" * {term.stride}" if term.stride != 1 else "")
            for term in axis.terms
        ]
        axes.append(" + ".join(terms) or "0")
    return ", ".join(axes)


def _type(tensor: Tensor) -> str:
    """The type of a whole tensor."""
    return f"tensor<{''.join(f'{axis.size}x' for axis in tensor.axes)}f32>"
