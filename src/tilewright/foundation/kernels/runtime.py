"""What every module of kernels has besides them: memory for arrays, and sorting.

Memory is taken from blocks that are kept in a list, newest first; a function gives back at its end what was
taken since it began.  An arena is three slots: its newest block, and where that is free and ends.
"""

from __future__ import annotations

import sys
from string import Template

BLOCK = 1 << 16
"""Bytes of the smallest block of an arena."""

LARGE = 1 << 22
"""Bytes from which on a block is asked to lie in large pages: otherwise the first touch of each 4 kB is a
fault of its own, which takes longer than most of what is done with them."""

_HUGE_PAGES = 14
"""Linux's ``MADV_HUGEPAGE``; where it is unknown or not allowed, pages stay small."""

_IN_LARGE_PAGES = f"""
  %large = icmp uge i64 %bytes, {LARGE}
  br i1 %large, label %advise, label %linked
advise:
  %start.up = add i64 %start, 4095
  %page = and i64 %start.up, -4096
  %page.at = inttoptr i64 %page to ptr
  %length = sub i64 %end, %page
  %ignored = call i32 @madvise(ptr %page.at, i64 %length, i32 {_HUGE_PAGES})
  br label %linked
linked:"""

_HEADER = 16
"""Bytes at the beginning of a block, for the block before it and for this one's end; what is taken is
aligned to as many."""

_ADVICE = ("declare i32 @madvise(ptr, i64, i32)", _IN_LARGE_PAGES) if sys.platform == "linux" else ("", "")

ARENA = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
{_ADVICE[0]}

define internal ptr @arena_take(ptr %arena, i64 %size) alwaysinline {{
  %free.at = getelementptr i8, ptr %arena, i64 8
  %end.at = getelementptr i8, ptr %arena, i64 16
  %free = load i64, ptr %free.at
  %end = load i64, ptr %end.at
  %left = sub i64 %end, %free
  %more = add i64 %size, {_HEADER - 1}
  %whole = and i64 %more, -{_HEADER}
  %fits = icmp ult i64 %whole, %left
  br i1 %fits, label %quick, label %slow, !prof !1
quick:
  %next = add i64 %free, %whole
  store i64 %next, ptr %free.at
  %here = inttoptr i64 %free to ptr
  ret ptr %here
slow:
  %there = call ptr @arena_grow(ptr %arena, i64 %whole)
  ret ptr %there
}}

define internal ptr @arena_grow(ptr %arena, i64 %size) noinline cold {{
  %negative = icmp slt i64 %size, 0
  br i1 %negative, label %none, label %sized
sized:
  %least = call i64 @llvm.smax.i64(i64 %size, i64 {BLOCK})
  %bytes = add i64 %least, {_HEADER}
  %block = call ptr @malloc(i64 %bytes)
  %missing = icmp eq ptr %block, null
  br i1 %missing, label %none, label %there
there:
  %before = load ptr, ptr %arena
  store ptr %before, ptr %block
  %start = ptrtoint ptr %block to i64
  %end = add i64 %start, %bytes
{_ADVICE[1]}
  %end.in = getelementptr i8, ptr %block, i64 8
  store i64 %end, ptr %end.in
  store ptr %block, ptr %arena
  %free.at = getelementptr i8, ptr %arena, i64 8
  %end.at = getelementptr i8, ptr %arena, i64 16
  %first = add i64 %start, {_HEADER}
  %free = add i64 %first, %size
  store i64 %free, ptr %free.at
  store i64 %end, ptr %end.at
  %found = inttoptr i64 %first to ptr
  ret ptr %found
none:
  ret ptr null
}}

define internal void @arena_give_back(ptr %arena, ptr %block, i64 %free) alwaysinline {{
  %newest = load ptr, ptr %arena
  %same = icmp eq ptr %newest, %block
  br i1 %same, label %quick, label %slow, !prof !1
quick:
  %free.at = getelementptr i8, ptr %arena, i64 8
  store i64 %free, ptr %free.at
  ret void
slow:
  call void @arena_shrink(ptr %arena, ptr %block, i64 %free)
  ret void
}}

define internal void @arena_shrink(ptr %arena, ptr %block, i64 %free) noinline cold {{
start:
  br label %test
test:
  %newest = load ptr, ptr %arena
  %done = icmp eq ptr %newest, %block
  br i1 %done, label %there, label %again
again:
  %before = load ptr, ptr %newest
  store ptr %before, ptr %arena
  call void @free(ptr %newest)
  br label %test
there:
  %free.at = getelementptr i8, ptr %arena, i64 8
  %end.at = getelementptr i8, ptr %arena, i64 16
  store i64 %free, ptr %free.at
  store i64 0, ptr %end.at
  %none = icmp eq ptr %block, null
  br i1 %none, label %over, label %some
some:
  %end.in = getelementptr i8, ptr %block, i64 8
  %end = load i64, ptr %end.in
  store i64 %end, ptr %end.at
  br label %over
over:
  ret void
}}

