// Linear attention with a gated delta rule, heads of 128 x 128, bf16 operands, float32 state (sm_90a). A token:
// S <- diag(a) S; S <- S + b k (v - k^T S)^T; o = scale q^T S, with q and k of length 1,
// a = exp(lower_bound * sigmoid(exp(A_log) (g + dt_bias))), b = sigmoid(beta).
//
// A block walks a sequence of a head in chunks of 16 tokens. With G the running sum of log a within a chunk, D = exp(G) and D15 its end:
//   u = T (V - (K D) S),  T = (I + diag(b) tril(K D (K / D)^T, -1))^-1 diag(b)
//   o = scale ((Q D) S + tril(Q D (K / D)^T) u),  S <- diag(D15) S + (K D15 / D)^T u
// Only u, o and S need the state. So eight warps (makers) prepare chunks ahead, a chunk a warp, in a ring of stages in shared memory, and
// warps that walk go through them: each group of four has 64 columns of S, transposed, in registers as the sums of wgmma, and those of
// one product are the left operand of the next. One group a block instead of two halves a block's columns, where there are few heads; the
// makers' work is then done twice.
//
// Rounding: D and 1 / D stay within exp(+-80) (16 steps, lower_bound >= -5), so K D and K / D are tf32 for the two 16 x 16 products;
// everything that meets S is at most 1 and is fp16, S too (a power of two a warp keeps it in range), sums are float32.
// Rows of a chunk stand in the order of tokens 0, 2, .. 14, 1, 3, .. 15: a lane of a product has rows r and r + 8, neighbours in time, and
// sums along the time take half of the shuffles.
//@@ functions
struct th_delta_job {
const th_u16* q;
const th_u16* k;
const th_u16* v;
const th_u16* g;
const th_u16* beta;
const float* a_log;
const float* dt_bias;
const float* first;   // [N, H, 128, 128] or none
th_u16* out;
float* last;          // [N, H, 128, 128]; of out and last, one may be missing
const th_i32* offsets;       // [N + 1], or
const th_i64* wide_offsets;  // these, or none: then all sequences have `tokens`
int heads, sequences, items, tokens;
float scale, lower_bound, epsilon;
};

