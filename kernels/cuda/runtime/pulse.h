/* Whether a GPU still answers, however long its kernels take: four bytes are copied to the host once a second, on a
 * stream of their own. A copy engine does that beside whatever kernels run, so a kernel of minutes is not silence, and
 * a GPU that has fallen off the bus is found within seconds. */
#pragma once

#include "kernels/cuda/runtime/driver.h"

struct lk_cuda_device;

struct lk_cuda_pulse {
    lk_cu_stream stream;
    lk_cu_event answered;
    bool asked;
    double looked, next; /* times of the last look and of the next question */
    double silent_s;     /* since the question, as far as somebody looked: a process that was stopped is not silence */
};

enum lk_code lk_cuda_pulse_open(struct lk_cuda_device *cuda);
void lk_cuda_pulse_close(struct lk_cuda_device *cuda);
/* For who waits for the device, many times a second. LK_E_DEVICE when the driver reports an error, or when no answer
 * has come for `most_s` seconds; then *lost is set, and nothing of the device may be waited for any more. */
enum lk_code lk_cuda_pulse_look(struct lk_cuda_device *cuda, double most_s, bool *lost);
