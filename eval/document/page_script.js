"use strict";
(function () {
  var root = document.documentElement;
  var make = function (name, text) { var e = document.createElement(name); if (text) e.textContent = text; return e; };

  /* Light, dark, or what the system says. */
  var themes = ["auto", "light", "dark"], theme = make("button");
  theme.type = "button";
  var show = function (name) {
    if (name === "auto") root.removeAttribute("data-theme"); else root.setAttribute("data-theme", name);
    theme.textContent = "Colours: " + name;
    theme.value = name;
  };
  theme.addEventListener("click", function () {
    show(themes[(themes.indexOf(theme.value) + 1) % 3]);
    try { localStorage.setItem("report-theme", theme.value); } catch (e) { /* no storage: for this visit only */ }
  });
  var kept = null;
  try { kept = localStorage.getItem("report-theme"); } catch (e) { kept = null; }
  show(themes.indexOf(kept) < 0 ? "auto" : kept);
  document.querySelector(".tools").appendChild(theme);

  /* A fold opens for what a link inside leads to, and for the printer. */
  var folds = document.querySelectorAll("details.fold"), printed = [];
  var reveal = function () {
    var id = decodeURIComponent(location.hash.slice(1)), target = id && document.getElementById(id);
    if (!target) return;
    var fold = target.closest("details.fold") || target.querySelector("details.fold");
    if (!fold || fold.open) return;
    fold.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  reveal();
  window.addEventListener("beforeprint", function () {
    printed = Array.prototype.filter.call(folds, function (fold) { return !fold.open; });
    printed.forEach(function (fold) { fold.open = true; });
  });
  window.addEventListener("afterprint", function () { printed.forEach(function (fold) { fold.open = false; }); });

  /* A container that does not scroll needs no stop of the keyboard. */
  var stops = function () {
    document.querySelectorAll(".scroll").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0; else box.removeAttribute("tabindex");
    });
  };
  stops();
  window.addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);

  /* Sorting by the full values. Groups would be torn apart, so tables with groups stay; a row in another unit than the
     first (a disparity in points below rates, a dash) stays at the end. */
  var unit = function (row, i) { return (/ pp|%|\u2013/.exec(row.cells[i].textContent) || [""])[0]; };
  var key = function (row, i) {
    var cell = row.cells[i];
    return cell.hasAttribute("data-v") ? Number(cell.getAttribute("data-v")) : cell.textContent;
  };
  var compare = function (a, b) {
    var x = typeof a === "number", y = typeof b === "number";
    if (x && y) return a - b;
    if (x !== y) return x ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  document.querySelectorAll("table").forEach(function (table) {
    var body = table.tBodies[0], head = table.tHead;
    if (!body || !head || body.rows.length < 3 || body.querySelector("tr.group")) return;
    Array.prototype.forEach.call(head.rows[0].cells, function (th, i) {
      var button = make("button", th.textContent);
      button.type = "button";
      th.textContent = "";
      th.appendChild(button);
      button.addEventListener("click", function () {
        var first = unit(body.rows[0], i), down = th.getAttribute("aria-sort") === "ascending";
        Array.prototype.forEach.call(head.rows[0].cells, function (other) { other.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.prototype.slice.call(body.rows).map(function (row, at) { return { row: row, at: at, key: key(row, i), last: i > 0 && unit(row, i) !== first ? 1 : 0 }; });
        rows.sort(function (a, b) { return a.last - b.last || (down ? -1 : 1) * compare(a.key, b.key) || a.at - b.at; });
        rows.forEach(function (r) { body.appendChild(r.row); });
      });
    });
  });

  /* The images behind a number: in a dialog where there is one, some at a time, else by their numbers at the end. */
  var list = function (hash) {
    var target = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    return target && target.classList.contains("numbers") ? target : null;
  };
  var open = function () {
    var target = list(location.hash);
    if (!target) return;
    for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();

  /* The source over the output, as far as a slider says. */
  var slider = function (item) {
    var pair = item.querySelector(".pair"), range = make("input"), label = make("label", "Source over output");
    if (!pair || pair.querySelectorAll("img").length < 2) return;
    range.type = "range";
    range.value = 0;
    range.addEventListener("input", function () {
      pair.classList.toggle("over", range.value > 0);
      pair.style.setProperty("--at", range.value + "%");
    });
    label.className = "slide";
    label.appendChild(range);
    pair.after(label);
  };
  if (typeof HTMLDialogElement === "undefined") return;
  document.addEventListener("click", function (event) {
    var link = event.target.closest ? event.target.closest("a.drill") : null;
    var target = link && !event.ctrlKey && !event.metaKey && !event.shiftKey ? list(link.hash) : null;
    if (!target) return;
    event.preventDefault();
    var dialog = make("dialog"), bar = make("div"), title = make("h2"), close = make("button", "Close");
    var inside = make("div"), items = make("div"), more = make("button", "More"), shown = 0;
    var numbers = target.textContent.match(/\d+/g) || [];
    title.textContent = target.closest("details").querySelector("summary").textContent;
    title.id = "dialog-title";
    close.type = more.type = "button";
    bar.className = "bar";
    inside.className = "inside";
    items.className = "items";
    bar.appendChild(title);
    bar.appendChild(close);
    inside.appendChild(items);
    inside.appendChild(more);
    var add = function () {
      numbers.slice(shown, shown + 24).forEach(function (number) {
        var copy = document.getElementById("item-" + number).cloneNode(true);
        copy.removeAttribute("id");
        slider(copy);
        items.appendChild(copy);
      });
      shown += 24;
      more.hidden = shown >= numbers.length;
    };
    more.addEventListener("click", add);
    add();
    dialog.appendChild(bar);
    dialog.appendChild(inside);
    dialog.setAttribute("aria-labelledby", "dialog-title");
    close.addEventListener("click", function () { dialog.close(); });
    dialog.addEventListener("click", function (e) { if (e.target === dialog) dialog.close(); });
    dialog.addEventListener("close", function () { dialog.remove(); link.focus(); });
    document.body.appendChild(dialog);
    dialog.showModal();
  });
})();
