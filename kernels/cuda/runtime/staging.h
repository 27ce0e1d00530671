/* Pinned host memory through which everything passes between host and device. An upload is copied into a slot and sent
 * from there, so that the caller's memory is free at once and nothing waits for the device until all slots are under
 * way. */
#pragma once

#include "kernels/cuda/runtime/driver.h"

#define LK_STAGING_SLOTS 4
#define LK_STAGING_BYTES ((size_t)16 << 20) /* of one slot */

struct lk_cuda_report;

struct lk_cuda_staging {
    unsigned char *block; /* slots, then the report's copy */
    struct lk_cuda_report *report;
    lk_cu_event sent[LK_STAGING_SLOTS];
    bool under_way[LK_STAGING_SLOTS];
    int next;
};

enum lk_code lk_staging_open(struct lk_cuda_staging *staging, size_t report_bytes);
void lk_staging_close(struct lk_cuda_staging *staging);
/* Copies are queued on the stream; the call returns when `from` has been read. */
enum lk_code lk_staging_upload(struct lk_cuda_staging *staging, lk_cu_stream stream, lk_cu_address to, const void *from,
                               size_t bytes);
/* The stream has been waited for: no upload is under way. */
void lk_staging_settled(struct lk_cuda_staging *staging);
/* The next slot for a copy to the host, which the caller waits for: at most LK_STAGING_BYTES. */
enum lk_code lk_staging_slot(struct lk_cuda_staging *staging, unsigned char **out);
