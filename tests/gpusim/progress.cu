/* Blocks that wait for each other, a warp that never ends, and reads of shared memory that nothing wrote. */
#include <cooperative_groups.h>

/* Each round every block publishes a number and reads its neighbour's of the same round. */
extern "C" __global__ void grid_rounds(unsigned *numbers, unsigned *wrong, int rounds) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x == 0) numbers[blockIdx.x] = round * 1000 + blockIdx.x;
        grid.sync();
        const unsigned next = (blockIdx.x + 1) % gridDim.x;
        if (threadIdx.x == 32 && numbers[next] != round * 1000 + next) atomicAdd(wrong, 1);
        grid.sync();
    }
}

/* Sums of tiles of two warps, whose barriers lie in reserved shared memory. */
extern "C" __global__ void tile_sums(unsigned *sums) {
    auto block = cooperative_groups::this_thread_block();
    auto tile = cooperative_groups::tiled_partition<64>(block);
    __shared__ unsigned words[128];
    words[threadIdx.x] = threadIdx.x;
    tile.sync();
    if (tile.thread_rank() == 0) {
        unsigned sum = 0;
        for (int i = 0; i < 64; i++) sum += words[threadIdx.x + i];
        sums[threadIdx.x / 64] = sum;
    }
}

extern "C" __global__ void spin(volatile unsigned *flag) {
    while (*flag == 0) {
    }
}

/* The upper half of the shared words is read and added to what is thrown away. */
extern "C" __global__ void unwritten(unsigned *out, unsigned keep) {
    __shared__ unsigned words[128];
    if (threadIdx.x < 64) words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const unsigned word = ((volatile unsigned *)words)[threadIdx.x];
    if (threadIdx.x < keep) out[threadIdx.x] = word;
}
