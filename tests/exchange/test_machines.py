"""Machines of other programs: each imports, maps with a proof, names what is lost, and is written back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies

from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.timing import PLAIN
from tilewright.report.exchange.bundle import Settings
from tilewright.report.exchange.convert import Conversion, convert
from tilewright.report.exchange.losses import Effect
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role

DATA = Path(__file__).parents[1] / "data" / "convert"


def converted(*names: str, settings: Settings | None = None) -> Conversion:
    """Sample files, for this project."""
    return convert([str(DATA / name) for name in names], "tilewright", settings=settings)


def told(conversion: Conversion, effect: Effect) -> list[str]:
    """Fields of the losses of one kind."""
    return [str(loss.field) for loss in conversion.losses if loss.effect is effect]


def problem(conversion: Conversion, layer: str, constraints: Sequence[str] = ()) -> LayerProblem:
    """A small layer on the imported machine."""
    assert conversion.bundle.engine is not None
    _, operator = parse_layer(layer)
    return layer_problem(
        operator, conversion.bundle.engine, parse_objective("edp"), constraints=tuple(constraints)
    )


def proven(conversion: Conversion, layer: str, constraints: Sequence[str] = ()) -> Fraction:
    """The proven EDP of a layer on the imported machine."""
    result = solve(problem(conversion, layer, constraints), "branch")
    assert result.status is Status.OPTIMAL
    assert result.key is not None
    return result.key


def test_an_eyeriss_like_timeloop_architecture() -> None:
    """Levels, arrays with what they carry, energies, constraints; the one lost order is named by its line."""
    conversion = converted("eyeriss.arch.yaml", "eyeriss.ert.yaml", "small.problem.yaml")
    engine = conversion.bundle.engine
    assert engine is not None
    assert [level.name for level in engine.levels] == [
        "DRAM",
        "glb",
        "ifmap_spad",
        "weights_spad",
        "psum_spad",
    ]
    assert [level.capacity for level in engine.levels] == [None, 51200, 12, 192, 16]
    assert [level.read_energy for level in engine.levels] == [200, 6, 1, 1, 1]
    assert engine.levels[1].keeps == {Role.INPUT, Role.OUTPUT}
    assert engine.levels[1].fanout is not None
    axes = {axis.name: (axis.size, axis.carries) for axis in engine.levels[1].fanout.axes}
    assert axes == {"column": (14, frozenset("GKQ")), "PE_Y": (12, frozenset("GKCS"))}
    assert "trips(C@psum_spad)=1" in conversion.bundle.constraints
    assert told(conversion, Effect.COST) == []
    [lost] = [loss for loss in conversion.losses if loss.effect is Effect.SPACE]
    lines = (DATA / "eyeriss.arch.yaml").read_text().splitlines()
    assert lost.line is not None
    assert "permutation: [N, M, P, Q, S, C, R]" in lines[lost.line - 1]


def test_the_eyeriss_like_machine_maps() -> None:
    """A layer is mapped under all imported constraints, with a proof."""
    conversion = converted("eyeriss.arch.yaml", "eyeriss.ert.yaml", "small.problem.yaml")
    assert conversion.bundle.operator is not None
    assert conversion.bundle.engine is not None
    goal = parse_objective("energy")
    stated = layer_problem(
        conversion.bundle.operator,
        conversion.bundle.engine,
        goal,
        constraints=tuple(conversion.bundle.constraints),
    )
    result = solve(stated, "branch")
    assert result.status is Status.OPTIMAL


def test_a_tpu_like_zigzag_accelerator() -> None:
    """Copies of memories make the array; widths, the shared port, constraints; it maps with a proof."""
    conversion = converted("tpu.accelerator.yaml", "tpu.workload.yaml", "tpu.mapping.yaml")
    engine = conversion.bundle.engine
    assert engine is not None
    assert [level.name for level in engine.levels] == ["dram", "buffer", "sum_reg", "weight_reg"]
    assert [level.capacity for level in engine.levels] == [None, 131072, 1, 1]
    assert engine.levels[0].read_energy == 640 * Fraction(8, 64)
    assert engine.levels[0].shared_bandwidth == 8
    assert engine.levels[0].widths == {}
    assert [level.widths for level in engine.levels[1:]] == [{Role.OUTPUT: 16}, {Role.OUTPUT: 16}, {}]
    assert engine.levels[1].read_energies == {Role.INPUT: Fraction(3, 4), Role.OUTPUT: Fraction(3, 2)}
    assert engine.levels[1].fanout is not None
    assert [axis.size for axis in engine.levels[1].fanout.axes] == [8, 8]
    assert told(conversion, Effect.COST) == ["memories.dram.operands"]
    assert {"spatial(K@D1)=8", "spatial(C@D2)=8"} <= set(conversion.bundle.constraints)
    spread = ["spatial(K@D1)=4", "spatial(C@D2)=2"]
    free = proven(conversion, "conv:K=4,C=4,P=3,Q=3,R=1,S=1")
    assert free <= proven(conversion, "conv:K=4,C=4,P=3,Q=3,R=1,S=1", spread)


def test_all_elements_alike_lose_no_precision() -> None:
    """With ``--element-bits`` nothing is said of mixed widths."""
    conversion = converted("tpu.accelerator.yaml", settings=Settings(element_bits=8))
    ports = [f"memories.sum_reg.ports[{index}].bandwidth_min" for index in (0, 1)]
    assert told(conversion, Effect.COST) == ports


def test_an_accelforge_machine() -> None:
    """Joules, seconds and bits become pJ, cycles and elements; what axes reuse they carry; it maps."""
    conversion = converted("nvdla.arch.yaml")
    engine = conversion.bundle.engine
    assert engine is not None
    assert engine.clock_mhz == 1000
    main, buffer, register = engine.levels
    assert main.read_energy == 64
    assert main.read_bandwidth == 16
    assert buffer.read_energy == 2
    assert buffer.write_energy == 4
    assert buffer.capacity == 16384
    assert buffer.read_bandwidth == 64
    assert buffer.write_bandwidth == 32
    assert register.keeps == {Role.WEIGHT}
    assert register.capacity == 1
    assert buffer.fanout is not None
    assert [axis.carries for axis in buffer.fanout.axes] == [frozenset("K"), frozenset("CRS")]
    assert told(conversion, Effect.COST) == []
    assert told(conversion, Effect.SPACE) == ["arch.nodes[2].spatial[0].min_usage"]
    own = problem(conversion, "conv:K=4,C=2,P=2,Q=2,R=1,S=1")
    assert solve(own, "branch").key == solve(own, "exhaustive").key


def test_what_nobody_reads_is_told(tmp_path: Path) -> None:
    """Keys at the top of a file, attributes of containers; what containers say is inherited."""
    text = (
        (DATA / "eyeriss.arch.yaml")
        .read_text()
        .replace("{type: LPDDR4, width: 64, datawidth: 16}", "{width: 64}")
    )
    text = text.replace('{technology: "65nm"}', '{technology: "65nm", datawidth: 16}')
    text += (
        "mapper: {timeout: 1}\nvariables: {global_cycle_seconds: 2e-9}\nsparse_optimizations: {targets: []}\n"
    )
    (tmp_path / "arch.yaml").write_text(text)
    names = ("eyeriss.ert.yaml", "small.problem.yaml")
    conversion = convert([str(tmp_path / "arch.yaml"), *(str(DATA / name) for name in names)], "tilewright")
    assert told(conversion, Effect.COST) == ["sparse_optimizations"]
    assert {"mapper", "architecture.nodes[0].attributes.technology"} <= set(told(conversion, Effect.NONE))
    assert conversion.bundle.engine is not None
    assert conversion.bundle.engine.clock_mhz == 500
    assert conversion.bundle.engine.levels[0].read_energy == 200


def test_without_energies_an_architecture_is_refused_by_name() -> None:
    """Every component whose energy the file does not tell is named; the user may tell them instead."""
    conversion = converted("eyeriss.arch.yaml")
    silent = [loss.field for loss in conversion.grave if "lacks its energy" in loss.message]
    assert len(silent) == 6
    names = ("DRAM", "glb", "ifmap_spad", "weights_spad", "psum_spad", "MAC")
    given = {name: (Fraction(index), Fraction(index)) for index, name in enumerate(names, 1)}
    again = converted("eyeriss.arch.yaml", settings=Settings(energies=given))
    assert told(again, Effect.COST) == []
    assert again.bundle.engine is not None
    assert again.bundle.engine.levels[1].read_energy == 2
    assert again.bundle.engine.mac_energy == 6


@settings(max_examples=effort(10), deadline=None)
@given(data=st.data())
def test_random_machines_come_back_from_timeloop(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Where no loss is named, a machine written for Timeloop and read back has the same levels and arrays."""
    engine = data.draw(hierarchies())
    bits = data.draw(st.sampled_from([16, 16, 8, 32]))
    levels = tuple(
        replace(
            level,
            fanout=None if level.fanout is None else named(level.fanout),
            sliding_window=index > 0,
            double_buffered=index > 0,
            timing=PLAIN,
            partitions={},
            bank=None,
            capacity=(level.capacity or 7) if index else None,
            read_energies={},
            write_energies={},
            widths=dict.fromkeys(level.keeps, bits) if bits != 16 and level is engine.levels[-1] else {},
        )
        for index, level in enumerate(engine.levels)
    )
    engine = replace(engine, levels=levels)
    text = written(engine, "timeloop", tmp_path_factory.mktemp("machine"))
    assert text is not None
    assert text.levels == engine.levels
    assert (text.mac_energy, text.element_bits) == (engine.mac_energy, engine.element_bits)


