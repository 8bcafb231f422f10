"""Sums over the neighbours of one row, kept in vector registers from the first to the last.

    combined_rows:   out_i = s_i p sum_e f_e V_j + q Z_i,   f_e = w_e s_j,   j = indices[e], first <= e < last
    gathered_total:  sum_e w_e x_j

A plain loop writes its running sums back to memory at each entry, and mispredicts the end of every row. These two say
to the compiler, in its own language, that the sums are vectors; it cuts them to the registers that the machine has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic  # what it decorates is called without its first argument
I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
ARRAYS = ("indptr", "indices", "weights", "scale", "codes", "table", "V", "p", "Z", "q", "out", "dots")
WHOLE = (64, 32, 16, 8, 4, 2)  # columns: a row of just so many is done in one go
LANES = 8
PART = 1024  # entries that are summed one by one
AHEAD = (8, 24)  # entries, fewest and most: memory is asked for this long before it is needed
AHEAD_BYTES = 8192  # that may be under way meanwhile, or requests wait for one another
# With masks a whole short row is one gather; elsewhere the compiler would take it apart again.
MASKED_GATHERS = bool(binding.get_host_cpu_features().get("avx512f"))


def _load(builder: Any, data: Any, at: Any, lanes: int) -> Any:
    """The vector that begins at ``data[at]``."""
    element = data.type.pointee
    place = builder.bitcast(builder.gep(data, [at]), ir.VectorType(element, lanes).as_pointer())
    return builder.load(place, align=8 if element == F64 else 4)


def _store(builder: Any, vector: Any, data: Any, at: Any) -> None:
    place = builder.bitcast(builder.gep(data, [at]), vector.type.as_pointer())
    builder.store(vector, place, align=8 if vector.type.element == F64 else 4)


def _item(builder: Any, data: Any, at: Any) -> Any:
    return builder.load(builder.gep(data, [at]))


def _everywhere(builder: Any, value: Any, width: int) -> Any:
    """A vector with ``value`` in each place."""
    nothing = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(I32, width), None))


def _function(builder: Any, name: str, result: Any, arguments: list) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _ask_for(builder: Any, data: Any, size: int) -> None:
    """Have the cache lines of ``size`` bytes from ``data`` brought in."""
    byte = ir.IntType(8).as_pointer()
    prefetch = _function(builder, "llvm.prefetch.p0", ir.VoidType(), [byte, I32, I32, I32])
    start = builder.bitcast(data, byte)
    read, keep, from_data = (ir.Constant(I32, flag) for flag in (0, 3, 1))
    for offset in {*range(0, size, 64), size - 1}:  # the last byte may lie on one line more
        builder.call(prefetch, [builder.gep(start, [I64(offset)]), read, keep, from_data])


@intrinsic
def combined_rows(typing: Any, first: Any, last: Any, given: Any) -> Any:
    """Rows ``first`` to ``last`` of ``out = (S V) p + Z q``, and their part of ``out'V`` added to dots.

    ``given`` is a tuple of the arrays that ``ARRAYS`` names. What an entry is multiplied by is ``table[codes[e]]``,
    or, without codes, ``weights[e] scale[j]``. Without dots no inner product is formed.
    """
    signature = types.void(types.intp, types.intp, given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = {
            name: context.make_array(kind)(context, builder, builder.extract_value(args[2], place))
            for place, (name, kind) in enumerate(zip(ARRAYS, given, strict=True))
            if isinstance(kind, types.Array)
        }
        k = builder.extract_value(arrays["V"].shape, 1)
        tail = builder.sub(builder.extract_value(arrays["indices"].shape, 0), I64(1))
        data = {name: array.data for name, array in arrays.items()}
        parts, done = builder.append_basic_block("parts"), builder.append_basic_block("done")
        switch = builder.switch(k, parts)
        for columns in (*WHOLE, None):
            block = parts if columns is None else builder.append_basic_block()
            if columns is not None:
                switch.add_case(I64(columns), block)
            builder.position_at_end(block)
            builder.call(_rows_function(builder.module, data, columns), [*args[:2], k, tail, *data.values()])
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, generate


def _rows_function(module: Any, data: dict[str, Any], columns: int | None) -> Any:
    """The loop over rows of so many columns: each number is a function of its own, with all registers to itself.

    Where ``columns`` is None, a row of k is done in as many columns at a time as registers hold.
    """
    kind = ir.FunctionType(ir.VoidType(), [I64] * 4 + [pointer.type for pointer in data.values()])
    function = ir.Function(module, kind, module.get_unique_name(f"rows_of_{columns}"))
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    first, last, k, tail, *pointers = function.args
    row = _Row(builder, dict(zip(data, pointers, strict=True)), I64(columns) if columns else k, tail)
    with cgutils.for_range(builder, last, first) as loop:
        row.begin(loop.index)
        if columns:
            row.combine(I64(0), columns)
        else:
            with cgutils.for_range_slice(builder, I64(0), builder.and_(k, I64(-64)), I64(64)) as (at, _):
                row.combine(at, 64)
            for lanes in (32, 16, 8, 4, 2, 1):  # the bits of what is left
                with builder.if_then(builder.icmp_signed("!=", builder.and_(k, I64(lanes)), I64(0))):
                    row.combine(builder.and_(k, I64(-2 * lanes)), lanes)
    builder.ret_void()
    return function


class _Row:
    """What is written for one row, in columns ``at`` to ``at + lanes`` of k: the template of every width."""

    def __init__(self, builder: Any, data: dict[str, Any], k: Any, tail: Any):
        self.builder, self.data, self.k, self.tail = builder, data, k, tail

    def begin(self, i: Any) -> None:
        self.i = i
        self.start, self.end = (_item(self.builder, self.data["indptr"], at) for at in (i, self.builder.add(i, I64(1))))

    def combine(self, at: Any, lanes: int) -> None:
        """Emit ``out_i = s_i p sum_e f_e V_j + q Z_i``, and add ``out_i V_i`` to dots."""
        builder, data = self.builder, self.data
        place = builder.add(builder.mul(self.i, self.k), at)
        total = self._gathered(at, lanes)
        total = builder.fmul(total, _everywhere(builder, _item(builder, data["scale"], self.i), lanes))
        total = builder.fmul(total, _load(builder, data["p"], at, lanes))
        if "Z" in data:
            z, by = _load(builder, data["Z"], place, lanes), _load(builder, data["q"], at, lanes)
            total = builder.fadd(total, builder.fmul(z, by, flags=["contract"]), flags=["contract"])
        _store(builder, total, data["out"], place)
        if "dots" in data:
            product = builder.fmul(total, _load(builder, data["V"], place, lanes), flags=["contract"])
            if product.type.element != F64:
                product = builder.fpext(product, ir.VectorType(F64, lanes))
            dot = builder.fadd(_load(builder, data["dots"], at, lanes), product, flags=["contract"])
            _store(builder, dot, data["dots"], at)

    def _gathered(self, at: Any, lanes: int) -> Any:
        """``sum_e f_e V[j, at : at + lanes]``, asking for the memory of later entries on the way.

        The sum of a long row is one of the sums of its parts, so that rounding does not grow with the row.
        """
        builder, index, base = self.builder, self.data["indices"], self.builder.gep(self.data["V"], [at])
        vector = ir.VectorType(base.type.pointee, lanes)
        size = 8 if vector.element == F64 else 4
        before, zero = builder.block, ir.Constant(vector, None)
        parts, loop, body, part_done, after = (
            builder.append_basic_block(name) for name in ("parts", "entries", "entry", "part", "summed")
        )
        builder.branch(parts)

        builder.position_at_end(parts)
        first, whole = builder.phi(I64), builder.phi(vector)
        first.add_incoming(self.start, before)
        whole.add_incoming(zero, before)
        stop = builder.add(first, I64(PART))
        stop = builder.select(builder.icmp_signed("<", stop, self.end), stop, self.end)
        builder.branch(loop)

        builder.position_at_end(loop)
        e, total = builder.phi(I64), builder.phi(vector)
        e.add_incoming(first, parts)
        total.add_incoming(zero, parts)
        builder.cbranch(builder.icmp_signed("<", e, stop), body, part_done)

        builder.position_at_end(body)
        j = builder.sext(_item(builder, index, e), I64)
        gathered = _load(builder, base, builder.mul(j, self.k), lanes)
        later = builder.add(e, I64(max(AHEAD[0], min(AHEAD[1], AHEAD_BYTES // (lanes * size)))))
        later = builder.select(builder.icmp_signed("<", later, self.tail), later, self.tail)
        later = builder.sext(_item(builder, index, later), I64)
        _ask_for(builder, builder.gep(base, [builder.mul(later, self.k)]), lanes * size)
        if "codes" not in self.data:
            _ask_for(builder, builder.gep(self.data["scale"], [later]), size)
        part = builder.fmul(gathered, _everywhere(builder, self._factor(e, j), lanes), flags=["contract"])
        e.add_incoming(_unforeseen(builder, builder.add(e, I64(1))), builder.block)
        total.add_incoming(builder.fadd(total, part, flags=["contract"]), builder.block)
        builder.branch(loop)

        builder.position_at_end(part_done)
        summed = builder.fadd(whole, total)
        first.add_incoming(stop, part_done)
        whole.add_incoming(summed, part_done)
        builder.cbranch(builder.icmp_signed("<", stop, self.end), parts, after)

        builder.position_at_end(after)
        return summed

    def _factor(self, e: Any, j: Any) -> Any:
        """What entry e, in column j, is multiplied by."""
        builder, data = self.builder, self.data
        if "codes" in data:
            return _item(builder, data["table"], builder.zext(_item(builder, data["codes"], e), I64))
        factor = _item(builder, data["scale"], j)
        return builder.fmul(factor, _item(builder, data["weights"], e)) if "weights" in data else factor


def _unforeseen(builder: Any, value: Any) -> Any:
    """The value, hidden from the compiler, which would unroll the loop that it counts.

    An unrolled loop ends in two places, and with short rows of unlike lengths the processor mispredicts both.
    """
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", "=r,0", [value], False)


def _masked(builder: Any, what: str, vector: Any, pointer: Any, mask: Any) -> Any:
    """``load`` or ``gather`` where the mask is set, 0 elsewhere; a gather takes a vector of pointers."""
    element = vector.element
    kind = f"v{vector.count}" + ("i32" if element == I32 else "f64" if element == F64 else "f32")
    suffix = f"{kind}.p0" if what == "load" else f"{kind}.v{vector.count}p0"
    arguments = [pointer.type, I32, mask.type, vector]
    function = _function(builder, f"llvm.masked.{what}.{suffix}", vector, arguments)
    bytes_aligned = 8 if element == F64 else 4
    return builder.call(function, [pointer, ir.Constant(I32, bytes_aligned), mask, ir.Constant(vector, None)])


def _places(builder: Any, data: Any, positions: Any) -> Any:
    """Pointers to ``data`` at a vector of positions, which llvmlite's own gep refuses."""
    pointers = builder.gep(data, [I64(0)])
    pointers.indices, pointers.operands = [positions], [data, positions]
    pointers.type = ir.VectorType(data.type, positions.type.count)
    return pointers


