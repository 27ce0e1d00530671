/* stable-diffusion.cpp's Qwen-Image transformer and Stable Diffusion 1.5's UNet on the CPU, as a peer of bench_dit.
 *
 * stable-diffusion.cpp is not part of this repository; its sources come with the PyPI source package
 * stable-diffusion-cpp-python (vendor/stable-diffusion.cpp). With SD its folder:
 *
 *     cmake -S $SD -B sd-build -DCMAKE_BUILD_TYPE=Release -DSD_BUILD_EXAMPLES=OFF -DSD_BUILD_SHARED_LIBS=OFF
 *     cmake --build sd-build
 *     c++ -std=c++17 -O2 -fopenmp -DGGML_MAX_NAME=128 -I. -I$SD/src -I$SD/include -I$SD/ggml/include \
 *         -I$SD/thirdparty bench/peers/sdcpp_dit.cpp build/liblk_engine.a sd-build/libstable-diffusion.a \
 *         sd-build/ggml/src/libggml.a sd-build/ggml/src/libggml-cpu.a sd-build/ggml/src/libggml-base.a -o sdcpp_dit
 *     PYTHON bench/peers/diffusers_dit.py --make FOLDER --family qwen --num-layers 2
 *     build/bench_dit FOLDER --family qwen -p "./sdcpp_dit TYPE"
 *
 * TYPE: bf16, f32, q8_0, q4_0, q4_K ..., what the linears' weights are converted to while they are read; "+fa" after it
 * takes ggml's flash attention. Arguments, answers and inputs are those of diffusers_dit.py. */
#include <unistd.h>

#include <ctime>
#include <functional>
#include <iostream>

#include "model.h"
#include "qwen_image.hpp"
#include "unet.hpp"

extern "C" {
#include "engine/rng.h"
}

using floats = sd::Tensor<float>;

