/* The page of a run, fetched again every few seconds; the focus stays where it is. */
"use strict";
const PERIOD_MS = 5000;
const take = (page, what) => {
    const here = document.querySelector(what), there = page.querySelector(what);
    if (here && there && here.innerHTML !== there.innerHTML) here.innerHTML = there.innerHTML;
};
const refresh = async () => {
    const said = document.getElementById("said");
    try {
        const reply = await fetch("/", { cache: "no-store" });
        if (!reply.ok) throw new Error("status " + reply.status);
        const page = new DOMParser().parseFromString(await reply.text(), "text/html");
        const focus = document.activeElement && document.activeElement.getAttribute("href");
        document.title = page.title;
        take(page, "[role=status]");
        take(page, "main");
        if (focus) for (const a of document.links) if (a.getAttribute("href") === focus) a.focus({ preventScroll: true });
        said.textContent = "";
    } catch (error) {
        if (!said.textContent) said.textContent = "The server does not answer: this is as of " + new Date().toLocaleTimeString() + ".";
    }
};
setInterval(() => { if (!document.hidden) refresh(); }, PERIOD_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