@intrinsic
def gathered_total(typing: Any, x: Any, indices: Any, weights: Any, first: Any, last: Any) -> Any:
    """The sum of one column; eight entries at a time, those past the end masked."""
    signature = x.dtype(x, indices, weights, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, index = (context.make_array(a)(context, builder, v).data for a, v in ((x, args[0]), (indices, args[1])))
        start, end = args[3], args[4]
        element = data.type.pointee
        vector, positions = ir.VectorType(element, LANES), ir.VectorType(I32, LANES)
        before = builder.block
        loop, after = builder.append_basic_block("entries"), builder.append_basic_block("summed")
        builder.branch(loop)

        builder.position_at_end(loop)
        e, total = builder.phi(I64), builder.phi(vector)
        e.add_incoming(start, before)
        total.add_incoming(ir.Constant(vector, None), before)
        left = _everywhere(builder, builder.trunc(builder.sub(end, e), I32), LANES)
        mask = builder.icmp_signed("<", ir.Constant(positions, list(range(LANES))), left)
        j = builder.sext(_masked(builder, "load", positions, builder.gep(index, [e]), mask), ir.VectorType(I64, LANES))
        part = _masked(builder, "gather", vector, _places(builder, data, j), mask)
        if not isinstance(weights, types.NoneType):
            w = builder.gep(context.make_array(weights)(context, builder, args[2]).data, [e])
            part = builder.fmul(part, _masked(builder, "load", vector, w, mask), flags=["contract"])
        summed = builder.fadd(total, part, flags=["contract"])
        following = builder.add(e, I64(LANES))
        e.add_incoming(following, loop)
        total.add_incoming(summed, loop)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, after)

        builder.position_at_end(after)
        name = "f64" if element == F64 else "f32"
        add = _function(builder, f"llvm.vector.reduce.fadd.v{LANES}{name}", element, [element, vector])
        return builder.call(add, [ir.Constant(element, -0.0), summed], fastmath=["reassoc"])

    return signature, generate
