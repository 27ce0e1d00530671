/* The evaluation page: answers are saved as they are given, and keys. Without this script the form's own button saves. */
'use strict';
(() => {
  const form = document.getElementById('item');
  if (!form) return;
  const status = document.getElementById('status'), next = document.getElementById('next');
  const questions = [...form.querySelectorAll('fieldset')], texts = form.dataset, queue = new Map();
  const keys = document.getElementById('keys'), keysOn = document.getElementById('keys-on');
  let now = 0, sending = false, frozen = false;

  const answered = (q) => q.querySelector('input:checked') !== null;
  const complete = () => questions.every(answered);
  const say = (text) => { status.textContent = text; };

  const refresh = () => {
    questions.forEach((q, i) => q.classList.toggle('now', i === now));
    next.disabled = frozen || !complete();
  };
  const focus = (i) => {
    now = Math.max(0, Math.min(questions.length - 1, i));
    const q = questions[now];
    (q.querySelector('input:checked') || q.querySelector('input')).focus();
    refresh();
  };
  /* text: why, in the server's words. */
  const freeze = (text) => {
    frozen = true;
    form.querySelectorAll('input[type=radio], textarea').forEach((e) => { e.disabled = true; });
    say(text || texts.readOnly);
    refresh();
  };

  /* One request at a time, each with all that waits. What is not acknowledged stays and is tried again. */
  const send = async () => {
    if (sending || frozen || !queue.size) return;
    sending = true;
    const batch = new Map(queue);
    const body = new URLSearchParams();
    for (const name of ['form', 'lease', 'item']) body.set(name, form.querySelector(`[name=${name}]`).value);
    batch.forEach((value, key) => body.set(key, value));
    say(texts.saving);
    let wait = 0;
    try {
      const reply = await fetch(form.action, {method: 'POST', body, headers: {Accept: 'application/json'}});
      if (reply.ok) {
        batch.forEach((value, key) => { if (queue.get(key) === value) queue.delete(key); });
        say(queue.size ? texts.saving : texts.saved);
      } else if (reply.status === 425) {
        say(texts.early);
        wait = 1000;
      } else if (reply.status >= 400 && reply.status < 500 && reply.status !== 408 && reply.status !== 429) {
        const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
        freeze((page.querySelector('.note') || page.body).textContent);
      } else {
        throw new Error(reply.status);
      }
    } catch (e) {
      say(texts.unsaved);
      wait = 3000;
    }
    sending = false;
    if (queue.size && !frozen) setTimeout(send, wait);
  };

  form.addEventListener('change', (e) => {
    if (e.target.type !== 'radio') return;
    queue.set(e.target.name, e.target.value);
    now = questions.indexOf(e.target.closest('fieldset'));
    refresh();
    send();
  });
  form.addEventListener('focusin', (e) => {
    const q = e.target.closest('fieldset');
    if (q) now = questions.indexOf(q);
    refresh();
  });
  const choose = (n) => {
    const input = questions[now].querySelectorAll('input')[n - 1];
    if (!input || input.disabled) return;
    input.checked = true;
    input.dispatchEvent(new Event('change', {bubbles: true}));
    focus(now + 1);
  };
  const jump = (letter) => {
    const of = (q) => q.dataset.picture === letter;
    const open = questions.findIndex((q) => of(q) && !answered(q));
    const first = open < 0 ? questions.findIndex(of) : open;
    if (first >= 0) focus(first);
  };
  const unzoom = () => document.querySelectorAll('.zoomed').forEach((e) => e.classList.remove('zoomed'));

  document.addEventListener('click', (e) => {
    const picture = e.target.closest('.picture');
    if (picture) picture.classList.toggle('zoomed');
  });
  document.addEventListener('keydown', (e) => {
    const on = e.target, key = e.key;
    if (!keysOn.checked || on.tagName === 'TEXTAREA' || e.ctrlKey || e.metaKey || e.altKey) return;
    const act = {
      ArrowDown: () => focus(now + 1), ArrowUp: () => focus(now - 1),
      ArrowRight: () => { if (!next.disabled) next.click(); },
      ArrowLeft: () => { const back = document.getElementById('previous'); if (back) back.click(); },
      a: () => jump('a'), A: () => jump('a'), b: () => jump('b'), B: () => jump('b'),
      '?': () => { keys.open = !keys.open; if (keys.open) keysOn.focus(); else focus(now); },
      Escape: () => { unzoom(); keys.open = false; },
    }[key];
    if (/^[1-5]$/.test(key)) choose(Number(key));
    else if (key === 'Enter' && on.tagName !== 'BUTTON' && on.tagName !== 'A' && on.tagName !== 'SUMMARY') {
      if (!next.disabled) next.click();
    } else if (act) act();
    else return;
    e.preventDefault();
  });
  keysOn.checked = localStorage.getItem('keys') !== 'off';
  keysOn.addEventListener('change', () => localStorage.setItem('keys', keysOn.checked ? 'on' : 'off'));
  /* What still waits goes with the form, which carries every answer. */
  window.addEventListener('beforeunload', (e) => { if (queue.size && !form.dataset.leaving) e.preventDefault(); });
  form.addEventListener('submit', () => { form.dataset.leaving = '1'; });
  const open = questions.findIndex((q) => !answered(q));
  focus(open < 0 ? 0 : open);
})();