!0 = !{{!"branch_weights", i32 1, i32 1000000}}
!1 = !{{!"branch_weights", i32 1000000, i32 1}}
"""

# Runs of doubling length are merged into the scratch memory and copied back; equal keys keep their sequence.
_SORT = Template("""
define internal void @sort_$name(ptr %keys, i64 %count, ptr %places, ptr %scratch) noinline {
start:
  br label %number
number:
  %i = phi i64 [ 0, %start ], [ %i.next, %numbered ]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %numbered, label %widths
numbered:
  %i.at = getelementptr i64, ptr %places, i64 %i
  store i64 %i, ptr %i.at
  %i.next = add i64 %i, 1
  br label %number
widths:
  %width = phi i64 [ 1, %number ], [ %width.next, %copied ]
  %unsorted = icmp slt i64 %width, %count
  br i1 %unsorted, label %runs, label %over
runs:
  %low = phi i64 [ 0, %widths ], [ %high, %merged ]
  %low.more = icmp slt i64 %low, %count
  br i1 %low.more, label %run, label %copy
run:
  %middle.whole = add i64 %low, %width
  %middle = call i64 @llvm.smin.i64(i64 %middle.whole, i64 %count)
  %high.whole = add i64 %middle, %width
  %high = call i64 @llvm.smin.i64(i64 %high.whole, i64 %count)
  br label %merge
merge:
  %k = phi i64 [ %low, %run ], [ %k.next, %taken ]
  %a = phi i64 [ %low, %run ], [ %a.next, %taken ]
  %b = phi i64 [ %middle, %run ], [ %b.next, %taken ]
  %k.more = icmp slt i64 %k, %high
  br i1 %k.more, label %choose, label %merged
choose:
  %a.more = icmp slt i64 %a, %middle
  br i1 %a.more, label %has.a, label %take.b
has.a:
  %b.more = icmp slt i64 %b, %high
  br i1 %b.more, label %compare, label %take.a
compare:
  %a.at = getelementptr i64, ptr %places, i64 %a
  %b.at = getelementptr i64, ptr %places, i64 %b
  %a.place = load i64, ptr %a.at
  %b.place = load i64, ptr %b.at
  %a.key.at = getelementptr $kind, ptr %keys, i64 %a.place
  %b.key.at = getelementptr $kind, ptr %keys, i64 %b.place
  %a.key = load $kind, ptr %a.key.at
  %b.key = load $kind, ptr %b.key.at
  %later = $less $kind %b.key, %a.key
  br i1 %later, label %take.b, label %take.a
take.a:
  %a.after = add i64 %a, 1
  br label %taken
take.b:
  %b.after = add i64 %b, 1
  br label %taken
taken:
  %from = phi i64 [ %a, %take.a ], [ %b, %take.b ]
  %a.next = phi i64 [ %a.after, %take.a ], [ %a, %take.b ]
  %b.next = phi i64 [ %b, %take.a ], [ %b.after, %take.b ]
  %from.at = getelementptr i64, ptr %places, i64 %from
  %moved = load i64, ptr %from.at
  %to.at = getelementptr i64, ptr %scratch, i64 %k
  store i64 %moved, ptr %to.at
  %k.next = add i64 %k, 1
  br label %merge
merged:
  br label %runs
copy:
  %c = phi i64 [ 0, %runs ], [ %c.next, %one ]
  %c.more = icmp slt i64 %c, %count
  br i1 %c.more, label %one, label %copied
one:
  %c.from = getelementptr i64, ptr %scratch, i64 %c
  %c.moved = load i64, ptr %c.from
  %c.to = getelementptr i64, ptr %places, i64 %c
  store i64 %c.moved, ptr %c.to
  %c.next = add i64 %c, 1
  br label %copy
copied:
  %width.next = shl i64 %width, 1
  br label %widths
over:
  ret void
}
""")

SORTS = {
    "int32": _SORT.substitute(name="int32", kind="i32", less="icmp slt"),
    "int64": _SORT.substitute(name="int64", kind="i64", less="icmp slt"),
    "float64": _SORT.substitute(name="float64", kind="double", less="fcmp olt"),
}
"""Merge sort of places by keys, per kind of keys."""

_INTRINSICS = {
    "i64": ("smax.i64:2", "smin.i64:2"),
    "double": ("ceil.f64:1", "floor.f64:1", "copysign.f64:2", "fabs.f64:1"),
}

DECLARED = "\n".join(
    f"declare {kind} @llvm.{name.split(':')[0]}({', '.join([kind] * int(name[-1]))})"
    for kind, names in _INTRINSICS.items()
    for name in names
) + "".join(
    f"\ndeclare double @{name}({', '.join(['double'] * count)})"
    for name, count in {"log": 1, "exp": 1, "pow": 2, "fmod": 2, "sqrt": 1}.items()
)
