"""Calls of the interface: what importing costs, errors, limits, interruptions, and types for clients."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clocks import delay

import tilewright as tw
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError

HARD = "conv:N=64,K=512,C=512,P=56,Q=56,R=3,S=3,pad=1"
"""A layer whose proof takes minutes; a first mapping is found within seconds."""

HEAVY = ("numpy", "ortools", "pydantic", "llvmlite", "onnx", "rich", "networkx", "yaml", "typer")


def test_importing_loads_nothing() -> None:
    """``import tilewright`` loads no library and none of its own modules; names come when asked for."""
    program = (
        "import sys, tilewright as tw; dir(tw); tw.__version__\n"
        f"assert not {{*sys.modules}} & {{*{HEAVY!r}}}\n"
        "assert not [name for name in sys.modules if name.startswith('tilewright.')]\n"
        "tw.seconds(1)\n"
        f"assert not {{*sys.modules}} & {{*{HEAVY!r}}}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_name_is_there_and_documented() -> None:
    """All names load, are listed, and say what they are."""
    assert set(tw.__all__) <= set(dir(tw))
    for name in set(tw.__all__) - {"__version__"}:
        assert (getattr(tw, name).__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="no attribute 'machin'"):
        tw.machin  # type: ignore[attr-defined]  # noqa: B018


def test_errors_are_one_tree() -> None:
    """Whatever the package raises for its users is a `TilewrightError`."""
    for error in (
        tw.InputError,
        tw.OutputError,
        tw.LimitReachedError,
        tw.DisagreementError,
        tw.UnsoundBoundError,
        IllegalPlanError,
    ):
        assert issubclass(error, tw.TilewrightError)


FAULTS = {
    "machine": ("tw.machine('nvdla-25')", "did you mean 'nvdla-256'"),
    "layer": ("tw.layer('conv:K=64')", "conv:K=64"),
    "several layers": ("tw.layer('onnx:resnet50')", "expected one"),
    "network": ("tw.network('resnet51')", "did you mean"),
    "objective": ("layer.on('tpu-edge', 'edpp')", "edpp"),
    "constraint": ("layer.on('tpu-edge', constraints=['cycle<=3'])", "constraints: "),
    "constraint as text": ("layer.on('tpu-edge', constraints='cycles<=3')", "expected a list of texts"),
    "cost model": ("layer.on('tpu-edge', cost_model='x')", "cost_model: "),
    "factors": ("layer.on('dmazerunner-256', factors='imperfect')", "factors: "),
    "then": ("layer.on('tpu-edge', 'edp', then='cycles')", "then: "),
    "best": ("layer.on('tpu-edge', best=0)", "best: expected at least 1"),
    "method": ("tw.solve(layer.on('tpu-edge'), method='brunch')", "method: unknown name 'brunch'"),
    "seconds": ("tw.solve(layer.on('tpu-edge'), stop=tw.seconds(0))", "stop: seconds: "),
    "gap": ("tw.solve(layer.on('tpu-edge'), stop=tw.gap(1))", "stop: gap: "),
    "threads": ("tw.solve(layer.on('tpu-edge'), threads=0)", "threads: "),
    "seed": ("tw.solve(layer.on('tpu-edge'), seed=-1)", "seed: "),
    "layers": ("tw.map_network('onnx:resnet50', 'tpu-edge', layers=['x'])", "layers: x: matches no layer"),
    "system": ("tw.system('hda-edge')", "hda-edge"),
    "metric": ("tw.workload('ar-vr-a').on('hda-edge-maelstrom', metric='x')", "metric: "),
    "class": ("tw.codesign('gemm:M=2,N=2,K=2', 'edgy')", "resources: "),
    "wing": ("tw.methods('x')", "expected mapping or scheduling"),
    "document": ("tw.load('nowhere.json')", "nowhere.json"),
    "suffix": ("tw.load('nowhere.csv')", "nowhere.csv"),
    "nodes": ("tw.evaluate([{'x': 1}], layer.on('tpu-edge'))", "nodes[0]"),
    "no document": ("tw.check({'schema': 'tilewright.result/1'})", "document: "),
    "no path": ("tw.check(42)", "document: expected a document, its data or its path, got int"),
    "no question": ("tw.evaluate([{'store': 'A', 'level': 'DRAM'}])", "layer: missing"),
}


@pytest.mark.parametrize(("call", "told"), FAULTS.values(), ids=FAULTS)
def test_faults_name_the_argument(call: str, told: str) -> None:
    """Bad arguments are one `InputError` that names them, never a flag of the command line."""
    with pytest.raises(tw.InputError) as caught:
        eval(call, {"tw": tw, "layer": tw.layer("gemm:M=8,N=4,K=8")})
    assert told in str(caught.value)
    assert not str(caught.value).startswith("--")


def test_seconds_cover_the_whole_call() -> None:
    """A limit is kept; what was found is there with its bound."""
    began = time.monotonic()
    result = tw.solve(tw.layer(HARD).on("eyeriss-168", "edp"), stop=tw.seconds(1), threads=1)
    assert time.monotonic() - began < 1 + delay()
    assert result.status in (tw.Status.FEASIBLE, tw.Status.UNKNOWN)
    assert tw.check(result)


def test_an_infeasible_layer_tells_why() -> None:
    """No mapping, no value, and the constraints that clash."""
    result = tw.solve(tw.layer("gemm:M=8,N=4,K=8").on("tpu-edge", constraints=["cycles<=1"]))
    assert (result.status, result.value, result.mapping) == (tw.Status.INFEASIBLE, None, None)
    assert "cycles<=1" in result.message
    assert "infeasible" in str(result)


def test_a_heuristic_proves_nothing() -> None:
    """Its result is feasible at best; the exact solver's bound is below its value."""
    question = tw.layer("gemm:M=8,N=4,K=8").on("tpu-edge", "edp")
    guess = tw.solve(question, method="random", stop=tw.seconds(1), seed=1)
    assert guess.status is tw.Status.FEASIBLE
    best = tw.solve(question)
    assert best.value is not None
    assert guess.value is not None
    assert best.value <= guess.value


