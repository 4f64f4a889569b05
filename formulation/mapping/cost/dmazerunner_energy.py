"""Energy of the ``dmazerunner`` cost model: what moves between DRAM, SPM and register files, and is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.expression import Expr, as_expr, is_one, product, total, where
from tilewright.formulation.mapping.cost.base import Traffic, energy_scale, whole
from tilewright.formulation.mapping.cost.dmazerunner_passes import Passes
from tilewright.workloads.mapping.operator import Tensor


@dataclass(frozen=True, slots=True)
class TensorMoves:
    """Elements of a tensor that move over the whole run.

    Parameters
    ----------
    hops : over the array's networks, counted at every receiver or sender
    array : between SPM and array
    dram : between DRAM and SPM; of outputs those written, then those read back
    """

    hops: Expr
    array: Expr
    dram: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class PassMoves:
    """What the loops move over the whole run, in elements, whatever that costs.

    Parameters
    ----------
    added : partial sums that PEs add across the array
    tensors : in the operator's sequence
    traffic : the same, level by level
    """

    added: Expr
    tensors: tuple[TensorMoves, ...]
    traffic: tuple[Traffic, ...]


class PassEnergy(Passes):
    """The energy of one nest."""

    def _moves(self, tensor: Tensor, payload: Sequence[Expr], again: int = 1) -> Expr:
        """``payload`` times the transfers between SPM and array; ``again`` where not continuously reused.

        A tensor that stays through a whole SPM pass and on through the next is reused continuously: it
        moves once per DRAM reuse.
        """

        inner, outer = self.trips(self.spm_blocks, self.own_dims(tensor)), self.trips(self.dram_blocks)

        def through(moving: Sequence[str], reused: Expr | None) -> Expr:
            if reused is None:
                return product([again, *payload, *inner, *outer])
            once = product([*payload, *inner, *self.trips(self.dram_blocks, moving)])
            # Reuse continues only where the DRAM loop that keeps the tensor does run.
            return where(is_one(reused), again * once, once)

        def stopped(moving: Sequence[str], _reused: Expr | None) -> Expr:
            return product([again, *payload, *self.trips(self.spm_blocks, moving), *outer])

        return where(
            is_one(product(inner)),
            self.by_moving(self.dram_blocks, tensor, through),
            self.by_moving(self.spm_blocks, tensor, stopped),
        )

    def _fetches(self, tensor: Tensor, payload: Sequence[Expr]) -> Expr:
        """``payload`` times the transfers between DRAM and SPM."""

        def option(moving: Sequence[str], _reused: Expr | None) -> Expr:
            return product([*payload, *self.trips(self.dram_blocks, moving)])

        return self.by_moving(self.dram_blocks, tensor, option)

    def _partial_sum_reads(self) -> Expr:
        """Output elements read back from DRAM: every fetch but the zero-initialised first."""
        tile = self.nest.extents(self.output, self.spm_tile)
        once = self.trips(self.dram_blocks, self.own_dims(self.output))

        def option(index: int) -> Expr:
            reused = self.reused_dims(self.dram_blocks, index, self.output)
            again = [dim for dim in self.other_dims(self.output) if dim not in reused]
            # Sums start from zero, so that the first visit reads nothing.
            return product([*tile, *once, product(self.trips(self.dram_blocks, again)) - 1])

        return self.chosen(self.dram_blocks, option)

    def _moved(self) -> PassMoves:
        """What moves, built once for all machines that differ in energies alone."""
        key = "pass moves", *self.places
        moves: PassMoves | None = self.nest.counted.get(key)
        if moves is None:
            moves = self.nest.counted[key] = self._moved_by_loops()
        return moves

    def _moved_by_loops(self) -> PassMoves:
        # Partial sums that PEs add across the array: each needs a MAC, register accesses and a hop.
        added = self._moves(
            self.output,
            [
                *self.nest.extents(self.output, self.rf_tile),
                *self.spatial_trips(self.own_dims(self.output)),
                product(self.spatial_trips(self.other_dims(self.output))) - 1,
            ],
        )
        tensors: list[TensorMoves] = []
        traffic: list[Traffic] = []
        for tensor in self.operator.tensors:
            # Outputs travel back and forth.
            again = 2 if tensor.is_output else 1
            receivers = self.spatial_trips(self.own_dims(tensor)) if tensor.is_output else self.spatial
            hops = self._moves(tensor, [*self.nest.extents(tensor, self.rf_tile), *receivers], again)
            array = self._moves(tensor, self.nest.extents(tensor, self.array_tile), again)
            fetched = self._fetches(tensor, self.nest.extents(tensor, self.spm_tile))
            dram = (fetched, self._partial_sum_reads()) if tensor.is_output else (fetched,)
            tensors.append(TensorMoves(hops, array, dram))
            traffic += self._traffic(tensor, dram, array)
        return PassMoves(added, tuple(tensors), tuple(traffic))

    def energy(self) -> tuple[int, dict[str, Expr], tuple[Traffic, ...]]:
        fan = self.spm.fanout
        assert fan is not None
        rf, noc = self.rf.read_energy, fan.energy
        spm, dram, mac = self.spm.read_energy, self.dram.read_energy, self.engine.mac_energy
        scale = energy_scale([rf, noc, spm, dram, mac])
        iterations, moves = self.operator.iterations, self._moved()
        parts: dict[str, list[Expr]] = {
            "MAC": [as_expr(whole(mac, scale) * iterations), whole(mac, scale) * moves.added],
            "RF": [
                # Every iteration reads each operand and the partial sum, and writes the sum.
                as_expr(whole(rf, scale) * iterations * (len(self.operator.tensors) + 1)),
                whole(rf, scale) * 3 * moves.added,
            ],
            "network": [whole(noc, scale) * moves.added],
            "SPM": [],
            "DRAM": [],
        }
        for moved in moves.tensors:
            parts["network"].append(whole(noc, scale) * moved.hops)
            parts["SPM"].append(whole(spm, scale) * moved.array)
            parts["DRAM"].append(whole(dram, scale) * total(moved.dram))
        return scale, {name: total(terms) for name, terms in parts.items()}, moves.traffic

    def _traffic(self, tensor: Tensor, moved: Sequence[Expr], array: Expr) -> list[Traffic]:
        """Elements that cross the DRAM and the SPM port, and what the levels hold."""
        all_of_it = as_expr(tensor.footprint(self.operator.bounds))
        spm, rf = (self.nest.footprint(tensor, at) for at in (self.spm_tile, self.rf_tile))
        zero, uses = as_expr(0), as_expr(self.operator.iterations)
        if tensor.is_output:
            written, read = moved
            return [
                Traffic(self.dram.name, tensor.name, read, zero, written, all_of_it),
                Traffic(self.spm.name, tensor.name, array, zero, zero, spm),
                Traffic(self.rf.name, tensor.name, uses, zero, uses, rf),
            ]
        return [
            Traffic(self.dram.name, tensor.name, moved[0], zero, zero, all_of_it),
            Traffic(self.spm.name, tensor.name, array, zero, zero, spm),
            Traffic(self.rf.name, tensor.name, uses, zero, zero, rf),
        ]
