#!/bin/sh
# The sample pages of test_report_page: nothing from outside, the same bytes twice; and where a browser is installed, no
# message on its console and no sideways scrolling at 1280 and 390 pixels.
set -eu
scratch=$TEST_TMPDIR/report_html
rm -rf "$scratch"
mkdir -p "$scratch/a" "$scratch/b"
for run in a b; do
    TEST_TMPDIR=$scratch/$run "$BUILD_DIR/tests/test_report_page" >"$scratch/$run.log" 2>&1 || { cat "$scratch/$run.log"; exit 1; }
done
cd "$scratch"
for page in linked embedded audit_safe; do
    cmp "a/report_page/$page.html" "b/report_page/$page.html"
    if sed 's/ xmlns="http:\/\/www.w3.org\/2000\/svg"//g' "a/report_page/$page.html" | grep -nE 'https?:|src="(\.\.|/|//)|@import|url\(' ; then
        echo "$page.html: a reference to the outside"
        exit 1
    fi
done
if grep -n 'src="\./' a/report_page/embedded.html a/report_page/audit_safe.html; then
    echo "a page with embedded pictures links others"
    exit 1
fi
browser=$(command -v chromium || true)
[ -n "$browser" ] || { echo "chromium is not installed: pages were not opened"; exit 0; }
# A window cannot be made as narrow as a telephone, a frame can. The page in it says how wide its content is; the policy that
# forbids foreign scripts is taken out of that copy.
probe='<script>parent.postMessage(document.documentElement.scrollWidth + "/" + window.innerWidth, "*")</script>'
sed -e 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' -e "s#</body>#$probe</body>#" a/report_page/linked.html >a/report_page/probe.html
for width in 1280 390; do
    cat >a/report_page/frame_$width.html <<EOF
<!DOCTYPE html><title>frame</title><script>onmessage = function (m) { document.body.dataset.probe = m.data; }</script>
<iframe src="probe.html" width="$width" height="800" style="border: 0"></iframe>
EOF
done
look() { # look PAGE WIDTH
    timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=2000 \
        --user-data-dir="$scratch/profile" --window-size="$2,900" --dump-dom "file://$scratch/a/report_page/$1.html" 2>log >dom ||
        { cat log; exit 1; }
    if grep -i 'CONSOLE' log; then
        echo "$1.html at $2 px: messages on the console"
        exit 1
    fi
}
for page in linked embedded audit_safe; do look "$page" 1280; done
for width in 1280 390; do
    look frame_$width 1400
    got=$(grep -o 'data-probe="[0-9/]*"' dom | head -1 | tr -dc '0-9/')
    case $got in
    */$width) ;;
    *) echo "a frame of $width px says \"$got\""; exit 1 ;;
    esac
    [ "${got%/*}" -le "$width" ] || { echo "at $width px the page scrolls sideways: $got"; exit 1; }
done
