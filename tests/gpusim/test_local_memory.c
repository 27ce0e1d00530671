/* No kernel of ours keeps anything in a thread's local memory, which is memory of the device: arrays stay in registers.
 * Read from the built images, whose machine code is an ELF file for each architecture; .nv.info says what frame each
 * kernel takes. One of the simulator's own kernels has one. Spills are errors of the build already. */
#include <elf.h>

#include "kernels/cuda/runtime/modules.h"
#include "tests/common/test.h"

#define EIFMT_SVAL        4
#define EIATTR_FRAME_SIZE 0x11

/* Counts the kernels of an image's .nv.info; returns the largest frame in bytes. */
static uint32_t frame_of_info(const char *info, size_t n_bytes, int *n_kernels) {
    uint32_t most = 0;
    for (size_t at = 0; at + 4 <= n_bytes;) {
        uint16_t size;
        uint32_t value[2];
        memcpy(&size, info + at + 2, sizeof size);
        const bool has_values = info[at] == EIFMT_SVAL;
        if (has_values && info[at + 1] == EIATTR_FRAME_SIZE) {
            assert_true(size == sizeof value && at + 4 + size <= n_bytes);
            memcpy(value, info + at + 4, sizeof value); /* the kernel's symbol, bytes */
            if (value[1] > most) most = value[1];
            ++*n_kernels;
        }
        at += 4 + (has_values ? size : 0);
    }
    return most;
}

static uint32_t frame_of_image(const char *image, size_t n_bytes, int *n_kernels) {
    Elf64_Ehdr header;
    uint32_t most = 0;
    memcpy(&header, image, sizeof header);
    assert_int_equal(header.e_ident[EI_CLASS], ELFCLASS64);
    assert_true(header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr) <= n_bytes);
    const char *sections = image + header.e_shoff;
    Elf64_Shdr names, section;
    memcpy(&names, sections + header.e_shstrndx * sizeof names, sizeof names);
    for (int i = 0; i < header.e_shnum; i++) {
        memcpy(&section, sections + (size_t)i * sizeof section, sizeof section);
        if (strcmp(image + names.sh_offset + section.sh_name, ".nv.info")) continue;
        assert_true(section.sh_offset + section.sh_size <= n_bytes);
        uint32_t frame = frame_of_info(image + section.sh_offset, section.sh_size, n_kernels);
        if (frame > most) most = frame;
    }
    return most;
}

/* Of all images in build/FOLDER/NAME.fatbin. */
static uint32_t frame_of_file(const char *folder, const char *name, int *n_images, int *n_kernels) {
    char path[1024];
    size_t n_bytes;
    uint32_t most = 0;
    snprintf(path, sizeof path, "%s/%s/%s.fatbin", getenv("BUILD_DIR"), folder, name);
    char *file = test_read(path, &n_bytes);
    for (char *at = file; (at = memmem(at, (size_t)(file + n_bytes - at), ELFMAG, SELFMAG)); at += SELFMAG) {
        uint32_t frame = frame_of_image(at, (size_t)(file + n_bytes - at), n_kernels);
        if (frame > most) most = frame;
        ++*n_images;
    }
    free(file);
    return most;
}

static void no_frames(void **state) {
    int n_kernels = 0;
    (void)state;
    if (!lk_cuda_n_modules) skip(); /* built without nvcc */
    for (size_t i = 0; i < lk_cuda_n_modules; i++) {
        int n_images = 0;
        if (frame_of_file("cuda", lk_cuda_modules[i].name, &n_images, &n_kernels))
            fail_msg("%s: a kernel uses local memory", lk_cuda_modules[i].name);
        assert_int_equal(n_images, 2); /* sm_80, sm_90 */
    }
    printf("%d kernels of %zu modules\n", n_kernels, lk_cuda_n_modules);
    assert_true(n_kernels >= (int)lk_cuda_n_modules);
}

static void a_frame_is_seen(void **state) {
    int n_images = 0, n_kernels = 0;
    (void)state;
    if (!lk_cuda_n_modules) skip();
    assert_true(frame_of_file("tests/gpusim", "counters", &n_images, &n_kernels) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_frames), cmocka_unit_test(a_frame_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
