#include "eval/stats/agreement/agreement_labels.h"

#include <math.h>

const char *lk_agreement_label(enum lk_agreement_scale scale, double value) {
    if (isnan(value)) return "undefined";
    if (scale == LK_SCALE_STUDY) {
        if (value < 0.4) return "poor";
        if (value < 0.6) return "moderate";
        return value < 0.8 ? "substantial" : "almost perfect";
    }
    if (value < 0) return "poor";
    if (value <= 0.2) return "slight";
    if (value <= 0.4) return "fair";
    if (value <= 0.6) return "moderate";
    return value <= 0.8 ? "substantial" : "almost perfect";
}
