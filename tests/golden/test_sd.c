/* Every stage of Stable Diffusion 1.5 and SDXL against diffusers' (tests/golden/README.md). */
#include "tests/common/golden_run.h"

int main(int argc, char **argv) { return golden_run("sd", 11, argc, argv); }
