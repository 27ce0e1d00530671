/* The way in, and the evaluation page: answers are saved as they are given, and keys. Without this script the form's own button saves. */
'use strict';
(() => {
  const form = document.getElementById('item'), entry = document.querySelector('form[action="/enter"]');
  /* The link has the participant's id: whoever opens the browser's history later must not find it. */
  if (entry) entry.addEventListener('submit', () => history.replaceState(null, '', location.pathname));
  if (!form) return;
  const status = document.getElementById('status'), next = document.getElementById('next');
  const questions = [...form.querySelectorAll('fieldset')], texts = form.dataset, queue = new Map();
  const keys = document.getElementById('keys'), keysOn = document.getElementById('keys-on');
  const practice = texts.practice; /* nothing of it is kept: "asked", or "shown" with what was right */
  let now = 0, sending = false, frozen = practice === 'shown';

  const answered = (q) => q.querySelector('input:checked') !== null;
  const complete = () => questions.every(answered);
  const say = (text) => {
    status.textContent = text; /* a long one makes the bar higher */
    if (document.activeElement.closest('fieldset') === questions[now]) show(questions[now]);
  };

  const refresh = () => {
    questions.forEach((q, i) => q.classList.toggle('now', i === now));
    if (practice !== 'shown') next.disabled = frozen || !complete();
  };
  /* The whole question, between the pictures that stay, with what was asked for, and the bar. */
  const show = (q) => {
    const root = document.documentElement.style, bar = form.querySelector('.bar');
    const above = form.querySelector('.above') || (q.closest('section') || form).querySelector('figure');
    const stays = above && getComputedStyle(above).position === 'sticky';
    root.scrollPaddingTop = `${stays ? above.offsetHeight + 8 : 8}px`;
    root.scrollPaddingBottom = `${bar.offsetHeight + 8}px`;
    q.scrollIntoView({block: 'nearest'});
  };
  const focus = (i) => {
    now = Math.max(0, Math.min(questions.length - 1, i));
    const q = questions[now];
    (q.querySelector('input:checked') || q.querySelector('input')).focus({preventScroll: true});
    show(q);
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
    if (sending || frozen || practice || !queue.size) return;
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
    if (!practice) queue.set(e.target.name, e.target.value);
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
  /* All pictures of the item above everything else, at one size and place: what is seen in one is seen in all. */
  const zoom = document.getElementById('zoom'), guidelines = document.getElementById('guidelines');
  const view = {scale: 1, x: 0, y: 0};
  const move = (scale, x, y) => {
    view.scale = Math.max(1, Math.min(8, scale));
    const most = 50 * (view.scale - 1); /* percent of the picture: its edge stays at the pane's */
    view.x = Math.max(-most, Math.min(most, x));
    view.y = Math.max(-most, Math.min(most, y));
    zoom.querySelectorAll('img').forEach((e) => {
      e.style.transform = `translate(${view.x}%, ${view.y}%) scale(${view.scale})`;
    });
  };
  const openZoom = () => {
    if (zoom.open) { zoom.close(); return; }
    zoom.replaceChildren(...[...form.querySelectorAll('figure')].map((figure) => {
      const pane = document.createElement('figure');
      pane.dataset.picture = figure.dataset.picture;
      pane.append(figure.querySelector('figcaption').cloneNode(true), figure.querySelector('img').cloneNode());
      return pane;
    }));
    move(1, 0, 0);
    zoom.showModal();
  };
  /* While it is held, the source stands where each edit stood. */
  const flicker = (held) => {
    const source = form.querySelector('figure[data-picture=s] img');
    if (!source) return;
    document.querySelectorAll('figure[data-picture=a] img, figure[data-picture=b] img').forEach((e) => {
      if (!e.dataset.own) e.dataset.own = e.src;
      const wanted = held ? source.src : e.dataset.own;
      if (e.src !== wanted) e.src = wanted;
    });
  };
  const zoomKey = (key) => {
    const step = 10, {scale, x, y} = view;
    const act = {
      '+': () => move(scale * 1.25, x * 1.25, y * 1.25), '-': () => move(scale / 1.25, x / 1.25, y / 1.25),
      0: () => move(1, 0, 0),
      ArrowLeft: () => move(scale, x + step, y), ArrowRight: () => move(scale, x - step, y),
      ArrowUp: () => move(scale, x, y + step), ArrowDown: () => move(scale, x, y - step),
      z: () => zoom.close(), f: () => flicker(true), Escape: () => zoom.close(),
    }[key === '=' ? '+' : key];
    if (act) act();
    return act !== undefined;
  };
  zoom.addEventListener('wheel', (e) => {
    const by = e.deltaY < 0 ? 1.25 : 0.8;
    move(view.scale * by, view.x * by, view.y * by);
    e.preventDefault();
  }, {passive: false});
  let dragged = false;
  zoom.addEventListener('pointerdown', (e) => { dragged = false; zoom.setPointerCapture(e.pointerId); });
  zoom.addEventListener('pointermove', (e) => {
    const pane = zoom.querySelector('img');
    if (!zoom.hasPointerCapture(e.pointerId) || !(e.movementX || e.movementY)) return;
    dragged = true;
    move(view.scale, view.x + 100 * e.movementX / pane.clientWidth, view.y + 100 * e.movementY / pane.clientHeight);
  });
  zoom.addEventListener('click', () => { if (!dragged) zoom.close(); });
  zoom.addEventListener('close', () => flicker(false));

  document.addEventListener('click', (e) => { if (e.target.closest('.picture, #zoom-open')) openZoom(); });
  document.getElementById('guidelines-open').addEventListener('click', () => guidelines.showModal());
  const hold = document.getElementById('flicker');
  hold.addEventListener('pointerdown', () => flicker(true));
  for (const end of ['pointerup', 'pointerleave', 'pointercancel']) hold.addEventListener(end, () => flicker(false));
  document.addEventListener('keyup', (e) => { if (e.key === 'f' || e.key === ' ') flicker(false); });
  window.addEventListener('blur', () => flicker(false));
  document.addEventListener('keydown', (e) => {
    const on = e.target, key = e.key;
    if (!keysOn.checked || on.tagName === 'TEXTAREA' || e.ctrlKey || e.metaKey || e.altKey) return;
    if (zoom.open) {
      if (zoomKey(key)) e.preventDefault();
      return;
    }
    if (guidelines.open) {
      if (key === 'g') guidelines.close();
      return;
    }
    if (key === ' ' && on === hold) flicker(true);
    const act = {
      z: openZoom, f: () => flicker(true), g: () => guidelines.showModal(),
      ArrowDown: () => focus(now + 1), ArrowUp: () => focus(now - 1),
      ArrowRight: () => { if (!next.disabled) next.click(); },
      ArrowLeft: () => { const back = document.getElementById('previous'); if (back) back.click(); },
      a: () => jump('a'), A: () => jump('a'), b: () => jump('b'), B: () => jump('b'),
      '?': () => { keys.open = !keys.open; if (keys.open) keysOn.focus(); else focus(now); },
      Escape: () => { keys.open = false; },
    }[key];
    if (/^[1-6]$/.test(key)) choose(Number(key));
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
  if (frozen) {
    form.querySelectorAll('input[type=radio]').forEach((e) => { e.disabled = true; });
    next.focus({preventScroll: true});
    const wrong = form.querySelector('fieldset + .bad');
    if (wrong) show(wrong.previousElementSibling);
  } else focus(open < 0 ? 0 : open);
})();
