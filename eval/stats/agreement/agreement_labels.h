/* Words for a coefficient of agreement, on the two scales that reports print side by side: the protocol of the study
 * moves the boundaries of the source that it cites. */
#pragma once

enum lk_agreement_scale {
    LK_SCALE_STUDY,       /* below 0.40 poor, 0.60 moderate, 0.80 substantial, else almost perfect; lower bounds belong
                             to the upper class */
    LK_SCALE_LANDIS_KOCH, /* below 0 poor; up to 0.20 slight, 0.40 fair, 0.60 moderate, 0.80 substantial, else almost
                             perfect; bounds belong to the lower class */
};

/* "moderate"; the value is not rounded first. NaN gives "undefined". */
const char *lk_agreement_label(enum lk_agreement_scale scale, double value);
