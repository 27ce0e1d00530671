/* Keys of the selection page; without a script everything works by buttons. */
"use strict";
const forms = [...document.querySelectorAll(".candidate")];
const current = () => document.activeElement.closest(".candidate") || forms[0];
const follow = (id) => { const link = document.getElementById(id); if (link) link.click(); };
const keys = {
    ArrowLeft: () => follow("previous"),
    ArrowRight: () => follow("next"),
    o: () => follow("open"),
    u: () => document.getElementById("undo").requestSubmit(),
    f: () => current().querySelector("button[value=flag]").click(),
    c: () => current().querySelector("button.first").click(),
    n: () => current().querySelector("input[type=text]").focus(),
    a: () => {
        const boxes = [...current().querySelectorAll("input[type=checkbox]")];
        const all = boxes.every((box) => box.checked);
        boxes.forEach((box) => { box.checked = !all; });
    },
    "?": () => { const help = document.getElementById("keys"); help.open = !help.open; },
};
document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("input[type=text]")) {
        if (event.key === "Escape") event.target.blur();
        return;
    }
    const form = forms[Number(event.key) - 1];
    if (form) {
        form.querySelector("input[type=checkbox]").focus();
        event.preventDefault();
    } else if (Object.hasOwn(keys, event.key)) {
        keys[event.key]();
        event.preventDefault();
    }
});
