#include "engine/image/jpeg_memory.h"

#include <stdint.h>
#include <string.h>

#include <jerror.h>

#include "engine/base/alloc.h"

/* SIMD code of libjpeg-turbo reads and writes whole vectors: rows start and end on multiples of this. */
#define ROW_ALIGN 64

/* Before each allocation; as long as the alignment. */
struct lk_jpeg_block {
    _Alignas(ROW_ALIGN) struct lk_jpeg_block *next;
    size_t bytes;
};

/* "Virtual" arrays, which libjpeg keeps on disk where memory is short: here always whole in memory. */
struct jvirt_sarray_control {
    struct jvirt_sarray_control *next;
    JSAMPARRAY rows;
    JDIMENSION n_rows, row_samples;
    boolean zeroed;
};

struct jvirt_barray_control {
    struct jvirt_barray_control *next;
    JBLOCKARRAY rows;
    JDIMENSION n_rows, row_blocks;
    boolean zeroed;
};

static struct lk_jpeg_job *job_of(j_common_ptr cinfo) { return cinfo->client_data; }

void lk_jpeg_leave(j_common_ptr cinfo, enum lk_code code) {
    struct lk_jpeg_job *job = job_of(cinfo);
    job->code = code;
    longjmp(job->jump, 1);
}

/* The segment that is read; after the last header that of the scan. */
static const char *segment_of(j_common_ptr cinfo, char text[16]) {
    int marker = cinfo->is_decompressor ? ((j_decompress_ptr)cinfo)->unread_marker : 0;
    if (marker == 0xc4 || marker == 0xdb || marker == 0xdd)
        return marker == 0xc4 ? "DHT: " : marker == 0xdb ? "DQT: " : "DRI: ";
    if (marker >= 0xe0 && marker <= 0xef)
        snprintf(text, 16, "APP%d: ", marker - 0xe0);
    else if (marker >= 0xc0 && marker <= 0xcf)
        snprintf(text, 16, "SOF%d: ", marker - 0xc0);
    else if (!marker || marker == 0xda)
        return cinfo->is_decompressor ? "SOS: " : "";
    else
        snprintf(text, 16, "marker 0x%02x: ", (unsigned)marker);
    return text;
}

static void on_error(j_common_ptr cinfo) {
    struct lk_jpeg_job *job = job_of(cinfo);
    char text[JMSG_LENGTH_MAX], segment[16];
    cinfo->err->format_message(cinfo, text);
    bool memory = cinfo->err->msg_code == JERR_OUT_OF_MEMORY;
    lk_jpeg_leave(cinfo, lk_fail(memory ? LK_E_NOMEM : LK_E_IMAGE, "%s: JPEG: %s%s", job->name,
                                 memory ? "" : segment_of(cinfo, segment), text));
}

static void on_message(j_common_ptr cinfo) { (void)cinfo; }

void lk_jpeg_job_init(struct lk_jpeg_job *job, const char *name) {
    memset(job, 0, sizeof *job);
    job->name = name;
    jpeg_std_error(&job->error);
    job->error.error_exit = on_error;
    job->error.output_message = on_message;
}

static void *allocate(j_common_ptr cinfo, int pool, size_t bytes) {
    struct lk_jpeg_job *job = job_of(cinfo);
    if (bytes > job->bytes_max - job->bytes_live)
        lk_jpeg_leave(cinfo, lk_fail(LK_E_IMAGE,
                                     "%s: JPEG: decoding it would take more than %zu bytes, far more than its "
                                     "pixels need; save it again as a baseline JPEG",
                                     job->name, job->bytes_max));
    struct lk_jpeg_block *block = lk_malloc(sizeof *block + bytes);
    if (!block)
        lk_jpeg_leave(cinfo, lk_fail(LK_E_NOMEM, "%s: JPEG: no memory for %zu bytes; free memory and try again",
                                     job->name, bytes));
    block->bytes = bytes;
    block->next = job->blocks[pool];
    job->blocks[pool] = block;
    job->bytes_live += bytes;
    return block + 1;
}

static void *alloc_small(j_common_ptr cinfo, int pool, size_t bytes) { return allocate(cinfo, pool, bytes); }

