/* The loops around the panels of gemm_kernel.h.
 *
 * The smaller operand is packed whole once, by all threads ("whole"); the other one is packed a block at a time, by the
 * thread that uses it ("moving"). C is cut into blocks of at most mc x nc whose partial sums stay in a thread's L2
 * while K is walked; blocks go to threads. For linear layers A (activations) is whole, so that each weight panel is
 * packed into L1 and multiplied with every row of the block at once; for convolutions B (weights) is whole and pixels
 * are gathered a block at a time. Neither choice changes any bit of C. */
#include "kernels/cpu/gemm/gemm_kernel.h"

#include <omp.h>

#include "engine/base/isa.h"

struct plan {
    const struct lk_gemm_kernel *kernel;
    bool b_whole;
    bool decodes;                 /* the moving panels of B are worth having fewer times: C in higher blocks */
    int64_t kc, n_kb;             /* K block and how many */
    int64_t n_first;              /* of those, of the first pair; the rest are of the second */
    int64_t m_panels, n_panels;   /* in the whole matrix */
    int64_t n_mb, n_nb;           /* blocks of C */
    int64_t mc, nc;               /* panels in the largest block */
    int64_t a_panel, b_panel;     /* bytes of one panel of one K block */
    size_t whole, c, moving, row; /* bytes; the last three per thread */
};

