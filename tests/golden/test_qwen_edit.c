/* Every stage of the Qwen-Image pipelines against diffusers' (tests/golden/README.md). */
#include "tests/common/golden_run.h"

int main(int argc, char **argv) { return golden_run("qwen_edit", 9, argc, argv); }
