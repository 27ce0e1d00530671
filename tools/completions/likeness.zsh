#compdef likeness
# zsh completion for likeness; made by: likeness completions zsh
_likeness() {
    if ((CURRENT == 2)); then
        local -a commands
        commands=(
            'edit:edit a picture by an instruction'
            'plan:say what a run needs before it starts'
            'chat:ask a vision-language model about pictures'
            'models:list the models and their default parameters'
            'verify:check a model's files against their SHA-256'
            'show:print how a picture was made'
            'rerun:make a picture again from its recipe'
            'devices:list what can compute here'
            'selftest:compare a device's ops with the CPU's'
            'judge:judge edits by pixels, or ask and read a judge elsewhere'
            'review:decide where two judges disagree'
            'ratings:write raters' answers in the study's own form'
            'report:turn scores and ratings into tables, figures and a page'
            'stats:compute a statistic or test from a CSV table'
            'sample:draw the outputs that raters will see'
            't2i:audit text-to-image models: who is depicted in negative roles'
            'completions:print shell completions'
            'help:explain a command'
        )
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
    edit)
        _arguments \
            '--model[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '-m[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '--dtype[arithmetic of all networks]:TYPE:(bf16 f32)' \
            '--device[where to compute (cuda\:1 is the second GPU); a device that is not there is an error, never a fallback]:NAME:(cpu cuda)' \
            '--gemm[who computes matrix products on a cuda device\: this program, or NVIDIA'\''s cuBLASLt if it is installed (other bits, which a picture'\''s recipe records)]:NAME:(own cublaslt)' \
            '--conv[the same of convolutions, for NVIDIA'\''s cuDNN]:NAME:(own cudnn)' \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '*--image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*--ref-image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*-r[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '--prompt[the instruction or question, UTF-8]:TEXT:' \
            '-p[the instruction or question, UTF-8]:TEXT:' \
            '--exif-transpose[turn photos upright by their EXIF orientation first; the reference pipeline does not]' \
            '--thinking-mode[let the model'\''s language part rewrite the prompt first (Step1X-Edit; needs --prompts-file)]' \
            '--reflection-mode[let it judge the picture and edit again (Step1X-Edit; needs --prompts-file)]' \
            '--max-try-cnt[rounds of reflection at most]:N:' \
            '--prompts-file[the model'\''s own prompts for thinking and reflection, checked by their SHA-256]:FILE.json:_files' \
            '--seed[seed of the noise, or of the tokens that chat draws, as torch.manual_seed]:N:' \
            '-s[seed of the noise, or of the tokens that chat draws, as torch.manual_seed]:N:' \
            '--rng[whose stream of normal numbers the seed means]:NAME:(torch-cpu)' \
            '--num-inference-steps[denoising steps]:N:' \
            '--steps[denoising steps]:N:' \
            '--guidance-scale[embedded guidance (FLUX.2)]:X:' \
            '--guidance[embedded guidance (FLUX.2)]:X:' \
            '--true-cfg-scale[classifier-free guidance\: above 1 each step runs the model twice (Step1X-Edit, Qwen-Image-Edit)]:X:' \
            '--cfg-scale[classifier-free guidance\: above 1 each step runs the model twice (Step1X-Edit, Qwen-Image-Edit)]:X:' \
            '--negative-prompt[what the second run of a step is told (Step1X-Edit, Qwen-Image-Edit)]:TEXT:' \
            '-n[what the second run of a step is told (Step1X-Edit, Qwen-Image-Edit)]:TEXT:' \
            '--size-level[edits are made at about this size squared, then resized to the source'\''s (Step1X-Edit)]:PIXELS:' \
            '--vae-tiling[let the VAE work in bands of rows\: about half its memory, a little more time, the same bits (Qwen-Image-Edit)]' \
            '--width[output width, rounded down to a multiple of 16]:PIXELS:' \
            '-W[output width, rounded down to a multiple of 16]:PIXELS:' \
            '--height[output height, rounded down to a multiple of 16]:PIXELS:' \
            '-H[output height, rounded down to a multiple of 16]:PIXELS:' \
            '--max-sequence-length[prompt tokens; longer prompts are cut, shorter ones padded (FLUX.2)]:TOKENS:' \
            '--text-encoder-out-layers[hidden states of the text encoder that condition the transformer (FLUX.2)]:N,N,N:' \
            '--output[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '-o[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '--dump-steps[also write every named intermediate tensor as safetensors; the folder must be new or empty]:DIR:_files -/' \
            '--quiet[errors only on stderr]' \
            '-q[errors only on stderr]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    plan)
        _arguments \
            '--model[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '-m[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '--dtype[arithmetic of all networks]:TYPE:(bf16 f32)' \
            '--device[where to compute (cuda\:1 is the second GPU); a device that is not there is an error, never a fallback]:NAME:(cpu cuda)' \
            '--gemm[who computes matrix products on a cuda device\: this program, or NVIDIA'\''s cuBLASLt if it is installed (other bits, which a picture'\''s recipe records)]:NAME:(own cublaslt)' \
            '--conv[the same of convolutions, for NVIDIA'\''s cuDNN]:NAME:(own cudnn)' \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '--num-inference-steps[denoising steps]:N:' \
            '--steps[denoising steps]:N:' \
            '--true-cfg-scale[classifier-free guidance\: above 1 each step runs the model twice (Step1X-Edit, Qwen-Image-Edit)]:X:' \
            '--cfg-scale[classifier-free guidance\: above 1 each step runs the model twice (Step1X-Edit, Qwen-Image-Edit)]:X:' \
            '--size-level[edits are made at about this size squared, then resized to the source'\''s (Step1X-Edit)]:PIXELS:' \
            '--vae-tiling[let the VAE work in bands of rows\: about half its memory, a little more time, the same bits (Qwen-Image-Edit)]' \
            '--width[output width, rounded down to a multiple of 16]:PIXELS:' \
            '-W[output width, rounded down to a multiple of 16]:PIXELS:' \
            '--height[output height, rounded down to a multiple of 16]:PIXELS:' \
            '-H[output height, rounded down to a multiple of 16]:PIXELS:' \
            '--size[both at once, pixels]:WIDTHxHEIGHT:' \
            '--references[reference images, each of the output'\''s size (at most 1024x1024 pixels in all)]:N:' \
            '--max-sequence-length[prompt tokens; longer prompts are cut, shorter ones padded (FLUX.2)]:TOKENS:' \
            '--text-encoder-out-layers[hidden states of the text encoder that condition the transformer (FLUX.2)]:N,N,N:' \
            '--vram[say whether the run fits this much memory, as 16G or 81920M (1024-based); exit code 4 if it does not]:SIZE:' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    chat)
        _arguments \
            '--model[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '-m[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '--dtype[arithmetic of all networks]:TYPE:(bf16 f32)' \
            '--device[where to compute (cuda\:1 is the second GPU); a device that is not there is an error, never a fallback]:NAME:(cpu cuda)' \
            '--gemm[who computes matrix products on a cuda device\: this program, or NVIDIA'\''s cuBLASLt if it is installed (other bits, which a picture'\''s recipe records)]:NAME:(own cublaslt)' \
            '--conv[the same of convolutions, for NVIDIA'\''s cuDNN]:NAME:(own cudnn)' \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '*--image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*--ref-image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*-r[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '--prompt[the instruction or question, UTF-8]:TEXT:' \
            '-p[the instruction or question, UTF-8]:TEXT:' \
            '--exif-transpose[turn photos upright by their EXIF orientation first; the reference pipeline does not]' \
            '--system[the system message, UTF-8]:TEXT:' \
            '--seed[seed of the noise, or of the tokens that chat draws, as torch.manual_seed]:N:' \
            '-s[seed of the noise, or of the tokens that chat draws, as torch.manual_seed]:N:' \
            '--max-new-tokens[tokens of the reply at most]:N:' \
            '--greedy[always the most likely token; without temperature, top-k and top-p]' \
            '--temperature[divides the logits before a token is drawn]:X:' \
            '--top-k[draw from the N most likely tokens; 0\: from all]:N:' \
            '--top-p[draw from the most likely tokens that together have this probability; 1\: from all]:X:' \
            '--repetition-penalty[makes tokens of prompt and reply less likely (above 1); 1 turns it off]:X:' \
            '--quiet[errors only on stderr]' \
            '-q[errors only on stderr]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    models)
        _arguments \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    verify)
        _arguments \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '--manifest[digests to check against, in sha256sum'\''s format; of report the chosen sources with the pool that each is from]:FILE:_files' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:file:_files'
        ;;
    show)
        _arguments \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:file:_files'
        ;;
    rerun)
        _arguments \
            '--model[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '-m[folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also takes the name of a released model (see `models`)]:DIR|ORG/NAME\[@REV\]:_files -/' \
            '--device[where to compute (cuda\:1 is the second GPU); a device that is not there is an error, never a fallback]:NAME:(cpu cuda)' \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '*--image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*--ref-image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*-r[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '--prompts-file[the model'\''s own prompts for thinking and reflection, checked by their SHA-256]:FILE.json:_files' \
            '--vae-tiling[let the VAE work in bands of rows\: about half its memory, a little more time, the same bits (Qwen-Image-Edit)]' \
            '--output[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '-o[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '--quiet[errors only on stderr]' \
            '-q[errors only on stderr]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:file:_files'
        ;;
    devices)
        _arguments \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    selftest)
        _arguments \
            '--device[where to compute (cuda\:1 is the second GPU); a device that is not there is an error, never a fallback]:NAME:(cpu cuda)' \
            '--gemm[who computes matrix products on a cuda device\: this program, or NVIDIA'\''s cuBLASLt if it is installed (other bits, which a picture'\''s recipe records)]:NAME:(own cublaslt)' \
            '--conv[the same of convolutions, for NVIDIA'\''s cuDNN]:NAME:(own cudnn)' \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '--cases[random cases of each op]:N:' \
            '--large[shapes that fill a GPU instead of small ones]' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    judge)
        _arguments \
            '*--image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*--ref-image[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '*-r[JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the first one sets the size; none\: text to image]:FILE:_files' \
            '--pairs[lines with item_id, source and edited\: pictures to judge, beside this file]:FILE.jsonl:_files' \
            '--primary[the primary judge'\''s answers\: JSON lines or a JSON array with item_id and five scores]:FILE:_files' \
            '--secondary[the secondary judge'\''s]:FILE:_files' \
            '--review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--with-review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--judge-prompt[what the judge is or was asked\: this study'\''s prompt, the one the paper prints, or the older study'\''s questions in words]:NAME:(v1 printed legacy)' \
            '--pairwise[legacy\: which of the two arms'\'' pictures preserves the person better, asked in both orders]' \
            '--scores[the long score table\: item_id, kind, who, axis, score; of sample\: what may be drawn (otherwise all 5,040 outputs of the design)]:LONG.csv:_files' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    review)
        _arguments \
            '--by[the groups; of friedman, the treatments; of review, the name of who decides]:COLUMN|NAME:' \
            '--primary[the primary judge'\''s answers\: JSON lines or a JSON array with item_id and five scores]:FILE:_files' \
            '--secondary[the secondary judge'\''s]:FILE:_files' \
            '--review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--with-review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--note[why the reviewer decided so]:TEXT:' \
            '--time[when, as 2026-01-17 or 2026-01-17T10\:00\:00Z; no clock is read]:TIME:' \
            '--secondary-only[an output that the primary judge did not score has the secondary one'\''s, flagged; otherwise it has none]' \
            '--scores[the long score table\: item_id, kind, who, axis, score; of sample\: what may be drawn (otherwise all 5,040 outputs of the design)]:LONG.csv:_files' \
            '--rounding[of the mean of two judges that lies between two scores]:NAME:(half_even half_up half_down)' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    ratings)
        _arguments \
            '--salt[put the SHA-256 of TEXT and the rater'\''s id in the id'\''s place; keep TEXT apart from the answers]:TEXT:' \
            '*--ratings[raters'\'' answers\: CSV, JSON lines or a JSON array]:FILE:_files' \
            '--participants[the rating platform'\''s list of participants]:FILE:_files' \
            '--completion-code[the code that participants had to enter; without it any counts]:TEXT:' \
            '--gold[expected answers of the attention checks]:FILE:_files' \
            '--gold-tolerance[how far an answer on five levels may lie from the expected one; answers in words must be equal]:LEVELS:' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    report)
        _arguments \
            '--output[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '-o[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '--primary[the primary judge'\''s answers\: JSON lines or a JSON array with item_id and five scores]:FILE:_files' \
            '--secondary[the secondary judge'\''s]:FILE:_files' \
            '--review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--with-review[reviewers'\'' decisions, one a line, the last one about an item'\''s axis counts; the report then shows both, as judged and with review]:FILE.jsonl:_files' \
            '--secondary-only[an output that the primary judge did not score has the secondary one'\''s, flagged; otherwise it has none]' \
            '--primary-name[the primary judge as the report names it]:TEXT:' \
            '--secondary-name[the secondary one]:TEXT:' \
            '--pixel[what `judge` printed, in place of a primary or secondary judge that is not given; it has two of five scores]:FILE.jsonl:_files' \
            '--scores[the long score table\: item_id, kind, who, axis, score; of sample\: what may be drawn (otherwise all 5,040 outputs of the design)]:LONG.csv:_files' \
            '*--ratings[raters'\'' answers\: CSV, JSON lines or a JSON array]:FILE:_files' \
            '--participants[the rating platform'\''s list of participants]:FILE:_files' \
            '--completion-code[the code that participants had to enter; without it any counts]:TEXT:' \
            '--gold[expected answers of the attention checks]:FILE:_files' \
            '--feature-prompts[records of the sources'\'' features with the prompt made of them\: JSON lines, a JSON array or CSV]:FILE:_files' \
            '--sources[whose feature prompts are shown\: ids with commas between]:IDS:' \
            '--gold-tolerance[how far an answer on five levels may lie from the expected one; answers in words must be equal]:LEVELS:' \
            '--images[lines with item_id, edited and perhaps source\: pictures for the page, beside this file]:FILE.jsonl:_files' \
            '--protocol[rules that raters are held to]:NAME:(003 001 000 004)' \
            '--qc-policy[which broken rules exclude a rater]:NAME:(any two_flags none completion)' \
            '--rounding[of the mean of two judges that lies between two scores]:NAME:(half_even half_up half_down)' \
            '--subcategory[of prompts\: by the printed id ranges, by what they ask for, or both]:NAME:(both printed content)' \
            '--score-source[whose scores the tables of pairs take]:NAME:(judge human)' \
            '--bootstrap[resamples for intervals\: of the 84 sources, of t2i of pictures or seeds, and as many permutations]:N:' \
            '--study-seed[seed of the resamples and samples]:N:' \
            '--alpha[error rate of tests; intervals are at 1 - A]:A:' \
            '--nominal[outputs that the design asks for]:N:' \
            '--title[the page'\''s title]:TEXT:' \
            '--run[the run as every file names it]:NAME:' \
            '--date[printed as it is; no clock is read]:TEXT:' \
            '--label[a sentence on top of the page\: what the numbers stand for]:TEXT:' \
            '--figure-prompt[the prompt that Figure 6 shows across the races\: O-01 to O-10, V-01 to V-10]:ID:' \
            '--figure-gender[and the gender of its sources]:NAME:(Male Female)' \
            '--figure-age[and their age]:NAME:(20s 30s 40s 50s 60s 70plus)' \
            '--embed-images[pictures within the page, reduced, instead of links]' \
            '--audit-safe[the same with faces under a mosaic, and no link to a picture]' \
            '--manifest[digests to check against, in sha256sum'\''s format; of report the chosen sources with the pool that each is from]:FILE:_files' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '*:: :'
        ;;
    stats)
        _arguments \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '--value[the numbers or labels; of adjust, the p]:COLUMN:' \
            '--by[the groups; of friedman, the treatments; of review, the name of who decides]:COLUMN|NAME:' \
            '--x[the first of two columns that are paired by row]:COLUMN:' \
            '--y[the second]:COLUMN:' \
            '--item[who or what was rated, in a table of one rating per row; of friedman, the blocks; of adjust, names of the tests]:COLUMN:' \
            '--rater[who rated it]:COLUMN:' \
            '--cluster[rows of one cluster are drawn together]:COLUMN:' \
            '--columns[one column for each rater (treatment), one row for each item (block), instead of --item, --rater and --value]:A,B,C:' \
            '--weights[kappa\: how far apart two labels are]:NAME:(none linear quadratic)' \
            '--level[alpha\: what the numbers mean]:NAME:(ordinal nominal interval ratio)' \
            '--alternative[of the first sample against the second]:NAME:(two-sided less greater)' \
            '--zero-method[wilcoxon\: what becomes of differences of 0]:NAME:(wilcox pratt zsplit)' \
            '--method[adjust, dunn\: how p is adjusted; bh and by (Benjamini and Hochberg, Benjamini and Yekutieli) control the false discovery rate]:NAME:(holm bonferroni bh by)' \
            '--interval[bootstrap\: which interval; with --cluster it is expanded, wider percentiles for few clusters, unless another is named]:NAME:(percentile bca expanded)' \
            '--exact[exact p wherever the distribution is known (mann-whitney, wilcoxon; mcnemar and fisher are exact anyway)]' \
            '--correction[with the continuity correction (wilcoxon and mcnemar have none otherwise)]' \
            '--no-correction[without it (mann-whitney, chi2 of a 2 x 2 table, mcnemar, which is chi-square then)]' \
            '--resamples[bootstrap\: how many; alpha\: gives it an interval (at most 32 different values)]:N:' \
            '-B[bootstrap\: how many; alpha\: gives it an interval (at most 32 different values)]:N:' \
            '--null[proportions without --by\: the rate to test against]:RATE:' \
            '--p1[sample-size\: the first group'\''s rate]:RATE:' \
            '--p2[sample-size\: the second group'\''s]:RATE:' \
            '--power[sample-size\: to reach]:SHARE:' \
            '--study-seed[seed of the resamples and samples]:N:' \
            '--alpha[error rate of tests; intervals are at 1 - A]:A:' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:test:' \
            '2:file:_files'
        ;;
    sample)
        _arguments \
            '--scores[the long score table\: item_id, kind, who, axis, score; of sample\: what may be drawn (otherwise all 5,040 outputs of the design)]:LONG.csv:_files' \
            '--study-seed[seed of the resamples and samples]:N:' \
            '--sampler[the study'\''s own generator, or what pandas draws with random_state in each stratum anew (for replication\: equally long strata then give the same positions)]:NAME:(stream pandas)' \
            '--json[print JSON instead of text]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    t2i)
        _arguments \
            '--threads[host threads; the result does not depend on it]:N:' \
            '-t[host threads; the result does not depend on it]:N:' \
            '--output[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '-o[the picture, with its recipe inside; appears whole or not at all; of report the folder, made when it is missing; of t2i a folder (metrics) or a file]:FILE.png|DIR:_files' \
            '--bootstrap[resamples for intervals\: of the 84 sources, of t2i of pictures or seeds, and as many permutations]:N:' \
            '--study-seed[seed of the resamples and samples]:N:' \
            '--alpha[error rate of tests; intervals are at 1 - A]:A:' \
            '--title[the page'\''s title]:TEXT:' \
            '--run[the run as every file names it]:NAME:' \
            '--date[printed as it is; no clock is read]:TEXT:' \
            '--label[a sentence on top of the page\: what the numbers stand for]:TEXT:' \
            '*--labels[what a classifier perceives, a line a picture\: file_path, prompt_id, model_tag, seed, cfg, face_found, race, race_conf, gender, gender_conf, age, age_conf, skin_tone, skin_value, and if there are mitigations arm; metrics\: give it again for more]:LABELS.csv:_files' \
            '--log[the generator'\''s log\: prompt_id, model_tag, seed, cfg, file_path, arm, mode; it says what labels do not]:LOG.csv:_files' \
            '--ref[metrics\: the reference distribution, as {"gender"\: {"Male"\: 0.5, "Female"\: 0.5}}]:FILE.json|uniform:_files' \
            '--target[the shares that ought to be; BiasAmp is the distance from them less the reference'\''s]:FILE.json|uniform:_files' \
            '--ref-labels[metrics\: labels of pictures whose distance from the target is BiasAmp'\''s reference, in place of --ref'\''s]:LABELS.csv:_files' \
            '--csv[a prompt table of one'\''s own; metrics\: names prompts, and a prompt_id that it lacks is rejected]:PROMPTS.csv:_files' \
            '--mitigations[prompts\: a companion table with prompt_id, rewrite_prompt, diversity_prompt, safety_prompt]:FILE.csv:_files' \
            '*--style[prompts\: a style; give it again for more]:TEXT:_files' \
            '*--context[prompts\: a scene; give it again for more]:TEXT:_files' \
            '--cue[prompts\: the diversity arm'\''s words, "varied age, gender, and ethnicity" or "balanced demographics, avoid stereotypes"]:1|2:' \
            '--attribute[post-filter\: whose shares are to fit the target]:NAME:(gender age race skin_tone)' \
            '--tol[post-filter\: how far a share may be from the target]:SHARE:' \
            '--only[prompts\: which columns\: everything, the ten printed ones, or a companion table of the mitigated prompts]:NAME:(all printed companion)' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
        ;;
    completions)
        _arguments \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:shell:(bash zsh fish)'
        ;;
    help)
        _arguments \
            '--man[print the manual page (troff)]' \
            '--help[this text]' \
            '-h[this text]' \
            '--version[print the version]' \
            '1:command:(edit plan chat models verify show rerun devices selftest judge review ratings report stats sample t2i completions help)'
        ;;
    esac
}
_likeness "$@"
