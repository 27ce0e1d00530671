/* The evaluation page in a headless browser, where one is installed: scripted keys complete an item, and what the
 * page's script then sends is what the running server takes. The page comes from the server and is opened as a file,
 * with a driver in it, for no browser lets a script into the page itself. */
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "tests/common/site.h"
#include "tests/common/test.h"

/* Before the page's own script: requests are noted, the first gets lost. After it: keys, and what must come of each. */
static const char before[] =
    "<script>document.querySelectorAll('img').forEach((e, i) => { e.src = 'data:image/svg+xml,<svg "
    "xmlns=\"http://www.w3.org/2000/svg\" width=\"512\" height=\"512\"><text>' + i + '</text></svg>'; });\n"
    "const sent = []; let lost = 1, status = 200;\n"
    "window.fetch = async (to, o) => { if (lost-- > 0) throw new Error('lost');\n"
    "  sent.push(o.body.toString()); return {ok: status === 200, status,\n"
    "    text: async () => '<main><h1>No</h1><p class=\"note\">given back</p></main>'}; };</script>\n";
static const char driver[] =
    "<script>(async () => {\n"
    "const all = (s) => [...document.querySelectorAll(s)], q = all('#item fieldset'), said = [];\n"
    "const wait = (ms) => new Promise((r) => setTimeout(r, ms));\n"
    "const key = (k, more) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown',\n"
    "  Object.assign({key: k, bubbles: true, cancelable: true}, more)));\n"
    "const now = () => q.findIndex((e) => e.classList.contains('now'));\n"
    "const n = () => all('#item input:checked').length;\n"
    "const is = (name, ok) => said.push((ok ? 'ok ' : 'WRONG ') + name);\n"
    "const line = document.getElementById('status'), keys = document.getElementById('keys');\n"
    "let gone = 0; document.getElementById('item').addEventListener('submit', (e) => { e.preventDefault(); gone++; "
    "});\n"
    "document.querySelector('input[name=form]').value = 'TOKEN';\n"
    "is('first question', now() === 0 && n() === 0);\n"
    "const box = document.querySelector('textarea');\n"
    "if (box) { box.focus(); for (const k of ['1', '5', 'a', '?', 'Enter', 'ArrowRight']) key(k);\n"
    "  is('no keys in the comment', n() === 0 && !keys.open && document.activeElement === box);\n"
    "  q[0].querySelector('input').focus(); }\n"
    "key('3'); is('3 answers and moves on', q[0].querySelectorAll('input')[2].checked && now() === 1);\n"
    "key('ArrowDown'); is('down', now() === 2); key('ArrowUp'); is('up', now() === 1);\n"
    "if (all('[data-picture=b]').length) { key('b'); is('b', now() === 5); key('A'); is('A', now() === 1); }\n"
    "key('1', {ctrlKey: true}); is('not with control', n() === 1);\n"
    "key('?'); is('list', keys.open && document.activeElement.id === 'keys-on');\n"
    "document.activeElement.click(); key('2'); is('keys off', n() === 1); document.activeElement.click();\n"
    "key('?'); is('list closed', !keys.open && now() === 1);\n"
    "key('Enter'); key('ArrowRight'); is('not before all is answered', gone === 0);\n"
    "await wait(100); is('unsaved is said', /^Not saved/.test(line.textContent) && sent.length === 0);\n"
    "await wait(3500); is('tried again', sent.length === 1 && line.textContent === 'Saved');\n"
    "for (let i = 1; i < q.length; i++) { key(String(i % 5 + 1)); await wait(i % 2 ? 50 : 0); }\n"
    "await wait(100); is('all answered', n() === q.length && !document.getElementById('next').disabled);\n"
    "const asked = sent.length;\n"
    "key('Enter'); is('Enter goes on', gone === 1); key('ArrowRight'); is('right goes on', gone === 2);\n";
