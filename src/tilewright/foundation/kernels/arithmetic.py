"""What kernels compute with numbers: as Python does, in 64 bits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tilewright.foundation.kernels.types import BOOL, FLOAT, INT, UINT, KernelTypeError, Scalar, Type, common
from tilewright.foundation.kernels.values import ZERO_DIVISION, Text, Value, literal

_PLAIN: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
}
_BITS: dict[type[ast.operator], str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_TESTS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("lt", "olt"),
    ast.LtE: ("le", "ole"),
    ast.Gt: ("gt", "ogt"),
    ast.GtE: ("ge", "oge"),
}
_LARGEST_POWER = 64


def numeric(first: Type, second: Type) -> Scalar:
    """What two numbers are computed as."""
    kind = common(first, second)
    if not isinstance(kind, Scalar):
        raise KernelTypeError(f"{first} and {second} are no numbers")
    return INT if kind == BOOL else kind


class Arithmetic:
    """Operations on numbers.

    Parameters
    ----------
    text : to which they are written
    ieee : whether a float divided by 0 is an infinity, and no failure
    """

    def __init__(self, text: Text, ieee: bool) -> None:
        self.text, self.ieee = text, ieee

    def binary(self, operation: ast.operator, left: Value, right: Value) -> Value:
        kind, text = type(operation), self.text
        # Folded here, so that indices and steps made of constants count as known.
        known = _known(operation, left, right)
        if known is not None:
            return known
        if kind in _BITS and left.type == right.type == BOOL:
            return Value(BOOL, (text.compute(f"{_BITS[kind]} i1 {left.part}, {right.part}"),))
        if kind is ast.Pow:
            return self.power(left, right)
        if kind is ast.Div:
            return self.quotient(self._as(left, FLOAT), self._as(right, FLOAT))
        number = self._number(left, right)
        a, b = self._as(left, number), self._as(right, number)
        if kind in _PLAIN:
            whole, real = _PLAIN[kind]
            name = real if number == FLOAT else whole
            return Value(number, (text.compute(f"{name} {number.llvm} {a.part}, {b.part}"),))
        if kind is ast.FloorDiv or kind is ast.Mod:
            return self.divided(a, b, kind is ast.Mod)
        if number == FLOAT:
            raise KernelTypeError(f"{kind.__name__} of floats")
        if kind in _BITS:
            return Value(number, (text.compute(f"{_BITS[kind]} i64 {a.part}, {b.part}"),))
        if kind is ast.LShift:
            return Value(number, (text.compute(f"shl i64 {a.part}, {b.part}"),))
        if kind is ast.RShift:
            name = "lshr" if number == UINT else "ashr"
            return Value(number, (text.compute(f"{name} i64 {a.part}, {b.part}"),))
        raise KernelTypeError(f"{kind.__name__} has no machine code")

    def unary(self, operation: ast.unaryop, value: Value) -> Value:
        text, constant = self.text, value.constant
        if isinstance(operation, ast.Not):
            if isinstance(constant, bool):
                return literal(not constant)
            return Value(BOOL, (text.compute(f"xor i1 {text.truth(value)}, true"),))
        number = self._as(value, numeric(value.type, value.type))
        if isinstance(operation, ast.UAdd):
            return number
        if isinstance(operation, ast.USub):
            if constant is not None:
                return literal(-constant)
            if number.type == FLOAT:
                return Value(FLOAT, (text.compute(f"fneg double {number.part}"),))
            return Value(number.type, (text.compute(f"sub i64 0, {number.part}"),))
        return Value(number.type, (text.compute(f"xor i64 {number.part}, -1"),))

    def test(self, operation: ast.cmpop, left: Value, right: Value) -> Value:
        """A comparison of two numbers."""
        if type(operation) not in _TESTS:
            raise KernelTypeError(f"{type(operation).__name__} has no machine code")
        whole, real = _TESTS[type(operation)]
        number = self._number(left, right)
        a, b = self._as(left, number), self._as(right, number)
        if number == FLOAT:
            return Value(BOOL, (self.text.compute(f"fcmp {real} double {a.part}, {b.part}"),))
        # LLVM's integers have no sign; comparisons do.
        sign = "" if whole in ("eq", "ne") else "u" if number == UINT else "s"
        return Value(BOOL, (self.text.compute(f"icmp {sign}{whole} i64 {a.part}, {b.part}"),))

    def extreme(self, values: Sequence[Value], largest: bool) -> Value:
        """The largest or smallest of some numbers, the first one of equals."""
        best = values[0]
        test: ast.cmpop = ast.Gt() if largest else ast.Lt()
        for value in values[1:]:
            number = self._number(best, value)
            best, value = self._as(best, number), self._as(value, number)
            # A strict comparison: the first of equals stays, as in Python.
            better = self.test(test, value, best).part
            if number == FLOAT:
                part = self.text.compute(f"select i1 {better}, double {value.part}, double {best.part}")
            else:
                part = self.text.compute(f"select i1 {better}, i64 {value.part}, i64 {best.part}")
            best = Value(number, (part,), natural=largest and (best.natural or value.natural))
        return best

    def quotient(self, a: Value, b: Value) -> Value:
        # A known divisor other than 0 needs no test.
        if not self.ieee and not b.constant:
            self.text.fail_if(self.text.compute(f"fcmp oeq double {b.part}, 0.0"), ZERO_DIVISION)
        return Value(FLOAT, (self.text.compute(f"fdiv double {a.part}, {b.part}"),))

    def divided(self, a: Value, b: Value, rest: bool) -> Value:
        """The quotient, rounded down, or the rest, which has the divisor's sign."""
        text = self.text
        if a.type == FLOAT:
            return self._floats_divided(a, b, rest)
        if not b.constant:
            text.fail_if(text.compute(f"icmp eq i64 {b.part}, 0"), ZERO_DIVISION)
        if a.type == UINT:
            return Value(UINT, (text.compute(f"{'urem' if rest else 'udiv'} i64 {a.part}, {b.part}"),))
        divisor = b.part
        if b.constant is None:  # the smallest number divided by -1 does not fit
            turned = text.compute(f"icmp eq i64 {b.part}, -1")
            divisor = text.compute(f"select i1 {turned}, i64 1, i64 {b.part}")
        whole = text.compute(f"sdiv i64 {a.part}, {divisor}")
        left = text.compute(f"srem i64 {a.part}, {divisor}")
        some = text.compute(f"icmp ne i64 {left}, 0")
        # Python rounds down, LLVM towards 0: they differ where the remainder has the other sign.
        signs = text.compute(f"xor i64 {left}, {divisor}")
        apart = text.compute(f"icmp slt i64 {signs}, 0")
        shifted = text.compute(f"and i1 {some}, {apart}")
        if rest:
            more = text.compute(f"select i1 {shifted}, i64 {divisor}, i64 0")
            return Value(INT, (text.compute(f"add i64 {left}, {more}"),))
        less = text.compute(f"sext i1 {shifted} to i64")
        quotient = text.compute(f"add i64 {whole}, {less}")
        if b.constant is None:
            negative = text.compute(f"sub i64 0, {a.part}")
            # Division by -1 was replaced by one by 1; negation wraps like the other operations.
            quotient = text.compute(f"select i1 {turned}, i64 {negative}, i64 {quotient}")
        return Value(INT, (quotient,))

    def _floats_divided(self, a: Value, b: Value, rest: bool) -> Value:
        text = self.text
        if not self.ieee and not b.constant:
            text.fail_if(text.compute(f"fcmp oeq double {b.part}, 0.0"), ZERO_DIVISION)
        # The steps of CPython's own float division, so that results are equal to the last bit.
        left = text.compute(f"frem double {a.part}, {b.part}")
        some = text.compute(f"fcmp une double {left}, 0.0")
        below, under = (text.compute(f"fcmp olt double {part}, 0.0") for part in (left, b.part))
        apart = text.compute(f"xor i1 {below}, {under}")
        shifted = text.compute(f"and i1 {some}, {apart}")
        more = text.compute(f"fadd double {left}, {b.part}")
        remainder = text.compute(f"select i1 {shifted}, double {more}, double {left}")
        if rest:
            return self._signed_zero(remainder, b.part)
        exact = text.compute(f"fsub double {a.part}, {left}")
        quotient = text.compute(f"fdiv double {exact}, {b.part}")
        lower = text.compute(f"fsub double {quotient}, 1.0")
        quotient = text.compute(f"select i1 {shifted}, double {lower}, double {quotient}")
        down = self.called("llvm.floor.f64", [Value(FLOAT, (quotient,))]).part
        over = text.compute(f"fsub double {quotient}, {down}")
        next_one = text.compute(f"fadd double {down}, 1.0")
        # The quotient of an exact multiple may have been rounded to just below it.
        is_over = text.compute(f"fcmp ogt double {over}, 0.5")
        whole = text.compute(f"select i1 {is_over}, double {next_one}, double {down}")
        return self._signed_zero(whole, text.compute(f"fdiv double {a.part}, {b.part}"))

    def _signed_zero(self, part: str, sign: str) -> Value:
        """A float; a zero gets the sign of another one."""
        text = self.text
        zero = text.compute(f"call double @llvm.copysign.f64(double 0.0, double {sign})")
        some = text.compute(f"fcmp une double {part}, 0.0")
        return Value(FLOAT, (text.compute(f"select i1 {some}, double {part}, double {zero}"),))

    def power(self, base: Value, exponent: Value) -> Value:
        count = exponent.constant
        # Square and multiply, exact in whole numbers.
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= _LARGEST_POWER:
            product: Value | None = None
            while count:
                if count & 1:
                    product = base if product is None else self.binary(ast.Mult(), product, base)
                count >>= 1
                if count:
                    base = self.binary(ast.Mult(), base, base)
            assert product is not None
            return product
        if FLOAT not in (base.type, exponent.type):
            raise KernelTypeError("a whole number to a power that is not known")
        return self.called("pow", [self._as(base, FLOAT), self._as(exponent, FLOAT)])

    def called(self, function: str, numbers: Sequence[Value]) -> Value:
        """A function of the C library, or LLVM's, of floats."""
        floats = ", ".join(f"double {self._as(value, FLOAT).part}" for value in numbers)
        return Value(FLOAT, (self.text.compute(f"call double @{function}({floats})"),))

    def whole(self, value: Value) -> Value:
        """A number without what follows the point."""
        return self._as(value, INT)

    def _as(self, value: Value, kind: Type) -> Value:
        if isinstance(value.constant, int) and not isinstance(value.constant, bool) and kind == FLOAT:
            return literal(float(value.constant))
        converted = self.text.converted(value, kind)
        if converted is not value and value.constant is not None and kind in (INT, UINT):
            return Value(kind, converted.parts, int(value.constant))
        return converted

    def _number(self, left: Value, right: Value) -> Scalar:
        kinds = {left.type, right.type}
        if kinds == {INT, UINT}:
            for value in (left, right):
                # A constant that is not negative follows the other operand, as in ``x & 1`` of an unsigned
                # one.
                if value.type == INT and isinstance(value.constant, int) and value.constant >= 0:
                    return UINT
        return numeric(left.type, right.type)


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.LShift: lambda a, b: a << b,
}


def _known(operation: ast.operator, left: Value, right: Value) -> Value | None:
    """What is known before the kernel runs, of whole numbers."""
    function = _OPERATIONS.get(type(operation))
    if function is None or type(left.constant) is not int or type(right.constant) is not int:
        return None
    if left.type != INT or right.type != INT:
        return None
    result = function(left.constant, right.constant)
    return literal(result) if -(1 << 63) <= result < 1 << 63 else None