static const struct lk_gemm_kernel *choose_kernel(const struct lk_gemm *g) {
#if defined(__x86_64__)
    enum lk_isa isa = lk_cpu_isa();
    const bool b_bf16 = g->b.dtype == LK_BF16 && (!g->more_k || g->more_b.dtype == LK_BF16);
    if (isa >= LK_ISA_AMX && b_bf16) return g->a.dtype == LK_BF16 ? &lk_gemm_amx : &lk_gemm_amx_split;
    const bool pairs = isa >= LK_ISA_AVX512_BF16 && g->a.dtype == LK_BF16;
    if (isa >= LK_ISA_AVX512 && b_bf16 && !g->a.row) { /* steps of text generation */
        if (g->m == 1) return pairs ? &lk_gemm_avx512_bf16_row : &lk_gemm_avx512_row;
        if (g->m > 8 && g->m <= 16) return pairs ? &lk_gemm_avx512_bf16_rows : &lk_gemm_avx512_rows;
    }
    if (pairs) return &lk_gemm_avx512_bf16;
    if (isa >= LK_ISA_AVX512) return &lk_gemm_avx512;
    if (isa >= LK_ISA_AVX2) return &lk_gemm_avx2;
#endif
    (void)g; /* other machines have one kernel */
    return &lk_gemm_portable;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t align64(size_t n) { return (n + 63) / 64 * 64; }

/* Rows of A, in panels, up to which weights are streamed: one panel at a time, for long runs along their rows; a few
 * where A is of floats (AMX packs bf16 and keeps one, as it was measured) and does not stay in L2: it is read once for
 * these. */
#define FEW_PANELS 4
#define LARGE_A    (1 << 20) /* bytes */

/* How much higher, and less wide, a block of C is whose panels of B cost more than a copy. */
#define HIGHER 3

/* Cuts C into blocks: L2 size first, then so that the threads get equal shares where there are enough panels. */
static void cut_blocks(struct plan *p, int n_threads) {
    const struct lk_gemm_kernel *kernel = p->kernel;
    int64_t mc = kernel->mc / kernel->mr, nc = kernel->nc / kernel->nr;
    if (p->decodes) {
        mc *= HIGHER;
        nc = nc / HIGHER > 0 ? nc / HIGHER : 1;
    }
    if (!p->b_whole && p->m_panels <= FEW_PANELS) {
        const int64_t a_values = p->n_kb * p->kc * p->m_panels * kernel->mr;
        nc = kernel->a_bytes == 4 && 4 * a_values > LARGE_A ? FEW_PANELS : 1;
    }
    if (p->b_whole) { /* each gathered block of A should see all of B */
        nc *= 2;
        mc = mc / 2 > 0 ? mc / 2 : 1;
    }
    p->n_mb = ceil_div(p->m_panels, mc);
    p->n_nb = ceil_div(p->n_panels, nc);
    int64_t *moving = p->b_whole ? &p->n_mb : &p->n_nb, *still = p->b_whole ? &p->n_nb : &p->n_mb;
    int64_t most_moving = p->b_whole ? p->m_panels : p->n_panels, most_still = p->b_whole ? p->n_panels : p->m_panels;
    *moving = min64(ceil_div(*moving, n_threads) * n_threads, most_moving);
    if (*moving * *still < n_threads) *still = min64(most_still, ceil_div(n_threads, *moving));
    p->mc = ceil_div(p->m_panels, p->n_mb);
    p->nc = ceil_div(p->n_panels, p->n_nb);
}

static struct plan make_plan(const struct lk_gemm *g, int n_threads) {
    struct plan p = {.kernel = choose_kernel(g)};
    const struct lk_gemm_kernel *kernel = p.kernel;
    p.m_panels = ceil_div(g->m, kernel->mr);
    p.n_panels = ceil_div(g->n, kernel->nr);
    p.b_whole = g->a.row || (g->n < g->m && g->n <= 1024);
    p.decodes = g->b.row && !p.b_whole;
    const int64_t kc = kernel->kc;
    p.n_kb = ceil_div(g->k, kc);
    p.kc = ceil_div(ceil_div(g->k, p.n_kb), kernel->kr) * kernel->kr;
    p.n_first = ceil_div(g->k, p.kc);
    p.n_kb = p.n_first + ceil_div(g->more_k, p.kc);
    cut_blocks(&p, n_threads);
    p.a_panel = (int64_t)align64((size_t)(p.kc * kernel->mr * kernel->a_bytes));
    p.b_panel = (int64_t)align64((size_t)(p.kc * kernel->nr * kernel->b_bytes));
    p.whole = (size_t)(p.n_kb * (p.b_whole ? p.n_panels * p.b_panel : p.m_panels * p.a_panel));
    p.c = align64((size_t)(p.mc * p.nc * kernel->mr * kernel->nr) * sizeof(float));
    p.moving = (size_t)(p.b_whole ? p.mc * p.a_panel : p.b_panel);
    int64_t row_elements = 0;
    if (g->a.row) row_elements = p.kc * kernel->mr;
    if (g->b.row && p.kc * kernel->nr > row_elements) row_elements = p.kc * kernel->nr;
    p.row = align64((size_t)row_elements * sizeof(float));
    return p;
}

/* Starting a thread costs about as much as this many multiply-adds. */
static int useful_threads(const struct lk_gemm *g, int n_threads) {
    const double work = (double)g->m * (double)g->n * (double)(g->k + g->more_k) / 300000;
    return work < n_threads ? 1 + (int)work : n_threads;
}

/* Bounds of what make_plan cuts, each of which grows with M. */
static size_t scratch_of_kernel(const struct lk_gemm *g, int n_threads) {
    n_threads = useful_threads(g, n_threads);
    const struct plan p = make_plan(g, n_threads);
    const int64_t mc = min64(p.m_panels, (g->b.row ? HIGHER : 1) * (p.kernel->mc / p.kernel->mr));
    const int64_t nc = min64(p.n_panels, 2 * (p.kernel->nc / p.kernel->nr));
    int64_t whole = p.b_whole ? p.n_panels * p.b_panel : 0, moving = p.b_panel;
    if (p.b_whole) moving = mc * p.a_panel > moving ? mc * p.a_panel : moving;
    if (!g->a.row) {
        int64_t rows = p.b_whole ? min64(g->m, g->n) : g->m; /* up to here A is whole */
        int64_t a = ceil_div(rows, p.kernel->mr) * p.a_panel;
        whole = a > whole ? a : whole;
    }
    size_t c = align64((size_t)(mc * nc * p.kernel->mr * p.kernel->nr) * sizeof(float));
    return (size_t)(p.n_kb * whole) + (size_t)n_threads * (c + (size_t)moving + p.row);
}

/* Fewer rows, for which another kernel may be chosen, never need more (ops.h). */
size_t lk_gemm_scratch(const struct lk_gemm *g, int n_threads) {
    size_t most = scratch_of_kernel(g, n_threads);
    for (const int64_t *few = (int64_t[]){1, 8, 16, INT64_MAX}; *few < g->m; few++) {
        struct lk_gemm fewer = *g;
        fewer.m = *few;
        const size_t size = scratch_of_kernel(&fewer, n_threads);
        if (size > most) most = size;
    }
    return most;
}

/* Rows [first, first + rows) x K [k, k + n) of an operand as one panel. */
static void pack(const struct lk_gemm_operand *o, lk_gemm_pack_fn *fn, int64_t first, int64_t rows, int64_t k,
                 int64_t n, unsigned char *row_buffer, void *panel) {
    int64_t size = (int64_t)lk_dtype_size(o->dtype);
    if (!o->row) {
        fn((const unsigned char *)o->data + (first * o->ld + k) * size, o->dtype, o->ld, rows, n, panel);
        return;
    }
    for (int64_t i = 0; i < rows; i++) o->row(o->context, first + i, k, n, row_buffer + i * n * size);
    fn(row_buffer, o->dtype, n, rows, n, panel);
}

/* A block of K: elements [k, k + n) of a pair's rows. */
struct k_block {
    const struct lk_gemm_operand *a, *b;
    int64_t k, n;
    int64_t row; /* elements of a whole row */
};

static struct k_block k_block(const struct lk_gemm *g, const struct plan *p, int64_t kb) {
    struct k_block first = {.a = &g->a, .b = &g->b, .k = kb * p->kc, .row = g->k};
    struct k_block more = {.a = &g->more_a, .b = &g->more_b, .k = (kb - p->n_first) * p->kc, .row = g->more_k};
    struct k_block block = kb < p->n_first ? first : more;
    block.n = min64(p->kc, block.row - block.k);
    return block;
}

/* Panel `panel` of K block kb of either operand. */
static void pack_a(const struct lk_gemm *g, const struct plan *p, int64_t panel, int64_t kb, unsigned char *row_buffer,
                   void *out) {
    const struct k_block block = k_block(g, p, kb);
    int64_t mr = p->kernel->mr;
    pack(block.a, p->kernel->pack_a, panel * mr, min64(mr, g->m - panel * mr), block.k, block.n, row_buffer, out);
}
static void pack_b(const struct lk_gemm *g, const struct plan *p, int64_t panel, int64_t kb, unsigned char *row_buffer,
                   void *out) {
    const struct k_block block = k_block(g, p, kb);
    int64_t nr = p->kernel->nr;
    pack(block.b, p->kernel->pack_b, panel * nr, min64(nr, g->n - panel * nr), block.k, block.n, row_buffer, out);
}

/* Panels [m0, m1) x [n0, n1) of C. */
struct block {
    int64_t m0, m1, n0, n1;
};

static void store_block(const struct lk_gemm *g, const struct plan *p, const struct block *b, const float *c) {
    const int64_t mr = p->kernel->mr, nr = p->kernel->nr;
    float tile[LK_GEMM_BLOCK_MAX * LK_GEMM_BLOCK_MAX] __attribute__((aligned(64)));
    for (int64_t i = b->m0; i < b->m1; i++)
        for (int64_t j = b->n0; j < b->n1; j++) {
            const float *from = c + ((j - b->n0) * p->mc + (i - b->m0)) * mr * nr;
            if (p->kernel->unpack) {
                p->kernel->unpack(from, tile);
                from = tile;
            }
            g->store(g->store_context, i * mr, min64(mr, g->m - i * mr), j * nr, min64(nr, g->n - j * nr), from, nr);
        }
}

/* What the panel after (j, kb) of this block will be packed from, or is where B is whole. */
static struct lk_gemm_ahead ahead_of_b(const struct lk_gemm *g, const struct plan *p, const struct block *b, int64_t j,
                                       int64_t kb, const unsigned char *whole) {
    if (++j == b->n1) {
        j = b->n0;
        kb++;
    }
    if (kb == p->n_kb) { /* the next block, unless it has the same columns again */
        if (p->n_mb > 1 || b->n1 == p->n_panels) return (struct lk_gemm_ahead){0};
        j = b->n1;
        kb = 0;
    }
    if (p->b_whole) return lk_gemm_ahead(whole + (kb * p->n_panels + j) * p->b_panel, 1, 0, p->b_panel);
    const struct k_block block = k_block(g, p, kb);
    const struct lk_gemm_operand *from = block.b;
    const int64_t size = (int64_t)lk_dtype_size(from->dtype), nr = p->kernel->nr, rows = min64(nr, g->n - j * nr);
    if (from->row) {
        const int64_t row = from->row_bytes;
        return lk_gemm_ahead((const char *)from->data + j * nr * row + block.k * row / block.row, row ? rows : 0, row,
                             block.n * row / block.row);
    }
    return lk_gemm_ahead((const char *)from->data + (j * nr * from->ld + block.k) * size, rows, from->ld * size,
                         block.n * size);
}

/* Panel j's share of A's next K block. */
static struct lk_gemm_ahead ahead_of_a(const struct plan *p, const struct block *b, int64_t j, int64_t kb,
                                       const unsigned char *whole) {
    if (p->b_whole || kb + 1 == p->n_kb) return (struct lk_gemm_ahead){0};
    int64_t total = (b->m1 - b->m0) * p->a_panel, share = ceil_div(total, (b->n1 - b->n0) * 64) * 64;
    int64_t from = min64((j - b->n0) * share, total);
    return lk_gemm_ahead(whole + ((kb + 1) * p->m_panels + b->m0) * p->a_panel + from, from < total, 0,
                         min64(share, total - from));
}

static void run_block(const struct lk_gemm *g, const struct plan *p, const struct block *b, const unsigned char *whole,
                      unsigned char *mine) {
    const struct lk_gemm_kernel *kernel = p->kernel;
    float *c = (float *)mine;
    unsigned char *moving = mine + p->c, *row_buffer = moving + p->moving;
    int64_t rows = min64(b->m1 * kernel->mr, g->m) - b->m0 * kernel->mr;
    for (int64_t kb = 0; kb < p->n_kb; kb++) {
        int64_t k = ceil_div(k_block(g, p, kb).n, kernel->kr) * kernel->kr;
        const unsigned char *a = whole + (kb * p->m_panels + b->m0) * p->a_panel;
        if (p->b_whole) {
            for (int64_t i = b->m0; i < b->m1; i++) pack_a(g, p, i, kb, row_buffer, moving + (i - b->m0) * p->a_panel);
            a = moving;
        }
        for (int64_t j = b->n0; j < b->n1; j++) {
            const unsigned char *panel = moving;
            if (p->b_whole)
                panel = whole + (kb * p->n_panels + j) * p->b_panel;
            else
                pack_b(g, p, j, kb, row_buffer, moving);
            const struct lk_gemm_ahead ahead[2] = {ahead_of_a(p, b, j, kb, whole), ahead_of_b(g, p, b, j, kb, whole)};
            kernel->multiply(a, panel, c + (j - b->n0) * p->mc * kernel->mr * kernel->nr, rows, p->a_panel,
                             min64(kernel->nr, g->n - j * kernel->nr), k, kb == 0, ahead);
        }
    }
    store_block(g, p, b, c);
}

void lk_gemm_run(const struct lk_gemm *g, int n_threads, void *scratch) {
    n_threads = useful_threads(g, n_threads);
    const struct plan p = make_plan(g, n_threads);
    unsigned char *whole = scratch;
#pragma omp parallel num_threads(n_threads)
    {
        unsigned char *mine = whole + p.whole + (size_t)omp_get_thread_num() * (p.c + p.moving + p.row);
        if (p.kernel->begin) p.kernel->begin();
        int64_t panels = p.b_whole ? p.n_panels : p.m_panels;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < p.n_kb * panels; i++) {
            int64_t panel = i % panels, kb = i / panels;
            if (p.b_whole)
                pack_b(g, &p, panel, kb, mine + p.c + p.moving, whole + i * p.b_panel);
            else
                pack_a(g, &p, panel, kb, mine + p.c + p.moving, whole + i * p.a_panel);
        }
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < p.n_mb * p.n_nb; i++) {
            int64_t mb = p.b_whole ? i / p.n_nb : i % p.n_mb, nb = p.b_whole ? i % p.n_nb : i / p.n_mb;
            struct block b = {.m0 = mb * p.m_panels / p.n_mb,
                              .m1 = (mb + 1) * p.m_panels / p.n_mb,
                              .n0 = nb * p.n_panels / p.n_nb,
                              .n1 = (nb + 1) * p.n_panels / p.n_nb};
            run_block(g, &p, &b, whole, mine);
        }
        if (p.kernel->end) p.kernel->end();
    }
}