def named(fan: Fanout) -> Fanout:
    """An array as a machine file may have it, with what an architecture can say of it."""
    axes = tuple(
        ArrayAxis(f"a{axis.name}", axis.size + 1, None if axis.carries is None else axis.carries | {"G", "K"})
        for axis in fan.axes
    )
    return replace(fan, axes=axes, energy=Fraction(0))


def written(engine: Engine, peer: str, folder: Path) -> Engine | None:
    """A machine after it was written for a peer and read back; ``None`` where something was lost."""
    out = convert([], peer, arch=engine)
    if out.grave:
        return None
    paths = []
    for output in out.outputs:
        (folder / output.name).write_text(output.text)
        paths.append(str(folder / output.name))
    back = convert(paths, "tilewright")
    assert not back.grave
    return back.bundle.engine


def test_a_machine_comes_back_from_zigzag(tmp_path: Path) -> None:
    """The imported accelerator, written again, has the same levels but for its names of axes."""
    alike = Settings(element_bits=8)
    engine = converted("tpu.accelerator.yaml", settings=alike).bundle.engine
    assert engine is not None
    out = convert([], "zigzag", arch=engine)
    assert not out.grave
    path = tmp_path / "a.yaml"
    path.write_text(out.outputs[0].text)
    back = convert([str(path)], "tilewright", settings=alike).bundle.engine
    assert back is not None
    assert back.levels == engine.levels


