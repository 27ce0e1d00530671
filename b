likeness edit: edit a picture by an instruction

Usage: likeness edit -m MODEL [-r IMAGE]... -p TEXT -o FILE.png [options]

Runs the model on the given images and prompt and writes one PNG that carries its own recipe. Equal
jobs give equal bytes. The first Ctrl-C stops after the current step, the second at once; neither
leaves a file.

Examples:
  # Edit a photo
  likeness edit -m black-forest-labs/FLUX.2-dev -r in.jpg -p "Make the jacket red" -o out.png
  # Combine two pictures
  likeness edit -m ./FLUX.2-dev -r person.jpg -r hat.png -p "Put the hat on the person" -o out.png
  # Fewer steps, another seed
  likeness edit -m ./FLUX.2-dev -r in.jpg -p "Make it winter" --num-inference-steps 28 -s 7 -o out.png
  # True classifier-free guidance, with a negative prompt
  likeness edit -m Qwen/Qwen-Image-Edit-2511 -r in.jpg -p "Add glasses" -n "blurry" --true-cfg-scale 4 -o out.png
  # No picture at all: text to image
  likeness edit -m ./FLUX.2-dev -p "a lighthouse at dawn" -W 1024 -H 768 -o out.png
  # Keep every intermediate tensor, in f32
  likeness edit -m ./FLUX.2-dev -r in.jpg -p "Add glasses" --dtype f32 --dump-steps steps -o out.png

Model:
  -m, --model DIR|ORG/NAME[@REV]
          folder in Hugging Face layout, or a repository in the local HF cache (nothing is
          downloaded); plan also takes the name of a released model (see `models`)
      --dtype TYPE
          arithmetic of all networks: bf16|f32 [default: bf16]
      --device NAME
          where to compute (cuda:1 is the second GPU); a device that is not there is an error, never
          a fallback: cpu|cuda [default: cpu]
      --gemm NAME
          who computes matrix products on a cuda device: this program, or NVIDIA's cuBLASLt if it is
          installed (other bits, which a picture's recipe records): own|cublaslt [default: own]
      --conv NAME
          the same of convolutions, for NVIDIA's cuDNN: own|cudnn [default: own]
  -t, --threads N
          host threads; the result does not depend on it [default: all cores]

Input:
  -r, --image, --ref-image FILE
          JPEG or PNG to edit or to ask about; give it again for more (at most 10); of an edit the
          first one sets the size; none: text to image (repeatable)
  -p, --prompt TEXT
          the instruction or question, UTF-8
      --exif-transpose
          turn photos upright by their EXIF orientation first; the reference pipeline does not
          [default: off]

Sampling:
  -s, --seed N
          seed of the noise, or of the tokens that chat draws, as torch.manual_seed [default: the
          model's: 42, 42, 0; chat: 0]
      --rng NAME
          whose stream of normal numbers the seed means: torch-cpu [default: torch-cpu]
      --num-inference-steps, --steps N
          denoising steps [default: the model's: 50, 28, 40]
      --guidance-scale, --guidance X
          embedded guidance (FLUX.2) [default: the model's: 4.0]
      --true-cfg-scale, --cfg-scale X
          classifier-free guidance: above 1 each step runs the model twice (Step1X-Edit,
          Qwen-Image-Edit) [default: the model's: -, 6.0, 4.0]
  -n, --negative-prompt TEXT
          what the second run of a step is told (Step1X-Edit, Qwen-Image-Edit) [default: the
          model's: -, "", " "]
      --size-level PIXELS
          edits are made at about this size squared, then resized to the source's (Step1X-Edit)
          [default: 1024]
      --vae-tiling
          let the VAE work in bands of rows: about half its memory, a little more time, the same
          bits (Qwen-Image-Edit) [default: off]
  -W, --width PIXELS
          output width, rounded down to a multiple of 16 [default: of the first image, else 1024]
  -H, --height PIXELS
          output height, rounded down to a multiple of 16 [default: of the first image, else 1024]
      --max-sequence-length TOKENS
          prompt tokens; longer prompts are cut, shorter ones padded (FLUX.2) [default: the model's:
          512]
      --text-encoder-out-layers N,N,N
          hidden states of the text encoder that condition the transformer (FLUX.2) [default: the
          model's: 10,20,30]

Thinking:
      --thinking-mode
          let the model's language part rewrite the prompt first (Step1X-Edit; needs --prompts-file)
          [default: off]
      --reflection-mode
          let it judge the picture and edit again (Step1X-Edit; needs --prompts-file) [default: off]
      --max-try-cnt N
          rounds of reflection at most [default: 3]
      --prompts-file FILE.json
          the model's own prompts for thinking and reflection, checked by their SHA-256

Output:
  -o, --output FILE.png|DIR
          the picture, with its recipe inside; appears whole or not at all; of report the folder,
          made when it is missing
      --dump-steps DIR
          also write every named intermediate tensor as safetensors; the folder must be new or empty
  -q, --quiet
          errors only on stderr

Other:
  -h, --help
          this text
      --version
          print the version

Exit codes:
  0 done   1 internal error   2 usage   3 bad input or weights   4 does not fit in memory
  5 device error   6 NaN or Inf met   7 disk or I/O   130, 143 interrupted
