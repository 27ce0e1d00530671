/* Reader of GGUF files: their tensors as those of a safetensors file, closed by lk_safetensors_close. */
#pragma once

#include "weights/safetensors.h"

/* Parses the header, which `bytes` begin with; data stay NULL. LK_E_INPUT, LK_E_NOMEM. */
enum lk_code lk_gguf_parse(struct lk_safetensors *out, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                           const char *name);
enum lk_code lk_gguf_open(struct lk_safetensors *out, const char *path);
