/* The two operations that cost most, for float32 on one CPU thread.
 *
 * Gated pointwise attention works on one user at a time: keys and values are packed once, queries are
 * taken in blocks of QUERIES rows, and only keys up to the end of the block are touched, so the
 * work is that of the lower triangle of the user's own length. Scores live in a scratch block and
 * never in memory of size W x W. The sampled softmax reads each drawn row from cache where it
 * stands.
 *
 * Every sum has a fixed order: equal inputs give equal bits on one kind of machine.
 * Threads are the caller's business: every function works on a range of users or tokens, and what
 * a range accumulates goes to the buffers that it is given.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define ROWS 6     /* of a register tile; with two vectors a row its sums fill AVX2's registers */
#define QUERIES 12 /* rows of a block of queries, a multiple of ROWS */
#define BUCKETS 129

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *at) { return *(const vec *)at; }
INLINE void store(float *at, vec value) { *(vec *)at = value; }
INLINE vec fill(float value) { return value - (vec){0}; }
INLINE long padded(long n) { return (n + LANES - 1) / LANES * LANES; }
INLINE long least(long a, long b) { return a < b ? a : b; }

INLINE vec clamp(vec x, float low, float high)
{
    ivec under = x < low, over = x > high;
    x = (vec)(((ivec)x & ~under) | ((ivec)fill(low) & under));
    return (vec)(((ivec)x & ~over) | ((ivec)fill(high) & over));
}

/* e^x to about 1e-7 relative (range reduction by ln 2 in two parts, degree-6 polynomial). */
INLINE vec exponential(vec x)
{
    x = clamp(x, -87.0f, 88.0f);
    vec k = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to the nearest integer */
    ivec power = (ivec)k - 0x4B400000;
    k = k - 12582912.0f;
    vec r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    vec y = fill(1.9875691500e-4f);
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * (r * r) + r + 1.0f;
    return y * (vec)((power + 127) << 23);
}

