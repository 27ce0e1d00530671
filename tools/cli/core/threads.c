#include "tools/cli/core/threads.h"

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

static void *wait_at(void *context) {
    struct gate *gate = context;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open) pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

/* All of them live at the same time before the first may end. */
enum lk_code cli_threads_check(int n_threads) {
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    int n_asked = (n_threads > 0 ? n_threads : omp_get_max_threads()) - 1, n = 0, failed = 0;
    pthread_t *threads = lk_malloc((size_t)n_asked * sizeof *threads);
    if (!threads) return lk_fail(LK_E_NOMEM, "no memory for %d threads", n_asked);
    while (n < n_asked && !(failed = pthread_create(&threads[n], NULL, wait_at, &gate))) n++;
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    lk_free(threads);
    if (!failed) return LK_OK;
    return lk_fail(LK_E_NOMEM, "threads: %d were asked for, %d can be had (%s); use --threads %d or raise the limit",
                   n_asked + 1, n + 1, strerror(failed), n + 1);
}
