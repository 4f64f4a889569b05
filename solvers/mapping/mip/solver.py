"""The solvers ``highs`` and ``cbc``: mixed-integer programming through PuLP, in a process of its own."""

from __future__ import annotations

from importlib.util import find_spec

from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.search import DisagreementError
from tilewright.solvers.mapping.mip.child import Child, ChildError
from tilewright.solvers.mapping.mip.search import MipSearch

INSTALL = "pip install 'pulp>=3.3,<4' 'highspy>=1.15.1'"
"""What brings back what an installation has lost."""


class Mip:
    """A MIP solver behind PuLP.

    Parameters
    ----------
    command : what to run instead of the worker
    """

    name = ""
    exact = True
    states_models = True
    needs: tuple[str, ...] = ("pulp",)

    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        self._command = command
        self._version = ""

    @property
    def version(self) -> str:
        """Known once the worker has started."""
        return self._version

    def solve(self, search: LayerSearch) -> Outcome:
        """Offer what the solver finds, raise the bound as it proves."""
        if self._command is None and any(find_spec(module) is None for module in self.needs):
            return Outcome(False, f"solver {self.name} is not installed: {INSTALL}", error=True)
        try:
            with Child(self.name, lambda: search.done, self._command) as child:
                try:
                    return MipSearch(search, child, self.name).run()
                finally:
                    self._version = child.version
        except (ChildError, DisagreementError) as failure:
            return Outcome(False, f"solver {self.name}: {failure}", error=True)


class Highs(Mip):
    """HiGHS."""

    name = "highs"
    needs = ("pulp", "highspy")


class Cbc(Mip):
    """CBC, which PuLP brings along."""

    name = "cbc"