static double seconds(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* torch.randn(n) of a generator seeded with `seed`, rounded to bf16 where asked for. */
static std::vector<float> noise(uint64_t seed, int64_t n, bool bf16) {
    lk_rng rng;
    lk_rng_seed(&rng, seed);
    std::vector<float> x((size_t)n);
    lk_rng_normal_f32(&rng, x.data(), x.size());
    for (float &v : x)
        if (bf16) v = ggml_bf16_to_fp32(ggml_fp32_to_bf16(v));
    return x;
}

static void grid(int64_t n, int64_t *height, int64_t *width) {
    *height = (int64_t)std::sqrt((double)n);
    while (*height > 1 && n % *height) --*height;
    *width = n / *height;
}

/* Tokens of 2 x 2 x 16 channels as the picture [2 width, 2 height, 16] they were packed from. */
static floats unpack(const float *tokens, int64_t n) {
    int64_t height, width;
    grid(n, &height, &width);
    floats x({2 * width, 2 * height, 16, 1});
    for (int64_t i = 0; i < n * 64; i++) {
        int64_t token = i / 64, c = i % 64 / 4, row = 2 * (token / width) + i % 4 / 2,
                column = 2 * (token % width) + i % 2;
        x.data()[(c * 2 * height + row) * 2 * width + column] = tokens[i];
    }
    return x;
}

static void pack(const floats &x, int64_t n, std::vector<float> &tokens) {
    int64_t height, width;
    grid(n, &height, &width);
    tokens.resize((size_t)n * 64);
    for (int64_t i = 0; i < n * 64; i++) {
        int64_t token = i / 64, c = i % 64 / 4, row = 2 * (token / width) + i % 4 / 2,
                column = 2 * (token % width) + i % 2;
        tokens[(size_t)i] = x.data()[(c * 2 * height + row) * 2 * width + column];
    }
}

/* Answers go to what was standard output; the library's progress bars go to standard error. */
static FILE *answers;

__attribute__((format(printf, 1, 2))) static void answer(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(answers, format, args);
    va_end(args);
    fputc('\n', answers);
    fflush(answers);
}

struct options {
    std::string type, folder, family = "qwen";
    bool flash = false, bf16 = true;
    int threads = 2;
    int64_t txt = 512, noise = 256, ref = 256;
};

static bool parse(options &o, int argc, char **argv) {
    if (argc < 3) return false;
    o.type = argv[1];
    o.folder = argv[2];
    o.flash = o.type.size() > 3 && o.type.substr(o.type.size() - 3) == "+fa";
    if (o.flash) o.type.resize(o.type.size() - 3);
    for (int i = 3; i + 1 < argc; i += 2) {
        std::string name = argv[i], value = argv[i + 1];
        if (name == "--family") o.family = value;
        if (name == "--dtype") o.bf16 = value == "bf16";
        if (name == "--threads") o.threads = std::stoi(value);
        if (name == "--txt") o.txt = std::stoll(value);
        if (name == "--noise") o.noise = std::stoll(value);
        if (name == "--ref") o.ref = std::stoll(value);
    }
    return true;
}

/* False: the weights could not be read. */
template <class Runner>
static bool load(const options &o, const char *folder, const char *read_as, SDVersion version,
                 std::function<std::shared_ptr<Runner>(ModelLoader &)> make, std::shared_ptr<Runner> &runner) {
    const std::string prefix = "model.diffusion_model";
    ModelLoader loader;
    if (!loader.init_from_file_and_convert_name(o.folder + "/" + folder + "/diffusion_pytorch_model.safetensors",
                                                read_as, version))
        return false;
    for (int type = 0; type < GGML_TYPE_COUNT; type++)
        if (ggml_type_name((ggml_type)type) && o.type == ggml_type_name((ggml_type)type))
            loader.set_wtype_override((ggml_type)type);
    runner = make(loader);
    runner->alloc_params_buffer();
    runner->set_flash_attention_enabled(o.flash);
    std::map<std::string, ggml_tensor *> tensors;
    runner->get_param_tensors(tensors, prefix);
    return loader.load_tensors(tensors, std::set<std::string>(), o.threads);
}

using forward = std::function<void(std::vector<float> &)>;

static forward open_qwen(const options &o) {
    std::shared_ptr<Qwen::QwenImageRunner> runner;
    if (!load<Qwen::QwenImageRunner>(
            o, "transformer", "model.diffusion_model.", VERSION_QWEN_IMAGE,
            [](ModelLoader &loader) {
                return std::make_shared<Qwen::QwenImageRunner>(ggml_backend_cpu_init(), false,
                                                               loader.get_tensor_storage_map(), "model.diffusion_model",
                                                               VERSION_QWEN_IMAGE, true);
            },
            runner))
        return nullptr;
    std::vector<float> image = noise(1, (o.noise + o.ref) * 64, o.bf16);
    floats x = unpack(image.data(), o.noise), timesteps({1}, {500.0f});
    floats context({3584, o.txt, 1}, noise(2, o.txt * 3584, o.bf16));
    std::vector<floats> references;
    if (o.ref) references.push_back(unpack(image.data() + o.noise * 64, o.ref));
    return [=](std::vector<float> &velocity) {
        pack(runner->compute(o.threads, x, timesteps, context, references), o.noise, velocity);
    };
}

/* Latents of four channels, a square. */
static forward open_unet(const options &o) {
    std::shared_ptr<UNetModelRunner> runner;
    if (!load<UNetModelRunner>(
            o, "unet", "unet.", VERSION_SD1,
            [](ModelLoader &loader) {
                return std::make_shared<UNetModelRunner>(ggml_backend_cpu_init(), false,
                                                         loader.get_tensor_storage_map(), "model.diffusion_model",
                                                         VERSION_SD1);
            },
            runner))
        return nullptr;
    const int64_t side = (int64_t)std::sqrt((double)o.noise), n = side * side;
    std::vector<float> rows = noise(1, n * 4, o.bf16);
    floats x({side, side, 4, 1}), timesteps({1}, {500.0f}), context({768, o.txt, 1}, noise(2, o.txt * 768, o.bf16));
    for (int64_t i = 0; i < n * 4; i++) x.data()[i % 4 * n + i / 4] = rows[(size_t)i];
    return [=](std::vector<float> &velocity) {
        floats y = runner->compute(o.threads, x, timesteps, context);
        velocity.resize((size_t)n * 4);
        for (int64_t i = 0; i < n * 4; i++) velocity[(size_t)i] = y.data()[i % 4 * n + i / 4];
    };
}

int main(int argc, char **argv) {
    answers = fdopen(dup(1), "w");
    dup2(2, 1);
    options o;
    if (!parse(o, argc, argv)) {
        answer(
            "usage: sdcpp_dit TYPE[+fa] FOLDER --family qwen|sd [--dtype bf16|f32] [--threads N] [--txt N] [--noise N] "
            "[--ref N]");
        return 2;
    }
    double start = seconds(CLOCK_MONOTONIC);
    forward run = o.family == "qwen" ? open_qwen(o) : o.family == "sd" ? open_unet(o) : nullptr;
    if (!run) {
        answer("error: another family than qwen and sd, or the weights could not be read");
        return 3;
    }
    double loaded = seconds(CLOCK_MONOTONIC) - start;
    std::vector<float> velocity;
    answer("ready stable-diffusion.cpp %s%s, %d threads, loaded in %.0f ms", o.type.c_str(),
           o.flash ? ", flash attention" : "", o.threads, 1e3 * loaded);
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "run") {
            double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
            run(velocity);
            answer("ns %.0f %.0f", 1e9 * (seconds(CLOCK_MONOTONIC) - wall),
                   1e9 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu));
        } else if (line.rfind("dump ", 0) == 0 && !velocity.empty()) {
            FILE *file = fopen(line.c_str() + 5, "wb");
            bool ok = file && fwrite(velocity.data(), sizeof(float), velocity.size(), file) == velocity.size();
            if (file) fclose(file);
            answer(ok ? "ok" : "error: not written");
        } else {
            answer("error: not understood: %s", line.c_str());
        }
    }
}
