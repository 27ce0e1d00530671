# bash completion for likeness; made by: likeness completions bash
_likeness() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "edit plan chat models verify show rerun devices selftest judge review ratings report stats sample t2i completions help --help --version" -- "$current"))
        return
    fi
    case $previous in
    --model | -m) COMPREPLY=($(compgen -d -- "$current"))
        return ;;
    --dtype) COMPREPLY=($(compgen -W "bf16 f32" -- "$current"))
        return ;;
    --device) COMPREPLY=($(compgen -W "cpu cuda" -- "$current"))
        return ;;
    --gemm) COMPREPLY=($(compgen -W "own cublaslt" -- "$current"))
        return ;;
    --conv) COMPREPLY=($(compgen -W "own cudnn" -- "$current"))
        return ;;
    --threads | -t) 
        return ;;
    --image | --ref-image | -r) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --prompt | -p) 
        return ;;
    --system) 
        return ;;
    --max-try-cnt) 
        return ;;
    --prompts-file) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --seed | -s) 
        return ;;
    --rng) COMPREPLY=($(compgen -W "torch-cpu" -- "$current"))
        return ;;
    --num-inference-steps | --steps) 
        return ;;
    --guidance-scale | --guidance) 
        return ;;
    --true-cfg-scale | --cfg-scale) 
        return ;;
    --negative-prompt | -n) 
        return ;;
    --size-level) 
        return ;;
    --width | -W) 
        return ;;
    --height | -H) 
        return ;;
    --size) 
        return ;;
    --references) 
        return ;;
    --max-sequence-length) 
        return ;;
    --text-encoder-out-layers) 
        return ;;
    --max-new-tokens) 
        return ;;
    --temperature) 
        return ;;
    --top-k) 
        return ;;
    --top-p) 
        return ;;
    --repetition-penalty) 
        return ;;
    --output | -o) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --value) 
        return ;;
    --by) 
        return ;;
    --x) 
        return ;;
    --y) 
        return ;;
    --item) 
        return ;;
    --rater) 
        return ;;
    --cluster) 
        return ;;
    --columns) 
        return ;;
    --weights) COMPREPLY=($(compgen -W "none linear quadratic" -- "$current"))
        return ;;
    --level) COMPREPLY=($(compgen -W "ordinal nominal interval ratio" -- "$current"))
        return ;;
    --alternative) COMPREPLY=($(compgen -W "two-sided less greater" -- "$current"))
        return ;;
    --zero-method) COMPREPLY=($(compgen -W "wilcox pratt zsplit" -- "$current"))
        return ;;
    --method) COMPREPLY=($(compgen -W "holm bonferroni bh by" -- "$current"))
        return ;;
    --interval) COMPREPLY=($(compgen -W "percentile bca expanded" -- "$current"))
        return ;;
    --resamples | -B) 
        return ;;
    --null) 
        return ;;
    --p1) 
        return ;;
    --p2) 
        return ;;
    --power) 
        return ;;
    --pairs) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --primary) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --secondary) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --review | --with-review) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --salt) 
        return ;;
    --note) 
        return ;;
    --time) 
        return ;;
    --judge-prompt) COMPREPLY=($(compgen -W "v1 printed legacy" -- "$current"))
        return ;;
    --primary-name) 
        return ;;
    --secondary-name) 
        return ;;
    --pixel) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --scores) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --ratings) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --participants) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --completion-code) 
        return ;;
    --gold) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --feature-prompts) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --sources) 
        return ;;
    --gold-tolerance) 
        return ;;
    --images) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --protocol) COMPREPLY=($(compgen -W "003 001 000 004" -- "$current"))
        return ;;
    --qc-policy) COMPREPLY=($(compgen -W "any two_flags none completion" -- "$current"))
        return ;;
    --rounding) COMPREPLY=($(compgen -W "half_even half_up half_down" -- "$current"))
        return ;;
    --subcategory) COMPREPLY=($(compgen -W "both printed content" -- "$current"))
        return ;;
    --score-source) COMPREPLY=($(compgen -W "judge human" -- "$current"))
        return ;;
    --bootstrap) 
        return ;;
    --study-seed) 
        return ;;
    --sampler) COMPREPLY=($(compgen -W "stream pandas" -- "$current"))
        return ;;
    --alpha) 
        return ;;
    --nominal) 
        return ;;
    --title) 
        return ;;
    --run) 
        return ;;
    --date) 
        return ;;
    --label) 
        return ;;
    --figure-prompt) 
        return ;;
    --figure-gender) COMPREPLY=($(compgen -W "Male Female" -- "$current"))
        return ;;
    --figure-age) COMPREPLY=($(compgen -W "20s 30s 40s 50s 60s 70plus" -- "$current"))
        return ;;
    --labels) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --log) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --ref) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --target) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --ref-labels) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --csv) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --mitigations) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --style) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --context) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --cue) 
        return ;;
    --attribute) COMPREPLY=($(compgen -W "gender age race skin_tone" -- "$current"))
        return ;;
    --tol) 
        return ;;
    --only) COMPREPLY=($(compgen -W "all printed companion" -- "$current"))
        return ;;
    --dump-steps) COMPREPLY=($(compgen -d -- "$current"))
        return ;;
    --vram) 
        return ;;
    --manifest) COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    --cases) 
        return ;;
    esac
    case $command in
    edit) COMPREPLY=($(compgen -W "--model --dtype --device --gemm --conv --threads --image --prompt --exif-transpose --thinking-mode --reflection-mode --max-try-cnt --prompts-file --seed --rng --num-inference-steps --guidance-scale --true-cfg-scale --negative-prompt --size-level --vae-tiling --width --height --max-sequence-length --text-encoder-out-layers --output --dump-steps --quiet --help --version " -- "$current")) ;;
    plan) COMPREPLY=($(compgen -W "--model --dtype --device --gemm --conv --threads --num-inference-steps --true-cfg-scale --size-level --vae-tiling --width --height --size --references --max-sequence-length --text-encoder-out-layers --vram --json --help --version " -- "$current")) ;;
    chat) COMPREPLY=($(compgen -W "--model --dtype --device --gemm --conv --threads --image --prompt --exif-transpose --system --seed --max-new-tokens --greedy --temperature --top-k --top-p --repetition-penalty --quiet --help --version " -- "$current")) ;;
    models) COMPREPLY=($(compgen -W "--json --help --version " -- "$current")) ;;
    verify) COMPREPLY=($(compgen -W "--threads --manifest --json --help --version " -- "$current"))
        COMPREPLY+=($(compgen -f -- "$current")) ;;
    show) COMPREPLY=($(compgen -W "--json --help --version " -- "$current"))
        COMPREPLY+=($(compgen -f -- "$current")) ;;
    rerun) COMPREPLY=($(compgen -W "--model --device --threads --image --prompts-file --vae-tiling --output --quiet --help --version " -- "$current"))
        COMPREPLY+=($(compgen -f -- "$current")) ;;
    devices) COMPREPLY=($(compgen -W "--json --help --version " -- "$current")) ;;
    selftest) COMPREPLY=($(compgen -W "--device --gemm --conv --threads --cases --large --json --help --version " -- "$current")) ;;
    judge) COMPREPLY=($(compgen -W "--image --pairs --primary --secondary --review --judge-prompt --pairwise --scores --json --help --version " -- "$current")) ;;
    review) COMPREPLY=($(compgen -W "--by --primary --secondary --review --note --time --secondary-only --scores --rounding --json --help --version " -- "$current")) ;;
    ratings) COMPREPLY=($(compgen -W "--salt --ratings --participants --completion-code --gold --gold-tolerance --help --version " -- "$current")) ;;
    report) COMPREPLY=($(compgen -W "--output --primary --secondary --review --secondary-only --primary-name --secondary-name --pixel --scores --ratings --participants --completion-code --gold --feature-prompts --sources --gold-tolerance --images --protocol --qc-policy --rounding --subcategory --score-source --bootstrap --study-seed --alpha --nominal --title --run --date --label --figure-prompt --figure-gender --figure-age --embed-images --audit-safe --manifest --help --version " -- "$current")) ;;
    stats) COMPREPLY=($(compgen -W "--threads --value --by --x --y --item --rater --cluster --columns --weights --level --alternative --zero-method --method --interval --exact --correction --no-correction --resamples --null --p1 --p2 --power --study-seed --alpha --json --help --version " -- "$current"))
        COMPREPLY+=($(compgen -f -- "$current")) ;;
    sample) COMPREPLY=($(compgen -W "--scores --study-seed --sampler --json --help --version " -- "$current")) ;;
    t2i) COMPREPLY=($(compgen -W "--threads --output --bootstrap --study-seed --alpha --title --run --date --label --labels --log --ref --target --ref-labels --csv --mitigations --style --context --cue --attribute --tol --only --help --version " -- "$current")) ;;
    completions) COMPREPLY=($(compgen -W "--help --version bash zsh fish " -- "$current")) ;;
    help) COMPREPLY=($(compgen -W "--man --help --version edit plan chat models verify show rerun devices selftest judge review ratings report stats sample t2i completions help " -- "$current")) ;;
    esac
}
complete -o filenames -F _likeness likeness
