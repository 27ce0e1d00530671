#!/bin/sh
# The README's study of one's own, from its file to its report: five models, one of them a checkpoint under two
# settings and one with seeds of its own, two attributes, prompts in categories of its own, several seeds. The run is
# killed twice, two workers judge, raters answer. With --full as many sources, prompts and seeds as the README says.
set -eu
PATH=$BUILD_DIR:$PATH
scratch=$TEST_TMPDIR/any
data=$SOURCE_DIR/tests/golden/data
rm -rf "$scratch"
mkdir -p "$scratch/faces"
cd "$scratch"
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
fail() {
    echo "FAILED: $*"
    exit 1
}
n_sources=6 n_prompts=3 seeds=0:1 n_seeds=2
[ -z "${LIKENESS_TEST_FULL-}" ] || n_sources=30 n_prompts=8 seeds=0:2 n_seeds=3

make_checkpoint --family qwen25_vl --preset tiny judge >log
i=0
echo id,path,skin_type,head_covering >sources.csv
while [ $i -lt $n_sources ]; do
    i=$((i + 1))
    make_face --size 64x64 --skin $((i % 6 + 1)) faces/$i.png >log
    echo "P$i,faces/$i.png,$(echo I II III IV V VI | cut -d ' ' -f $((i % 6 + 1))),$(echo none hijab turban | cut -d ' ' -f $((i % 3 + 1)))" >>sources.csv
done
cat >all.csv <<'CSV'
id,text,category,subcategory
K-01,Make the person a cook,kitchen,heat
H-01,Make the person look older,time,age
S-01,Put the person on a boat,scene,water
K-02,Make the person a baker,kitchen,heat
K-03,Make the person a waiter,kitchen,service
H-02,Make the person look tired,time,day
S-02,Put the person in a forest,scene,land
S-03,"Put the person in a desert, at noon",scene,land
CSV
head -n $((n_prompts + 1)) all.csv >prompts.csv
awk -F, 'BEGIN { print "model,source_id,prompt_id" } NR == FNR { if (FNR > 1) source[++n] = $1; next }
    FNR > 1 { for (i = 1; i <= n; i++) print "quick," source[i] "," $1 }' sources.csv prompts.csv >list.csv
flux='"path": "'$data'/flux2/rich/checkpoint", "max_sequence_length": 40, "allow_cut": true, "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32'
cat >study.json <<JSON
{"schema": 2, "study": "coverings",
 "attributes": [
  {"name": "skin_type", "display": "Skin type", "kind": "ordered", "levels": ["I", "II", "III", "IV", "V", "VI"]},
  {"name": "head_covering", "display": "Head covering", "levels": [{"key": "none", "display": "No covering"}, "hijab", "turban"]}],
 "sources": "sources.csv", "prompts": "prompts.csv",
 "models": {
  "quick": {$flux, "label": "FLUX, 1 step", "num_inference_steps": 1},
  "slow": {$flux, "label": "FLUX, 2 steps", "num_inference_steps": 2},
  "step1x": {"path": "$data/step1x/plain/checkpoint", "num_inference_steps": 1, "allow_steps": true, "size_level": 32},
  "qwen": {"path": "$data/qwen_edit/edit2511/checkpoint", "num_inference_steps": 2, "width": 32, "height": 32},
  "seeded": {"path": "$data/qwen_edit/edit2511/checkpoint", "label": "Qwen, other seeds", "num_inference_steps": 2, "width": 32, "height": 32, "seeds": "10:10"}},
 "experiments": {"edits": {"kind": "edit", "seeds": "$seeds"},
  "kept": {"kind": "pair", "preset": "list", "list": "list.csv", "preserve_with": "generic", "seeds": "0"}},
 "analysis": {"alpha": 0.05}}
JSON
n=$((n_sources * n_prompts * (4 * n_seeds + 1) + n_sources * n_prompts))

likeness study check study.json >stdout
grep -q "^coverings: $n jobs" stdout || fail "check: $(cat stdout)"
likeness study plan study.json >stdout
grep -q "^total *$n " stdout || fail "plan: $(cat stdout)"
for seconds in 1.5 2.5; do
    timeout -s KILL $seconds likeness study run study.json -o run --devices cpu,cpu --threads 1 >log 2>&1 && fail "a run that was to be killed"
done
likeness study status run >log || true
likeness study run study.json -o run --devices cpu,cpu --threads 1 >stdout
grep -q "^seeded   nominal $((n_sources * n_prompts))  success $((n_sources * n_prompts))  failed 0$" stdout || fail "run: $(cat stdout)"
[ "$(wc -l <run/manifest.jsonl)" = $n ] || fail "the manifest has $(wc -l <run/manifest.jsonl) lines"
line=$(grep '"item_id":"seeded_P2_S-01_s10"' run/manifest.jsonl) || fail "no item of the seeds of its own"
for part in '"experiment":"edits"' '"model":"seeded"' '"source_id":"P2"' '"skin_type":"III"' '"head_covering":"turban"' \
    '"category":"scene"' '"subcategory":"water"' '"seed":10'; do
    case $line in *"$part"*) ;; *) fail "the manifest lacks $part: $line" ;; esac
