/* Decides where weights lie (engine/placement.h): from what the plan device has met and one number, the memory that
 * there is. Everything at once if it fits. Else stage by stage: what may travel stays resident as far as it fits, first
 * what the fewest rows meet, since its copies hide behind the least computing, the rest spread evenly in the order of
 * execution; the others go through a ring that holds a layer. */
#pragma once

#include "engine/device.h"

/* LK_E_FIT when even the smallest placement is larger than `room` bytes; *least gets its bytes in any case (LK_OK too).
 * Takes the itinerary over when it succeeds. grain: allocations are multiples of it. */
enum lk_code lk_placement_decide(struct lk_itinerary *itinerary, const struct lk_budget *budget, uint64_t room,
                                 uint64_t grain, struct lk_placement *out, uint64_t *least);

/* Fills in what of *out is about memory, for the run that the plan device has walked and the target's budget. */
struct lk_plan;
enum lk_code lk_placement_describe(const struct lk_device *plan, const struct lk_device *target, struct lk_plan *out);

/* Bytes of the weights that may travel between one attention and the next: a layer's, the largest of them. */
uint64_t lk_placement_layer(const struct lk_itinerary *itinerary, int stage);

/* Memory for a run that the plan device has walked: on a device that reads host memory just the arena; on others what
 * lk_placement_decide says. When an allocation fails after all: a smaller placement on the device, or fewer pinned
 * copies on the host. */
enum lk_code lk_placement_prepare(struct lk_device *dev, const struct lk_device *plan, uint64_t arena_bytes);

/* How fast a device is, for predictions. */
struct lk_device_rates {
    double gemm_flops, attention_flops, bus_bytes, memory_bytes; /* per second */
    double link_bytes;                                           /* that a rank gets of the others */
    double least, most; /* of the predicted seconds: 80 of 100 cards are expected between these */
};
struct lk_device_rates lk_device_rates(const char *architecture);

/* Adds to each visit of packed weights the time in which they are read and written as bf16, unless the matrix is still
 * there: small ones are while two weights are read in turn. */
void lk_placement_add_unpacking(struct lk_itinerary *itinerary, const struct lk_device_rates *rates);

/* Seconds of one cycle of a stage's visits, with all weights there and as they are placed. */
struct lk_prediction {
    double resident_s, placed_s;
};
enum lk_code lk_placement_predict(const struct lk_placement *placement, int stage, const struct lk_device_rates *rates,
                                  struct lk_prediction *out);
