/* What a file is by its first bytes, for messages about one that is not what was expected. */
#pragma once

#include <stddef.h>

#define LK_CONTENT_SAFETENSORS "a safetensors file"

/* "a HEIC picture", "a Git LFS pointer in its place (run git lfs pull)" and the like, with an article; for what is not
 * known "text" or "other data"; for n 0 "an empty file". Never NULL; at most the first 512 bytes are looked at. */
const char *lk_content_name(const void *bytes, size_t n);
/* The same for what no reader of text can mean: a Git LFS pointer, a web page, or a known kind of binary file; NULL for
 * JSON, CSV and any other text, and for what is not known. */
const char *lk_content_not_text(const void *bytes, size_t n);
