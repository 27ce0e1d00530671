/* libjpeg's memory manager over engine/base/alloc.h: counted, limited, able to fail on purpose, and without temporary
 * files.
 */
#pragma once

#include <stdio.h>
#include <setjmp.h>

#include <jpeglib.h>

#include "engine/base/status.h"

/* What one compression or decompression needs beside libjpeg's own struct, whose client_data points here. */
struct lk_jpeg_job {
    struct jpeg_error_mgr error;
    jmp_buf jump;
    const char *name;  /* for messages */
    enum lk_code code; /* why the jump was made; the message is set */
    size_t bytes_max, bytes_live;
    struct lk_jpeg_block *blocks[JPOOL_NUMPOOLS];
    struct jvirt_sarray_control *sample_arrays;
    struct jvirt_barray_control *block_arrays;
    void (*library_self_destruct)(j_common_ptr);
};

/* Sets the error handlers (libjpeg's errors become LK_E_IMAGE and jump to job->jump). Call before jpeg_create_*. */
void lk_jpeg_job_init(struct lk_jpeg_job *job, const char *name);
/* Replaces the memory manager's functions. Call right after jpeg_create_*; jpeg_destroy frees all. */
void lk_jpeg_use_memory(j_common_ptr cinfo, struct lk_jpeg_job *job, size_t bytes_max);
/* Leaves libjpeg with this code; the message is set already. */
void lk_jpeg_leave(j_common_ptr cinfo, enum lk_code code) __attribute__((noreturn));
