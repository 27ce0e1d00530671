/* Every stage of Stable Diffusion 1.5 and SDXL against diffusers' (tests/golden/README.md). */
#include "tests/common/golden.h"
#include "tests/common/golden_run.h"

int main(int argc, char **argv) {
    golden_image_share = 0.005; /* untrained models decode to several times the range of a picture: so does the error */
    return golden_run("sd", 13, argc, argv);
}
