/* Ranks: cuda devices of one process that hold one copy of the weights together. Each keeps its share of every unit
 * that travels (engine/placement.h), and a unit is gathered from the shares in the place of a copy from the host. Each
 * rank has a thread and jobs of its own. Stages have other shares, so all go from stage to stage together, through a
 * gate.
 *
 * Where the GPUs have access to each other's memory (peers.h), a rank pulls the shares by copies of its own, when its
 * ring has room. Else a unit comes to all at once, by NCCL's all-gather, and all must ask for the same ones in the same
 * order, whatever their jobs are: a rank that has done with a stage goes on gathering for those that have not, and one
 * that has nothing to do in a stage gathers all through it.
 *
 * When one fails, all end with its error: nobody waits for a
 * collective without looking whether the others are well, and for how long. A GPU that answers no more is named, and
 * all ends, within 10 s; a thread that is not heard of is named as soon, and waited for: it may be a slow disk's. */
#pragma once

#include "engine/device.h"
#include "kernels/cuda/runtime/driver.h"

struct lk_cuda_device;
struct lk_cuda_ranks;

/* Units under way at most, so that the launches behind one that never comes do not fill the driver's queue, in which a
 * host would wait without looking. */
#define LK_CUDA_RANKS_AHEAD 16

/* Enters the stage that all ranks are in next, the earliest that one of them wants, until it is `wanted`. What the
 * ranks visit must be the same, in the same order, on all. */
enum lk_code lk_cuda_ranks_gate(struct lk_cuda_device *cuda, int wanted);
void lk_cuda_ranks_join(struct lk_cuda_device *cuda, const struct lk_placement *placement);

/* This rank's shares of the stage are on their way; returns when those of all can be pulled. */
enum lk_code lk_cuda_ranks_loaded(struct lk_cuda_device *cuda);
/* Whether ranks gather together and in one order, by NCCL; a device that is no rank does not. */
bool lk_cuda_ranks_in_step(const struct lk_cuda_device *cuda);

/* A unit of the stage, with its scales `bytes`, from the ranks' shares, in the order of the copy stream. */
struct lk_cuda_gather {
    lk_cu_address to;
    uint64_t bytes, share; /* share: of each rank, the last ones less or nothing */
};
enum lk_code lk_cuda_ranks_gather(struct lk_cuda_device *cuda, const struct lk_range *unit,
                                  const struct lk_cuda_gather *gather);
/* Wait for an event, or for what a stream has. Without ranks as the driver does. */
enum lk_code lk_cuda_await(struct lk_cuda_device *cuda, lk_cu_event event, const char *what);
enum lk_code lk_cuda_await_stream(struct lk_cuda_device *cuda, lk_cu_stream stream);

/* As struct lk_device_memory has them. */
enum lk_code lk_cuda_leave(struct lk_device *dev, enum lk_code rc);
bool lk_cuda_joined(const struct lk_device *dev);
void lk_cuda_ranks_close(struct lk_cuda_device *cuda);

/* Test hook: seconds without any progress after which a rank gives up; seconds without an answer of a GPU after which
 * it is given up (pulse.h), and of silence of a rank's thread after which those that wait say so. */
void lk_cuda_ranks_patience(double seconds, double silence_s);
