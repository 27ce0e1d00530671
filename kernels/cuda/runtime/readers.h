/* Host threads that fetch weights from where they are mapped into a small ring of pinned slots, in the order in which
 * they are to be sent. Nothing waits for them but the copy stream: before a copy out of a slot it has a host function
 * that returns when the slot is full, and after it one that gives the slot back. */
#pragma once

#include "kernels/cuda/runtime/memory.h"

struct lk_cuda_readers;

/* Slots and threads near the device. LK_E_NOMEM, LK_E_FIT or LK_E_DEVICE. slot_bytes: of each of n_threads +
 * LK_SPARE_SLOTS slots. */
enum lk_code lk_cuda_readers_open(struct lk_cuda_readers **out, const struct lk_cuda_near *near, int n_threads,
                                  size_t slot_bytes);
/* Copies on the stream from the threads' slots to the device; returns before anything is read. After an error nothing
 * more can be sent, and what is under way does not wait any more. */
enum lk_code lk_cuda_readers_send(struct lk_cuda_readers *readers, lk_cu_stream stream, lk_cu_address to,
                                  const void *from, size_t bytes);
/* What was sent and is not read yet is not read any more, and what is copied in its place is undefined. Returns when no
 * thread reads. */
void lk_cuda_readers_forget(struct lk_cuda_readers *readers);
bool lk_cuda_readers_failed(const struct lk_cuda_readers *readers);
/* The stream must not be waiting for them. NULL is fine. */
void lk_cuda_readers_close(struct lk_cuda_readers *readers);