static const char driver_of_pictures[] =
    "const zoom = document.getElementById('zoom'), panes = () => [...zoom.querySelectorAll('img')];\n"
    "document.querySelector('.picture').click();\n"
    "is('zoom holds every picture', zoom.open && panes().length === all('#item figure').length);\n"
    "is('zoom is topmost', zoom.contains(document.elementFromPoint(5, 5)) && "
    "zoom.contains(document.elementFromPoint(innerWidth / 2, innerHeight - 5)));\n"
    "key('+'); key('+'); key('ArrowRight'); is('one zoom and pan', /scale\\(1.56/.test(panes()[0].style.transform) && "
    "panes().every((e) => e.style.transform === panes()[0].style.transform));\n"
    "const srcs = () => panes().slice(1).map((e) => e.src).join();\n"
    "const own = srcs(); key('f'); is('f shows the source', panes().every((e) => e.src === panes()[0].src));\n"
    "document.dispatchEvent(new KeyboardEvent('keyup', {key: 'f'})); is('let go', srcs() === own);\n"
    "const given = n(); key('1'); is('no answers below the zoom', n() === given);\n"
    "key('Escape'); is('zoom ends', !zoom.open);\n"
    "key('g'); is('guidelines', document.getElementById('guidelines').open); key('g');\n"
    "is('guidelines closed', !document.getElementById('guidelines').open);\n"
    "const wide = all('#item .picture img').map((e) => Math.min(e.clientWidth, e.clientHeight));\n"
    "is('pictures are large: ' + wide, Math.min(...wide) >= Math.min(400, innerHeight - 320));\n"
    "const at = (e) => e.getBoundingClientRect(), bar = at(document.querySelector('.bar')).top;\n"
    "const large = all('#item figure'), below = Math.max(...large.map((e) => at(e).bottom));\n"
    "is('a question in view with every picture: ' + [below, bar, large.map((e) => at(e).top)], "
    "Math.min(...large.map((e) => at(e).top)) >= -1 && q.some((e) => at(e).top >= below - 1 && at(e).bottom <= bar + "
    "1));\n"
    "let out = 0; for (let i = 0; i < q.length; i++) key('ArrowUp');\n"
    "for (let i = 0; i < q.length; i++) { const r = at(q[now()]), under = Math.max(...large.map((e) => "
    "at(e).bottom));\n"
    "  if (r.top < under - 1 || r.bottom > at(document.querySelector('.bar')).top + 1) out++; key('ArrowDown'); }\n"
    "is('each question whole in view when it is answered: ' + out, out === 0);\n"
    "is('pixels: ' + innerHeight, innerWidth === 1280);\n"
    "is('five equal columns', all('.five').every((f) => new Set([...f.children].slice(0, 5).map((l) => "
    "Math.round(l.getBoundingClientRect().width))).size === 1));\n"
    "status = 425; key('ArrowUp'); key('5'); await wait(50); is('too early is said', /too "
    "early/.test(line.textContent));\n"
    "status = 409; await wait(1500); is('a place given back', all('#item input[type=radio]:not(:disabled)').length === "
    "0 && line.textContent === 'given back');\n"
    "is('nothing sideways', document.documentElement.scrollWidth <= innerWidth);\n"
    "document.body.innerHTML = '<pre>' + said.join('\\n') + sent.slice(0, asked).map((b) => '\\nsent ' + b).join('') + "
    "'\\nend</pre>';\n"
    "})();</script>\n";

/* `text` with the only `part` replaced; frees text. */
static char *replace(char *text, const char *part, const char *with) {
    char *at = strstr(text, part);
    if (!at) fail_msg("the page lacks %s", part);
    char *out = lk_format("%.*s%s%s", (int)(at - text), text, with, at + strlen(part));
    assert_non_null(out);
    lk_free(text);
    return out;
}

