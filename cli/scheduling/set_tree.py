"""``tilewright evaluate``, ``show`` and ``check`` for resource allocation trees in files.

The first two print the closed form of every node, the spatial-temporal graph, and the plan next to the closed
form; the graph can be drawn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilewright.api.scheduling.trees import mapped, tree_bound
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import show, write
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, IllegalPlanError
from tilewright.formulation.scheduling.tiled.set.trees.expansion import expand
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, InvalidTreeError, Leaf, nodes
from tilewright.formulation.scheduling.tiled.set.trees.unfit import UnfitTreeError
from tilewright.foundation.errors import InputError, located_in
from tilewright.report.records.files import parse_record
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.scheduling.tiled.set_tree import SetTreeRecord, StatedTree, stated_tree
from tilewright.report.text.scheduling.tiled.set_tree import spatial_temporal_graph

SCHEMA = "tilewright.evaluation/1"


def evaluate_tree(data: dict[str, Any], where: str, objective: str | None, form: str) -> int:
    """Evaluate the tree of a file; returns the exit code.

    Parameters
    ----------
    data : the file's content
    where : its name, for errors
    objective : instead of the file's
    form : ``table`` or ``json``

    Raises
    ------
    InputError : for a file that states no tree, or one that the machine cannot run
    """
    stated, cost = _evaluated(data, where, objective)
    plan = _plan(stated, cost)
    if form == "json":
        write(json.dumps(_document(stated, cost, plan), indent=2, ensure_ascii=False) + "\n")
    else:
        _print(stated, cost, plan)
    return Exit.OK


def draw_tree(data: dict[str, Any], where: str, picture: Path) -> int:
    """Draw the spatial-temporal graph of a file's tree; returns the exit code.

    Raises
    ------
    InputError : for a file that states no tree, one that the machine cannot run, or a name of no picture
    """
    from tilewright.report.plots.scheduling.tiled.set_tree import draw_spatial_temporal_graph
    from tilewright.report.plots.style import check_plot_file

    check_plot_file(picture)
    stated, cost = _evaluated(data, where, None)
    draw_spatial_temporal_graph(cost, stated.form, picture)
    write(f"{picture}: {stated.record.network} on {stated.record.system}\n")
    return Exit.OK


def check_tree(data: dict[str, Any], where: str, form: str) -> int:
    """Whether a file's tree is one of its network, fits the machine and has a legal plan; the exit code.

    Raises
    ------
    InputError : for a file that names what does not exist
    """
    record = parse_record(data, SetTreeRecord, where)
    fault = ""
    try:
        with located_in(where):
            stated = stated_tree(record, where)
            _plan(stated, stated.form.evaluate(stated.tree))
    except (InvalidTreeError, UnfitTreeError, IllegalPlanError) as error:
        fault = str(error)
    if form == "json":
        write(json.dumps({"holds": not fault, "fault": fault}, ensure_ascii=False) + "\n")
    else:
        write(f"{where}: {fault or 'a tree of its network that fits the machine'}\n")
    return Exit.CHECK_FAILED if fault else Exit.OK


def _evaluated(data: dict[str, Any], where: str, objective: str | None) -> tuple[StatedTree, NodeCost]:
    """The tree of a file and what it costs; raises ``InputError``."""
    record = parse_record(data, SetTreeRecord, where)
    try:
        with located_in(where, {"--objective", str(objective)}):
            stated = stated_tree(record, where, objective)
            return stated, stated.form.evaluate(stated.tree)
    except (InvalidTreeError, UnfitTreeError) as error:
        raise InputError(where, "tree", str(error)) from None


def _plan(stated: StatedTree, cost: NodeCost) -> Evaluation | None:
    """What the common evaluator says of the tree's plan."""
    if stated.problem is None:
        return None
    problem = mapped(stated.problem)
    dag, plan = expand(problem, cost, stated.form.dataflow, stated.form.engine.grid)
    return problem.evaluate(dag, plan)


