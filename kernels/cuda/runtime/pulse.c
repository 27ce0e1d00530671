#include "kernels/cuda/runtime/pulse.h"

#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"

#define EVERY_S 1.0
#define LOOK_S  0.1 /* at most, that count as silence between two looks */

enum lk_code lk_cuda_pulse_open(struct lk_cuda_device *cuda) {
    struct lk_cuda_pulse *p = &cuda->pulse;
    LK_TRY(LK_CU(stream_create, (&p->stream, LK_CU_STREAM_NON_BLOCKING), "%s", cuda->device.name));
    return LK_CU(event_create, (&p->answered, LK_CU_EVENT_DISABLE_TIMING), "%s", cuda->device.name);
}

void lk_cuda_pulse_close(struct lk_cuda_device *cuda) {
    if (cuda->pulse.answered) lk_cuda()->event_destroy(cuda->pulse.answered);
    if (cuda->pulse.stream) lk_cuda()->stream_destroy(cuda->pulse.stream);
    cuda->pulse = (struct lk_cuda_pulse){0};
}

enum lk_code lk_cuda_pulse_look(struct lk_cuda_device *cuda, double most_s, bool *lost) {
    struct lk_cuda_pulse *p = &cuda->pulse;
    const double now = lk_log_now(), since = now - p->looked;
    p->looked = now;
    if (!p->asked && now < p->next) return LK_OK;
    if (!p->asked) {
        LK_TRY(LK_CU(copy_to_host,
                     (cuda->staging.report + 1, cuda->report + sizeof *cuda->staging.report,
                      LK_CUDA_REPORT_BYTES - sizeof *cuda->staging.report, p->stream),
                     "whether %s answers", cuda->device.name));
        LK_TRY(LK_CU(event_record, (p->answered, p->stream), "whether %s answers", cuda->device.name));
        p->asked = true;
        p->silent_s = 0;
        return LK_OK;
    }
    const lk_cu_result result = lk_cuda()->event_query(p->answered);
    p->asked = result == LK_CU_ERROR_NOT_READY;
    p->next = now + EVERY_S;
    if (!p->asked) return lk_cuda_check(result, lk_cuda_symbols.event_query, "whether %s answers", cuda->device.name);
    p->silent_s += since < LOOK_S ? since : LOOK_S;
    if (p->silent_s < most_s) return LK_OK;
    *lost = true;
    return lk_fail(LK_E_DEVICE,
                   "the GPU has not answered for %g s, not even with four bytes, which no kernel delays; it is lost to "
                   "this process (`dmesg | grep Xid` may say why, `nvidia-smi` whether it is still there)",
                   most_s);
}
