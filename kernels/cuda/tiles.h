/* Sizes that a kernel and what launches it must agree on, once for both sides. */
#pragma once

/* Teams of rows.h: elements that a thread keeps in registers between two passes over its row. */
#define LK_CUDA_ROW_KEPT           32

#define LK_CUDA_DEQUANTIZE_RUN     8 /* elements that a thread of dequantize.cu takes */
#define LK_CUDA_DEQUANTIZE_THREADS 256

/* group_norm.cu. */
#define LK_CUDA_GROUP_THREADS      256                         /* of group_norm_sums */
#define LK_CUDA_GROUP_PITCH        (LK_CUDA_GROUP_THREADS + 2) /* from a thread's channel to its next, in doubles */
#define LK_CUDA_GROUP_OF_SLABS     512                         /* threads of group_norm_of_slabs */
#define LK_CUDA_GROUP_SLAB_COLUMNS 64                          /* that a warp of group_sums takes */

/* Tiles of gemm.cuh: rows and columns of y, K of a stage, rows and columns of a warp, stages, blocks per SM. */
#define LK_TILE_256      128, 256, 64, 64, 64, 3, 1
#define LK_TILE_128      128, 128, 32, 64, 64, 5, 2
#define LK_TILE_64       128, 64, 64, 64, 32, 3, 2
#define LK_TILE_FLAT_128 48, 128, 64, 48, 32, 4, 1
#define LK_TILE_FLAT_64  48, 64, 64, 48, 16, 4, 2
#define LK_TILE_16       128, 16, 64, 32, 16, 4, 2
#define LK_TILE_FEW      16, 64, 64, 16, 16, 4, 4
#define LK_TILE_WIDE     128, 128, 32, 64, 32, 5, 1
/* Of gemm_f32.cu, rows and columns. */
#define LK_TILE_F32_SIDE     64
#define LK_TILE_F32_THREADS  128

#define LK_CUDA_MOST_PAD     16384 /* of a picture that conv2d.cu takes, and a third of its most pixels in a row */

#define LK_CUDA_RGB_ROWS     4 /* of a tile of conv2d_rgb.cu, in pixels, */
#define LK_CUDA_RGB_COLUMNS  128
#define LK_CUDA_RGB_CHANNELS 128 /* and in filters */

/* The bf16 kernels of attention: keys in a block of keys, warps, and how many times 16 rows a warp has. */
#define LK_ATTENTION_KEYS      64
#define LK_ATTENTION_WARPS     4
#define LK_ATTENTION_TILES     2
#define LK_ATTENTION_FEW_TILES 1
#define LK_ATTENTION_ROWS(n)   (LK_ATTENTION_WARPS * 16 * (n))
/* Bytes from row to row of a tile in shared memory: an odd number of 16-byte columns, so that the eight rows which an
 * ldmatrix reads together lie in different banks. columns: a multiple of 16. */
#define LK_ATTENTION_PITCH(columns)  (2 * (columns) + 16)
#define LK_ATTENTION_WIDTH(head_dim) (((head_dim) + 15) / 16 * 16)
/* Columns of V that a block of attention_any.cu takes: where head_dim is at most the first, and otherwise, which is
 * also what it takes of K at a time. */
#define LK_ATTENTION_FEW_COLUMNS 32
#define LK_ATTENTION_COLUMNS     128
/* Of attention_f32.cu. */
#define LK_ATTENTION_F32_KEYS 32
#define LK_ATTENTION_F32_ROWS 16
/* Of attention_512.cu. */
#define LK_ATTENTION_512_ROWS         80
#define LK_ATTENTION_512_FEW_ROWS     32 /* where a block has less shared memory */
#define LK_ATTENTION_512_THREADS      256
#define LK_ATTENTION_512_SHARED(rows) ((rows)*1428 + 52224) /* bytes */
