#include "kernels/cuda/runtime/registered.h"

#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"

/* One that lies in no mapped file is passed over. */
static enum lk_code register_unit(struct lk_cuda_placed *p, const struct lk_itinerary *it, uint32_t unit) {
    const struct lk_range *e = &it->units.entries[unit];
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = e->start / page * page;
    const size_t bytes = (e->start + e->bytes + page - 1) / page * page - first;
    void *pages = mremap((void *)first, 0, bytes, MREMAP_MAYMOVE); /* of 0 bytes: the old mapping stays */
    if (pages == MAP_FAILED) return LK_OK;
    enum lk_code rc = LK_CU(host_register, (pages, bytes, LK_CU_REGISTER_READ_ONLY), "weights of %zu bytes", e->bytes);
    if (rc) {
        munmap(pages, bytes);
        return rc;
    }
    p->registered[p->n_registered++] = (struct lk_cuda_registered){pages, bytes};
    p->pinned[unit] = (const unsigned char *)pages + (e->start - first);
    return LK_OK;
}

bool lk_cuda_register_stage(struct lk_cuda_device *cuda, const struct lk_placement *placement, int stage) {
    const struct lk_itinerary *it = &placement->itinerary;
    struct lk_cuda_placed *p = &cuda->placed;
    const size_t before = p->n_registered;
    size_t n = 0;
    if (!placement->stages[stage].registers) return false;
    enum lk_code rc = cuda->registers ? LK_OK : lk_fail(LK_E_DEVICE, "the driver registers none");
    for (uint32_t u = 0; u < it->units.n; u++) {
        if (!lk_placement_sends(placement, stage, u)) continue;
        n++;
        if (!rc && it->follower[u] == LK_NO_UNIT) rc = register_unit(p, it, u); /* scales lie in no file */
    }
    const bool all = p->n_registered - before == n;
    lk_log(LK_LOG_DETAIL, "%s, %s: %zu of %zu weights are registered in their mapped files%s%s%s", cuda->device.name,
           it->stages[stage].name, p->n_registered - before, n, all ? "" : ", threads read the others", rc ? ": " : "",
           rc ? lk_error_text() : "");
    return all;
}

#define HUGE_PAGE ((uintptr_t)2 << 20)

enum lk_code lk_cuda_pages_new(size_t bytes, struct lk_cuda_registered *out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    unsigned char *pages =
        mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return lk_fail(LK_E_FIT, "host memory, %zu bytes, could not be had", bytes);
    const size_t before = (HUGE_PAGE - (uintptr_t)pages % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(pages, before);
    munmap(pages + before + whole, HUGE_PAGE - before);
    madvise(pages + before, whole, MADV_HUGEPAGE);
    *out = (struct lk_cuda_registered){pages + before, bytes};
    return LK_OK;
}

enum lk_code lk_cuda_pages_pin(const struct lk_cuda_registered *pages) {
    enum lk_code rc = LK_CU(host_register, (pages->pages, pages->bytes, 0), "pinned copies of %zu bytes", pages->bytes);
    if (!rc) return LK_OK;
    munmap(pages->pages, pages->bytes);
    return rc == LK_E_FIT ? rc : lk_fail(LK_E_FIT, "%s", lk_error_text());
}

void lk_cuda_unregister(const struct lk_cuda_registered *registered) {
    lk_cuda()->host_unregister(registered->pages);
    munmap(registered->pages, registered->bytes);
}
