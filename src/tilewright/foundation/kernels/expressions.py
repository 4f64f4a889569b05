"""Expressions of kernels, and the functions of Python and numpy that they call."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.foundation.kernels import arrays
from tilewright.foundation.kernels.arithmetic import Arithmetic
from tilewright.foundation.kernels.source import Kernel
from tilewright.foundation.kernels.types import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    UINT,
    Array,
    KernelTypeError,
    Scalar,
    Static,
    Tuple,
    Type,
    common,
    has_arrays,
)
from tilewright.foundation.kernels.values import Text, Value, bound_to, lengths, literal, static, tuple_of

if TYPE_CHECKING:
    from tilewright.foundation.kernels.module import Module
    from tilewright.foundation.kernels.source import Source

_REAL: dict[Any, str] = {
    math.log: "log",
    math.exp: "exp",
    math.sqrt: "sqrt",
    np.ceil: "llvm.ceil.f64",
    np.floor: "llvm.floor.f64",
}
_KINDS: dict[Any, Scalar] = {
    int: INT,
    float: FLOAT,
    bool: BOOL,
    np.int32: INT,
    np.int64: INT,
    np.uint64: UINT,
    np.float64: FLOAT,
    np.bool_: BOOL,
}
_METHODS = ("copy", "sum", "max", "min")


class Expressions:
    """Values of expressions; names are the business of whoever inherits this."""

    module: Module
    source: Source
    allocates: bool

    def begin(self, text: Text) -> None:
        self.text = text
        self.numbers = Arithmetic(text, self.source.ieee)

    def named(self, name: str) -> Value:
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value):
                return literal(value)
            case ast.Name(name):
                return self.named(name)
            case ast.BinOp(left, operation, right):
                return self.numbers.binary(operation, self.expression(left), self.expression(right))
            case ast.UnaryOp(operation, operand):
                if isinstance(operation, ast.Not):
                    return self.numbers.unary(operation, self.condition(operand))
                return self._unary(operation, self.expression(operand))
            case ast.BoolOp():
                return self._connected(node, self.expression)
            case ast.Compare(left, operations, others):
                return self._compared(left, operations, others)
            case ast.IfExp(test, then, otherwise):
                return self._either(test, then, otherwise)
            case ast.Tuple(items) | ast.List(items):
                return tuple_of([self.expression(item) for item in items])
            case ast.Attribute(owner, name):
                return self._attribute(self.expression(owner), name)
            case ast.Subscript(owner, index):
                return self._item(self.expression(owner), index)
            case ast.Call():
                return self._call(node)
        raise KernelTypeError(f"{type(node).__name__} has no machine code")

    def items_of(self, value: Value) -> list[Value]:
        """The items of a tuple, as literals where they are known."""
        items = value.items()
        # A known tuple gives known items: indices into shapes and steps of ranges must be known.
        if value.constant is not None:
            return [literal(item) for item in value.constant]
        return items

    def entry(self, place: Value) -> Value:
        """An entry where a view has no dimension, else the view."""
        return place if lengths(place) else arrays.read(self.text, place)

    def length(self, value: Value) -> Value:
        if isinstance(value.type, Tuple):
            return literal(len(value.type.items))
        if not isinstance(value.type, Array) or not value.type.dimensions:
            raise KernelTypeError(f"{value.type} has no length")
        return arrays.number(lengths(value)[0])

    def indices(self, node: ast.expr) -> list[arrays.Index]:
        every = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._index(index) for index in every]

    def _index(self, node: ast.expr) -> arrays.Index:
        if not isinstance(node, ast.Slice):
            return self.expression(node)
        if node.step is not None:
            raise KernelTypeError("a slice with a step")
        border = [None if end is None else self.expression(end) for end in (node.lower, node.upper)]
        return arrays.Part(*border)

    def _item(self, owner: Value, index: ast.expr) -> Value:
        if isinstance(owner.type, Tuple):
            place = self.expression(index).constant
            if not isinstance(place, int):
                raise KernelTypeError("the place in a tuple is not known")
            return self.items_of(owner)[place]
        return self.entry(arrays.view(self.text, owner, self.indices(index)))

    def _attribute(self, owner: Value, name: str) -> Value:
        kind = owner.type
        if isinstance(kind, Tuple) and name in kind.fields:
            return owner.items()[kind.fields.index(name)]
        # Constants of modules are read at compile time.
        if isinstance(kind, Static) and isinstance(kind.value, ModuleType):
            return literal(getattr(kind.value, name))
        if isinstance(kind, Array):
            if name == "shape":
                return tuple_of(arrays.shaped_like(owner))
            if name == "dtype":
                return static(np.dtype(kind.dtype).type)
            if name == "size":
                return arrays.number(arrays.entries(self.text, owner))
        raise KernelTypeError(f"{kind} has no {name}")

    def _unary(self, operation: ast.unaryop, value: Value) -> Value:
        if not isinstance(value.type, Array):
            return self.numbers.unary(operation, value)
        self.allocates = True
        dtype = value.type.dtype
        return arrays.mapped(self.text, value, lambda entry: self.numbers.unary(operation, entry), dtype)

    def condition(self, node: ast.expr) -> Value:
        """Whether an expression is true, where nothing else of it matters."""
        if isinstance(node, ast.BoolOp):
            return self._connected(node, self.condition)
        value = self.expression(node)
        return value if value.type == BOOL else Value(BOOL, (self.text.truth(value),))

    def _connected(self, node: ast.BoolOp, operand: Callable[[ast.expr], Value]) -> Value:
        """``and``, or ``or``; what does not matter is not computed."""
        text, both, values = self.text, isinstance(node.op, ast.And), node.values
        stack_slot, end = text.stack_slot("i1"), text.new_label()
        for at, part in enumerate(values):
            value = operand(part)
            if value.type != BOOL:
                raise KernelTypeError("'and' and 'or' connect what is true or false")
            # The last operand that was computed is the result.
            text.write(f"store i1 {value.part}, ptr {stack_slot}")
            if at + 1 < len(values):
                following = text.new_label()
                then, otherwise = (following, end) if both else (end, following)
                text.branch(value.part, then, otherwise)
                text.label(following)
        text.label(end)
        return text.load(BOOL, stack_slot)

    def _compared(self, left: ast.expr, operations: Sequence[ast.cmpop], others: Sequence[ast.expr]) -> Value:
        """A chain of comparisons; every operand is computed once, and costs nothing but time."""
        value, holds = self.expression(left), None
        for operation, node in zip(operations, others, strict=True):
            other = self.expression(node)
            # Whether a value is ``None`` is part of its type.
            if isinstance(operation, ast.Is | ast.IsNot):
                same = (value.type == NOTHING) == (other.type == NOTHING)
                return literal(same == isinstance(operation, ast.Is))
            test = self.numbers.test(operation, value, other)
            if holds is not None:
                test = Value(BOOL, (self.text.compute(f"and i1 {holds.part}, {test.part}"),))
            value, holds = other, test
        assert holds is not None
        return holds

    def _either(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Value:
        text, condition = self.text, self.condition(test)
        # Only one of both has to have machine code, as where an optional array is passed.
        if isinstance(condition.constant, bool):
            return self.expression(then if condition.constant else otherwise)
        # Both sides are stored in one place, whose type must be known before either is written.
        kind = common(*(self._type(node) for node in (then, otherwise)))
        stack_slot = text.stack_slot("i64", max(1, len(kind.parts)))
        first, second, behind = text.new_label(), text.new_label(), text.new_label()
        text.branch(text.truth(condition), first, second)
        for label, node in ((first, then), (second, otherwise)):
            text.label(label)
            text.store(text.converted(self.expression(node), kind), stack_slot)
            text.go(behind)
        text.label(behind)
        return text.load(kind, stack_slot)

    def _type(self, node: ast.expr) -> Type:
        """The type of an expression, of which nothing is written."""
        text = self.text
        self.begin(Text(False))
        kind = self.expression(node).type
        self.begin(text)
        return kind

    # calls

    def _call(self, node: ast.Call) -> Value:
        # Methods of arrays share their names with no field that kernels use.
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            owner = self.expression(node.func.value)
            if isinstance(owner.type, Array):
                return self._whole(node.func.attr, owner)
        function = self.expression(node.func)
        if not isinstance(function.type, Static):
            raise KernelTypeError(f"{function.type} is called")
        given = [self.expression(argument) for argument in node.args]
        named = {str(keyword.arg): self.expression(keyword.value) for keyword in node.keywords}
        return self._called(function.constant, given, named)

    def _called(self, function: Any, given: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Kernel):
            return self._kernel(function.source, given, named)
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            defaults = getattr(function, "_field_defaults", {})
            names = function._fields
            return tuple_of(bound_to(names, given, named, defaults), function)
        if function in _REAL:
            return self.numbers.called(_REAL[function], given)
        if function in _KINDS:
            return self._number(_KINDS[function], given[0])
        if function is len:
            return self.length(given[0])
        if function in (max, min):
            values = given if len(given) > 1 else self.items_of(given[0])
            return self.numbers.extreme(values, largest=function is max)
        # A negated zero would keep its sign.
        if function is abs and given[0].type == FLOAT:
            return self.numbers.called("llvm.fabs.f64", given)
        if function is abs:
            negative = self.numbers.unary(ast.USub(), given[0])
            return self.numbers.extreme([given[0], negative], largest=True)
        if function in (np.sum, np.max, np.min):
            return self._whole({np.sum: "sum", np.max: "max", np.min: "min"}[function], given[0])
        if function is np.searchsorted:
            return self._searched(*given)
        return self._new(function, given, named)

    def _number(self, kind: Scalar, value: Value) -> Value:
        # The same bits under another name.
        if kind in (INT, UINT) and value.type in (INT, UINT):
            return Value(kind, value.parts, value.constant, natural=value.natural)
        return self.numbers.whole(value) if kind == INT else self.text.converted(value, kind)

    def _kernel(self, source: Source, given: list[Value], named: dict[str, Value]) -> Value:
        """Another kernel, for arguments of these types."""
        defaults = {
            name: parameter.default
            for name, parameter in source.signature.parameters.items()
            if parameter.default is not parameter.empty
        }
        arguments = bound_to(source.parameters, given, named, defaults)
        text = self.text
        # Compiled for these types of arguments, once in the module.
        function = self.module.function(source, [argument.type for argument in arguments])
        self.allocates = self.allocates or has_arrays([function.returned])
        if not text.writes:
            text.fails = text.fails or function.fails
            return Value(function.returned, ("poison",) * len(function.returned.parts))
        passed = []
        for argument in arguments:
            if isinstance(argument.type, Tuple):
                # A tuple that lies in memory already is passed on as it is.
                address = argument.address
                if not address:
                    address = text.stack_slot("i64", max(1, len(argument.parts)))
                    text.store(argument, address)
                passed.append(f"ptr {address}")
            else:
                passed += [
                    f"{kind} {part}" for kind, part in zip(argument.type.parts, argument.parts, strict=True)
                ]
        stack_slot = text.stack_slot("i64", max(1, len(function.returned.parts)))
        status = text.compute(
            f"call i32 @{function.symbol}({', '.join(['ptr %arena', f'ptr {stack_slot}', *passed])})"
        )
        # A failure ends the caller as well; functions that cannot fail cost no branch.
        if function.fails:
            bad, good = text.new_label(), text.new_label()
            text.fails = True
            failed = text.compute(f"icmp ne i32 {status}, 0")
            text.write(f"br i1 {failed}, label %{bad}, label %{good}, !prof !0")
            text.is_open = False
            text.label(bad)
            text.write(f"ret i32 {status}")
            text.is_open = False
            text.label(good)
        return text.load(function.returned, stack_slot)

    def _new(self, function: Any, given: list[Value], named: dict[str, Value]) -> Value:
        """A new array."""
        text, self.allocates = self.text, True
        if function in (np.zeros, np.empty, np.ones, np.full):
            names = ("shape", "fill_value", "dtype") if function is np.full else ("shape", "dtype")
            bound = dict(zip(names, bound_to(names, given, named, {"dtype": np.float64}), strict=True))
            shape = bound["shape"]
            sizes = self.items_of(shape) if isinstance(shape.type, Tuple) else [shape]
            dtype = np.dtype(bound["dtype"].constant).name
            if function is np.empty:
                return arrays.new(text, dtype, sizes)
            value = bound.get("fill_value", literal(1 if function is np.ones else 0))
            return arrays.filled(text, dtype, sizes, value)
        if function in (np.zeros_like, np.empty_like):
            kind = given[0].type
            assert isinstance(kind, Array)
            sizes = arrays.shaped_like(given[0])
            if function is np.empty_like:
                return arrays.new(text, kind.dtype, sizes)
            return arrays.filled(text, kind.dtype, sizes, literal(0))
        if function is np.arange and len(given) == 1:
            array = arrays.new(text, "int64", given)
            arrays.each(
                text, lengths(array), lambda at: arrays.write(text, arrays.view(text, array, at), at[0])
            )
            return array
        if function is np.array:
            items = self.items_of(given[0])
            kinds = {item.type for item in items}
            dtype = np.dtype(named["dtype"].constant).name if "dtype" in named else _DTYPES[kinds.pop()]
            array = arrays.new(text, dtype, [literal(len(items))])
            for at, item in enumerate(items):
                arrays.write(text, arrays.view(text, array, [literal(at)]), item)
            return array
        if function is np.argsort:
            return arrays.sorted_places(text, given[0])
        raise KernelTypeError(f"{getattr(function, '__name__', function)} has no machine code")

    def _whole(self, method: str, array: Value) -> Value:
        """What a method of arrays makes of all entries."""
        text = self.text
        if method == "copy":
            self.allocates = True
            return arrays.copied(text, array)
        if method == "sum":
            return arrays.total(text, array, lambda a, b: self.numbers.binary(ast.Add(), a, b))
        first = arrays.first_entry(text, array)
        largest = method == "max"
        return arrays.folded(text, array, first, lambda a, b: self.numbers.extreme([a, b], largest))

    def _searched(self, array: Value, value: Value) -> Value:
        """The first place of an ascending array whose entry is not below a value."""
        text = self.text
        low, high = text.stack_slot("i64"), text.stack_slot("i64")
        text.store(literal(0), low)
        text.store(self.length(array), high)
        test, inside, behind = text.new_label(), text.new_label(), text.new_label()
        text.label(test)
        first, last = text.load(INT, low), text.load(INT, high)
        text.branch(self.numbers.test(ast.Lt(), first, last).part, inside, behind)
        text.label(inside)
        both = self.numbers.binary(ast.Add(), first, last)
        # Lengths are far below 2^62: the sum of two cannot overflow.
        middle = self.numbers.binary(ast.RShift(), both, literal(1))
        entry = arrays.read(text, arrays.view(text, array, [arrays.number(middle.part)]))
        below, above, then = text.new_label(), text.new_label(), text.new_label()
        text.branch(self.numbers.test(ast.Lt(), entry, value).part, below, above)
        text.label(below)
        text.store(self.numbers.binary(ast.Add(), middle, literal(1)), low)
        text.go(then)
        text.label(above)
        text.store(middle, high)
        text.label(then)
        text.go(test)
        text.label(behind)
        return text.load(INT, low)


_DTYPES: dict[Type, str] = {INT: "int64", FLOAT: "float64", BOOL: "bool", UINT: "uint64"}
