/* How much memory of this machine the process may still take. */
#pragma once

#include <stdint.h>

/* Bytes of the host's memory that can be pinned without driving others out: the least of what is available and of what
 * the limits of the process's control groups (v1 and v2, as batch systems and containers set them) leave, less a
 * reserve. What is in use counts without the files' pages, which the kernel takes back. root: "", or a folder that
 * stands for / (tests). */
uint64_t lk_host_room(const char *root);
