#include "kernels/cuda/runtime/staging.h"

#include <string.h>

#include "kernels/cuda/cuda.h"

static struct lk_cuda_device *device_of(struct lk_cuda_staging *s) {
    return (struct lk_cuda_device *)((char *)s - offsetof(struct lk_cuda_device, staging));
}

enum lk_code lk_staging_open(struct lk_cuda_staging *s, size_t report_bytes) {
    const size_t bytes = LK_STAGING_SLOTS * LK_STAGING_BYTES + report_bytes;
    void *block;
    LK_TRY(lk_cuda_host_alloc(&device_of(s)->near, bytes, &block));
    s->block = block;
    s->report = (struct lk_cuda_report *)(void *)(s->block + LK_STAGING_SLOTS * LK_STAGING_BYTES);
    for (int i = 0; i < LK_STAGING_SLOTS; i++)
        LK_TRY(LK_CU(event_create, (&s->sent[i], LK_CU_EVENT_DISABLE_TIMING), "event %d", i));
    return LK_OK;
}

void lk_staging_close(struct lk_cuda_staging *s) {
    for (int i = 0; i < LK_STAGING_SLOTS; i++)
        if (s->sent[i]) lk_cuda()->event_destroy(s->sent[i]);
    if (s->block) lk_cuda()->host_free(s->block);
    *s = (struct lk_cuda_staging){0};
}

void lk_staging_settled(struct lk_cuda_staging *s) { memset(s->under_way, 0, sizeof s->under_way); }

enum lk_code lk_staging_slot(struct lk_cuda_staging *s, unsigned char **out) {
    int i = s->next;
    if (s->under_way[i]) LK_TRY(lk_cuda_await(device_of(s), s->sent[i], "an earlier upload"));
    s->under_way[i] = false;
    s->next = (i + 1) % LK_STAGING_SLOTS;
    *out = s->block + (size_t)i * LK_STAGING_BYTES;
    return LK_OK;
}

enum lk_code lk_staging_upload(struct lk_cuda_staging *s, lk_cu_stream stream, lk_cu_address to, const void *from,
                               size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < LK_STAGING_BYTES ? bytes - done : LK_STAGING_BYTES;
        int i = s->next;
        unsigned char *slot;
        LK_TRY(lk_staging_slot(s, &slot));
        lk_cuda_host_copy(&device_of(s)->near, slot, (const unsigned char *)from + done, n);
        LK_TRY(LK_CU(copy_to_device, (to + done, slot, n, stream), "upload of %zu bytes", n));
        s->under_way[i] = true;
        LK_TRY(LK_CU(event_record, (s->sent[i], stream), "upload of %zu bytes", n));
        done += n;
    }
    return LK_OK;
}
