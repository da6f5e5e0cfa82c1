"""What runs on the GPU for ``hstu.kernels.triton_attention``, a tile of the attention at a time.

A tile holds BLOCK queries (its rows) by BLOCK keys (its columns) of one user. Tiles right of the
diagonal or beyond the user's length are not visited. Sums are float32, in a fixed order and without
atomics, so that equal inputs give equal bits.

Layouts: q, k and v are [B, W, H, d] with a stride of their own between the places of W; all other
tensors are contiguous. DQK and DV are the sizes of a head, BLOCK_QK and BLOCK_V the powers of two
that hold them. PRODUCTS is the type whose products are taken.
"""

import triton
import triton.language as tl


@triton.jit
def _read(pointer, places, stride, limit, SIZE, PADDED: tl.constexpr):
    """Rows [places, PADDED] of one head; zero from place ``limit`` and from column SIZE on."""
    columns = tl.arange(0, PADDED)
    inside = (places[:, None] < limit) & (columns[None, :] < SIZE)
    return tl.load(pointer + places[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def _write(pointer, rows, places, stride, limit, SIZE):
    """Store what ``_read`` would read."""
    columns = tl.arange(0, rows.shape[1])
    inside = (places[:, None] < limit) & (columns[None, :] < SIZE)
    target = pointer + places[:, None] * stride + columns[None, :]
    tl.store(target, rows.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _product(left, right, PRODUCTS: tl.constexpr, PRECISION: tl.constexpr):
    """Matrix product in float32 of operands taken as PRODUCTS."""
    return tl.dot(left.to(PRODUCTS), right.to(PRODUCTS), input_precision=PRECISION)


@triton.jit
def _reach(first, length, BLOCK: tl.constexpr):
    """Where the keys end that the block of queries from ``first`` on sees; 0 for padding."""
    return tl.where(first < length, tl.minimum(first + BLOCK, length), 0)


@triton.jit
def _visible(rows, columns, length):
    """Which pairs count [rows, columns]: the key is not the younger, the query is no padding."""
    return (columns[None, :] <= rows[:, None]) & (rows[:, None] < length)


@triton.jit
def _bias(time, position, buckets, rows, columns, seen, width, centre):
    """The relative bias [rows, columns] of one user."""
    bucket = tl.load(buckets + rows[:, None] * width + columns[None, :], mask=seen, other=0)
    by_time = tl.load(time + bucket, mask=seen, other=0.0)
    by_place = tl.load(position + centre + columns[None, :] - rows[:, None], mask=seen, other=0.0)
    return by_time.to(tl.float32) + by_place.to(tl.float32)


@triton.jit
def _scores(
    query,
    key,
    time,
    position,
    buckets,
    rows,
    columns,
    seen,
    width,
    centre,
    BIASED: tl.constexpr,
    PRODUCTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """What SiLU is applied to [rows, columns], of one user and head."""
    scores = _product(query, tl.trans(key), PRODUCTS, PRECISION)
    if BIASED:
        scores += _bias(time, position, buckets, rows, columns, seen, width, centre)
    return scores


@triton.jit
def _slope(scores):
    """The derivative of SiLU."""
    gate = tl.sigmoid(scores)
    return gate * (1 + scores * (1 - gate))


@triton.jit
def mix(
    q,
    k,
    v,
    out,
    time,
    position,
    buckets,
    lengths,
    q_stride,
    k_stride,
    v_stride,
    width,
    centre,
    scale,
    HEADS: tl.constexpr,
    DQK: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_QK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK: tl.constexpr,
    BIASED: tl.constexpr,
    PRODUCTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write ``out`` of one user, head and block of queries; zero for padding."""
    user, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    length = tl.load(lengths + user).to(tl.int32)
    of_user = buckets + user * width * width
    first = tl.program_id(1) * BLOCK
    rows = first + tl.arange(0, BLOCK)
    k += user * width * k_stride + head * DQK
    v += user * width * v_stride + head * DV
    q += user * width * q_stride + head * DQK
    query = _read(q, rows, q_stride, length, DQK, BLOCK_QK)
    mixed = tl.zeros([BLOCK, BLOCK_V], tl.float32)
    for start in range(0, _reach(first, length, BLOCK), BLOCK):
        columns = start + tl.arange(0, BLOCK)
        seen = _visible(rows, columns, length)
        key = _read(k, columns, k_stride, length, DQK, BLOCK_QK)
        scores = _scores(
            query, key, time, position, of_user, rows, columns, seen, width, centre,
            BIASED, PRODUCTS, PRECISION,
        )  # fmt: skip
        attention = tl.where(seen, scores * tl.sigmoid(scores), 0.0)
        value = _read(v, columns, v_stride, length, DV, BLOCK_V)
        mixed += _product(attention, value, PRODUCTS, PRECISION)
    out += (user * width * HEADS + head) * DV
    _write(out, mixed * scale, rows, HEADS * DV, width, DV)


@triton.jit
def query_gradients(
    q,
    k,
    v,
    grad_out,
    grad_q,
    time,
    position,
    buckets,
    lengths,
    q_stride,
    k_stride,
    v_stride,
    width,
    centre,
    scale,
    HEADS: tl.constexpr,
    DQK: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_QK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK: tl.constexpr,
    BIASED: tl.constexpr,
    PRODUCTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write ``grad_q`` of one user, head and block of queries; zero for padding."""
    user, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    length = tl.load(lengths + user).to(tl.int32)
    of_user = buckets + user * width * width
    first = tl.program_id(1) * BLOCK
    rows = first + tl.arange(0, BLOCK)
    k += user * width * k_stride + head * DQK
    v += user * width * v_stride + head * DV
    q += user * width * q_stride + head * DQK
    grad_out += (user * width * HEADS + head) * DV
    query = _read(q, rows, q_stride, length, DQK, BLOCK_QK)
    upstream = _read(grad_out, rows, HEADS * DV, length, DV, BLOCK_V)
    total = tl.zeros([BLOCK, BLOCK_QK], tl.float32)
    for start in range(0, _reach(first, length, BLOCK), BLOCK):
        columns = start + tl.arange(0, BLOCK)
        seen = _visible(rows, columns, length)
        key = _read(k, columns, k_stride, length, DQK, BLOCK_QK)
        scores = _scores(
            query, key, time, position, of_user, rows, columns, seen, width, centre,
            BIASED, PRODUCTS, PRECISION,
        )  # fmt: skip
        value = _read(v, columns, v_stride, length, DV, BLOCK_V)
        wanted = _product(upstream, tl.trans(value), PRODUCTS, PRECISION)
        step = tl.where(seen, wanted * _slope(scores), 0.0)
        total += _product(step, key, PRODUCTS, PRECISION)
    grad_q += (user * width * HEADS + head) * DQK
    _write(grad_q, total * scale, rows, HEADS * DQK, width, DQK)


@triton.jit
def key_value_gradients(
    q,
    k,
    v,
    grad_out,
    grad_k,
    grad_v,
    time,
    position,
    buckets,
    lengths,
    q_stride,
    k_stride,
    v_stride,
    width,
    centre,
    scale,
    HEADS: tl.constexpr,
    DQK: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_QK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK: tl.constexpr,
    BIASED: tl.constexpr,
    PRODUCTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write ``grad_k`` and ``grad_v`` of one user, head and block of keys; zero for padding."""
    user, head = (tl.program_id(0) // HEADS).to(tl.int64), tl.program_id(0) % HEADS
    length = tl.load(lengths + user).to(tl.int32)
    of_user = buckets + user * width * width
    first = tl.program_id(1) * BLOCK
    columns = first + tl.arange(0, BLOCK)
    q += user * width * q_stride + head * DQK
    grad_out += (user * width * HEADS + head) * DV
    key = _read(k + user * width * k_stride + head * DQK, columns, k_stride, length, DQK, BLOCK_QK)
    value = _read(v + user * width * v_stride + head * DV, columns, v_stride, length, DV, BLOCK_V)
    to_key = tl.zeros([BLOCK, BLOCK_QK], tl.float32)
    to_value = tl.zeros([BLOCK, BLOCK_V], tl.float32)
    for start in range(first, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        seen = _visible(rows, columns, length)
        query = _read(q, rows, q_stride, length, DQK, BLOCK_QK)
        scores = _scores(
            query, key, time, position, of_user, rows, columns, seen, width, centre,
            BIASED, PRODUCTS, PRECISION,
        )  # fmt: skip
        upstream = _read(grad_out, rows, HEADS * DV, length, DV, BLOCK_V)
        attention = tl.where(seen, scores * tl.sigmoid(scores), 0.0)
        to_value += _product(tl.trans(attention), upstream, PRODUCTS, PRECISION)
        wanted = _product(upstream, tl.trans(value), PRODUCTS, PRECISION)
        step = tl.where(seen, wanted * _slope(scores), 0.0)
        to_key += _product(tl.trans(step), query, PRODUCTS, PRECISION)
    grad_k += (user * width * HEADS + head) * DQK
    grad_v += (user * width * HEADS + head) * DV
    _write(grad_k, to_key * scale, columns, HEADS * DQK, width, DQK)
    _write(grad_v, to_value * scale, columns, HEADS * DV, width, DV)


@triton.jit
def score_gradients(
    q,
    k,
    v,
    grad_out,
    grad_scores,
    time,
    position,
    buckets,
    lengths,
    q_stride,
    k_stride,
    v_stride,
    width,
    centre,
    scale,
    HEADS: tl.constexpr,
    DQK: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_QK: tl.constexpr,
    BLOCK_V: tl.constexpr,
    BLOCK: tl.constexpr,
    PRODUCTS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write one user's tile of ``grad_scores`` [B, W, W], summed over the heads.

    A tile that nobody sees is left as it is.
    """
    user = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + user).to(tl.int32)
    top, left = tl.program_id(1) * BLOCK, tl.program_id(2) * BLOCK
    if (left > top) | (top >= length):
        return
    rows, columns = top + tl.arange(0, BLOCK), left + tl.arange(0, BLOCK)
    seen = _visible(rows, columns, length)
    of_user = buckets + user * width * width
    bias = _bias(time, position, of_user, rows, columns, seen, width, centre)
    q += user * width * q_stride
    k += user * width * k_stride
    v += user * width * v_stride
    grad_out += user * width * HEADS * DV
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for head in range(HEADS):
        query = _read(q + head * DQK, rows, q_stride, length, DQK, BLOCK_QK)
        key = _read(k + head * DQK, columns, k_stride, length, DQK, BLOCK_QK)
        upstream = _read(grad_out + head * DV, rows, HEADS * DV, length, DV, BLOCK_V)
        value = _read(v + head * DV, columns, v_stride, length, DV, BLOCK_V)
        scores = _product(query, tl.trans(key), PRODUCTS, PRECISION) + bias
        wanted = _product(upstream, tl.trans(value), PRODUCTS, PRECISION)
        total += tl.where(seen, wanted * _slope(scores), 0.0)
    target = grad_scores + user * width * width + rows[:, None] * width + columns[None, :]
    tl.store(target, total * scale, mask=seen)


@triton.jit
def bucket_sums(
    values,
    buckets,
    sums,
    count,
    per_program,
    BUCKETS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write, to row p of ``sums`` [P, BUCKETS], the sum of each bucket in program p's share.

    ``values`` and their ``buckets`` are flat, of ``count`` elements.
    """
    program = tl.program_id(0).to(tl.int64)
    first = program * per_program
    last = tl.minimum(first + per_program, count)
    names = tl.arange(0, BUCKETS)
    total = tl.zeros([BUCKETS], tl.float32)
    for start in range(first, last, BLOCK):
        places = start + tl.arange(0, BLOCK)
        value = tl.load(values + places, mask=places < last, other=0.0)
        bucket = tl.load(buckets + places, mask=places < last, other=0)
        total += tl.sum(tl.where(bucket[None, :] == names[:, None], value[None, :], 0.0), axis=1)
    tl.store(sums + program * BUCKETS + names, total)
