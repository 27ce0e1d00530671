#!/bin/sh
# The keys of the selection page, in a browser where one is installed: the page that test_selection_http asks for, with its
# script and a probe that presses keys and notes what would be sent.
set -eu
browser=$(command -v chromium || true)
[ -n "$browser" ] || { echo "SKIP: chromium is not installed: no key was pressed"; exit 77; }
scratch=$TEST_TMPDIR/selection_keys
rm -rf "$scratch"
mkdir -p "$scratch"
TEST_TMPDIR=$scratch "$BUILD_DIR/tests/test_selection_http" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
cd "$scratch"
page=$(find . -name cell.html)
{
    grep -v '<script src' "$page"
    echo "<script>"
    cat "$SOURCE_DIR/eval/design/selection_script.js"
    cat <<'PROBE'
const said = [];
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
    echo "</script>"
} >keys.html
timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --user-data-dir="$scratch/profile" --dump-dom \
    "file://$scratch/keys.html" 2>messages >dom || { cat messages; exit 1; }
if grep 'CONSOLE.*keys.html' messages; then
    echo "messages on the console"
    exit 1
fi
got=$(sed -nE 's/.*data-probe="([^"]*)".*/\1/p' dom)
expected="choose1 0of3 6of3 choose3 0of7 flag7 undo previous next open true"
[ "$got" = "$expected" ] || { echo "expected \"$expected\", got \"$got\""; exit 1; }
