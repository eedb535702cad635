/* sources.h - datasets from files, and the functions that open their records.
 *
 *     stk_error err;
 *     const char *files[2] = {"train-0.tfrecord", "train-1.tfrecord"};
 *     stk_feature features[2] = {
 *         {.name = "image", .kind = STK_FEATURE_RAW, .dtype = STK_U8, .rank = 3, .shape = {32, 32, 3}},
 *         {.name = "label", .kind = STK_FEATURE_FIXED, .dtype = STK_I64}};
 *     stk_dataset *ds = stk_data_tfrecord(2, files, NULL, &err);
 *     ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 7, true, &err);   // costs no memory: records by number
 *     stk_map_fn parse;
 *     if (stk_map_parse_example(2, features, false, &parse, &err) != STK_OK) return puts(err.message);
 *     ds = stk_data_map(ds, &parse, NULL, &err);
 *     ds = stk_data_batch(ds, 32, true, &err);
 *     if (!ds) puts(err.message);
 *     stk_dataset_release(ds);
 *
 * Elements come by number wherever the format allows it, so that shuffling is exact and costs no memory, and
 * positions are resumed at once. */
#ifndef STOKER_SOURCES_H
#define STOKER_SOURCES_H

#include "csv.h"
#include "data.h"
#include "picture.h"
#include "pixels.h"
#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records as string scalars. By number for plain files with the stop policy; otherwise in order. */
STK_API stk_dataset *stk_data_tfrecord(int32_t n, const char *const *paths,
                                       const stk_record_options *options, stk_error *err);
/* Lines without their ends (LF, CR LF), as string scalars; by number. */
STK_API stk_dataset *stk_data_text_lines(int32_t n, const char *const *paths, stk_error *err);
/* Stretches of `bytes` bytes between a header and a footer of each file, as string scalars; by number. */
STK_API stk_dataset *stk_data_fixed_records(int32_t n, const char *const *paths, int64_t bytes,
                                            int64_t header, int64_t footer, stk_error *err);

/* Rows of a table, read whole by all processors: one scalar part per column. label: this column becomes the
 * second part of (features, label); stack: the other columns, which must be numbers, become one float32 vector. */
typedef struct stk_csv_source {
    const char *label; /* column, or NULL */
    bool stack;
} stk_csv_source;
STK_API stk_dataset *stk_data_csv(const char *path, const stk_csv_options *options,
                                  const stk_csv_source *how, stk_error *err);

/* Rows of the arrays of a .npz file, or of a .npy file, which is mapped, not read. names: which arrays, in
 * which order; count 0: all. */
STK_API stk_dataset *stk_data_npz(const char *path, int32_t count, const char *const *names,
                                  stk_error *err);

/* Pictures in folders, one folder per class (sorted by name), as (float32 [height,width,channels] of 0..255, label). */
typedef enum stk_label_mode {
    STK_LABEL_INT,
    STK_LABEL_ONE_HOT,
    STK_LABEL_BINARY,
    STK_LABEL_NONE
} stk_label_mode;
typedef struct stk_image_folder_options {
    int64_t height, width; /* 256, 256; 0: pictures keep their size and type */
    int32_t channels;      /* 3 */
    int32_t method;        /* of resizing, see pixels.h; bilinear */
    bool antialias;
    bool keep_aspect; /* cut what is too long, so that nothing is stretched */
    /* JPEG may be decoded at 1/2, 1/4, 1/8 where that is enough: faster, other pixels */
    bool scaled;
    stk_label_mode labels;
    int32_t class_count; /* 0: all folders, sorted */
    const char *const *classes;
    double validation;    /* share of the files, 0..1, put aside */
    bool validation_part; /* that share, not the rest */
    uint64_t seed;        /* which files these are */
} stk_image_folder_options;
STK_API stk_image_folder_options stk_image_folder_options_defaults(void);
STK_API stk_dataset *stk_data_image_folder(const char *path,
                                           const stk_image_folder_options *options, stk_error *err);
/* Of the source at the bottom of ds: class names, count of them, or NULL. They live as long as ds. */
STK_API const char *const *stk_data_classes(const stk_dataset *ds, int32_t *count);

/* ---- functions for stk_data_map ----------------------------------------------------------------- */

/* A string scalar to one part per feature; the structure is a dict by name. RAW parts look into the record, no copy. */
STK_API STK_MUST_USE stk_status stk_map_parse_example(int32_t count, const stk_feature *features,
                                                      bool sequence, stk_map_fn *fn,
                                                      stk_error *err);
/* Leaf `part`, a string scalar: its bytes are elements of dtype; shape may have one -1, rank -1: a vector. */
STK_API STK_MUST_USE stk_status stk_map_decode_raw(int32_t part, stk_dtype dtype, int32_t rank,
                                                   const int64_t *shape, stk_map_fn *fn,
                                                   stk_error *err);
/* Leaf `part`, a string scalar: a picture. With height and width of the options unknown, so are the result's. */
STK_API STK_MUST_USE stk_status stk_map_decode_image(int32_t part,
                                                     const stk_picture_options *options,
                                                     stk_map_fn *fn, stk_error *err);
/* A string scalar, one line of a table, to one scalar per column. */
STK_API STK_MUST_USE stk_status stk_map_decode_csv(const stk_csv_options *options, stk_map_fn *fn,
                                                   stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