BAD = {
    "timeloop": (
        "eyeriss.arch.yaml",
        [
            ("depth: 12800", "depth: twelve", "architecture.nodes[3].attributes.depth"),
            ("class: intmac", "class: adder", "has no compute component"),
            ("meshY: 12", "meshY: -1", "architecture.nodes[5].spatial.meshY"),
            ("keep: [Weights]", "keep: [Filters]", "unknown data space 'Filters'"),
            ("!Parallel", "!Pipelined", "expected !Container"),
            ("factors: [N=1, C=1, P=1, R=1, S=1]", "factors: [N=1, X=1]", "unknown dimension 'X'"),
        ],
    ),
    "zigzag": (
        "tpu.accelerator.yaml",
        [
            ("sizes: [8, 8]", "sizes: [8]", "expected 2 sizes"),
            ("operands: [I2]", "operands: [I3]", "unknown name 'I3'"),
            ("size: 1048576", "size: 0", "memories.buffer.size"),
            ('allocation: ["I2, fh"]', 'allocation: ["I2 from high"]', "expected an operand and a direction"),
            ("unit_energy: 0.04", "is_imc: true\n  unit_energy: 0.04", "computing in memory"),
            ("operands: [I1, I2, O]", "operands: [I1, O]", "the last memory is the outermost"),
        ],
    ),
    "accelforge": (
        "nvdla.arch.yaml",
        [
            ("tensors: {keep: weight}", "tensors: {keep: weights + 1}", "cannot read 'weights + 1'"),
            ("size: 1024*16*8", "size: lots", "arch.nodes[1].size"),
            ("fanout: 8", "fanout: 0", "arch.nodes[2].spatial[0].fanout"),
            ("throughput: 1e9", "throughput: 0", "expected operations per second above 0"),
            ("!Container", "!Toll", "expected !Memory, !Container or !Compute"),
            (
                "- !Memory\n    name: Register\n",
                "- !Container\n    name: Register\n",
                "an array below the innermost",
            ),
        ],
    ),
}


