/* What driver/ tells the checkers and asks of them. Everything is called with the driver's lock held, between launches.
 *
 * Order: every queued item is an operation with a number that grows in the order of the calls. What is known to be done
 * before an operation starts (its stream's earlier work, events waited for, what the host waited for, the default
 * stream's rule) is kept as one number per stream. Memory remembers which operation last wrote and read it; an access
 * that the order does not put after those is reported. */
#pragma once

#include "exec/hooks.h"
#include "exec/memory.h"

enum { GPUSIM_ORDER_STREAMS = 64 };

/* known[s]: operations of stream s up to this number are done. */
struct gpusim_order {
    uint32_t known[GPUSIM_ORDER_STREAMS];
};
struct gpusim_operation {
    uint32_t number, horizon; /* all operations up to horizon are done before this one */
    uint32_t stream;
    struct gpusim_order order;
};

/* Reads GPUSIM_CHECKS. The hooks for launches, or NULL when only bounds are checked. */
const struct gpusim_hooks *gpusim_check_start(void);

/* A new stream; `group` is the same for streams of one context. */
uint32_t gpusim_order_stream(const void *group, bool legacy, bool blocking);

/* Puts an operation at the end of a stream. NULL: order is not checked (or no memory). `name` is copied. Free it with
 * free(). */
struct gpusim_operation *gpusim_order_operation(uint32_t stream, uint64_t number, const char *name);

/* An event was recorded at the end of a stream; a stream waits for it; the host has waited for it, for a stream, or for
 * all streams of a group. */
void gpusim_order_record(uint32_t stream, struct gpusim_order *event);
void gpusim_order_wait(uint32_t stream, const struct gpusim_order *event);
void gpusim_order_host_event(const struct gpusim_order *event);
void gpusim_order_host_stream(uint32_t stream);
void gpusim_order_host_group(const void *group);

/* A copy or set reads or writes device or pinned memory. False: reported. */
bool gpusim_check_range(const struct gpusim_operation *operation, uint64_t address, uint64_t bytes, bool write);
/* The target's bytes are written where the source's are (source 0: everywhere). */
void gpusim_check_copied(uint64_t target, uint64_t source, uint64_t bytes);

/* Ends the process with GPUSIM_EXIT_CODE if it is set and there were reports. */
void gpusim_check_exit(void);
