/* Every stage of the Step1X-Edit pipeline against the original's (tests/golden/README.md, golden_run.h). */
#include "tests/common/golden_run.h"

int main(int argc, char **argv) { return golden_run("step1x", 5, argc, argv); }