TH_FN float th_low_bf16(th_u32 x) { return __uint_as_float(x << 16); }
// First token of a sequence, or the end of the one before.
TH_FN int th_delta_begin(const th_delta_job& job, int sequence) {
if (job.offsets == nullptr && job.wide_offsets == nullptr) {
return sequence * job.tokens;
}
const th_i64 at = job.offsets != nullptr ? (th_i64)job.offsets[sequence] : job.wide_offsets[sequence];
return at < 0 ? 0 : at > job.tokens ? job.tokens : (int)at;
}
struct th_delta_part {
int head, sequence, split, begin, end;
};
TH_FN th_delta_part th_delta_part_of(const th_delta_job& job, int item, int splits, const int* order) {
th_delta_part part;
part.split = item % splits;
part.head = item / splits % job.heads;
const int rank = item / splits / job.heads;
part.sequence = order != nullptr ? order[rank] : rank;
part.begin = th_delta_begin(job, part.sequence);
part.end = max(part.begin, th_delta_begin(job, part.sequence + 1));
return part;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define TH_DELTA_STAGES_1 11
#define TH_DELTA_STAGES_2 10
#define TH_DELTA_ORDERED 256
// mma.sync drops the last 13 bits of a tf32 operand: 0.72 * 2^-11 of it on average. K D, Q D and K / D are that much larger; V, T and the
// outputs make up for it.
#define TH_DELTA_ABOVE 1.000352f

TH_FN th_u32 th_shared_address(const void* p) { return (th_u32)__cvta_generic_to_shared(p); }
TH_FN float th_ex2(float x) {
float y;
asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
return y;
}
TH_FN float th_rcp(float x) {
float y;
asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
return y;
}
TH_FN float th_rsqrt(float x) {
float y;
asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
return y;
}
TH_FN float th_high_bf16(th_u32 x) { return __uint_as_float(x & 0xffff0000u); }
TH_FN th_u32 th_pair_f16(float low, float high) {
th_u32 y;
asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
return y;
}
TH_FN th_u32 th_pair_bf16(float low, float high) {
th_u32 y;
asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
return y;
}
TH_FN void th_delta_mma_f16(float* d, const th_u32* a, th_u32 b0, th_u32 b1) {
asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
TH_FN void th_delta_mma_bf16(float* d, const th_u32* a, th_u32 b0, th_u32 b1) {
asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
TH_FN void th_delta_mma_tf32(float* d, const th_u32* a, th_u32 b0, th_u32 b1) {
asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
TH_FN void th_products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TH_FN void th_products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
TH_FN void th_products_done() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// Sums of products that are done: nothing moves before this.
TH_FN void th_keep(float* d, int n) {
TH_UNROLL for (int i = 0; i < n; ++i) {
asm volatile("" : "+f"(d[i]) :: "memory");
}
}
// Rows of 128 bytes, their pieces exchanged by the row, eight rows behind each other. `across`: from 64 columns to the next 64, in 16
// bytes, where a row runs along the columns.
TH_FN th_u64 th_delta_tile(th_u32 at, int across) {
return (th_u64)1 << 62 | (th_u64)64 << 32 | (th_u64)across << 16 | (at & 0x3ffffu) >> 4;
}
// [64, 16] of registers by [16, 32], the right operand a row a column of the result.
TH_FN void th_wgmma_kq(float* d, const th_u32* a, th_u64 tile) {
asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
"{%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
"+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile));
}
// [64, 16] of registers by [16, 128], the right operand as it is.
TH_FN void th_wgmma_update(float* d, const th_u32* a, th_u64 tile) {
asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
"{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
"+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
"+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
"+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
"+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
"+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
"+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
"+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile));
}
TH_FN void th_matrices(th_u32* r, th_u32 at) {
asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
TH_FN void th_matrices_turned(th_u32* r, th_u32 at) {
asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
TH_FN void th_store_matrices_turned(th_u32 at, th_u32 r0, th_u32 r1, th_u32 r2, th_u32 r3) {
asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
:: "r"(at), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
TH_FN void th_wait(th_u32 barrier, int parity) {
asm volatile("{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
:: "r"(barrier), "r"(parity) : "memory");
}
TH_FN void th_barrier(th_u32 barrier, int count) {
asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}
TH_FN void th_arrive(th_u32 barrier) {
asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
TH_FN void th_load16(th_u32* r, const char* p) {
const uint4 x = *(const uint4*)p;
r[0] = x.x;
r[1] = x.y;
r[2] = x.z;
r[3] = x.w;
}
TH_FN void th_copy16_or_zero(th_u32 to, const th_u16* base, th_u32 offset, bool inside) {
asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"((const char*)base + offset), "r"(inside ? 16 : 0) : "memory");
}
TH_FN void th_copies_done() {
asm volatile("cp.async.wait_all;" ::: "memory");
}

// Shared memory of a block.
template <int GROUPS, int MAKERS>
struct th_delta_layout {
static const int kStages = GROUPS == 1 ? TH_DELTA_STAGES_1 : TH_DELTA_STAGES_2;
static const int kColumns = 64 * GROUPS;
static const int kPitchV = kColumns * 2 + 16;
// K D and Q D: 64 channels of 16 rows each, and again; K D15 / D the same. Pieces of 16 bytes are exchanged by the row, as wgmma reads them.
static const int kQ = 2048;
static const int kEnd = 8192;
static const int kV = kEnd + 4096;
static const int kT = kV + 16 * kPitchV;
static const int kA = kT + 16 * 48;
static const int kDecay = kA + 16 * 48;
static const int kStage = (kDecay + 4 * 36 * 4 + 1023) / 1024 * 1024;
static const int kOut = kStages * kStage;  // a walker, 16 rows of 48 bytes
static const int kOutWarp = 16 * 48;
static const int kSolve = kOut + 4 * GROUPS * kOutWarp;  // a maker: 16 rows of 20 floats, 16, 128
static const int kSolveWarp = 16 * 20 * 4 + 64 + 512;
static const int kBarriers = kSolve + MAKERS * kSolveWarp;
static const int kBytes = kBarriers + 2 * kStages * 8 + 1024;
};

// Items in the order of falling lengths; block b takes b, 2n - 1 - b, 2n + b, ... of n blocks.
TH_FN int th_delta_item(int round) {
return round * TH_BLOCKS + (round % 2 == 0 ? TH_BLOCK : TH_BLOCKS - 1 - TH_BLOCK);
}

template <int GROUPS, int MAKERS>
TH_FN void th_delta_make(const th_delta_job& job, th_u32 shared, char* memory, const int* order) {
using L = th_delta_layout<GROUPS, MAKERS>;
const int lane = TH_THREAD % 32;
const int warp = TH_THREAD / 32 - 4 * GROUPS;
const int group = lane / 4;
const int quad = lane % 4;
const int splits = 2 / GROUPS;
float* solve = (float*)(memory + L::kSolve + warp * L::kSolveWarp);
float* betas = solve + 16 * 20;
float* biases = betas + 16;
int before = 0;
for (int round = 0; round * TH_BLOCKS < job.items; ++round) {
const int item = th_delta_item(round);
if (item >= job.items) {
continue;
}
const th_delta_part part = th_delta_part_of(job, item, splits, order);
const int head = part.head;
const int begin = part.begin;
const int end = part.end;
const int chunks = (end - begin + 15) / 16;
// Bounded, so that gate * rate and bias * rate can be summed; beyond it every gate is open or shut.
const float steepness = th_ex2(1.4426950408889634f * job.a_log[head]);
const float rate = -1.4426950408889634f * (steepness > 1e18f ? 1e18f : steepness);
const float depth = 1.4426950408889634f * job.lower_bound;
const int pitch = job.heads * 128;
__syncwarp();
for (int i = lane; i < 128; i += 32) {
biases[i] = rate * job.dt_bias[head * 128 + i];
}
__syncwarp();
const int turn = (warp + MAKERS - before % MAKERS) % MAKERS;
for (int c = turn; c < chunks; c += MAKERS) {
const int n = before + c;
const int slot = n % L::kStages;
const int t0 = begin + c * 16;
const int ta = t0 + 2 * group;
const bool in_a = ta < end;
const bool in_b = ta + 1 < end;
const th_u32 stage = shared + slot * L::kStage;
char* stage_memory = memory + slot * L::kStage;
char* own_row = stage_memory + group * 128;
th_wait(shared + L::kBarriers + (L::kStages + slot) * 8, (n / L::kStages + 1) & 1);
// Rows of k, q, g and v come to the places of K D, Q D, K D15 / D and V; rows beyond the end are zeros.
// A row has 16 pieces (of v, 8 a group): a lane has the same piece of every other (fourth) row. Offsets are bytes below 2^32.
const th_u32 line = 2u * pitch;
const th_u32 head_at = head * 256 + lane % 16 * 16;
const th_u32 v_at = GROUPS == 2 ? head_at : head * 256 + part.split * 128 + lane % 8 * 16;
const th_u32 to = stage + lane / 16 * 128;
const th_u32 to_v = stage + L::kV + (GROUPS == 2 ? lane / 16 * L::kPitchV + lane % 16 * 16 : lane / 8 * L::kPitchV + lane % 8 * 16);
const int first_v = GROUPS == 2 ? 2 * (lane / 16) : 2 * (lane / 8);
const th_u32 slab = lane / 8 % 2;
const th_u32 piece = lane % 8 ^ lane / 16;
TH_UNROLL for (int t = 0; t < 8; ++t) {
const int token = t0 + 2 * (lane / 16) + t % 4 * 4 + t / 4;
const bool inside = token < end;
const th_u32 at = (inside ? token : begin) * line + head_at;
const th_u32 to_row = to + t * 256 + (piece ^ 2 * (t % 4)) * 16;
th_copy16_or_zero(to_row + slab * 4096, job.k, at, inside);
th_copy16_or_zero(to_row + slab * 4096 + L::kQ, job.q, at, inside);
th_copy16_or_zero(to_row + slab * 2048 + L::kEnd, job.g, at, inside);
}
TH_UNROLL for (int t = 0; t < 4 * GROUPS; ++t) {
const int token = t0 + first_v + (GROUPS == 2 ? t % 4 * 4 + t / 4 : t % 2 * 8 + t / 2);
const bool inside = token < end;
th_copy16_or_zero(to_v + t * (4 / GROUPS) * L::kPitchV, job.v, (inside ? token : begin) * line + v_at, inside);
}
float beta_a = 0.0f, beta_b = 0.0f;
if (in_a) {
beta_a = th_rcp(1.0f + th_ex2(-1.4426950408889634f * th_low_bf16(job.beta[(th_i64)ta * job.heads + head])));
}
if (in_b) {
beta_b = th_rcp(1.0f + th_ex2(-1.4426950408889634f * th_low_bf16(job.beta[(th_i64)(ta + 1) * job.heads + head])));
}
th_copies_done();
__syncwarp();
// Lengths: the diagonals of K K^T and Q Q^T.
float kk[2], qq[2];
{
float by_k[2][4], by_q[2][4];
TH_UNROLL for (int j = 0; j < 2; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
by_k[j][r] = 0.0f;
by_q[j][r] = 0.0f;
}
}
TH_UNROLL for (int s = 0; s < 4; ++s) {
const char* from = own_row + s / 2 * 4096 + (quad * 2 + s % 2 ^ group) * 16;
th_u32 kw[2][4], qw[2][4];
TH_UNROLL for (int x = 0; x < 2; ++x) {
th_load16(kw[x], from + x * 1024);
th_load16(qw[x], from + L::kQ + x * 1024);
}
TH_UNROLL for (int p = 0; p < 4; p += 2) {
const th_u32 a_k[4] = {kw[0][p], kw[1][p], kw[0][p + 1], kw[1][p + 1]}, a_q[4] = {qw[0][p], qw[1][p], qw[0][p + 1], qw[1][p + 1]};
TH_UNROLL for (int j = 0; j < 2; ++j) {
th_delta_mma_bf16(by_k[j], a_k, kw[j][p], kw[j][p + 1]);
th_delta_mma_bf16(by_q[j], a_q, qw[j][p], qw[j][p + 1]);
}
}
}
const int diagonal = lane & 28 | group / 2;
TH_UNROLL for (int x = 0; x < 2; ++x) {
const float k = __shfl_sync(0xffffffffu, group % 2 == 0 ? by_k[x][2 * x] : by_k[x][2 * x + 1], diagonal);
const float q = __shfl_sync(0xffffffffu, group % 2 == 0 ? by_q[x][2 * x] : by_q[x][2 * x + 1], diagonal);
kk[x] = TH_DELTA_ABOVE * th_rsqrt(k + job.epsilon);
qq[x] = TH_DELTA_ABOVE * th_rsqrt(q + job.epsilon);
}
}
const float depths[2] = {in_a ? depth : 0.0f, in_b ? depth : 0.0f};
float ak[2][4], aq[2][4];
TH_UNROLL for (int j = 0; j < 2; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
ak[j][r] = 0.0f;
aq[j][r] = 0.0f;
}
}
TH_NO_UNROLL for (int s = 0; s < 4; ++s) {
const int ch = s / 2 * 64 + s % 2 * 8;
char* at = own_row + s / 2 * 4096 + (quad * 2 + s % 2 ^ group) * 16;
char* at_end = at + L::kEnd - s / 2 * 2048;
const float4 bias0 = *(const float4*)(biases + ch + quad * 16), bias1 = *(const float4*)(biases + ch + quad * 16 + 4);
const float shift[8] = {bias0.x, bias0.y, bias0.z, bias0.w, bias1.x, bias1.y, bias1.z, bias1.w};
th_u32 kw[2][4], qw[2][4], gw[2][4];
TH_UNROLL for (int x = 0; x < 2; ++x) {
th_load16(kw[x], at + x * 1024);
th_load16(qw[x], at + L::kQ + x * 1024);
th_load16(gw[x], at_end + x * 1024);
}
float wholes[8];
th_u32 to_k[2][4], to_q[2][4], to_end[2][4];
TH_UNROLL for (int p = 0; p < 4; ++p) {
float kd[2][2], ki[2][2], qd[2][2], ke[2][2];  // [token][channel of the pair]
TH_UNROLL for (int e = 0; e < 2; ++e) {
float step[2];
TH_UNROLL for (int x = 0; x < 2; ++x) {
const float gate = e == 0 ? th_low_bf16(gw[x][p]) : th_high_bf16(gw[x][p]);
step[x] = depths[x] * th_rcp(1.0f + th_ex2(fmaf(gate, rate, shift[2 * p + e])));
}
float sum = step[0] + step[1];
TH_UNROLL for (int d = 4; d < 32; d *= 2) {
const float other = __shfl_up_sync(0xffffffffu, sum, d);
sum = lane >= d ? sum + other : sum;
}
const float whole = th_ex2(__shfl_sync(0xffffffffu, sum, 28 + quad));
const float whole_end = whole * (1.0f / TH_DELTA_ABOVE);
const float sums[2] = {sum - step[1], sum};
wholes[2 * p + e] = whole;
TH_UNROLL for (int x = 0; x < 2; ++x) {
const float kn = kk[x] * (e == 0 ? th_low_bf16(kw[x][p]) : th_high_bf16(kw[x][p]));
const float qn = qq[x] * (e == 0 ? th_low_bf16(qw[x][p]) : th_high_bf16(qw[x][p]));
const float decay = th_ex2(sums[x]);
kd[x][e] = kn * decay;
qd[x][e] = qn * decay;
ki[x][e] = kn * th_ex2(-sums[x]);
ke[x][e] = ki[x][e] * whole_end;
}
}
TH_UNROLL for (int x = 0; x < 2; ++x) {
to_k[x][p] = th_pair_f16(kd[x][0], kd[x][1]);
to_q[x][p] = th_pair_f16(qd[x][0], qd[x][1]);
to_end[x][p] = th_pair_f16(ke[x][0], ke[x][1]);
}
const th_u32 a_k[4] = {__float_as_uint(kd[0][0]), __float_as_uint(kd[1][0]), __float_as_uint(kd[0][1]), __float_as_uint(kd[1][1])};
const th_u32 a_q[4] = {__float_as_uint(qd[0][0]), __float_as_uint(qd[1][0]), __float_as_uint(qd[0][1]), __float_as_uint(qd[1][1])};
TH_UNROLL for (int j = 0; j < 2; ++j) {
const th_u32 b0 = __float_as_uint(ki[j][0]), b1 = __float_as_uint(ki[j][1]);
th_delta_mma_tf32(ak[j], a_k, b0, b1);
th_delta_mma_tf32(aq[j], a_q, b0, b1);
}
}
if (group == 7) {
// In the order of a walker's lanes: channels 8 t + 2 quad, + 1 at 36 quad + 2 t.
float* to = (float*)(stage_memory + L::kDecay) + ch / 4 + quad * 4;
TH_UNROLL for (int p = 0; p < 4; ++p) {
*(float2*)(to + 36 * p) = make_float2(wholes[2 * p], wholes[2 * p + 1]);
}
}
TH_UNROLL for (int x = 0; x < 2; ++x) {
char* to = at + x * 1024;
*(uint4*)to = make_uint4(to_k[x][0], to_k[x][1], to_k[x][2], to_k[x][3]);
*(uint4*)(to + L::kQ) = make_uint4(to_q[x][0], to_q[x][1], to_q[x][2], to_q[x][3]);
*(uint4*)(at_end + x * 1024) = make_uint4(to_end[x][0], to_end[x][1], to_end[x][2], to_end[x][3]);
}
}
// tril of both products: rows are tokens 2 group + x, columns 2 (2 quad + e) + j.
if (quad == 0) {
betas[2 * group] = beta_a;
betas[2 * group + 1] = beta_b;
}
TH_UNROLL for (int x = 0; x < 2; ++x) {
const int i = 2 * group + x;
const float b = x == 0 ? beta_a : beta_b;
TH_UNROLL for (int j = 0; j < 2; ++j) {
float kept[2];
TH_UNROLL for (int e = 0; e < 2; ++e) {
const int column = 2 * (2 * quad + e) + j;
solve[i * 20 + column] = i > column ? b * ak[j][2 * x + e] : 0.0f;
kept[e] = i >= column ? TH_DELTA_ABOVE * aq[j][2 * x + e] : 0.0f;
}
*(th_u32*)(stage_memory + L::kA + (group + 8 * x) * 48 + (8 * j + 2 * quad) * 2) = th_pair_f16(kept[0], kept[1]);
}
}
__syncwarp();
// A column of the inverse a lane (twice), by forward substitution.
const int own = lane % 16;
float x[16];
TH_UNROLL for (int i = 0; i < 16; ++i) {
float sum0 = i == own ? 1.0f : 0.0f, sum1 = 0.0f;
TH_UNROLL for (int m = 0; m < i; m += 4) {
const float4 row = *(const float4*)(solve + i * 20 + m);
sum0 = fmaf(-row.x, x[m], sum0);
if (m + 1 < i) {
sum1 = fmaf(-row.y, x[m + 1], sum1);
}
if (m + 2 < i) {
sum0 = fmaf(-row.z, x[m + 2], sum0);
}
if (m + 3 < i) {
sum1 = fmaf(-row.w, x[m + 3], sum1);
}
}
x[i] = sum0 + sum1;
}
const float own_beta = betas[own] * (-1.0f / TH_DELTA_ABOVE);
const int own_column = own / 2 + own % 2 * 8;
TH_UNROLL for (int i = 0; i < 8; ++i) {
const float y = own_beta * (lane < 16 ? x[2 * i] : x[2 * i + 1]);
*(th_u16*)(stage_memory + L::kT + (i + lane / 16 * 8) * 48 + own_column * 2) = th_f16_of_f32(y);
}
asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
__syncwarp();
if (lane < TH_ARRIVING_LANES) {
th_arrive(shared + L::kBarriers + slot * 8);
}
}
before += chunks;
}
}

template <int GROUPS, int MAKERS>
TH_FN void th_delta_walk(const th_delta_job& job, th_u32 shared, char* memory, const int* order) {
using L = th_delta_layout<GROUPS, MAKERS>;
const int lane = TH_THREAD % 32;
const int warp = TH_THREAD / 32;
const int group = lane / 4;
const int quad = lane % 4;
const int splits = 2 / GROUPS;
const th_u32 staging = shared + L::kOut + warp * L::kOutWarp;
const char* staging_memory = memory + L::kOut + warp * L::kOutWarp;
// Of ldmatrix: rows 0-7 of 8 columns, the next 8 columns, then rows 8-15.
const th_u32 small_at = (lane % 8 + lane / 16 * 8) * 48 + lane / 8 % 2 * 16;
const th_u32 v_at = L::kV + (lane % 8 + lane / 16 * 8) * L::kPitchV + warp * 32 + lane / 8 % 2 * 16;
int n = 0;
for (int round = 0; round * TH_BLOCKS < job.items; ++round) {
const int item = th_delta_item(round);
if (item >= job.items) {
continue;
}
const th_delta_part part = th_delta_part_of(job, item, splits, order);
const int head = part.head;
const int begin = part.begin;
const int end = part.end;
const int column = part.split * L::kColumns + warp * 16;
const int pitch = job.heads * 128;
const th_i64 state_at = ((th_i64)part.sequence * job.heads + head) * 16384 + (th_i64)quad * 2 * 128 + column + group;
float s[64];
TH_UNROLL for (int i = 0; i < 64; ++i) {
s[i] = job.first == nullptr ? 0.0f : __ldg(job.first + state_at + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8);
}
int power = 0;
for (int t0 = begin; t0 < end; t0 += 16, ++n) {
const int slot = n % L::kStages;
const th_u32 stage = shared + slot * L::kStage;
const float* decays = (const float*)(memory + slot * L::kStage + L::kDecay) + quad * 36;
th_wait(shared + L::kBarriers + slot * 8, n / L::kStages & 1);
th_u32 v[4];
th_matrices_turned(v, stage + v_at);
th_u32 top = 0u;
TH_UNROLL for (int r = 0; r < 4; ++r) {
top = __vmaxu2(top, v[r] & 0x7fff7fffu);
}
const int power_v = (int)(__reduce_max_sync(0xffffffffu, max(top & 0xffffu, top >> 16)) >> 7) - 127;
// The columns of this warp are S * 2^-power: largest elements near 1 every 16 chunks, and whenever V grows. In between the length of
// a column grows by that of the V it meets at most.
if ((t0 - begin) % 256 == 0 || power_v > power + 2) {
th_u32 most = 0u;
TH_UNROLL for (int i = 0; i < 64; ++i) {
most = max(most, __float_as_uint(s[i]) & 0x7fffffffu);
}
int wanted = max(power + (int)(__reduce_max_sync(0xffffffffu, most) >> 23) - 127, power_v);
wanted = min(max(wanted, -60), 60);
const float factor = __int_as_float((127 + power - wanted) << 23);
TH_UNROLL for (int i = 0; i < 64; ++i) {
s[i] *= factor;
}
power = wanted;
}
// Minus V (T holds its negative), then o.
const float minus = -TH_DELTA_ABOVE * __int_as_float((127 - power) << 23);
float po[16];
TH_UNROLL for (int j = 0; j < 2; ++j) {
po[4 * j] = minus * th_low_bf16(v[2 * j]);
po[4 * j + 1] = minus * th_high_bf16(v[2 * j]);
po[4 * j + 2] = minus * th_low_bf16(v[2 * j + 1]);
po[4 * j + 3] = minus * th_high_bf16(v[2 * j + 1]);
}
TH_UNROLL for (int r = 8; r < 16; ++r) {
po[r] = 0.0f;
}
th_u32 a[8][4];
TH_UNROLL for (int kk = 0; kk < 8; ++kk) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
a[kk][r] = th_pair_f16(s[8 * kk + 2 * r], s[8 * kk + 2 * r + 1]);
}
}
const th_u64 tile_kq = th_delta_tile(stage, 1), tile_end = th_delta_tile(stage + L::kEnd, 128);
th_products_begin();
TH_UNROLL for (int kk = 0; kk < 8; ++kk) {
th_wgmma_kq(po, a[kk], tile_kq + kk / 4 * 256 + kk % 4 * 2);
}
th_products_commit();
th_u32 t[4], aq[4], u[4];
th_matrices(t, stage + L::kT + small_at);
th_matrices(aq, stage + L::kA + small_at);
th_products_done();
th_keep(po, 16);
TH_UNROLL for (int i = 0; i < 8; ++i) {
const float4 d = *(const float4*)(decays + 4 * i);
float* two = s + 8 * i;
two[0] *= d.x;
two[1] *= d.y;
two[2] *= d.x;
two[3] *= d.y;
two[4] *= d.z;
two[5] *= d.w;
two[6] *= d.z;
two[7] *= d.w;
}
{
const th_u32 p[4] = {th_pair_f16(po[0], po[1]), th_pair_f16(po[2], po[3]), th_pair_f16(po[4], po[5]), th_pair_f16(po[6], po[7])};
float w[2][4];
TH_UNROLL for (int j = 0; j < 2; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
w[j][r] = 0.0f;
}
th_delta_mma_f16(w[j], p, t[2 * j], t[2 * j + 1]);
u[2 * j] = th_pair_f16(w[j][0], w[j][1]);
u[2 * j + 1] = th_pair_f16(w[j][2], w[j][3]);
}
}
th_products_begin();
th_wgmma_update(s, u, tile_end);
th_products_commit();
th_delta_mma_f16(po + 8, u, aq[0], aq[1]);
th_delta_mma_f16(po + 12, u, aq[2], aq[3]);
const float to_out = job.scale * (1.0f / TH_DELTA_ABOVE) * __int_as_float((127 + power) << 23);
__syncwarp();
th_store_matrices_turned(staging + small_at, th_pair_bf16(po[8] * to_out, po[9] * to_out), th_pair_bf16(po[10] * to_out, po[11] * to_out),
th_pair_bf16(po[12] * to_out, po[13] * to_out), th_pair_bf16(po[14] * to_out, po[15] * to_out));
__syncwarp();
const int row = lane / 2;
const int token = t0 + (row < 8 ? 2 * row : 2 * row - 15);
if (token < end && job.out != nullptr) {
*(uint4*)(job.out + (th_i64)token * pitch + head * 128 + column + lane % 2 * 8) = *(const uint4*)(staging_memory + row * 48 + lane % 2 * 16);
}
th_products_done();
th_keep(s, 64);
__syncwarp();
if (lane < TH_ARRIVING_LANES) {
th_arrive(shared + L::kBarriers + (L::kStages + slot) * 8);
}
}
if (job.last == nullptr) {
continue;
}
const float to_last = __int_as_float((127 + power) << 23);
TH_UNROLL for (int i = 0; i < 64; ++i) {
job.last[state_at + (i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8] = s[i] * to_last;
}
}
}

template <int GROUPS, int MAKERS>
TH_FN void th_delta_rule(const th_delta_job& job) {
using L = th_delta_layout<GROUPS, MAKERS>;
extern __shared__ __align__(128) char dynamic[];
__shared__ int order[TH_DELTA_ORDERED];
const th_u32 shared = (th_shared_address(dynamic) + 1023u) & ~1023u;
char* memory = dynamic + (shared - th_shared_address(dynamic));
if (TH_THREAD == 0) {
for (int i = 0; i < L::kStages; ++i) {
th_barrier(shared + L::kBarriers + i * 8, TH_ARRIVING_LANES);
th_barrier(shared + L::kBarriers + (L::kStages + i) * 8, 4 * TH_ARRIVING_LANES * GROUPS);
}
}
// Longest first: ranks of the sequences.
if (job.sequences <= TH_DELTA_ORDERED) {
for (int i = TH_THREAD; i < job.sequences; i += TH_THREADS) {
const int own = th_delta_begin(job, i + 1) - th_delta_begin(job, i);
int rank = 0;
for (int j = 0; j < job.sequences; ++j) {
const int other = th_delta_begin(job, j + 1) - th_delta_begin(job, j);
rank += other > own || (other == own && j < i);
}
order[rank] = i;
}
}
TH_BARRIER();
const int* by_rank = job.sequences <= TH_DELTA_ORDERED ? order : nullptr;
if (TH_THREAD < 128 * GROUPS) {
if (GROUPS == 2) {
asm volatile("setmaxnreg.inc.sync.aligned.u32 144;");
}
th_delta_walk<GROUPS, MAKERS>(job, shared, memory, by_rank);
} else {
if (GROUPS == 2) {
asm volatile("setmaxnreg.dec.sync.aligned.u32 112;");
}
th_delta_make<GROUPS, MAKERS>(job, shared, memory, by_rank);
}
}
#else
// Elsewhere (a release for several architectures holds this text for all of them): a column of S a thread, token after token. Right,
// and slow.
template <int GROUPS, int MAKERS>
TH_FN void th_delta_rule(const th_delta_job& job) {
const int columns = 64 * GROUPS;
for (int item = TH_BLOCK; item < job.items; item += TH_BLOCKS) {
const th_delta_part part = th_delta_part_of(job, item, 2 / GROUPS, nullptr);
if (TH_THREAD < columns) {
const int column = part.split * columns + TH_THREAD;
const th_i64 state = ((th_i64)part.sequence * job.heads + part.head) * 16384 + column;
const float rate = expf(job.a_log[part.head]);
float s[128];
for (int d = 0; d < 128; ++d) {
s[d] = job.first == nullptr ? 0.0f : job.first[state + d * 128];
}
for (int t = part.begin; t < part.end; ++t) {
const th_i64 row = (th_i64)t * job.heads + part.head;
float of_k = job.epsilon, of_q = job.epsilon, known = 0.0f, sum = 0.0f;
for (int d = 0; d < 128; ++d) {
const float k = th_low_bf16(job.k[row * 128 + d]), q = th_low_bf16(job.q[row * 128 + d]);
const float gate = rate * (th_low_bf16(job.g[row * 128 + d]) + job.dt_bias[part.head * 128 + d]);
of_k = fmaf(k, k, of_k);
of_q = fmaf(q, q, of_q);
s[d] *= expf(job.lower_bound / (1.0f + expf(-gate)));
known = fmaf(k, s[d], known);
}
of_k = rsqrtf(of_k);
const float update = of_k * (th_low_bf16(job.v[row * 128 + column]) - of_k * known) / (1.0f + expf(-th_low_bf16(job.beta[row])));
for (int d = 0; d < 128; ++d) {
s[d] = fmaf(th_low_bf16(job.k[row * 128 + d]), update, s[d]);
sum = fmaf(th_low_bf16(job.q[row * 128 + d]), s[d], sum);
}
if (job.out != nullptr) {
job.out[row * 128 + column] = th_bf16_of_f32(job.scale * rsqrtf(of_q) * sum);
}
}
for (int d = 0; d < 128 && job.last != nullptr; ++d) {
job.last[state + d * 128] = s[d];
}
}
}
}
#endif