/* One register tile: c[ROWS][VECTORS] (+)= sum over k < depth of a[row, k] * b[k]. */
INLINE void tile(const int vectors, const float *a, long a_row, long a_k, const float *b,
                 long b_k, long depth, float *c, long c_row, const int add)
{
    vec sum[ROWS][2];
#pragma GCC unroll 6
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[row][v] = add ? load(c + row * c_row + v * LANES) : (vec){0};
    for (long k = 0; k < depth; k++) {
        vec right[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            right[v] = load(b + k * b_k + v * LANES);
#pragma GCC unroll 6
        for (int row = 0; row < ROWS; row++) {
            vec left = fill(a[row * a_row + k * a_k]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[row][v] += left * right[v];
        }
    }
#pragma GCC unroll 6
    for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            store(c + row * c_row + v * LANES, sum[row][v]);
}

/* c[rows, columns] (+)= a[rows, depth] b[depth, columns]; a may be read by columns (a_k > a_row).
 * rows is a multiple of ROWS and columns of LANES. */
INLINE void multiply(long rows, long columns, long depth, const float *a, long a_row, long a_k,
                     const float *b, long b_k, float *c, long c_row, const int add)
{
    for (long column = 0; column < columns; column += 2 * LANES)
        for (long row = 0; row < rows; row += ROWS) {
            const float *left = a + row * a_row, *right = b + column;
            float *to = c + row * c_row + column;
            if (column + LANES < columns)
                tile(2, left, a_row, a_k, right, b_k, depth, to, c_row, add);
            else
                tile(1, left, a_row, a_k, right, b_k, depth, to, c_row, add);
        }
}

/* to[n, pad(width)] = from[n, width], the rest zero. */
INLINE void pack(long n, long width, const float *from, long stride, float *to)
{
    long pad = padded(width);
    for (long i = 0; i < n; i++) {
        memcpy(to + i * pad, from + i * stride, width * sizeof(float));
        memset(to + i * pad + width, 0, (pad - width) * sizeof(float));
    }
}

/* to[width, stride_to] = from[n, width] transposed; columns from n on are left as they are. */
INLINE void pack_transposed(long n, long width, const float *from, long stride, float *to,
                            long stride_to)
{
    for (long i = 0; i < n; i++)
        for (long d = 0; d < width; d++)
            to[d * stride_to + i] = from[i * stride + d];
}

/* Elapsed-time buckets of query i and key j <= i: starts[c] is the least gap of bucket c. */
void hstu_time_buckets(long first, long last, long width, const int64_t *lengths,
                       const int64_t *times, const int64_t *next_times, const int64_t *starts,
                       uint8_t *buckets)
{
    uint8_t of_power[64]; /* bucket of 2^p */
    for (int p = 0; p < 63; p++) {
        int bucket = 0;
        while (bucket + 1 < BUCKETS && starts[bucket + 1] <= (int64_t)1 << p)
            bucket++;
        of_power[p] = bucket;
    }
    of_power[63] = of_power[62];
    for (long user = first; user < last; user++)
        for (long i = 0; i < lengths[user]; i++)
            for (long j = 0; j <= i; j++) {
                uint64_t gap = (uint64_t)next_times[user * width + i] - times[user * width + j];
                gap = (int64_t)gap < 0 ? -gap : gap;
                int bucket = of_power[63 - __builtin_clzll(gap | 1)];
                while (bucket + 1 < BUCKETS && (uint64_t)starts[bucket + 1] <= gap)
                    bucket++;
                buckets[(user * width + i) * width + j] = bucket;
            }
}

typedef struct {
    long width, heads, dqk, dv, centre; /* centre: the place of distance 0 in the position bias */
    float scale, epsilon;               /* 1 / N; of the norm */
    const int64_t *lengths;
    const uint8_t *buckets;
    const float *projected, *time_bias, *position_bias;
} Attention;

/* projected [B, W, inner] holds token by token u, v [heads * dv], then q, k [heads * dqk]. */
INLINE long inner(const Attention *at) { return 2 * at->heads * (at->dv + at->dqk); }
INLINE long v_of(const Attention *at, long h) { return (at->heads + h) * at->dv; }
INLINE long q_of(const Attention *at, long h) { return 2 * at->heads * at->dv + h * at->dqk; }
INLINE long k_of(const Attention *at, long h) { return q_of(at, at->heads + h); }

/* to[count] = SiLU(from); to has room for pad(count). */
INLINE void silu(long count, const float *from, float *to)
{
    memcpy(to, from, count * sizeof(float));
    for (long d = 0; d < count; d += LANES)
        store(to + d, load(to + d) / (1.0f + exponential(-load(to + d))));
}

/* to[count] = grad * SiLU'(at); grad has room for pad(count). */
INLINE void silu_backward(long count, const float *at, float *grad, float *to)
{
    for (long d = 0; d < count; d += LANES) {
        vec x = {0};
        memcpy(&x, at + d, least(LANES, count - d) * sizeof(float));
        vec gate = 1.0f / (1.0f + exponential(-x));
        x = load(grad + d) * gate * (1.0f + x * (1.0f - gate));
        memcpy(to + d, &x, least(LANES, count - d) * sizeof(float));
    }
}

INLINE float dot(long count, const float *a, const float *b)
{
    vec sums = {0};
    float total = 0;
    long d = 0;
    for (; d + LANES <= count; d += LANES)
        sums += load(a + d) * load(b + d);
    for (; d < count; d++)
        total += a[d] * b[d];
    for (int lane = 0; lane < LANES; lane++)
        total += sums[lane];
    return total;
}

/* normed[count] = x less its mean, over its deviation; returns what x was divided by, inverted. */
INLINE float normalise(long count, float epsilon, const float *ones, const float *x, float *normed)
{
    float mean = dot(count, x, ones) / count;
    for (long d = 0; d < count; d++)
        normed[d] = x[d] - mean;
    float over = 1 / sqrtf(dot(count, normed, normed) / count + epsilon);
    for (long d = 0; d < count; d++)
        normed[d] *= over;
    return over;
}

/* bias[QUERIES, pad] of queries first.. and keys up to pad. */
INLINE void block_bias(const Attention *at, long user, long first, long n, long pad, float *bias)
{
    for (long row = 0; row < QUERIES; row++) {
        long i = least(first + row, n - 1);
        const uint8_t *buckets = at->buckets + (user * at->width + i) * at->width;
        const float *position = at->position_bias + at->centre - i;
        for (long j = 0; j <= i; j++)
            bias[row * pad + j] = at->time_bias[buckets[j]] + position[j];
        for (long j = i + 1; j < pad; j++)
            bias[row * pad + j] = 0;
    }
}

/* scores -> SiLU(scores + bias) * scale for keys up to the query, zero after it. */
INLINE void activate(long first, long pad, long stride, float scale, const float *bias,
                     float *scores)
{
    for (long row = 0; row < QUERIES; row++) {
        float *s = scores + row * stride;
        for (long j = 0; j < pad; j += LANES) {
            vec x = load(s + j) + load(bias + row * stride + j);
            store(s + j, x * scale / (1.0f + exponential(-x)));
        }
        for (long j = first + row + 1; j < pad; j++)
            s[j] = 0;
    }
}

/* Zeroes the tokens of one user behind its n valid ones, each of `size` floats. */
INLINE void clear_padding(long width, long n, long size, float *tokens)
{
    memset(tokens + n * size, 0, (width - n) * size * sizeof(float));
}

/* mixed and gated [B, W, heads * dv]: the mixed values, and their norm gated by u. */
void hstu_attention_forward(long first_user, long last_user, const Attention *at, float *mixed,
                            float *gated)
{
    long pad = padded(at->width), rows = at->width + QUERIES, channels = at->heads * at->dv;
    long dq = padded(at->dqk), dv = padded(at->dv), step = inner(at);
    long head = rows * (dq + dv) + at->dqk * pad;
    float *memory = calloc(at->heads * head + 2 * QUERIES * pad + QUERIES * dv + channels +
                               at->width * step + LANES, sizeof(float));
    float *bias = memory + at->heads * head, *scores = bias + QUERIES * pad;
    float *block = scores + QUERIES * pad, *ones = block + QUERIES * dv, *act = ones + channels;
    for (long d = 0; d < channels; d++)
        ones[d] = 1;
    for (long user = first_user; user < last_user; user++) {
        long n = at->lengths[user], token = user * at->width;
        clear_padding(at->width, n, channels, mixed + token * channels);
        clear_padding(at->width, n, channels, gated + token * channels);
        silu(n * step, at->projected + token * step, act);
        for (long h = 0; h < at->heads; h++) {
            float *queries = memory + h * head, *values = queries + rows * dq;
            pack(n, at->dqk, act + q_of(at, h), step, queries);
            pack(n, at->dv, act + v_of(at, h), step, values);
            pack_transposed(n, at->dqk, act + k_of(at, h), step, values + rows * dv, pad);
        }
        for (long first = 0; first < n; first += QUERIES) {
            long seen = least(first + QUERIES, n), columns = padded(seen);
            block_bias(at, user, first, n, pad, bias);
            for (long h = 0; h < at->heads; h++) {
                float *queries = memory + h * head, *values = queries + rows * dq;
                multiply(QUERIES, columns, at->dqk, queries + first * dq, dq, 1,
                         values + rows * dv, pad, scores, pad, 0);
                activate(first, columns, pad, at->scale, bias, scores);
                multiply(QUERIES, dv, seen, scores, pad, 1, values, dv, block, dv, 0);
                for (long i = first; i < seen; i++)
                    memcpy(mixed + (token + i) * channels + h * at->dv, block + (i - first) * dv,
                           at->dv * sizeof(float));
            }
        }
        for (long i = 0; i < n; i++) {
            float *out = gated + (token + i) * channels;
            normalise(channels, at->epsilon, ones, mixed + (token + i) * channels, out);
            for (long d = 0; d < channels; d++)
                out[d] *= act[i * step + d];
        }
    }
    free(memory);
}

/* With s the biased scores and dA their gradient after SiLU: scores -> SiLU(s) * scale,
 * slopes (dA on entry) -> the gradient of s. */
INLINE void activate_backward(long first, long pad, long stride, float scale, const float *bias,
                              float *scores, float *slopes)
{
    for (long row = 0; row < QUERIES; row++) {
        float *s = scores + row * stride, *d = slopes + row * stride;
        for (long j = 0; j < pad; j += LANES) {
            vec x = load(s + j) + load(bias + row * stride + j);
            vec gate = 1.0f / (1.0f + exponential(-x));
            store(s + j, x * gate * scale);
            store(d + j, load(d + j) * scale * gate * (1.0f + x * (1.0f - gate)));
        }
        for (long j = first + row + 1; j < pad; j++)
            s[j] = d[j] = 0;
    }
}

/* Adds the gradient of the scores of all heads to those of the two bias tables. */
INLINE void bias_backward(const Attention *at, long user, long first, long seen, long pad,
                          const float *slopes, float *time_grad, float *position_grad)
{
    for (long i = first; i < seen; i++) {
        const uint8_t *buckets = at->buckets + (user * at->width + i) * at->width;
        const float *d = slopes + (i - first) * pad;
        float *position = position_grad + at->centre - i;
        for (long j = 0; j <= i; j++)
            position[j] += d[j];
        for (long j = 0; j <= i; j++)
            time_grad[(j & 3) * BUCKETS + buckets[j]] += d[j];
    }
}

/* From the gradient of one gated token to those of u and of the mixed values. */
INLINE void gate_backward(long channels, float epsilon, const float *ones, const float *u,
                          const float *mixed, const float *grad, float *u_grad, float *mixed_grad,
                          float *normed)
{
    float over = normalise(channels, epsilon, ones, mixed, normed);
    for (long d = 0; d < channels; d++) {
        u_grad[d] = grad[d] * normed[d];
        mixed_grad[d] = grad[d] * u[d];
    }
    float mean = dot(channels, mixed_grad, ones) / channels;
    float slope = dot(channels, mixed_grad, normed) / channels;
    for (long d = 0; d < channels; d++)
        mixed_grad[d] = over * (mixed_grad[d] - mean - normed[d] * slope);
}

/* The gradient of projected [B, W, inner], and what this range of users
 * adds to those of the bias: time [129], position [2N - 1]. */
void hstu_attention_backward(long first_user, long last_user, const Attention *at,
                             const float *mixed, const float *grad, float *projected_grad,
                             float *time_grad, float *position_grad)
{
    long pad = padded(at->width), rows = at->width + QUERIES, channels = at->heads * at->dv;
    long dq = padded(at->dqk), dv = padded(at->dv), heads = at->heads, step = inner(at);
    long head = rows * (3 * dq + 2 * dv) + (at->dqk + at->dv) * pad;
    float *memory = calloc(heads * head + 4 * QUERIES * pad + QUERIES * dq + 4 * BUCKETS +
                               2 * channels + at->width * (2 * step + channels) + 2 * LANES,
                           sizeof(float));
    float *bias = memory + heads * head, *scores = bias + QUERIES * pad;
    float *slopes = scores + QUERIES * pad, *summed = slopes + QUERIES * pad;
    float *block = summed + QUERIES * pad, *by_time = block + QUERIES * dq;
    float *ones = by_time + 4 * BUCKETS, *normed = ones + channels;
    float *act = normed + channels, *act_grad = act + at->width * step + LANES;
    float *mixed_grad = act_grad + at->width * step + LANES;
    for (long d = 0; d < channels; d++)
        ones[d] = 1;
    for (long user = first_user; user < last_user; user++) {
        long n = at->lengths[user], token = user * at->width;
        silu(n * step, at->projected + token * step, act);
        for (long i = 0; i < n; i++)
            gate_backward(channels, at->epsilon, ones, act + i * step,
                          mixed + (token + i) * channels, grad + (token + i) * channels,
                          act_grad + i * step, mixed_grad + i * channels, normed);
        for (long h = 0; h < heads; h++) {
            float *queries = memory + h * head, *keys = queries + rows * dq;
            float *outer = keys + 2 * rows * dq + rows * dv;
            pack(n, at->dqk, act + q_of(at, h), step, queries);
            memset(queries + n * dq, 0, QUERIES * dq * sizeof(float));
            pack(n, at->dqk, act + k_of(at, h), step, keys);
            memset(keys + rows * dq, 0, rows * (dq + dv) * sizeof(float)); /* key, value sums */
            pack(n, at->dv, mixed_grad + h * at->dv, channels, outer);
            memset(outer + n * dv, 0, QUERIES * dv * sizeof(float));
            pack_transposed(n, at->dqk, act + k_of(at, h), step, outer + rows * dv, pad);
            pack_transposed(n, at->dv, act + v_of(at, h), step,
                            outer + rows * dv + at->dqk * pad, pad);
        }
        for (long first = 0; first < n; first += QUERIES) {
            long seen = least(first + QUERIES, n), columns = padded(seen);
            long key_rows = (seen + ROWS - 1) / ROWS * ROWS;
            block_bias(at, user, first, n, pad, bias);
            for (long h = 0; h < heads; h++) {
                float *queries = memory + h * head, *keys = queries + rows * dq;
                float *key_sum = keys + rows * dq, *value_sum = key_sum + rows * dq;
                float *outer = value_sum + rows * dv, *key_columns = outer + rows * dv;
                queries += first * dq, outer += first * dv;
                multiply(QUERIES, columns, at->dqk, queries, dq, 1, key_columns, pad, scores, pad,
                         0);
                multiply(QUERIES, columns, at->dv, outer, dv, 1, key_columns + at->dqk * pad, pad,
                         slopes, pad, 0);
                activate_backward(first, columns, pad, at->scale, bias, scores, slopes);
                multiply(QUERIES, dq, seen, slopes, pad, 1, keys, dq, block, dq, 0);
                multiply(key_rows, dq, QUERIES, slopes, 1, pad, queries, dq, key_sum, dq, 1);
                multiply(key_rows, dv, QUERIES, scores, 1, pad, outer, dv, value_sum, dv, 1);
                for (long i = first; i < seen; i++)
                    memcpy(act_grad + i * step + q_of(at, h), block + (i - first) * dq,
                           at->dqk * sizeof(float));
                for (long j = 0; j < QUERIES * pad; j++)
                    summed[j] = h ? summed[j] + slopes[j] : slopes[j];
            }
            bias_backward(at, user, first, seen, pad, summed, by_time, position_grad);
        }
        for (long h = 0; h < heads; h++)
            for (long i = 0; i < n; i++) {
                const float *key_sum = memory + h * head + 2 * rows * dq;
                memcpy(act_grad + i * step + k_of(at, h), key_sum + i * dq,
                       at->dqk * sizeof(float));
                memcpy(act_grad + i * step + v_of(at, h), key_sum + rows * dq + i * dv,
                       at->dv * sizeof(float));
            }
        silu_backward(n * step, at->projected + token * step, act_grad,
                      projected_grad + token * step);
        clear_padding(at->width, n, step, projected_grad + token * step);
    }
    for (long bucket = 0; bucket < 4 * BUCKETS; bucket++)
        time_grad[bucket % BUCKETS] += by_time[bucket];
    free(memory);
}

long hstu_lanes(void) { return LANES; }

/* One level of a sum within vectors: groups of a, then of b, each folded to half its size. */
INLINE vec fold(vec a, vec b, const int size)
{
    ivec low, high;
    for (int lane = 0; lane < LANES; lane++) {
        int group = lane / (size / 2), place = lane % (size / 2);
        low[lane] = group * size + place; /* lanes from LANES on are those of b */
        high[lane] = low[lane] + size / 2;
    }
    return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
}

/* The sums of LANES vectors, one a lane. */
INLINE vec sums(vec *of)
{
#pragma GCC unroll 4
    for (int size = LANES, count = LANES; count > 1; size /= 2, count /= 2)
#pragma GCC unroll 8
        for (int pair = 0; pair < count / 2; pair++)
            of[pair] = fold(of[2 * pair], of[2 * pair + 1], size);
    return of[0];
}

/* Asks for a row of a table that is read soon; the table is larger than the nearest caches. */
INLINE void prefetch(const float *row, long vectors)
{
    for (long v = 0; v < vectors; v += 64 / (4 * LANES))
        __builtin_prefetch(row + v * LANES);
}

/* The loss of a range of tokens. queries, positives [T, dim]; table [rows, pad(dim)]; p [T, 1 +
 * draws] gets the probability of the target, then of each drawn row. `vectors` is pad(dim) /
 * LANES, a constant where this is inlined. */
INLINE void softmax_forward(const long vectors, long first, long last, long dim, long draws,
                            float scale, float collision, const float *queries,
                            const float *positives, const float *table, const int64_t *targets,
                            const int64_t *drawn, float *loss, float *p)
{
    long pad = vectors * LANES, room = padded(draws);
    float *query = calloc(pad + room, sizeof(float)), *logits = query + pad;
    for (long token = first; token < last; token++) {
        const int64_t *rows = drawn + token * draws;
        memcpy(query, queries + token * dim, dim * sizeof(float));
        float target = 0, total = 0;
        for (long d = 0; d < dim; d++)
            target += query[d] * positives[token * dim + d];
        float top = target *= scale;
        for (long r = 0; r < draws; r += LANES) {
            vec product[LANES];
            for (int lane = 0; lane < LANES; lane++)
                prefetch(table + rows[least(r + lane + LANES, draws - 1)] * pad, vectors);
#pragma GCC unroll 16
            for (int lane = 0; lane < LANES; lane++) {
                const float *row = table + rows[least(r + lane, draws - 1)] * pad;
                vec sum = load(query) * load(row);
#pragma GCC unroll 8
                for (long v = 1; v < vectors; v++)
                    sum += load(query + v * LANES) * load(row + v * LANES);
                product[lane] = sum;
            }
            store(logits + r, sums(product) * scale);
        }
        for (long r = 0; r < draws; r++) {
            logits[r] = rows[r] == targets[token] ? collision : logits[r];
            top = logits[r] > top ? logits[r] : top;
        }
        vec many = {0};
        for (long r = draws; r < room; r++)
            logits[r] = collision;
        for (long r = 0; r < room; r += LANES) {
            vec term = exponential(load(logits + r) - top);
            many += term;
            store(logits + r, term);
        }
        for (int lane = 0; lane < LANES; lane++)
            total += many[lane];
        float own = exponential(fill(target - top))[0], *out = p + token * (1 + draws);
        total += own;
        float share = 1 / total;
        out[0] = own * share;
        for (long r = 0; r < draws; r++)
            out[1 + r] = logits[r] * share;
        loss[token] = logf(total) + top - target;
    }
    free(query);
}

/* Gradients of queries and positives, and what these tokens add to that of the table
 * [rows, pad(dim)]; weights[token] is the loss's gradient times scale. */
INLINE void softmax_backward(const long vectors, long first, long last, long dim, long draws,
                             const float *weights, const float *queries, const float *positives,
                             const float *table, const int64_t *drawn, const float *p,
                             float *query_grad, float *positive_grad, float *table_grad)
{
    long pad = vectors * LANES;
    float *query = calloc(2 * pad, sizeof(float)), *sum = query + pad;
    for (long token = first; token < last; token++) {
        const float *own = positives + token * dim, *share = p + token * (1 + draws);
        float weight = weights[token], to_target = (share[0] - 1) * weight;
        memcpy(query, queries + token * dim, dim * sizeof(float));
        vec total[vectors];
#pragma GCC unroll 8
        for (long v = 0; v < vectors; v++)
            total[v] = (vec){0};
        for (long r = 0; r < draws; r++) {
            long at = drawn[token * draws + r] * pad;
            long soon = drawn[token * draws + least(r + 4, draws - 1)] * pad;
            prefetch(table + soon, vectors), prefetch(table_grad + soon, vectors);
            float slope = share[1 + r] * weight;
#pragma GCC unroll 8
            for (long v = 0; v < vectors; v++) {
                float *to = table_grad + at + v * LANES;
                total[v] += slope * load(table + at + v * LANES);
                store(to, load(to) + slope * load(query + v * LANES));
            }
        }
#pragma GCC unroll 8
        for (long v = 0; v < vectors; v++)
            store(sum + v * LANES, total[v]);
        for (long d = 0; d < dim; d++) {
            query_grad[token * dim + d] = sum[d] + to_target * own[d];
            positive_grad[token * dim + d] = to_target * query[d];
        }
    }
    free(query);
}

/* Calls CALL(vectors) with a constant for widths up to 8 vectors. */
#define BY_WIDTH(CALL, dim)                                                                        \
    switch (padded(dim) / LANES) {                                                                 \
    case 1: CALL(1); break;                                                                        \
    case 2: CALL(2); break;                                                                        \
    case 3: CALL(3); break;                                                                        \
    case 4: CALL(4); break;                                                                        \
    case 5: CALL(5); break;                                                                        \
    case 6: CALL(6); break;                                                                        \
    case 7: CALL(7); break;                                                                        \
    case 8: CALL(8); break;                                                                        \
    default: CALL(padded(dim) / LANES);                                                            \
    }

void hstu_softmax_forward(long first, long last, long dim, long draws, float scale,
                          float collision, const float *queries, const float *positives,
                          const float *table, const int64_t *targets, const int64_t *drawn,
                          float *loss, float *p)
{
#define CALL(n)                                                                                    \
    softmax_forward(n, first, last, dim, draws, scale, collision, queries, positives, table,       \
                    targets, drawn, loss, p)
    BY_WIDTH(CALL, dim)
#undef CALL
}

void hstu_softmax_backward(long first, long last, long dim, long draws, const float *weights,
                           const float *queries, const float *positives, const float *table,
                           const int64_t *drawn, const float *p, float *query_grad,
                           float *positive_grad, float *table_grad)
{
#define CALL(n)                                                                                    \
    softmax_backward(n, first, last, dim, draws, weights, queries, positives, table, drawn, p,     \
                     query_grad, positive_grad, table_grad)
    BY_WIDTH(CALL, dim)
#undef CALL
}
