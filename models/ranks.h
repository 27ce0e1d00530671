/* Jobs on devices that hold one copy of the weights together (lk_device_cuda_ranks): each rank has a thread and every
 * n-th job. Bits are those of a device that has all weights for itself.
 *
 *     if ((rc = lk_device_cuda_ranks(indexes, n, devs))) ...
 *     rc = lk_pipeline_edit_ranks(pipeline, devs, n, &queue);
 */
#pragma once

#include "models/pipeline.h"

/* As lk_pipeline_edit_queue, but that no cache is kept from one queue to the next and jobs visit layers one by one. A
 * rank without a job makes a copy of another's, which is thrown away. Callbacks come from the ranks' threads, one at a
 * time. Jobs differ in prompt, seed and pictures; LK_E_USAGE for those that read other weights than the others. When a
 * rank fails (LK_E_DEVICE and others), all end with its error, and the devices are of no more use. */
enum lk_code lk_pipeline_edit_ranks(struct lk_pipeline *pipeline, struct lk_device *const *devs, int n,
                                    const struct lk_queue *queue);
/* LK_E_USAGE for what several devices cannot make together. */
enum lk_code lk_ranks_check(const struct lk_request *request);