@pytest.mark.parametrize("peer", BAD)
def test_bad_machines_are_one_line(peer: str, tmp_path: Path) -> None:
    """What is wrong is told in one line with the file and the line."""
    name, changes = BAD[peer]
    text = (DATA / name).read_text()
    path = tmp_path / name
    for old, new, expected in changes:
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(InputError) as raised:
            convert([str(path)], "tilewright")
        assert str(raised.value).startswith(f"{path}:")
        assert expected in str(raised.value)


LOST = [
    ("class: smartbuffer_SRAM", "class: smartbuffer_SRAM\n    sparse_optimizations: {x: 1}", Effect.COST),
    ("n_banks: 25", "shared_bandwidth: 4", Effect.COST),
    ("n_banks: 25", "multiple_buffering: 3", Effect.COST),
    ("n_banks: 25", "metadata_datawidth: 5", Effect.COST),
    ("n_banks: 25", "min_utilization: 0.5", Effect.SPACE),
    ("bypass: [Weights]", "bypass: [Weights], no_coalesce: [Outputs]", Effect.COST),
    ("split: 7", "split: 7\n        no_reuse: [Inputs]", Effect.COST),
    ("spatial: {meshX: 14}", "spatial: {meshX: 14}\n    networks: [{name: x}]", Effect.COST),
]


@pytest.mark.parametrize(("old", "new", "effect"), LOST, ids=[new.split("{")[0][-25:] for _, new, _ in LOST])
def test_what_cannot_be_stated_is_named(old: str, new: str, effect: Effect, tmp_path: Path) -> None:
    """Compression, shared ports, coalescing and their like are losses that refuse, at their lines."""
    text = (DATA / "eyeriss.arch.yaml").read_text().replace(old, new, 1)
    (tmp_path / "arch.yaml").write_text(text)
    paths = [str(tmp_path / "arch.yaml"), str(DATA / "eyeriss.ert.yaml"), str(DATA / "small.problem.yaml")]
    usual = converted("eyeriss.arch.yaml", "eyeriss.ert.yaml", "small.problem.yaml")
    conversion = convert(paths, "tilewright")
    [more] = {loss.message for loss in conversion.grave} - {loss.message for loss in usual.grave}
    [lost] = [loss for loss in conversion.losses if loss.message == more]
    assert lost.effect is effect
    word = new.splitlines()[-1].strip().split(":")[0] if "no_coalesce" not in new else "no_coalesce"
    assert lost.line is not None
    assert word in text.splitlines()[lost.line - 1]