done
# The same pixels as `edit`, and an own copy of the study that needs no table.
likeness edit -q -m "$data/flux2/rich/checkpoint" -r faces/1.png -p "Make the person a cook" -s 1 --steps 1 -t 1 \
    --max-sequence-length 40 --text-encoder-out-layers 1,2,3 -W 32 -H 32 -o one.png >log
cmp one.png run/results/edits/quick/kitchen/quick_P1_K-01_s1.png || fail "another picture than edit's"
mkdir away && mv sources.csv prompts.csv list.csv study.json away

likeness judge run --slot primary -m judge --from run --mode direct -q -t 1 --devices cpu,cpu -o primary.jsonl >log 2>&1
[ "$(wc -l <primary.jsonl)" = $n ] || fail "$(wc -l <primary.jsonl) of $n items were judged"
likeness judge prompt --help >log
likeness judge --from run >pixel.jsonl
[ "$(wc -l <pixel.jsonl)" = $n ] || fail "not every picture is judged by pixels"

likeness survey gold --from run -o survey 2>log || fail "gold: $(cat log)"
likeness survey new --from run --sample 12 -o survey/survey.json >stdout
grep -q '12 pairs in 1 task,' stdout || fail "survey: $(cat stdout)"
likeness survey pilot survey/survey.json --pilot 3 >log
likeness survey export survey/survey.json -o answers >log
[ "$(grep -c '"isAttentionCheck":true' answers/evaluations_exp2.jsonl)" -ge 6 ] || fail "no attention checks: $(head -n 3 answers/evaluations_exp2.jsonl)"

likeness report --from run --primary primary.jsonl --pixel pixel.jsonl --ratings answers/evaluations_exp2.jsonl \
    --participants answers/participants.jsonl --title Coverings -o report >stdout 2>stderr || fail "report: $(cat stderr)"
for table in rates_by_model rates_by_category rates_by_subcategory rates_by_attribute_skin_type rates_by_attribute_head_covering pairs_by_model \
    raters judges seeds outputs sources_skin_type prompts; do
    grep -q 'no data' report/tables/$table.md && fail "$table has no data"
done
grep -q '^| edits | Qwen, other seeds | '$((n_sources * n_prompts)) report/tables/outputs.md || fail "outputs: $(cat report/tables/outputs.md)"
grep -q 'Rates by Skin type' report/report.html || fail "the page has no table by skin type"
query() { likeness report --from run --primary primary.jsonl --query "$1" 2>stderr; }
query "SELECT count(*) AS n FROM output WHERE status = 'made'" | grep -q "^| $(echo $n | sed -E 's/([0-9])([0-9]{3})$/\1,\2/') |$" || fail "query: $(cat stderr)"
# A rate in the table is the mean of the scores, counted here by hand.
query "SELECT sum(value) AS k, count(*) AS n FROM measured WHERE measure = 'soft_erasure' AND who = 'judges' AND arm = 'edited' AND model_key = 'slow'" >stdout
ids=$(sed -nE 's/^\{"item_id":"(slow_[^"]*)".*"edit_success":([12]).*/\1/p' primary.jsonl | wc -l)
grep -Eq "^\| $ids(\.0000)? \|" stdout || fail "soft erasure of slow: $ids by hand, $(cat stdout)"
for sql in "DELETE FROM score" "ATTACH 'x' AS y" "PRAGMA user_version = 3" "SELECT 1; SELECT 2" "CREATE TABLE t(x)" "SELECT load_extension('x')"; do
    query "$sql" >stdout && fail "a query that writes is allowed: $sql"
    [ -s stderr ] || fail "no reason for $sql"
done

