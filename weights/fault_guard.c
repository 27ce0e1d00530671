#include "weights/fault_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A fixed table of atomics and no lock: the handler may run at any instruction of any thread. start 0: free. A slot is
 * filled size first and emptied start first. */
static struct { atomic_uintptr_t start, bytes, name; } slots[LK_FAULT_GUARD_MAX];
static atomic_int n_slots_used; /* no slot at or beyond it was ever used */
static atomic_int n_faults;
static char first_name[4096]; /* written once, by whoever finds `naming` clear, before it counts its fault */
static atomic_flag naming = ATOMIC_FLAG_INIT;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction earlier;
static _Thread_local volatile sig_atomic_t in_earlier; /* two handlers may have each other as the earlier one */
static uintptr_t page_bytes;

/* Gives zeros from the faulting page to the end of its mapping: a cut file has nothing beyond, and a fault per page of
 * a large file would take minutes. */
static bool cover(uintptr_t address) {
    int n = atomic_load(&n_slots_used);
    for (int i = 0; i < n; i++) {
        uintptr_t start = atomic_load(&slots[i].start), bytes = atomic_load(&slots[i].bytes);
        if (!start || address < start || address - start >= bytes) continue;
        uintptr_t page = address & ~(page_bytes - 1);
        const char *name = (const char *)atomic_load(&slots[i].name);
        if (name && !atomic_flag_test_and_set(&naming))
            for (size_t k = 0; k + 1 < sizeof first_name && name[k]; k++) first_name[k] = name[k];
        atomic_fetch_add(&n_faults, 1);
        void *zeros = mmap((void *)page, start + bytes - page, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        return zeros != MAP_FAILED;
    }
    return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    bool from_hardware = info->si_code > 0; /* not kill() or raise() */
    if (from_hardware && cover((uintptr_t)info->si_addr)) {
        errno = saved_errno;
        return;
    }
    bool may_pass_on = !in_earlier;
    in_earlier = 1;
    if (may_pass_on && (earlier.sa_flags & SA_SIGINFO)) {
        earlier.sa_sigaction(number, info, context);
    } else if (earlier.sa_handler == SIG_IGN && !from_hardware) {
        /* ignored, as before */
    } else if (!may_pass_on || earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN) {
        signal(number, SIG_DFL);
        raise(number); /* blocked here; delivered when this handler returns */
    } else {
        earlier.sa_handler(number);
    }
    in_earlier = 0;
    errno = saved_errno;
}

/* Puts the handler in front of whatever is there now: somebody may have set another one since the last time. */
static enum lk_code install(void) {
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) < 0) return lk_fail_errno(errno, "cannot look at the SIGBUS handler");
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus) return LK_OK;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    earlier = now;
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, NULL) < 0) return lk_fail_errno(errno, "cannot install the SIGBUS handler");
    return LK_OK;
}

enum lk_code lk_fault_guard_add(void *start, size_t bytes, const char *name) {
    pthread_mutex_lock(&changing);
    enum lk_code rc = install();
    int i = 0;
    if (!rc) {
        while (i < LK_FAULT_GUARD_MAX && atomic_load(&slots[i].start)) i++;
        if (i == LK_FAULT_GUARD_MAX)
            rc = lk_fail(LK_E_INPUT, "more than %d files are mapped at once", LK_FAULT_GUARD_MAX);
    }
    if (!rc) {
        atomic_store(&slots[i].bytes, bytes);
        atomic_store(&slots[i].name, (uintptr_t)name);
        atomic_store(&slots[i].start, (uintptr_t)start);
        if (i >= atomic_load(&n_slots_used)) atomic_store(&n_slots_used, i + 1);
    }
    pthread_mutex_unlock(&changing);
    return rc;
}

void lk_fault_guard_remove(void *start) {
    pthread_mutex_lock(&changing);
    for (int i = 0; i < LK_FAULT_GUARD_MAX; i++)
        if (atomic_load(&slots[i].start) == (uintptr_t)start) atomic_store(&slots[i].start, 0);
    pthread_mutex_unlock(&changing);
}

int lk_fault_guard_faults(void) { return atomic_load(&n_faults); }

const char *lk_fault_guard_name(void) { return first_name; }
