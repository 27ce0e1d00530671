/* Every stage of the FLUX.2 pipeline against diffusers' (tests/golden/README.md). */
#include "tests/common/golden_run.h"

int main(int argc, char **argv) { return golden_run("flux2", 12, argc, argv); }
