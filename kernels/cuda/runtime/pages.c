#include "kernels/cuda/runtime/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((uintptr_t)2 << 20)

enum lk_code lk_cuda_pages_new(size_t bytes, struct lk_cuda_pages *out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    unsigned char *pages =
        mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return lk_fail(LK_E_FIT, "host memory, %zu bytes, could not be had", bytes);
    const size_t before = (HUGE_PAGE - (uintptr_t)pages % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(pages, before);
    munmap(pages + before + whole, HUGE_PAGE - before);
    madvise(pages + before, whole, MADV_HUGEPAGE);
    *out = (struct lk_cuda_pages){pages + before, bytes};
    return LK_OK;
}

enum lk_code lk_cuda_pages_pin(const struct lk_cuda_pages *pages) {
    enum lk_code rc = LK_CU(host_register, (pages->pages, pages->bytes, 0), "pinned copies of %zu bytes", pages->bytes);
    if (!rc) return LK_OK;
    munmap(pages->pages, pages->bytes);
    return rc == LK_E_FIT ? rc : lk_fail(LK_E_FIT, "%s", lk_error_text());
}

void lk_cuda_pages_free(const struct lk_cuda_pages *pages) {
    lk_cuda()->host_unregister(pages->pages);
    munmap(pages->pages, pages->bytes);
}
