#!/bin/sh
# The scripts of the pages of a selection and of a run, in a browser where one is installed: a page that the program has made,
# with its script, and a probe that does what a person or the server would and notes what comes of it.
set -eu
browser=$(command -v chromium || true)
[ -n "$browser" ] || { echo "SKIP: chromium is not installed: no script was run"; exit 77; }
scratch=$TEST_TMPDIR/page_scripts
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# try TEST PAGE SCRIPT EXPECTED: PAGE, which tests/TEST has saved, says EXPECTED; the probe comes on stdin.
try() {
    (cd "$SOURCE_DIR/tests" && TEST_TMPDIR=$scratch "$BUILD_DIR/tests/$1") >log 2>&1 || { cat log; exit 1; }
    {
        grep -v '<script src' "$(find . -name "$2")"
        echo "<script>const said = [];"
        sed 's/"use strict";//' "$SOURCE_DIR/eval/design/$3"
        cat
        echo "</script>"
    } >probe.html
    # On a screen and on a telephone: a window cannot be made as narrow, a frame can.
    for width in 1280 390; do
        {
            echo "<!DOCTYPE html><iframe src=\"probe.html\" width=\"$width\" height=\"800\" style=\"border: 0\"></iframe><script>setInterval(() => {"
            echo "const page = document.querySelector('iframe').contentDocument;"
            echo "document.body.dataset.probe = page.defaultView.innerWidth + ' ' + page.body.dataset.probe; }, 100);</script>"
        } >frame.html
        timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=12000 \
            --allow-file-access-from-files --window-size=1400,900 --user-data-dir="$scratch/profile" --dump-dom \
            "file://$scratch/frame.html" 2>messages >dom || { cat messages; exit 1; }
        told "$2" "$width $4"
    done
}

# told PAGE EXPECTED: what the probe has noted, and nothing on the console.
told() {
    if grep 'CONSOLE.*probe.html' messages; then
        echo "$1: messages on the console"
        exit 1
    fi
    got=$(sed -nE 's/.*data-probe="([^"]*)".*/\1/p' dom)
    [ "$got" = "$2" ] || { echo "$1: expected \"$2\", got \"$got\""; exit 1; }
}

# fits PAGE STYLE: the page that `try` has left does not scroll sideways, nor does its table.
fits() {
    {
        grep -v '<script src' "$(find . -name "$1")"
        echo "<style>"
        cat "$SOURCE_DIR/eval/design/$2"
        echo "</style><script>
            const wide = [document.documentElement, ...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth);
            parent.postMessage(innerWidth + ' ' + wide.map((e) => e.tagName + e.scrollWidth).join(), '*');
        </script>"
    } >inner.html
    {
        echo "<!DOCTYPE html><script>onmessage = (m) => { document.body.dataset.probe = (document.body.dataset.probe || '') + m.data + ';'; };</script>"
        for width in 1280 390; do echo "<iframe src=\"inner.html\" width=\"$width\" height=\"800\" style=\"border: 0\"></iframe>"; done
    } >frame.html
    timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --virtual-time-budget=2000 --window-size=1400,900 \
        --user-data-dir="$scratch/profile" --dump-dom "file://$scratch/frame.html" 2>messages >dom || { cat messages; exit 1; }
    case $(sed -nE 's/.*data-probe="([^"]*)".*/\1/p' dom) in
    "1280 ;390 ;" | "390 ;1280 ;") ;;
    *) echo "$1 is too wide: $(grep -o 'data-probe="[^"]*"' dom)"; exit 1 ;;
    esac
}

try test_selection_http cell.html selection_script.js \
    "choose1 0of3 6of3 choose3 0of7 flag7 undo previous next open true" <<'PROBE'
const candidate = () => document.activeElement.closest("section");
const number = (inside) => (inside.closest("section") ? inside.closest("section").querySelector("h2").textContent : "");
const press = (key, more) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
document.addEventListener("submit", (event) => {
    event.preventDefault();
    said.push((event.submitter ? event.submitter.value : event.target.id) + number(event.target));
});
document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    said.push(link.id);
});
const boxes = () => said.push(candidate().querySelectorAll("input:checked").length + "of" + number(document.activeElement));
press("c");                         // nobody is marked: the first
press("3"); boxes();
press("a"); boxes();
press("c");
press("7"); boxes(); press("f");
press("8"); press("x"); press("c", { ctrlKey: true });
press("n"); press("u"); press("c"); // typed into the note
press("Escape"); press("u");
press("ArrowLeft"); press("ArrowRight"); press("o");
press("?"); said.push(document.getElementById("keys").open);
document.body.dataset.probe = said.join(" ");
PROBE

fits cell.html selection_style.css

# The first answer is another page, the second is none: what changes is taken over, the focus stays, the silence is told.
try test_live_http run.html live_script.js "/;no-store 16 of 20 /picture/9?v=dddddddd true | 16 of 20 true" <<'PROBE'
document.querySelector("a[href^='/picture/9']").focus();
document.getElementById("said").textContent = "The server did not answer.";
let n = 0;
window.fetch = async (path, options) => {
    if (n++) throw new Error("gone");
    said.push(path + ";" + options.cache);
    const text = document.documentElement.outerHTML.replaceAll("15 of 20", "16 of 20");
    return { ok: true, text: async () => text };
};
const look = () => {
    said.push(document.title.slice(0, 8));
    if (document.querySelector("td").textContent !== document.title.slice(0, 8)) said.push("the table stays");
};
setTimeout(() => {
    look();
    said.push(document.activeElement.getAttribute("href"), document.getElementById("said").textContent === "", "|");
}, 6000);
setTimeout(() => {
    look();
    said.push(document.getElementById("said").textContent.startsWith("The server does not answer: this is as of "));
    document.body.dataset.probe = said.join(" ");
}, 11000);
PROBE
fits run.html live_style.css
