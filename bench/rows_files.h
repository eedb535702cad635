/* rows_files.h - what the input rows share: files and images made from formulas, digests, and what no program can beat.
 * The same formulas are in bench/peers/inputs.py. */
#ifndef STOKER_BENCH_ROWS_FILES_H
#define STOKER_BENCH_ROWS_FILES_H

#include "rows.h"

enum {
    BENCH_IMAGES = 1000,
    BENCH_SIDE = 256,
    BENCH_PIXELS = BENCH_SIDE * BENCH_SIDE * 3,
    BENCH_PHOTOS = 64
};

/* A path in $STOKER_BENCH_DATA, else in /dev/shm/stoker-bench, where the disk does not count. Lives for two more calls. */
char *bench_data_path(const char *name);
void bench_image(int64_t number, uint8_t *pixels); /* of memory and of the records */
/* Each makes its file or folder unless it is there. */
int bench_make_images(const char *path);
int bench_make_photos(const char *folder);
void bench_photo_path(const char *folder, int number, char *path, size_t size);

/* A digest of numbers in their order: how many, their sum, and their sum with the weights 1 .. 1009 in turn. */
typedef struct bench_digest {
    int64_t count;
    double sum, weighted;
} bench_digest;
int bench_digest_add(bench_digest *digest, const stk_tensor *numbers);
void bench_digest_note(const bench_digest *digests, int32_t n); /* "check" of the row's line */

/* Seconds per image with this many threads at once, negative after it has said what failed; 0: cannot be measured. */
double bench_limit_convert(int threads); /* bytes of an image to floats, from memory to memory */
double bench_limit_decode(int threads);  /* a photo by libjpeg-turbo's own functions, in full */

#endif
