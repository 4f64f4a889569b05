"""A mapping as a call of Gemmini's library: tile sizes for ``tiled_matmul`` or ``tiled_conv``.

Names, order and meaning of the arguments are those of ``include/gemmini.h`` of ucb-bar/gemmini-rocc-tests at
commit 2c4f9174ab58141b81a2d03e98365702dc94a13d.  Its loops stand in a fixed order and its tiles hold for
matrix blocks of ``DIM`` a side, so not every mapping can be said; what cannot is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC

from tilewright.formulation.mapping.gemmini.library import (
    CONVOLUTION_ORDER,
    MATRIX_ORDER,
    array_side,
    block_dims,
    check_layer,
    is_product,
    refused,
    stride_of,
)
from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator

_MATRIX = {"P": "I", "K": "J", "C": "K"}
"""How the library calls a product's dimensions, by what they are like in a convolution."""
LARGEST = 65535
"""The loop unit counts tiles in 16 bits."""


def gemmini_call(operator: Operator, mapping: Mapping, engine: Engine, name: str = "layer") -> str:
    """C code of one function that calls the library with the mapping's tiles.

    Parameters
    ----------
    operator, mapping : a convolution or a product, and loops over tiles as the library has them
    engine : the machine, whose array is square
    name : of the function

    Raises
    ------
    InputError : for a layer or mapping that the library's loops cannot express, with the reason
    """
    side = array_side(engine)
    tile = library_tiles(operator, mapping, engine)
    if is_product(operator):
        return _matrix(operator, tile, side, name)
    return _convolution(operator, tile, name)


def library_tiles(operator: Operator, mapping: Mapping, engine: Engine) -> dict[str, int]:
    """Tile sizes of one library call, by the dimension of a convolution that each is like.

    Raises
    ------
    InputError : as :func:`gemmini_call`
    """
    check_layer(operator)
    likes = {dim.name: dim.like for dim in operator.dimensions}
    bounds = {dim.like: dim.bound for dim in operator.dimensions}
    tile = dict(bounds)
    outer: list[str] = []
    for node in mapping.nodes:
        if isinstance(node, Storage):
            if node.level != engine.levels[0].name:
                break
        elif isinstance(node, Temporal):
            like = likes[node.dim]
            if like in outer and outer[-1] != like:
                raise refused(f"{node.dim} is cut twice outside the scratchpad")
            if node.tile < tile[like]:
                outer += [like]
                tile[like] = node.tile
        else:
            raise refused("an array stands outside the scratchpad")
    order = MATRIX_ORDER if is_product(operator) else CONVOLUTION_ORDER
    wanted = [like for like in order if like in outer]
    if list(dict.fromkeys(outer)) != wanted:
        raise refused(
            f"loops over tiles stand as {' '.join(dict.fromkeys(outer))}, the library's as {' '.join(wanted)}"
        )
    side = array_side(engine)
    for like in block_dims(operator):
        if like in tile and tile[like] % side and tile[like] < bounds[like]:
            raise refused(f"a tile of {tile[like]} along {like} is no multiple of the array's {side}")
        if like in tile and -(-tile[like] // side) > LARGEST:
            raise refused(f"a tile of {tile[like]} along {like} is over {LARGEST} blocks")
    return {like: tile.get(like, 1) for like in CONVOLUTION_ORDER}


def _matrix(operator: Operator, tile: MappingABC[str, int], side: int, name: str) -> str:
    bounds = {dim.like: dim.bound for dim in operator.dimensions}
    size = {letter: bounds.get(like, 1) for like, letter in _MATRIX.items()}
    blocks = {letter: -(-tile[like] // side) for like, letter in _MATRIX.items()}
    return f"""#include "include/gemmini.h"

/* {name}: C[{size["I"]}][{size["J"]}] = A[{size["I"]}][{size["K"]}] * B[{size["K"]}][{size["J"]}];
 * tiles of {tile["P"]} x {tile["K"]} x {tile["C"]}, in blocks of {side}. */
void {name}(const elem_t *A, const elem_t *B, elem_t *C) {{
  tiled_matmul({size["I"]}, {size["J"]}, {size["K"]}, A, B, NULL, C,
               {size["K"]}, {size["J"]}, {size["J"]}, {size["J"]},
               MVIN_SCALE_IDENTITY, MVIN_SCALE_IDENTITY, MVIN_SCALE_IDENTITY,
               NO_ACTIVATION, ACC_SCALE_IDENTITY, 0, false,
               {blocks["I"]}, {blocks["J"]}, {blocks["K"]},
               false, false, false, false, 0, WS);
}}
"""


def _convolution(operator: Operator, tile: MappingABC[str, int], name: str) -> str:
    bounds = {dim.like: dim.bound for dim in operator.dimensions}
    stride = stride_of(operator, "P")
    rows, columns = ((bounds[out] - 1) * stride + bounds[tap] for out, tap in ("PR", "QS"))
    sizes = ", ".join(str(tile[like]) for like in CONVOLUTION_ORDER)
    inputs, outputs = bounds["C"], bounds["K"]
    return f"""#include "include/gemmini.h"

/* {name}: {outputs} channels of {bounds["P"]} x {bounds["Q"]} outputs from {inputs} of
 * {rows} x {columns} inputs (padding included), stride {stride}; channels last. */
void {name}(const elem_t *input, const elem_t *weights, elem_t *output) {{
  tiled_conv({bounds["N"]}, {rows}, {columns}, {inputs},
             {outputs}, {bounds["P"]}, {bounds["Q"]},
             {stride}, 1, 1, 0, {bounds["R"]},
             {inputs}, {outputs}, {outputs},
             false, false, false, false, false,
             {sizes},
             input, weights, NULL, output,
             NO_ACTIVATION, ACC_SCALE_IDENTITY, 0, 0, 0, WS);
}}
"""
