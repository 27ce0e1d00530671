/* Who holds a lock on a file, for messages. */
#pragma once

enum { LK_HOLDER_BYTES = 120 };
/* "process 3057, which is stopped (kill -CONT 3057 lets it go on)", "process 3057", or "another program" where the
 * system does not say: another machine's, or no Linux. */
void lk_lock_holder(const char *path, char out[LK_HOLDER_BYTES]);