def _rows(stated: StatedTree, cost: NodeCost) -> list[dict[str, Any]]:
    """Every node with its figures, in the order of the text."""
    depths = [depth for depth, _ in nodes(stated.tree)]
    rows = []
    for depth, node_cost in zip(depths, cost.walk(), strict=True):
        node = node_cost.node
        row: dict[str, Any] = {
            "depth": depth,
            "batch": node.batch,
            "first_tile": node_cost.first,
            "tiles": node_cost.tiles,
        }
        if isinstance(node, Leaf):
            row |= {"layer": stated.form.network.layers[node.layer].name}
        else:
            row |= {"cut": node.kind, "groups": node.groups}
            if node.stripes > 1:
                row |= {"bands": node.stripes}
        row |= {
            "energy_pj": node_cost.energy,
            "cycles": node_cost.cycles,
            "hop_bytes": node_cost.hops,
            "dram_bytes": node_cost.dram,
        }
        row |= {
            "busiest_link_bytes": node_cost.busiest_link,
            "buffer_bytes": int((node_cost.buffer + node_cost.weights).max()),
        }
        if node_cost.leaf is not None:
            row |= {
                "partition": str(node_cost.leaf.partition),
                "stored": node_cost.stored,
                "streamed": node_cost.leaf.streamed,
            }
        rows.append(row)
    return rows


def _document(stated: StatedTree, cost: NodeCost, plan: Evaluation | None) -> dict[str, Any]:
    bound = _bound(stated)
    value = stated.form.value(cost.energy, cost.cycles)
    reported: dict[str, Any] = {
        "schema": SCHEMA,
        "command": "evaluate",
        "network": stated.record.network,
        "system": stated.record.system,
        "batch": stated.record.batch,
        "closed_form": {"value": value, "energy_pj": cost.energy, "cycles": cost.cycles},
        **({} if bound is None else {"bound": bound, "gap": (value - bound) / value}),
        "nodes": _rows(stated, cost),
    }
    if plan is not None:
        reported["plan"] = {
            "energy_pj": plan.energy.total,
            "cycles": plan.cycles,
            "dram_bytes": plan.dram_read_bytes + plan.dram_write_bytes,
            "hop_bytes": plan.hop_bytes,
        }
    return reported | {"versions": versions()}


def _bound(stated: StatedTree) -> float | None:
    """Lower bound on all trees; ``None`` for a tree in row stripes, which the bound does not cover."""
    if any(isinstance(node, Cut) and node.stripes > 1 for _, node in nodes(stated.tree)):
        return None
    return tree_bound(stated.form)


def _cut_name(row: dict[str, Any]) -> str:
    """A cut as it is written in trees."""
    bands = f"/{row['bands']}" if "bands" in row else ""
    return f"{row['cut']} {row['batch']}/{row['groups']}{bands}"


def _print(stated: StatedTree, cost: NodeCost, plan: Evaluation | None) -> None:
    from rich.text import Text

    from tilewright.report.text.tables import plain_table

    titles = ("node", "tiles", "cycles", "energy", "DRAM", "hops", "busiest link", "buffer")
    table = plain_table([(title, "left" if title == "node" else "right") for title in titles])
    for row in _rows(stated, cost):
        name = f"{row['layer']} {row['batch']}" if "layer" in row else _cut_name(row)
        span = f"{row['first_tile']}-{row['first_tile'] + row['tiles'] - 1}"
        figures = [row[key] for key in ("dram_bytes", "hop_bytes", "busiest_link_bytes", "buffer_bytes")]
        cells = [f"{figure:,}" for figure in figures]
        table.add_row(
            "  " * row["depth"] + name,
            span,
            f"{row['cycles']:,}",
            f"{row['energy_pj'] / 1e6:,.2f} µJ",
            *cells,
        )
    value, bound = stated.form.value(cost.energy, cost.cycles), _bound(stated)
    reported = f"closed form  {value:.6g} ({cost.cycles:,} cycles, {cost.energy / 1e9:.4f} mJ)"
    lines = [
        reported if bound is None else f"{reported}, bound {bound:.6g}, gap {(value - bound) / value:.1%}"
    ]
    if plan is not None:
        value = stated.form.value(plan.energy.total, plan.cycles)
        lines.append(
            f"as a plan    {value:.6g} ({plan.cycles:,} cycles, {plan.energy.total / 1e9:.4f} mJ), "
            f"{plan.cycles / cost.cycles - 1:+.1%} cycles"
        )
    graph = spatial_temporal_graph(cost, stated.form.dataflow, stated.form.network)
    show(table, "", *(Text(line) for line in graph), "", *(Text(line) for line in lines))
