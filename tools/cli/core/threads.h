/* The threads that the OpenMP runtime will ask for. It ends the program with code 1 when it cannot have them. */
#pragma once

#include "engine/base/status.h"

/* n_threads 0: as many as OMP_NUM_THREADS or the machine has. LK_E_NOMEM: they cannot be had at once. */
enum lk_code cli_threads_check(int n_threads);
