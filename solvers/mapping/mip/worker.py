"""The process that runs PuLP: `python worker.py SOLVER`, JSON lines on stdin and stdout.

Run by file path, so that no package of Tilewright is imported: PuLP loads every solver that it finds, and
HiGHS and OR-Tools cannot share a process.  It speaks to PuLP 3.3 and to PuLP 4.

Requests are one JSON object a line: ``{"model": ..., "seconds": ..., "threads": ..., "seed": ...,
"relaxed": ...}``, or ``{"stop": true}`` to end the running solve with what it has.  Replies are ``ready``,
then for every request any number of ``solution`` and ``bound`` lines and one ``result``.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

TOLERANCE = 1e-7
DOUBT = 1e-6  # a bound this far above a known solution is wrong
PROBE = {  # min 2x + 3z, x + z >= 4.5, z whole
    "lower": [0.0, 0.0],
    "upper": [100.0, 100.0],
    "integer": [1],
    "objective": [[0, 2.0], [1, 3.0]],
    "rows": [[[0, 1], [1.0, 1.0], 4.5, None]],
}
PROBE_OPTIMUM = 9.0
UNSOUND = "the solver's claim contradicts its own model"  # HiGHS, after presolve


def _packaged_cbc() -> str | None:
    """CBC of the package ``cbcbox``, from which PuLP 4 takes it; ``None`` without."""
    try:
        return str(importlib.import_module("cbcbox").cbc_bin_path())
    except (ImportError, AttributeError, OSError, RuntimeError):
        return None


class Worker:
    """Solves one model after the other."""

    def __init__(self, solver: str) -> None:
        self.solver = solver
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # what solvers print must not reach the protocol
        self.pulp: Any = None
        self.highspy: Any = None
        self._requests: list[dict[str, Any]] = []
        self._arrived = threading.Condition()

    def load(self) -> str:
        """Load PuLP and the solver; their versions.

        Raises ``ImportError`` where one is missing or gives wrong answers.
        """
        if self.solver == "highs":
            self.highspy = importlib.import_module("highspy")
        self.pulp = importlib.import_module("pulp")
        if self.highspy is None:
            if self._cbc() is None:
                raise ImportError("CBC is missing: pip install 'pulp>=3.3,<4', or `cbc` on the PATH")
            return f"CBC, PuLP {self.pulp.__version__}"
        version = self.highspy.Highs().version()
        answer = self.solve({"model": PROBE, "seconds": 10.0, "threads": 1, "seed": 0, "silent": True})
        self.highspy.Highs.resetGlobalScheduler(True)  # the number of threads is set once otherwise
        if answer["status"] != "optimal" or abs(answer["bound"] - PROBE_OPTIMUM) > 1e-6:
            raise ImportError(f"HiGHS {version} returns wrong optima: highspy>=1.15.1 is needed")
        return f"HiGHS {version}, PuLP {self.pulp.__version__}"

    def emit(self, kind: str, **content: Any) -> None:
        """Write one reply."""
        with self._lock:
            self._out.write(json.dumps({"type": kind, **content}) + "\n")

    def run(self) -> None:
        """Serve until the other side hangs up."""
        try:
            version = self.load()
        except ImportError as failure:
            self.emit("missing", message=str(failure))
            return
        self.emit("ready", version=version)
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: bool(self._requests))
                request = self._requests.pop(0)
            self.emit("result", **self.solve(request))

    def _listen(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("stop"):
                self.stop.set()
            else:
                with self._arrived:
                    self.stop.clear()
                    self._requests.append(request)
                    self._arrived.notify()
        if os.getpid() == os.getsid(0):  # the other side is gone: take a running CBC along
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    # -- models --------------------------------------------------------------------------------------

    def build(self, model: dict[str, Any], relaxed: bool) -> tuple[Any, list[Any]]:
        """The PuLP problem and its variables in the model's sequence."""
        pulp = self.pulp
        problem = pulp.LpProblem("mapping", pulp.LpMinimize)
        whole = set() if relaxed else set(model["integer"])
        variables = []
        for index, (low, high) in enumerate(zip(model["lower"], model["upper"], strict=True)):
            cat = pulp.LpInteger if index in whole else pulp.LpContinuous
            variables.append(self._variable(problem, f"x{index:07d}", low, high, cat))
        line = getattr(pulp.LpAffineExpression, "from_list", pulp.LpAffineExpression)
        problem += line([(variables[i], c) for i, c in model["objective"]])
        for indices, coefficients, low, high in model["rows"]:
            pairs = [(variables[i], c) for i, c in zip(indices, coefficients, strict=True)]
            if low is not None and low == high:
                problem += line(pairs) == low
            elif low is not None:
                problem += line(pairs) >= low
            elif high is not None:
                problem += line(pairs) <= high
        return problem, variables

    def _variable(self, problem: Any, name: str, low: float, high: float, cat: str) -> Any:
        if hasattr(problem, "add_variable"):
            return problem.add_variable(name, lowBound=low, upBound=high, cat=cat)
        return self.pulp.LpVariable(name, low, high, cat)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """One solve, as the content of a result line."""
        if self.stop.is_set():
            return {"status": "stopped", "bound": None, "values": None}
        relaxed = bool(request.get("relaxed")) or not request["model"]["integer"]
        problem, variables = self.build(request["model"], relaxed)
        start = None if relaxed else request["model"].get("start")
        for variable, value in zip(variables, start or (), strict=False):
            if value is not None:
                low, high = variable.lowBound, variable.upBound
                variable.setInitialValue(min(max(value, low), high))
        run = self._highs if self.solver == "highs" else self._run_cbc
        return run(problem, variables, request, start is not None, relaxed)

    # -- HiGHS ---------------------------------------------------------------------------------------

    def _highs(
        self, problem: Any, variables: list[Any], request: dict[str, Any], warm: bool, relaxed: bool
    ) -> dict[str, Any]:
        kinds = self.highspy.cb.HighsCallbackType
        place = {variable.name: index for index, variable in enumerate(variables)}
        listed = getattr(problem, "exported_variables", problem.variables)()
        order = [place[variable.name] for variable in listed]
        reported = [-math.inf]

        def progress(kind: Any, _message: str, out: Any, inp: Any, _user: Any) -> None:
            if int(kind) == int(kinds.kCallbackMipImprovingSolution):
                self.emit("solution", values=_ordered(order, out.mip_solution))
            elif math.isfinite(out.mip_dual_bound) and out.mip_dual_bound > reported[0]:
                reported[0] = out.mip_dual_bound
                self.emit("bound", bound=reported[0])
            if inp is not None and self.stop.is_set():
                inp.user_interrupt = True

        start = request["model"].get("start") if warm else None
        pulp = self.pulp

        class Started(pulp.HiGHS):  # type: ignore[misc, name-defined]
            """HiGHS that begins with a solution; PuLP 3 has no such option."""

            def callSolver(self, lp: Any) -> None:  # noqa: N802
                if start is not None:
                    values = [float(start[index]) for index in order]
                    lp.solverModel.setSolution(len(values), list(range(len(values))), values)
                super().callSolver(lp)

            def findSolutionValues(self, lp: Any) -> Any:  # noqa: N802
                """Left alone: PuLP takes values for granted that a stopped solve does not have."""
                major = int(pulp.__version__.split(".")[0])
                return (0, 0) if major < 4 else (pulp.LpSolveStatus.Undefined, False)

        activated = (kinds.kCallbackMipImprovingSolution, kinds.kCallbackMipInterrupt)
        options: dict[str, Any] = {
            "random_seed": request["seed"] % 2**31,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        if not relaxed:
            silent = request.get("silent", False)
            options |= {
                "gapRel": 0.0,
                "gapAbs": 0.0,
                "callbackTuple": None if silent else (progress, None),
                "callbacksToActivate": [] if silent else [*activated],
                "mip_feasibility_tolerance": TOLERANCE,
            }
        for presolve in ("choose", "off"):
            options["presolve"] = presolve
            limits = {"timeLimit": request["seconds"], "threads": request["threads"]}
            problem.solve(Started(msg=False, **limits, **options))
            result = self._highs_result(problem.solverModel, order, relaxed)
            if result["status"] != UNSOUND and not contradicts(request["model"], start, result):
                return result
        return {**result, "status": UNSOUND, "bound": None}

    def _highs_result(self, model: Any, order: list[int], relaxed: bool) -> dict[str, Any]:
        info, status = model.getInfo(), self.highspy.HighsModelStatus
        ended = model.getModelStatus()
        name = {
            status.kOptimal: "optimal",
            status.kInfeasible: "infeasible",
            status.kTimeLimit: "stopped",
            status.kInterrupt: "stopped",
        }.get(ended, f"HiGHS: {model.modelStatusToString(ended)}")
        bound = info.mip_dual_bound
        if relaxed:
            bound = info.objective_function_value if name == "optimal" else -math.inf
        values = None
        if info.primal_solution_status == 2:
            values = _ordered(order, model.getSolution().col_value)
        if name == "optimal" and (values is None or not math.isfinite(bound)):
            name = UNSOUND
        return {"status": name, "bound": bound if math.isfinite(bound) else None, "values": values}

    # -- CBC -----------------------------------------------------------------------------------------

    def _cbc(self) -> Any:
        """The class of the CBC solver and its arguments; ``None`` where there is none."""
        command = getattr(self.pulp, "PULP_CBC_CMD", None)
        if command is not None and command(msg=False).available():
            return lambda **options: command(**options)
        path = shutil.which("cbc") or _packaged_cbc()
        return None if path is None else lambda **options: self.pulp.COIN_CMD(path=path, **options)

    def _run_cbc(
        self, problem: Any, variables: list[Any], request: dict[str, Any], warm: bool, relaxed: bool
    ) -> dict[str, Any]:
        folder = tempfile.mkdtemp(prefix="tilewright-cbc-")
        log = Path(folder) / "log"
        try:
            seed = request["seed"] % 2**31
            tolerances = ["primalTolerance 1e-9", "dualTolerance 1e-9", "integerTolerance 1e-9"]
            solver = self._cbc()(
                msg=False,
                timeLimit=request["seconds"],
                threads=request["threads"],
                warmStart=warm,
                gapRel=0.0,
                gapAbs=0.0,
                logPath=str(log),
                keepFiles=False,
                options=[f"randomCbcSeed {seed}", f"randomSeed {seed}", *tolerances],
            )
            solver.tmpDir = folder
            problem.solve(solver)
            text = log.read_text(errors="replace") if log.exists() else ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        result = _cbc_result(text, [variable.value() for variable in variables], relaxed)
        start = request["model"].get("start") if warm else None
        if contradicts(request["model"], start, result):
            return {**result, "status": UNSOUND, "bound": None}
        return result


def _ordered(order: list[int], values: Any) -> list[float]:
    """Values in the model's sequence."""
    result = [0.0] * len(order)
    for index, value in zip(order, values, strict=False):
        result[index] = round(float(value), 12)
    return result


def contradicts(model: dict[str, Any], start: list[float] | None, result: dict[str, Any]) -> bool:
    """Whether the solution that a solve begins with disproves what the solver claims."""
    if start is None or not meets(model, start):
        return False
    if result["status"] == "infeasible":
        return True
    value = math.fsum(c * start[i] for i, c in model["objective"])
    return result["bound"] is not None and result["bound"] > value + DOUBT * (1 + abs(value))


def meets(model: dict[str, Any], values: list[float]) -> bool:
    """Whether values are a solution of a model."""
    for value, low, high in zip(values, model["lower"], model["upper"], strict=True):
        if not low - TOLERANCE <= value <= high + TOLERANCE:
            return False
    for indices, coefficients, low, high in model["rows"]:
        sum_ = math.fsum(c * values[i] for i, c in zip(indices, coefficients, strict=True))
        if (low is not None and sum_ < low - TOLERANCE) or (high is not None and sum_ > high + TOLERANCE):
            return False
    return True


def _cbc_result(text: str, values: list[float | None], relaxed: bool) -> dict[str, Any]:
    """What CBC's log says.  Its line `Lower bound` is rounded to three digits and therefore left alone."""
    number = r"(-?[\d.]+(?:e[+-]?\d+)?)"
    objective = re.search(rf"(?:Objective value|Optimal objective):?\s+{number}", text)
    known = None if any(value is None for value in values) else values
    if re.search(r"(Stopped|Exiting) on", text):
        possible = re.findall(rf"best possible {number}", text)
        return {"status": "stopped", "bound": float(possible[-1]) if possible else None, "values": known}
    if re.search(r"\binfeasible", text, re.IGNORECASE) and objective is None:
        return {"status": "infeasible", "bound": None, "values": None}
    if objective and ("Optimal solution found" in text or (relaxed and "Optimal objective" in text)):
        return {"status": "optimal", "bound": float(objective[1]), "values": known}
    return {"status": "CBC: " + " ".join(text.split()[-20:]), "bound": None, "values": None}


def main() -> None:
    """Answer the requests of the parent process until it hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    Worker(sys.argv[1]).run()


if __name__ == "__main__":
    main()
