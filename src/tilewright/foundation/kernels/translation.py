"""One kernel with arguments of known types, as a function in the text of LLVM.

The same walk over the function's syntax finds the types of its names and writes its statements: at first
nothing is written, again and again until no name's type changes, then everything once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from tilewright.foundation.kernels import arrays
from tilewright.foundation.kernels.expressions import Expressions
from tilewright.foundation.kernels.types import (
    INT,
    NOTHING,
    SLOT,
    Array,
    KernelTypeError,
    Scalar,
    Tuple,
    Type,
    common,
    has_arrays,
)
from tilewright.foundation.kernels.values import NONE, Text, Value, lengths, literal, tuple_of

if TYPE_CHECKING:
    from tilewright.foundation.kernels.module import Module
    from tilewright.foundation.kernels.source import Source

_MOST_PASSES = 12


class Function(Expressions):
    """A kernel for arguments of certain types.

    Parameters
    ----------
    module : to which it belongs
    source : of the kernel
    types : of its arguments

    Attributes
    ----------
    result : type of what it returns
    fails : whether it may end early
    """

    def __init__(self, module: Module, source: Source, types: Sequence[Type], symbol: str) -> None:
        self.module, self.source, self.types, self.symbol = module, source, tuple(types), symbol
        self.names: dict[str, Type] = {}
        self.result: Type | None = None
        self.fails = self.allocates = False
        for _ in range(_MOST_PASSES):
            before = (dict(self.names), self.result, self.allocates)
            self._walk(False)
            if self.result is None:
                self.result = NOTHING
            # Types only widen from pass to pass, so that a pass without a change is the last one.
            if before == (self.names, self.result, self.allocates):
                break
        else:
            raise KernelTypeError(f"{source.name}: types of names do not settle")

    @property
    def returned(self) -> Type:
        assert self.result is not None
        return self.result

    def written(self) -> str:
        """The function in the text of LLVM."""
        self._walk(True)
        parameters = ["ptr %arena", "ptr noalias %result"]
        loads = []
        for at, kind in enumerate(self.types):
            # Tuples are passed by address: a program of arrays has dozens of parts, and most functions read a
            # few.
            if isinstance(kind, Tuple):
                parameters.append(f"ptr noalias readonly %a{at}")
                loads += [(f"%a{at}.{k}", part, f"%a{at}", k) for k, part in enumerate(kind.parts)]
            else:
                parameters += [f"{part} %a{at}.{k}" for k, part in enumerate(kind.parts)]
        body = "\n  ".join(self.text.lines)
        # Parts that nothing reads are not loaded.
        used = {word.rstrip(",)") for word in body.replace("(", " ").split() if word.startswith("%a")}
        begin = [*self.text.stack_slots]
        for name, part, address, at in loads:
            if name in used:
                begin += [
                    f"{name}.at = getelementptr i8, ptr {address}, i64 {8 * at}",
                    f"{name} = load {part}, ptr {name}.at",
                ]
        # Where the arena stood at the beginning; returning puts it back there.
        if self._gives_back:
            begin += [
                "%mark.block = load ptr, ptr %arena",
                "%mark.at = getelementptr i8, ptr %arena, i64 8",
                "%mark.free = load i64, ptr %mark.at",
            ]
        attribute = " alwaysinline" if self.source.inline else ""
        head = f"define internal i32 @{self.symbol}({', '.join(parameters)}){attribute} {{"
        return "\n  ".join([head, *begin, body]) + "\n}\n"

    @property
    def _gives_back(self) -> bool:
        return self.allocates and not has_arrays([self.returned])

    def _walk(self, writes: bool) -> None:
        self.begin(Text(writes))
        self.loops: list[tuple[str, str]] = []
        self.values: dict[str, Value] = {}
        self.stack_slots: dict[str, str] = {}
        for at, (name, kind) in enumerate(zip(self.source.parameters, self.types, strict=True)):
            address = f"%a{at}" if isinstance(kind, Tuple) else ""
            value = Value(kind, tuple(f"%a{at}.{k}" for k in range(len(kind.parts))), address=address)
            # A parameter that is assigned needs memory of its own; others stay the values that were passed.
            if name in self.source.assigned:
                self._set(name, value)
            else:
                self.values[name] = value
        self._block(self.source.body)
        if self.text.is_open:
            self._return(NONE)
        self.fails = self.fails or self.text.fails

    # names

    def named(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        if name in self.names:
            kind = self.names[name]
            if not self.text.writes:
                # While types are looked for there are no values; nothing is written that could read this one.
                return Value(kind, ("poison",) * len(kind.parts))
            return self.text.load(kind, self._stack_slot(name))
        return self.source.outside(name)

    def _stack_slot(self, name: str) -> str:
        if name not in self.stack_slots:
            self.stack_slots[name] = self.text.stack_slot("i64", max(1, len(self.names[name].parts)))
        return self.stack_slots[name]

    def _set(self, name: str, value: Value) -> None:
        if not self.text.writes:
            kind = self.names.get(name)
            # A name has one type in the whole function: the least that all of its values convert to.
            self.names[name] = value.type if kind is None else common(kind, value.type)
            return
        self.text.store(self.text.converted(value, self.names[name]), self._stack_slot(name))

    # statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.text.is_open:
                return
            try:
                self._statement(statement)
            except KernelTypeError as error:
                if "line" in str(error):
                    raise
                # The innermost statement names the line; outer blocks pass the error on.
                raise KernelTypeError(f"{self.source.place(statement)}: {error}") from None

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.expression(value)
            case ast.Assign(targets, value):
                assigned = self.expression(value)
                for target in targets:
                    self._assign(target, assigned)
            case ast.AnnAssign(target, _, value) if value is not None:
                self._assign(target, self.expression(value))
            case ast.AugAssign(target, operation, value):
                self._augment(target, operation, value)
            case ast.If(test, body, otherwise):
                self._if(test, body, otherwise)
            case ast.While(test, body, []):
                self._while(test, body)
            case ast.For(target, source, body, []):
                self._for(target, source, body)
            case ast.Return(value):
                self._return(NONE if value is None else self.expression(value))
            case ast.Break():
                self.text.go(self.loops[-1][1])
            case ast.Continue():
                self.text.go(self.loops[-1][0])
            case _:
                raise KernelTypeError(f"{type(statement).__name__} has no machine code")

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self._set(name, value)
            case ast.Tuple(targets):
                items = self.items_of(value)
                if len(items) != len(targets):
                    raise KernelTypeError(f"{len(items)} values for {len(targets)} names")
                for part, item in zip(targets, items, strict=True):
                    self._assign(part, item)
            case ast.Subscript(source, index):
                place = arrays.view(self.text, self.expression(source), self.indices(index))
                if not lengths(place):
                    arrays.write(self.text, place, value)
                elif isinstance(value.type, Array):
                    arrays.assign(self.text, place, value)
                else:
                    arrays.fill(self.text, place, value)
            case _:
                raise KernelTypeError(f"{type(target).__name__} is given a value")

    def _augment(self, target: ast.expr, operation: ast.operator, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            place = arrays.view(self.text, self.expression(target.value), self.indices(target.slice))
            if lengths(place):
                raise KernelTypeError("entries are changed one by one")
            before = arrays.read(self.text, place)
            arrays.write(self.text, place, self.numbers.binary(operation, before, self.expression(value)))
        elif isinstance(target, ast.Name):
            before = self.named(target.id)
            self._set(target.id, self.numbers.binary(operation, before, self.expression(value)))
        else:
            raise KernelTypeError(f"{type(target).__name__} is changed")

    def _if(self, test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        text = self.text
        condition = self.condition(test)
        then, other, behind = text.new_label(), text.new_label(), text.new_label()
        text.branch(condition.part, then, other if otherwise else behind)
        text.label(then)
        self._block(body)
        # Whether anything comes out of the branch at its end: both may return.
        ends = text.is_open
        text.go(behind)
        if otherwise:
            text.label(other)
            self._block(otherwise)
            ends = ends or text.is_open
            text.go(behind)
        text.label(behind)
        if otherwise and not ends:
            text.write("unreachable")
            text.is_open = False

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        text = self.text
        again, inside, behind = text.new_label(), text.new_label(), text.new_label()
        text.label(again)
        text.branch(self.condition(test).part, inside, behind)
        text.label(inside)
        self._loop(body, again, behind)
        text.go(again)
        text.label(behind)
        endless = isinstance(test, ast.Constant) and test.value is True
        # Nothing follows a loop without an end, which LLVM has to be told.
        if endless and not any(isinstance(node, ast.Break) for part in body for node in ast.walk(part)):
            text.write("unreachable")
            text.is_open = False

    def _loop(self, body: list[ast.stmt], again: str, behind: str) -> None:
        self.loops.append((again, behind))
        self._block(body)
        self.loops.pop()

    def _for(self, target: ast.expr, source: ast.expr, body: list[ast.stmt]) -> None:
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range":
            self._range(target, [self.expression(argument) for argument in source.args], body)
            return
        sources = [source]
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "zip":
            sources = source.args
        values = [self.expression(array) for array in sources]
        if len(values) == 1 and isinstance(values[0].type, Tuple):
            self._each(target, self.items_of(values[0]), body)
            return
        # ``zip`` ends with the shortest.
        length = self.numbers.extreme([self.length(value) for value in values], largest=False)

        def begin(at: Value) -> None:
            entries = [self.entry(arrays.view(self.text, value, [at])) for value in values]
            self._assign(target, tuple_of(entries) if len(entries) > 1 else entries[0])

        self._count(literal(0), length, literal(1), begin, body)

    def _each(self, target: ast.expr, items: Sequence[Value], body: list[ast.stmt]) -> None:
        """The items of a tuple in turn."""
        text = self.text
        kind = reduce(common, (item.type for item in items))
        size = len(kind.parts)
        stack_slot = text.stack_slot("i64", max(1, size * len(items)))
        for at, item in enumerate(items):
            text.store(text.converted(item, kind), text.slot(stack_slot, at * size))

        def begin(at: Value) -> None:
            # Items of a tuple lie one after the other, so that a loop in machine code can index them.
            offset = text.compute(f"mul nsw i64 {at.part}, {SLOT * size}")
            address = text.compute(f"getelementptr i8, ptr {stack_slot}, i64 {offset}")
            self._assign(target, text.load(kind, address))

        self._count(literal(0), literal(len(items)), literal(1), begin, body)

    def _range(self, target: ast.expr, borders: list[Value], body: list[ast.stmt]) -> None:
        start, stop = (literal(0), borders[0]) if len(borders) == 1 else borders[:2]
        step = borders[2] if len(borders) == 3 else literal(1)
        # The sign of the step decides the comparison that ends the loop.
        if not isinstance(step.constant, int) or step.constant == 0:
            raise KernelTypeError("the step of a range is not known")
        self._count(start, stop, step, lambda at: self._assign(target, at), body)

    def _count(
        self, start: Value, stop: Value, step: Value, begin: Callable[[Value], None], body: list[ast.stmt]
    ) -> None:
        text = self.text
        for border in (start, stop):
            if not isinstance(border.type, Scalar) or border.type.llvm != "i64":
                raise KernelTypeError(f"a range up to {border.type}")
        counter = text.stack_slot("i64")
        text.store(start, counter)
        test, inside, again, behind = (text.new_label() for _ in range(4))
        text.label(test)
        at = text.load(INT, counter)
        # An index that is never negative needs no test for counting from the end.
        begins = start.natural or (isinstance(start.constant, int) and start.constant >= 0)
        at = Value(INT, at.parts, natural=begins and step.constant > 0)
        order = "slt" if step.constant > 0 else "sgt"
        text.branch(text.compute(f"icmp {order} i64 {at.part}, {stop.part}"), inside, behind)
        text.label(inside)
        begin(at)
        self._loop(body, again, behind)
        text.label(again)
        following = text.compute(f"add nsw i64 {at.part}, {step.part}")
        text.store(Value(INT, (following,)), counter)
        text.go(test)
        text.label(behind)

    def _return(self, value: Value) -> None:
        text = self.text
        if not text.writes:
            self.result = value.type if self.result is None else common(self.result, value.type)
        else:
            text.store(text.converted(value, self.returned), "%result")
            if self._gives_back:
                text.write("call void @arena_give_back(ptr %arena, ptr %mark.block, i64 %mark.free)")
            text.write("ret i32 0")
        text.is_open = False