def test_interrupt_returns_the_incumbent() -> None:
    """Ctrl-C ends the search with what it has, and the program's own handler is back."""
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        result = tw.solve(tw.layer(HARD).on("eyeriss-168", "edp"), stop=tw.seconds(60), threads=1)
        assert time.monotonic() - began < 3 + delay()
        assert result.status is tw.Status.INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)


def test_observers_are_told() -> None:
    """Every layer and step is told, in the order of the search."""

    class Listening:
        def __init__(self) -> None:
            self.reported: list[str] = []

        def layer(self, index: int, total: int, layer: object) -> None:
            self.reported.append(f"{index}/{total}")

        def point(self, point: object) -> None:
            self.reported.append("point")

        def phase(self, text: str) -> None:
            self.reported.append(text)

        def note(self, text: str) -> None:
            self.reported.append(text)

    observer = Listening()
    question = tw.layer("gemm:M=8,N=4,K=8").on("tpu-edge", pareto=True)
    tw.solve(question, observer=observer)
    assert observer.reported[0] == "1/1"
    assert "point" in observer.reported
    assert observer.reported.index("Pareto front") > observer.reported.index("point")


CLIENT = """
import tilewright as tw

question = tw.layer("gemm:M=8,N=4,K=8").on(tw.machine("tpu-edge").with_(clock_mhz=500), objective="edp")
result: tw.MappingResult = tw.solve(question, stop=tw.seconds(1) | tw.gap(0.01))
document: tw.MappingDocument = tw.map_network("resnet50", "tpu-edge")
plan: tw.Plan = tw.solve(tw.workload("ar-vr-a").on(tw.system("hda-edge-maelstrom")))
holds: bool = tw.check(document).holds
reveal_type(result.gap)
plan.nonsense
"""


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_types_reach_a_client(tmp_path: Path) -> None:
    """mypy knows what every call returns, and finds what is wrong."""
    (tmp_path / "client.py").write_text(CLIENT)
    source = str(Path(tw.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "client.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": source},
        capture_output=True,
        text=True,
    )
    told = done.stdout
    assert 'Revealed type is "float | None"' in told or "Union[builtins.float, None]" in told
    assert '"Plan" has no attribute "nonsense"' in told
    assert told.count(": error: ") == 1