static size_t round_up(size_t n) { return (n + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN; }

/* n_rows pointers to rows of row_bytes; 32-bit counts cannot overflow 64-bit sizes by more than the limit catches. */
static void **alloc_rows(j_common_ptr cinfo, int pool, size_t row_bytes, JDIMENSION n_rows) {
    size_t stride = round_up(row_bytes), bytes;
    if (__builtin_mul_overflow(stride, (size_t)n_rows, &bytes)) bytes = SIZE_MAX / 2;
    unsigned char *data = allocate(cinfo, pool, bytes);
    void **rows = allocate(cinfo, pool, n_rows * sizeof *rows);
    for (size_t i = 0; i < n_rows; i++) rows[i] = data + i * stride;
    return rows;
}

static JSAMPARRAY alloc_samples(j_common_ptr cinfo, int pool, JDIMENSION row_samples, JDIMENSION n_rows) {
    return (JSAMPARRAY)(void *)alloc_rows(cinfo, pool, (size_t)row_samples * sizeof(JSAMPLE), n_rows);
}

static JBLOCKARRAY alloc_blocks(j_common_ptr cinfo, int pool, JDIMENSION row_blocks, JDIMENSION n_rows) {
    return (JBLOCKARRAY)(void *)alloc_rows(cinfo, pool, (size_t)row_blocks * sizeof(JBLOCK), n_rows);
}

static jvirt_sarray_ptr request_samples(j_common_ptr cinfo, int pool, boolean zeroed, JDIMENSION row_samples,
                                        JDIMENSION n_rows, JDIMENSION max_access) {
    (void)max_access;
    struct lk_jpeg_job *job = job_of(cinfo);
    struct jvirt_sarray_control *array = allocate(cinfo, pool, sizeof *array);
    *array = (struct jvirt_sarray_control){job->sample_arrays, NULL, n_rows, row_samples, zeroed};
    return job->sample_arrays = array;
}

static jvirt_barray_ptr request_blocks(j_common_ptr cinfo, int pool, boolean zeroed, JDIMENSION row_blocks,
                                       JDIMENSION n_rows, JDIMENSION max_access) {
    (void)max_access;
    struct lk_jpeg_job *job = job_of(cinfo);
    struct jvirt_barray_control *array = allocate(cinfo, pool, sizeof *array);
    *array = (struct jvirt_barray_control){job->block_arrays, NULL, n_rows, row_blocks, zeroed};
    return job->block_arrays = array;
}

/* Arrays are requested for JPOOL_IMAGE only. */
static void realize(j_common_ptr cinfo) {
    struct lk_jpeg_job *job = job_of(cinfo);
    for (struct jvirt_sarray_control *a = job->sample_arrays; a; a = a->next) {
        if (a->rows) continue;
        a->rows = alloc_samples(cinfo, JPOOL_IMAGE, a->row_samples, a->n_rows);
        for (JDIMENSION i = 0; a->zeroed && i < a->n_rows; i++) memset(a->rows[i], 0, a->row_samples * sizeof(JSAMPLE));
    }
    for (struct jvirt_barray_control *a = job->block_arrays; a; a = a->next) {
        if (a->rows) continue;
        a->rows = alloc_blocks(cinfo, JPOOL_IMAGE, a->row_blocks, a->n_rows);
        for (JDIMENSION i = 0; a->zeroed && i < a->n_rows; i++) memset(a->rows[i], 0, a->row_blocks * sizeof(JBLOCK));
    }
}

static void check_access(j_common_ptr cinfo, JDIMENSION start, JDIMENSION n, JDIMENSION n_rows, const void *rows) {
    if (!rows || start > n_rows || n > n_rows - start)
        lk_jpeg_leave(cinfo, lk_fail(LK_E_IMAGE, "%s: JPEG: inconsistent sizes inside the file; save it again",
                                     job_of(cinfo)->name));
}

static JSAMPARRAY access_samples(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION start, JDIMENSION n,
                                 boolean writable) {
    (void)writable;
    check_access(cinfo, start, n, array->n_rows, array->rows);
    return array->rows + start;
}

static JBLOCKARRAY access_blocks(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION n,
                                 boolean writable) {
    (void)writable;
    check_access(cinfo, start, n, array->n_rows, array->rows);
    return array->rows + start;
}

static void free_pool(j_common_ptr cinfo, int pool) {
    struct lk_jpeg_job *job = job_of(cinfo);
    if (pool == JPOOL_IMAGE) {
        job->sample_arrays = NULL;
        job->block_arrays = NULL;
    }
    for (struct lk_jpeg_block *block = job->blocks[pool], *next; block; block = next) {
        next = block->next;
        job->bytes_live -= block->bytes;
        lk_free(block);
    }
    job->blocks[pool] = NULL;
}

static void self_destruct(j_common_ptr cinfo) {
    struct lk_jpeg_job *job = job_of(cinfo);
    for (int pool = 0; pool < JPOOL_NUMPOOLS; pool++) free_pool(cinfo, pool);
    job->library_self_destruct(cinfo);
}

void lk_jpeg_use_memory(j_common_ptr cinfo, struct lk_jpeg_job *job, size_t bytes_max) {
    struct jpeg_memory_mgr *mem = cinfo->mem;
    job->bytes_max = bytes_max;
    job->library_self_destruct = mem->self_destruct;
    mem->alloc_small = alloc_small;
    mem->alloc_large = alloc_small;
    mem->alloc_sarray = alloc_samples;
    mem->alloc_barray = alloc_blocks;
    mem->request_virt_sarray = request_samples;
    mem->request_virt_barray = request_blocks;
    mem->realize_virt_arrays = realize;
    mem->access_virt_sarray = access_samples;
    mem->access_virt_barray = access_blocks;
    mem->free_pool = free_pool;
    mem->self_destruct = self_destruct;
}
