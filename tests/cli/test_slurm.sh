#!/bin/sh
# A study as a job array of a real Slurm on this machine: four tasks, one cancelled and queued again, a node that fails
# and one that is drained under them. What they made, put together, is what one run makes. In the full run only.
set -eu
skip() {
    echo "SKIP: slurm: $*"
    exit 77
}
[ -n "${LIKENESS_TEST_FULL-}" ] || skip "in the full run only (LIKENESS_TEST_FULL)"
PATH=$PATH:/usr/sbin:/sbin
for tool in munged slurmctld slurmd sbatch srun scontrol squeue scancel; do
    command -v $tool >/dev/null || skip "no $tool here (Debian: slurm-wlm, munge)"
done
[ "$(id -u)" = 0 ] || skip "its daemons must be started by root"
PATH=$BUILD_DIR:$PATH
data=$SOURCE_DIR/tests/golden/data
scratch=$TEST_TMPDIR/slurm
rm -rf "$scratch"
mkdir -p "$scratch/state" "$scratch/spool" "$scratch/src"
cd "$scratch"
OMP_WAIT_POLICY=passive
SLURM_CONF=$scratch/slurm.conf
export PATH OMP_WAIT_POLICY SLURM_CONF
fail() {
    echo "FAILED: $*"
    squeue -h -t all 2>&1 || true
    tail -n 20 slurm-*.out slurmctld.log slurmd.log 2>/dev/null || true
    exit 1
}
daemons=
stop() {
    for pid in $daemons; do kill "$pid" 2>/dev/null || true; done
    for pid in $daemons; do wait "$pid" 2>/dev/null || true; done
}
trap stop EXIT
# until SECONDS WHAT COMMAND...: as soon as the command succeeds.
until_ok() {
    n=$(($1 * 5))
    what=$2
    shift 2
    while ! "$@" >/dev/null 2>&1; do
        n=$((n - 1))
        [ $n -gt 0 ] || fail "$what"
        sleep 0.2
    done
}

# A cluster of one node with two processors, and daemons of its own beside whatever this machine runs.
node=$(hostname -s)
head -c 1024 /dev/urandom >munge.key
chmod 0400 munge.key
munged --foreground --force --key-file=munge.key --socket="$scratch/munge.socket" --pid-file="$scratch/munged.pid" \
    --log-file="$scratch/munged.log" --seed-file="$scratch/munged.seed" >munged.out 2>&1 &
daemons=$!
cat >slurm.conf <<CONF
ClusterName=likeness
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$scratch/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=5
ReturnToService=1
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=NO
CONF
until_ok 20 "munged does not start" test -S munge.socket
slurmctld -D >slurmctld.out 2>&1 &
daemons="$! $daemons"
slurmd -D -N "$node" >slurmd.out 2>&1 &
daemons="$! $daemons"
node_is() { scontrol -o show node "$node" | grep -qE "State=($1)( |\$)"; }
until_ok 60 "the node does not come up" node_is 'IDLE'

# A study of 16 jobs, each long enough to be met in the middle of it.
cells="White_Male_20s White_Female_20s Black_Male_20s Black_Female_30s"
i=0
echo path,race,gender,age >sources.csv
for cell in $cells; do
    i=$((i + 1))
    make_face --size 64x64 --skin $i "src/$cell.png"
    echo "src/$cell.png,$(echo $cell | tr _ ,)" >>sources.csv
done
cat >study.json <<JSON
{"schema": 1, "study": "slurm", "sources": "sources.csv", "models": {
  "flux": {"path": "$data/flux2/rich/checkpoint", "num_inference_steps": 200, "max_sequence_length": 40, "allow_cut": true,
    "text_encoder_out_layers": [1, 2, 3], "width": 32, "height": 32},
  "step1x": {"path": "$data/step1x/plain/checkpoint", "num_inference_steps": 100, "allow_steps": true, "size_level": 32}},
  "experiments": {"exp1": {"preset": "custom", "models": ["flux", "step1x"], "prompts": ["O-01", "V-01"],
    "sources": [$(for cell in $cells; do printf '"%s", ' $cell; done | sed 's/, $//')]}}}
JSON
likeness study run study.json -o single --devices cpu,cpu --threads 1 >single.log 2>&1 || fail "the single run"

likeness study slurm study.json -o out --tasks 4 --devices cpu >batch.sh
sed -i 's/ --devices cpu/ --threads 1 --queue 1&/' batch.sh
job=$(sbatch --parsable --output=slurm-%a.out batch.sh) || fail "sbatch"
made() { [ "$(find "out/results" -name '*.png' 2>/dev/null | wc -l)" -ge "$1" ]; }
state() { squeue -h -t all -o %T -j "$job" --array | sort -u | tr '\n' ' '; }
task_is() { squeue -h -t all -o %T -j "${job}_$1" | grep -qE "^($2)\$"; }
at_once() { # queued again, a task would wait for two minutes
    for id in $(squeue -h -t PENDING -j "$job" --array -o '%i %r' | sed -n 's/ BeginTime$//p'); do
        scontrol update jobid="$id" starttime=now
    done
}

# A task is cancelled in the middle, and queued again.
until_ok 60 "task 2 does not run" task_is 2 RUNNING
until_ok 60 "no picture" made 1
scancel "${job}_2"
until_ok 60 "task 2 is not cancelled" task_is 2 CANCELLED
scontrol requeue "${job}_2" || fail "requeue"
# The node fails under the tasks that run: they are queued again by themselves.
until_ok 60 "task 1 does not run" task_is 1 'RUNNING|COMPLETED'
scontrol update nodename="$node" state=down reason=failure
until_ok 60 "a task outlives its node" sh -c "! squeue -h -t RUNNING,COMPLETING -j $job | grep -q ."
scontrol update nodename="$node" state=resume
running() {
    at_once
    squeue -h -t RUNNING -j "$job" | grep -q .
}
until_ok 90 "no task after the failure" running
# The node is drained: what runs ends, nothing begins.
scontrol update nodename="$node" state=drain reason=maintenance
until_ok 90 "the node is not drained" node_is 'IDLE\+DRAIN'
squeue -h -t RUNNING -j "$job" | grep -q . && fail "a task runs on a drained node"
likeness study status out >drained
scontrol update nodename="$node" state=resume
done_all() {
    at_once
    [ "$(state)" = "COMPLETED " ]
}
until_ok 180 "not all tasks are completed" done_all

likeness study merge study.json -o out >merged || fail "merge"
grep -q '^flux     nominal 8  success 8  failed 0$' merged || fail "what tasks made"
diff -r single/results out/results || fail "tasks made other pictures"
plain() { sed -E 's/"seconds":[0-9.]+,"started_at":"[^"]*"/"seconds":0/' "$1"; }
plain single/manifest.jsonl >a
plain out/manifest.jsonl | cmp a - || fail "the merged manifest"
restarts=$(scontrol -o show job "$job" | sed -nE 's/.* Restarts=([0-9]+) .*/\1/p' | awk '{ n += $1 } END { print n }')
[ "$restarts" -ge 2 ] || fail "expected two tasks queued again, got $restarts"
echo "slurm: 4 tasks, queued again $restarts times, made what one run makes"
