"""Sums over the neighbours of one row, held in vector registers from the first to the last.

    combined_row:    out_i = s_i p sum_e f_e V_j + q Z_i,   f_e = w_e s_j,   j = indices[e], first <= e < last
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
        builder.call(prefetch, [builder.gep(start, [ir.Constant(I64, offset)]), read, keep, from_data])


@intrinsic(prefer_literal=True)
def combined_row(
    typing: Any,
    i: Any,
    column: Any,
    first: Any,
    last: Any,
    indices: Any,
    weights: Any,
    scale: Any,
    codes: Any,
    table: Any,
    V: Any,
    p: Any,
    Z: Any,
    q: Any,
    out: Any,
    dots: Any,
    width: Any,
) -> Any:
    """One row of ``out = (S V) p + Z q`` in columns ``column`` to ``column + width``, its part of ``out'V`` to dots.

    Where ``column`` is None, these are all columns. What an entry is multiplied by is ``table[codes[e]]``, or, without
    codes, ``weights[e] scale[j]``. Without dots no inner product is formed.
    """
    lanes = width.literal_value
    whole = isinstance(column, types.NoneType)
    at = column if whole else types.intp
    positions = types.intp, at, types.intp, types.intp
    signature = types.void(*positions, indices, weights, scale, codes, table, V, p, Z, q, out, dots, width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, at, start, end = args[:4]
        names = ("indices", "weights", "scale", "codes", "table", "V", "p", "Z", "q", "out", "dots")
        kinds = zip(names, signature.args[4:], args[4:], strict=False)
        arrays = {
            name: context.make_array(kind)(context, builder, value)
            for name, kind, value in kinds
            if isinstance(kind, types.Array)
        }
        k = ir.Constant(I64, lanes) if whole else builder.extract_value(arrays["V"].shape, 1)
        at = ir.Constant(I64, 0) if whole else at
        place = builder.add(builder.mul(row, k), at)
        total = _gathered(builder, arrays, start, end, at, k, lanes)
        total = builder.fmul(total, _everywhere(builder, _item(builder, arrays["scale"].data, row), lanes))
        total = builder.fmul(total, _load(builder, arrays["p"].data, at, lanes))
        if "Z" in arrays:
            z, by = _load(builder, arrays["Z"].data, place, lanes), _load(builder, arrays["q"].data, at, lanes)
            total = builder.fadd(total, builder.fmul(z, by, flags=["contract"]), flags=["contract"])
        _store(builder, total, arrays["out"].data, place)
        if "dots" in arrays:
            product = builder.fmul(total, _load(builder, arrays["V"].data, place, lanes), flags=["contract"])
            if product.type.element != F64:
                product = builder.fpext(product, ir.VectorType(F64, lanes))
            dot = builder.fadd(_load(builder, arrays["dots"].data, at, lanes), product, flags=["contract"])
            _store(builder, dot, arrays["dots"].data, at)
        return context.get_dummy_value()

    return signature, generate


def _gathered(builder: Any, arrays: dict[str, Any], start: Any, end: Any, at: Any, k: Any, lanes: int) -> Any:
    """``sum_e f_e V[j, at : at + lanes]``, asking for the memory of later entries on the way.

    The sum of a long row is one of the sums of its parts, so that rounding does not grow with the row.
    """
    index, base = arrays["indices"].data, builder.gep(arrays["V"].data, [at])
    vector = ir.VectorType(base.type.pointee, lanes)
    size = 8 if vector.element == F64 else 4
    tail = builder.sub(builder.extract_value(arrays["indices"].shape, 0), ir.Constant(I64, 1))
    before, zero = builder.block, ir.Constant(vector, None)
    parts, loop, body, part_done, after = (
        builder.append_basic_block(name) for name in ("parts", "entries", "entry", "part", "summed")
    )
    builder.branch(parts)

    builder.position_at_end(parts)
    first, whole = builder.phi(I64), builder.phi(vector)
    first.add_incoming(start, before)
    whole.add_incoming(zero, before)
    stop = builder.add(first, ir.Constant(I64, PART))
    stop = builder.select(builder.icmp_signed("<", stop, end), stop, end)
    builder.branch(loop)

    builder.position_at_end(loop)
    e, total = builder.phi(I64), builder.phi(vector)
    e.add_incoming(first, parts)
    total.add_incoming(zero, parts)
    builder.cbranch(builder.icmp_signed("<", e, stop), body, part_done)

    builder.position_at_end(body)
    j = builder.sext(_item(builder, index, e), I64)
    gathered = _load(builder, base, builder.mul(j, k), lanes)
    later = builder.add(e, ir.Constant(I64, max(AHEAD[0], min(AHEAD[1], AHEAD_BYTES // (lanes * size)))))
    later = builder.select(builder.icmp_signed("<", later, tail), later, tail)
    later = builder.sext(_item(builder, index, later), I64)
    _ask_for(builder, builder.gep(base, [builder.mul(later, k)]), lanes * size)
    if "codes" not in arrays:
        _ask_for(builder, builder.gep(arrays["scale"].data, [later]), size)
    factor = _everywhere(builder, _factor(builder, arrays, e, j), lanes)
    part = builder.fmul(gathered, factor, flags=["contract"])
    e.add_incoming(_unforeseen(builder, builder.add(e, ir.Constant(I64, 1))), builder.block)
    total.add_incoming(builder.fadd(total, part, flags=["contract"]), builder.block)
    builder.branch(loop)

    builder.position_at_end(part_done)
    summed = builder.fadd(whole, total)
    first.add_incoming(stop, part_done)
    whole.add_incoming(summed, part_done)
    builder.cbranch(builder.icmp_signed("<", stop, end), parts, after)

    builder.position_at_end(after)
    return summed


def _unforeseen(builder: Any, value: Any) -> Any:
    """The value, hidden from the compiler, which would unroll the loop that it counts.

    An unrolled loop ends in two places, and with short rows of unlike lengths the processor mispredicts both.
    """
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", "=r,0", [value], False)


def _factor(builder: Any, arrays: dict[str, Any], e: Any, j: Any) -> Any:
    """What entry e, in column j, is multiplied by."""
    if "codes" in arrays:
        code = builder.zext(_item(builder, arrays["codes"].data, e), I64)
        return _item(builder, arrays["table"].data, code)
    factor = _item(builder, arrays["scale"].data, j)
    return builder.fmul(factor, _item(builder, arrays["weights"].data, e)) if "weights" in arrays else factor


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
    pointers = builder.gep(data, [ir.Constant(I64, 0)])
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
        following = builder.add(e, ir.Constant(I64, LANES))
        e.add_incoming(following, loop)
        total.add_incoming(summed, loop)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, after)

        builder.position_at_end(after)
        name = "f64" if element == F64 else "f32"
        add = _function(builder, f"llvm.vector.reduce.fadd.v{LANES}{name}", element, [element, vector])
        return builder.call(add, [ir.Constant(element, -0.0), summed], fastmath=["reassoc"])

    return signature, generate