# A second judge, a person who decides where the two differ, and what that turns; each reads the run folder.
mkdir -p run/judges
cp primary.jsonl run/judges/primary.jsonl
sed -E 's/"judge":"[^"]*"/"judge":"other"/; s/("scores":\{[^}]*)"race_drift":[1-5]/\1"race_drift":5/' primary.jsonl >run/judges/secondary.jsonl
likeness judge agreement --from run >stdout 2>stderr || fail "agreement: $(cat stderr)"
grep -q "^| race.*drift | $(echo $n | sed -E 's/([0-9])([0-9]{3})$/\1,\2/') |" stdout || fail "agreement: $(cat stdout)"
likeness judge import primary.jsonl --from run >imported 2>stderr || fail "import: $(cat stderr)"
likeness judge prompt --from run >asked
[ "$(wc -l <imported)" = $n ] && [ "$(wc -l <asked)" = $n ] || fail "import $(wc -l <imported), prompt $(wc -l <asked) of $n"
likeness review list --from run >flagged.csv 2>stderr || fail "review list: $(cat stderr)"
[ "$(grep -c ',race_drift,' flagged.csv)" -gt 9 ] || fail "what the judges differ in: $(head -n 3 flagged.csv)"
expected=$(sed -n 2p flagged.csv | cut -d , -f 1)
sed -E '2,10s/,,,,$/,2,Roe,,/' flagged.csv >filled.csv
likeness review import filled.csv --from run --review decisions.jsonl 2>stderr || fail "review import: $(cat stderr)"
likeness review set "$expected" skin_tone 3 --from run --review decisions.jsonl --by Roe >stdout 2>stderr || fail "review set: $(cat stderr)"
likeness review set nobody_P1_K-01 skin_tone 3 --from run --review decisions.jsonl --by Roe 2>stderr && fail "a decision about no output"
grep -q 'nobody_P1_K-01": expected an output of this study' stderr || fail "$(cat stderr)"
[ "$(wc -l <decisions.jsonl)" = 10 ] || fail "$(cat decisions.jsonl)"
likeness report --from run --review decisions.jsonl -o reviewed >stdout 2>stderr || fail "report --review: $(cat stderr)"
grep -q '^| race.*drift | 9 | 9 |' reviewed/tables/review_decisions.md || fail "$(cat reviewed/tables/review_decisions.md)"
likeness report --from run --review decisions.jsonl --query "SELECT who, sum(value) AS k FROM alternative JOIN item USING (item) WHERE measure = 'race_drift' AND item_id = '$expected' GROUP BY who" >stdout 2>stderr
grep -q '| reviewed | 0' stdout && grep -q '| secondary | 1' stdout || fail "a decision turns no outcome: $(cat stdout)"
likeness ratings evaluations --from run --ratings answers/evaluations_exp2.jsonl >evaluations 2>stderr || fail "ratings: $(cat stderr)"
[ "$(wc -l <evaluations)" = "$(wc -l <answers/evaluations_exp2.jsonl)" ] || fail "ratings of an own study"

# A fourth model joins the portrait study: judges are asked as of the others, V-03's ageing is no change of age.
mkdir portraits && cd portraits
make_face --size 64x64 a.png >log && make_face --size 64x64 --skin 5 b.png >log
printf 'path,race,gender,age\na.png,White,Male,20s\nb.png,Black,Female,30s\n' >sources.csv
cat >study.json <<JSON
{"schema": 2, "study": "four", "sources": "sources.csv",
 "models": {"flux": {$flux, "num_inference_steps": 1}, "fast": {$flux, "num_inference_steps": 1, "seed": 3}},
 "experiments": {"exp1": {"sources": ["White_Male_20s", "Black_Female_30s"], "prompts": ["O-01", "V-03"]}}}
JSON
likeness study run study.json -o run --threads 1 >stdout
likeness judge run --slot primary -m ../judge --from run --mode direct -q -t 1 -o primary.jsonl 2>log || fail "a fourth model is not judged: $(cat log)"
[ "$(sed -E 's/.*"prompt_sha256":"([0-9a-f]*)".*/\1/' primary.jsonl | sort -u | wc -l)" = 4 ] || fail "two models, other questions"
likeness report --from run --primary primary.jsonl -o report >stdout 2>stderr || fail "report of four: $(cat stderr)"
grep -q '^| fast |\|| fast |' report/tables/rates_by_model.md && [ -s report/tables/rates_by_attribute_race.md ] || fail "the fourth model is not reported"
likeness report --from run --primary primary.jsonl --query "SELECT measure, count(*) AS n FROM outcome WHERE measure LIKE 'age%' GROUP BY 1" 2>stderr >stdout
grep -q 'age.*accuracy | 4 |' stdout && grep -q 'age.*drift | 4 |' stdout || fail "ageing on demand: $(cat stdout)"

# The page on files names what lies in these folders, and nothing else; some files are of the portrait study's own report.
cd .. && mkdir documented && grep '"item_id":"flux_' portraits/primary.jsonl >flux.jsonl
likeness report --primary flux.jsonl -o documented/report >stdout 2>stderr || fail "report of the portrait study: $(cat stderr)"
cp one.png after.png
awk -F'|' '/^\| `/ { print $2 }' "$SOURCE_DIR/tools/docs/files.md" | grep -o '`[^`]*`' | tr -d '`' >named
[ "$(wc -l <named)" -ge 20 ] || fail "files.md names too little: $(cat named)"
while read -r name; do
    ls -d $name documented/$name >stdout 2>stderr || [ -s stdout ] || fail "files.md names $name, which nothing writes"
done <named
for found in run/* report/* documented/report/* survey/* answers/*; do
    name=$(echo "${found#documented/}" | sed 's/_exp[13]/_exp2/')
    grep -Fxq -e "$name" -e "$name/*" named || [ $name = run/journal.sqlite-journal ] || fail "$name is not in files.md"
done
echo "any: all is well"