def test_problems_and_layers_come_back(tmp_path: Path) -> None:
    """A layer written for Timeloop and for ZigZag has the same bounds, tensors and strides again."""
    _, operator = parse_layer("conv:N=2,K=8,C=4,P=5,Q=3,R=3,S=2,stride=2x1,dilation=1x2")
    for peer in ("timeloop", "zigzag"):
        out = convert([], peer, layer=("small", operator))
        path = tmp_path / f"{peer}.yaml"
        path.write_text(out.outputs[0].text)
        back = convert([str(path)], "tilewright").bundle.operator
        assert back is not None
        assert back.bounds == operator.bounds
        assert {(tensor.name, tensor.role, tensor.axes) for tensor in back.tensors} == {
            (tensor.name, tensor.role, tensor.axes) for tensor in operator.tensors
        }
        assert {dimension.name: dimension.like for dimension in back.dimensions} == {
            dimension.name: dimension.like for dimension in operator.dimensions
        }


def test_a_zigzag_mapping_has_all_loops(tmp_path: Path) -> None:
    """The spatial mapping and the order of loops, innermost first, are those of the mapping."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(
        "{layer: 'conv:K=8,C=4,P=3,Q=1,R=1,S=1', arch: tpu-edge, nodes: [{store: I, level: DRAM}, "
        "{store: W, level: DRAM}, {store: O, level: DRAM}, {temporal: P, tile: 1}, {store: I, level: GBUF}, "
        "{temporal: K, tile: 4}, {spatial: K, tile: 1, axis: k}, {spatial: C, tile: 1, axis: c}, "
        "{store: W, level: REG}]}\n"
    )
    conversion = convert([str(mapping)], "zigzag")
    [text] = [output.text for output in conversion.outputs if output.kind == "mapping"]
    first, default = yaml.safe_load(text)
    assert first["spatial_mapping"] == {"D1": ["C, 4"], "D2": ["K, 4"]}
    assert first["temporal_ordering"] == [["K", 2], ["P", 3]]
    assert default["name"] == "default"
    assert any("ZigZag's to decide" in loss.message for loss in conversion.grave)
    assert load_engine("tpu-edge") == conversion.bundle.engine


def test_accelforge_widths_and_turns(tmp_path: Path) -> None:
    """Bits by tensor make widths and energies of their own; equal rates in turns are one shared port."""
    text = (DATA / "nvdla.arch.yaml").read_text()
    text = text.replace(
        "total_latency: max(a.n_calls / a.throughput for a in actions)\n    tensors", "tensors"
    )
    text = text.replace("size: 1024*16*8", "size: 1024*16*8\n    bits_per_value: {output: 24, ~output: 8}")
    (tmp_path / "arch.yaml").write_text(text)
    conversion = convert([str(tmp_path / "arch.yaml")], "tilewright")
    assert told(conversion, Effect.COST) == []
    assert conversion.bundle.engine is not None
    main, buffer, _ = conversion.bundle.engine.levels
    assert (main.read_bandwidth, main.shared_bandwidth) == (None, 16)
    assert (buffer.widths, buffer.capacity, buffer.read_bandwidth) == ({Role.OUTPUT: 24}, 16384, 64)
    assert buffer.read_energies == {Role.INPUT: 2, Role.WEIGHT: 2, Role.OUTPUT: 6}
    (tmp_path / "arch.yaml").write_text(text.replace("~output: 8", "All: 8"))
    with pytest.raises(InputError, match="gives outputs 8 bits, and another entry 24"):
        convert([str(tmp_path / "arch.yaml")], "tilewright")


def test_widths_and_a_shared_port_come_back_from_zigzag(tmp_path: Path) -> None:
    """Partial sums of 16 bits, finished ones of 8, one port for reads and writes: read, written and read."""
    conversion = converted("tpu.accelerator.yaml", "tpu.workload.yaml")
    assert conversion.bundle.engine is not None
    out = convert(
        [], "zigzag", arch=conversion.bundle.engine, layer=("small", parse_layer("gemm:M=4,N=4,K=4")[1])
    )
    assert not out.grave
    paths = []
    for output in out.outputs:
        (tmp_path / output.name).write_text(output.text)
        paths.append(str(tmp_path / output.name))
    back = convert(paths, "tilewright").bundle.engine
    assert back is not None
    assert back.levels == conversion.bundle.engine.levels