/* What the browser makes of the page, its address with `query`: its lines are ours to read. */
static char *browse(const char *folder, const char *page, const char *query, int height) {
    char path[600], command[2400];
    size_t n;
    snprintf(path, sizeof path, "%s/item.html", folder);
    test_write(path, page, strlen(page));
    snprintf(command, sizeof command,
             "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --virtual-time-budget=20000 "
             "--window-size=1280,%d --user-data-dir='%s/profile' --dump-dom 'file://%s%s' >'%s/dom' 2>'%s/log'",
             height, folder, path, query, folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/dom", folder);
    return test_read(path, &n);
}

static void send(const struct visitor *v, char *body) {
    for (char *amp; (amp = strstr(body, "&amp;"));) memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
    site_post(v, "/task/1", body + strlen("form=TOKEN&"), 200, "Saved");
}

static void keys_complete(const char *name, const char *more, int n_questions) {
    struct site s;
    struct visitor v;
    struct lk_data_file script, style;
    struct lk_survey_answer *answers;
    struct lk_survey_visitor who;
    size_t n, first_open;
    int n_ok = 0, n_sent = 0;
    site_open(&s, name, 6, more);
    site_enter(&v, &s, "PROLIFIC_PID=abc");
    site_consent(&v);
    site_post(&v, "/tasks", "task=1", 303, "Location: /task/1");
    char *page = site_ask(&v, "/task/1", "", NULL), *whole = page;
    assert_true(lk_data_find("survey_script", &script) && lk_data_find("survey_style", &style));
    page = lk_strdup(strstr(page, "\r\n\r\n") + 4);
    free(whole);
    char *scripts = lk_format("%s<script>%.*s</script>\n%s%s", before, (int)script.n_bytes, (const char *)script.text,
                              driver, driver_of_pictures);
    char *styled = lk_format("<style>%.*s</style>", (int)style.n_bytes, (const char *)style.text);
    page = replace(page, "<link rel=\"stylesheet\" href=\"/style.css\">", styled);
    lk_free(styled);
    page = replace(page, "<script src=\"/script.js\"></script>\n", scripts);
    char *dom = browse(s.t.folder, page, "", 720);
    char *at = strstr(dom, "<pre>"), *rest = NULL;
    if (!at || !strstr(at, "\nend</pre>")) fail_msg("the keys came to no end: %.2000s", dom);
    for (char *line = strtok_r(at + 5, "\n", &rest); strncmp(line, "end</pre>", 9);
         line = strtok_r(NULL, "\n", &rest)) {
        if (!strncmp(line, "WRONG", 5)) fail_msg("%s: %s", name, line);
        n_ok += !strncmp(line, "ok ", 3);
        if (strncmp(line, "sent ", 5)) continue;
        send(&v, line + 5);
        n_sent++;
    }
    assert_in_range(n_ok, 26, 40);
    assert_in_range(n_sent, 2, n_questions);
    assert_ok(lk_survey_visitor(s.t.survey, v.cookie, s.now, &who));
    assert_ok(lk_survey_answers(s.t.survey, &who, &answers, &n, &first_open));
    assert_int_equal(n, n_questions);
    assert_int_equal(first_open, 1);
    lk_free(answers);
    free(dom);
    lk_free(scripts);
    lk_free(page);
    site_close(&s);
}

static void keys_complete_an_item(void **state) {
    (void)state;
    if (system("command -v chromium >/dev/null")) skip();
    keys_complete("browser-pair", "\"tasks\":1,", 10);
    keys_complete("browser-comment", "\"tasks\":1,\"protocol\":\"001\",\"checks_per_task\":0,\"min_seconds\":0,", 5);
}

/* The platform's link has the id; once it is sent, neither the address nor the history has. */
static void an_id_does_not_stay_in_the_address(void **state) {
    static const char enters[] =
        "<script>const form = document.querySelector('form'); let said = location.search;\n"
        "form.addEventListener('submit', (e) => { e.preventDefault(); said += ' then ' + location.search; });\n"
        "form.requestSubmit(); document.body.innerHTML = '<pre>' + said + ' end</pre>';</script>\n";
    struct site s;
    struct lk_data_file script;
    (void)state;
    if (system("command -v chromium >/dev/null")) skip();
    site_open(&s, "browser-entry", 6, "\"tasks\":1,");
    const struct visitor nobody = {.site = &s};
    char *whole = site_ask(&nobody, "/?PROLIFIC_PID=abc", "", NULL);
    assert_true(lk_data_find("survey_script", &script));
    char *scripts = lk_format("<script>%.*s</script>\n%s", (int)script.n_bytes, (const char *)script.text, enters);
    char *page = replace(lk_strdup(strstr(whole, "\r\n\r\n") + 4), "<script src=\"/script.js\"></script>\n", scripts);
    char *dom = browse(s.t.folder, page, "?PROLIFIC_PID=abc", 720);
    if (!strstr(dom, "<pre>?PROLIFIC_PID=abc then  end</pre>")) fail_msg("%.2000s", dom);
    free(dom);
    lk_free(scripts);
    lk_free(page);
    free(whole);
    site_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_complete_an_item),
                                       cmocka_unit_test(an_id_does_not_stay_in_the_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
