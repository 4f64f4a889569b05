"""The search core's types for the mapping of one layer."""

from __future__ import annotations

from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.method import Method
from tilewright.formulation.result import Result
from tilewright.formulation.search import Search

LayerSearch = Search[LayerProblem, Mapping, Evaluation]
LayerResult = Result[Mapping, Evaluation]
LayerMethod = Method[LayerSearch]
