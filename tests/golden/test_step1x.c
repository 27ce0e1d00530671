/* Every stage of the Step1X-Edit pipeline against the original's (tests/golden/README.md, golden_run.h). */
#include "tests/common/golden.h"
#include "tests/common/golden_run.h"

int main(int argc, char **argv) {
    golden_image_share = 0.005; /* observed: 0.0017 */
    return golden_run("step1x", 12, argc, argv);
}
