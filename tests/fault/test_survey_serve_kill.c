/* SIGKILL of a serving process while its participants answer, each over a connection of its own, at moments of chance:
 * what a participant was told is saved is on the page of the server that is started next, and of an answer whose
 * acknowledgement did not arrive all or nothing. A few kills, with LIKENESS_TEST_FULL 100. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "tests/common/clients.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

enum { N_PEOPLE = 50, N_ITEMS = 5, N_KEYS = 3, LIMIT_MS = 60000, LONGEST_US = 400000 };
static const char *const keys[N_KEYS] = {"a.edit_success", "a.skin_tone", "a.race_drift"};

static struct site site;
static struct visitor people[N_PEOPLE];
static int saved[N_PEOPLE][N_ITEMS], sent[N_PEOPLE][N_ITEMS]; /* the last acknowledged option, and the last sent */
static int n_acknowledged, n_broken;

/* A server in a process of its own. It dies as many microseconds after it is told as it is told,
 * at the latest when nobody can tell it any more. */
static pid_t serve(int *tell) {
    int port[2], when[2];
    assert_int_equal(pipe(port) | pipe(when), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (!pid) {
        useconds_t us;
        close(when[1]);
        if (lk_survey_open(&site.t.survey, site.t.study, site.t.store, true)) _exit(2);
        site_serve(&site);
        if (write(port[1], &site.port, sizeof site.port) != sizeof site.port) _exit(2);
        if (read(when[0], &us, sizeof us) == sizeof us) usleep(us);
        raise(SIGKILL);
    }
    close(port[1]);
    close(when[0]);
    assert_int_equal(read(port[0], &site.port, sizeof site.port), sizeof site.port);
    close(port[0]);
    *tell = when[1];
    return pid;
}

static void end(pid_t pid, int tell) {
    int state;
    close(tell);
    assert_int_equal(waitpid(pid, &state, 0), pid);
    assert_true(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);
}

static void everybody_enters(void) {
    for (int p = 0; p < N_PEOPLE; p++) {
        char query[40];
        snprintf(query, sizeof query, "PROLIFIC_PID=p%d", p);
        site_enter(&people[p], &site, query);
        site_consent(&people[p]);
        site_post(&people[p], "/tasks", "task=1", 303, "Location: /task/1");
    }
}

static char *page_of(int p, int item) {
    char path[40];
    snprintf(path, sizeof path, "/task/1?item=%d", item + 1);
    char *page = site_ask(&people[p], path, "", NULL);
    assert_int_equal(site_status_of(page), 200);
    return page;
}

/* The option that the page has chosen, 0: none. */
static int chosen(const char *page, const char *key) {
    for (int option = 1; option <= 5; option++) {
        char mark[100];
        snprintf(mark, sizeof mark, "name=\"%s\" value=\"%d\" checked", key, option);
        if (strstr(page, mark)) return option;
    }
    return 0;
}

static void what_was_acknowledged_is_there(void) {
    for (int p = 0; p < N_PEOPLE; p++)
        for (int i = 0; i < N_ITEMS; i++) {
            char *page = page_of(p, i);
            const int found = chosen(page, keys[0]);
            for (int k = 1; k < N_KEYS; k++) assert_int_equal(chosen(page, keys[k]), found);
            if (found != saved[p][i] && found != sent[p][i])
                fail_msg("participant %d, item %d: %d was acknowledged, %d sent, %d is there", p, i, saved[p][i],
                         sent[p][i], found);
            saved[p][i] = sent[p][i] = found;
            free(page);
        }
}

/* All answer their next item at once, from the opening of its page on. True: somebody was not answered. */
static bool everybody_answers(int item, int option) {
    static struct client clients[N_PEOPLE];
    char leases[N_PEOPLE][24] = {""};
    bool broken = false;
    for (int step = 0; step < 2 && !broken; step++) {
        for (int p = 0; p < N_PEOPLE; p++) {
            struct client *c = &clients[p];
            char body[400], query[40] = "";
            snprintf(body, sizeof body, "form=%s&lease=%.20s&item=%d&%s=%d&%s=%d&%s=%d", people[p].form,
                     step ? leases[p] : "", item + 1, keys[0], option, keys[1], option, keys[2], option);
            if (!step) snprintf(query, sizeof query, "?item=%d", item + 1);
            memset(c, 0, sizeof *c);
            lk_text_add(
                &c->request,
                "%s /task/1%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nAccept: application/json\r\n"
                "Cookie: survey-%d=%s\r\n",
                step ? "POST" : "GET", query, site.port, site.port, people[p].cookie);
            if (step)
                lk_text_add(&c->request,
                            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                            strlen(body), body);
            else
                lk_text_add(&c->request, "\r\n");
            if (step) sent[p][item] = option;
            client_open(c, site.port);
        }
        clients_run(clients, N_PEOPLE, LIMIT_MS);
        for (int p = 0; p < N_PEOPLE; p++) {
            struct client *c = &clients[p];
            if (c->status && c->status != 200) fail_msg("%.3000s", c->reply);
            if (c->status && !step && strstr(c->reply, "name=\"lease\""))
                site_take(c->reply, "name=\"lease\" value=\"", sizeof leases[p], leases[p]);
            else if (c->status && step)
                saved[p][item] = option, n_acknowledged++;
            else
                broken = true, n_broken += step;
            client_free(c);
        }
    }
    return broken;
}

static void what_was_saved_outlives_the_server(void **state) {
    const int n_kills = getenv("LIKENESS_TEST_FULL") ? 100 : 8;
    int tell, option = 0;
    unsigned chance = 7;
    (void)state;
    site.now = SITE_START;
    test_survey_open(&site.t, "serve-killed", N_ITEMS, "\"tasks\":1,\"places\":50,");
    lk_survey_close(site.t.survey);
    site.t.survey = NULL;
    pid_t pid = serve(&tell);
    everybody_enters();
    for (int kill = 0; kill < n_kills; kill++) {
        const useconds_t us = (useconds_t)(rand_r(&chance) % LONGEST_US);
        assert_int_equal(write(tell, &us, sizeof us), sizeof us);
        for (int item = 0; !everybody_answers(item, option % 5 + 1);) {
            item = (item + 1) % N_ITEMS;
            option += item == 0;
        }
        option++;
        end(pid, tell);
        site.now += 1000;
        pid = serve(&tell);
        what_was_acknowledged_is_there();
    }
    end(pid, tell);
    print_message("%d kills: %d acknowledged answers are there, of %d nobody was told\n", n_kills, n_acknowledged,
                  n_broken);
    assert_true(n_acknowledged > N_PEOPLE);
    test_survey_close(&site.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_saved_outlives_the_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
