#!/bin/sh
# The README's lines for nginx and Caddy, where those are installed: a participant enters through each of them, another
# name is refused, no log of theirs has the participant's id.
set -eu
command -v curl >/dev/null || { echo "SKIP: curl is not installed"; exit 77; }
scratch=$TEST_TMPDIR/survey_proxy readme=$SOURCE_DIR/tools/cli/survey/README.md
rm -rf "$scratch"
mkdir -p "$scratch/logs"
cd "$scratch"
server= proxy=
trap 'for p in $proxy $server; do kill "$p" 2>/dev/null || true; done' EXIT

printf picture >p.png
"$BUILD_DIR/likeness" sample pairs500 2>/dev/null | awk -F, 'NR > 1 && NR < 20 {
    id = tolower($6 "_" $4 "_" $3 "_" $2) "_" $5
    printf "%s{\"id\":\"%s\",\"source\":\"p.png\",\"edited\":\"p.png\",\"preserved\":\"p.png\"}", (NR > 2 ? "," : ""), id
}' >items
printf '{"study":"proxied","tasks":1,"host":"study.example.org","approval":"a","investigator":"b","contact":"c","items":[%s]}' "$(cat items)" >study.json
"$BUILD_DIR/likeness" serve survey study.json --port 0 >address 2>log &
server=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.1; done
port=$(sed 's/.*:\([0-9]*\).*/\1/' address)
[ -n "$port" ] || { cat log; exit 1; }
front=$((port > 40000 ? port - 10000 : port + 10000))

# lines FIRST-WORD: the README's code block that begins so, for this port.
lines() { awk -v first="$1" '/^```/ { inside = !inside; n = 0; next } inside { if (!n++) is = index($0, first) == 1; if (is) print }' "$readme" | sed "s/127.0.0.1:8080/127.0.0.1:$port/"; }

# ask PATH CURL-OPTION...: the reply's headers and body, through the proxy.
ask() { path=$1; shift; curl -s -i -m 10 --resolve "study.example.org:$front:127.0.0.1" -H 'Host: study.example.org' "$@" "http://study.example.org:$front$path"; }

through() {
    for _ in $(seq 300); do ask / >page && grep -q '^HTTP/1.1 200' page && break; sleep 0.1; done
    ask "/?PROLIFIC_PID=$1-person" >page
    grep -q 'action="/enter"' page || { cat page logs/* ; echo "$1: no page"; exit 1; }
    ask /enter -d "PROLIFIC_PID=$1-person" >page
    grep -qi '^Set-Cookie: __Host-survey=' page || { cat page; echo "$1: nobody enters"; exit 1; }
    cookie=$(sed -n 's/^[Ss]et-[Cc]ookie: \(__Host-survey=[0-9a-f]*\).*/\1/p' page)
    ask /guide -H "Cookie: $cookie" >page
    grep -q 'name="form"' page || { cat page; echo "$1: no guide"; exit 1; }
    curl -s -i -m 10 -H 'Host: evil.example' "http://127.0.0.1:$front/" >page || true
    ! grep -q 'HTTP/1.1 200' page || [ ! -s page ] || ! grep -q 'class="narrow' page || { cat page; echo "$1: any name is served"; exit 1; }
    ! grep -rq "$1-person" logs || { echo "$1 logs the participant"; exit 1; }
    echo "$1: through"
}

tried=0
if command -v nginx >/dev/null; then
    {
        echo "daemon off; master_process off; pid logs/pid; error_log logs/error.log; events {} http {"
        echo "client_body_temp_path logs/a; proxy_temp_path logs/b; fastcgi_temp_path logs/c; uwsgi_temp_path logs/d; scgi_temp_path logs/e;"
        sed -n 's/.*`\(limit_conn_zone .*\)` in its.*/\1/p' "$readme"
        echo "server { listen 127.0.0.1:$front; server_name study.example.org;"
        lines access_log
        echo "} server { listen 127.0.0.1:$front default_server; return 444; } }"
    } >nginx.conf
    nginx -p "$scratch" -c nginx.conf >nginx.log 2>&1 &
    proxy=$!
    through nginx
    kill "$proxy"; wait "$proxy" || true
    proxy=
    tried=1
fi
if command -v caddy >/dev/null; then
    front=$((front + 1))
    { echo "{"; echo "admin off"; echo "auto_https off"; echo "}"; lines study.example.org | sed "s|^study.example.org|http://study.example.org:$front|"; } >Caddyfile
    HOME=$scratch XDG_DATA_HOME=$scratch XDG_CONFIG_HOME=$scratch caddy run --config Caddyfile --adapter caddyfile >logs/caddy 2>&1 &
    proxy=$!
    through caddy
    kill "$proxy"; wait "$proxy" || true
    proxy=
    tried=1
fi
[ $tried = 1 ] || { echo "SKIP: neither nginx nor caddy is installed"; exit 77; }
