/* records.h - files of records: TFRecord, tf.train.Example, CSV, and the pictures inside them.
 *
 *     stk_error err;
 *     stk_record_reader *in = NULL;
 *     stk_record_options options = stk_record_options_defaults();
 *     options.policy = STK_BAD_SKIP;                        // damaged records are counted, not fatal
 *     if (stk_records_open("train.tfrecord", &options, &in, &err) != STK_OK) return puts(err.message);
 *     stk_string record;
 *     for (bool end = false; !end;) {
 *         if (stk_records_next(in, &record, &end, &err) != STK_OK) break;
 *         if (!end) printf("%lld bytes\n", (long long)record.size);
 *     }
 *     printf("%lld damaged\n", (long long)stk_records_stats(in).bad);
 *     stk_records_close(in);
 *
 * This is the ground floor, one record at a time on the caller's thread. Pipelines over such files
 * are made with data.h. */
#ifndef STOKER_RECORDS_H
#define STOKER_RECORDS_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- TFRecord: reading ------------------------------------------------------------------------- */

typedef enum stk_compression {
    STK_COMPRESSION_AUTO, /* by the first bytes of the file (reading only) */
    STK_COMPRESSION_NONE,
    STK_COMPRESSION_GZIP,
    STK_COMPRESSION_ZLIB
} stk_compression;

/* What becomes of a record whose checksums do not fit. */
typedef enum stk_bad_policy {
    STK_BAD_STOP,      /* the call fails and names file, offset and reason */
    STK_BAD_SKIP,      /* counted; reading goes on at the next good record */
    STK_BAD_QUARANTINE /* as SKIP, and its bytes are appended to a file of their own */
} stk_bad_policy;

typedef struct stk_record_options {
    stk_compression compression;
    bool verify; /* compare the checksum of the data (that of the length always is); true */
    stk_bad_policy policy;
    const char *quarantine; /* file; copied. NULL: "<path>.bad" */
    bool index_beside;      /* keep the index at "<path>.index", not in the user's cache; false */
} stk_record_options;
STK_API stk_record_options stk_record_options_defaults(void);

typedef struct stk_record_stats {
    int64_t records, bytes;     /* good ones handed out */
    int64_t bad, skipped_bytes; /* damaged places, and the bytes lost there */
    char last_reason[256];      /* of the last bad one: offset and reason; "" when none */
} stk_record_stats;

typedef struct stk_record_reader stk_record_reader; /* one thread at a time */
/* options NULL: the defaults. */
STK_API STK_MUST_USE stk_status stk_records_open(const char *path,
                                                 const stk_record_options *options,
                                                 stk_record_reader **out, stk_error *err);
/* The same over memory, which is borrowed and must outlive the reader; `name` is for messages. */
STK_API STK_MUST_USE stk_status stk_records_open_memory(const char *name, const void *data,
                                                        size_t size,
                                                        const stk_record_options *options,
                                                        stk_record_reader **out, stk_error *err);
/* The bytes stay valid until the next call (plain files: until the reader is closed). At the end
 * *end becomes true. After STK_BAD_STOP has failed, the next call tries the next good record. */
STK_API STK_MUST_USE stk_status stk_records_next(stk_record_reader *reader, stk_string *record,
                                                 bool *end, stk_error *err);
/* Where the record handed out last begins, in unpacked bytes. */
STK_API int64_t stk_records_offset(const stk_record_reader *reader);
/* Continue at such an offset. Compressed files can only go forward. */
STK_API STK_MUST_USE stk_status stk_records_seek(stk_record_reader *reader, int64_t offset,
                                                 stk_error *err);
STK_API stk_record_stats stk_records_stats(const stk_record_reader *reader);
STK_API void stk_records_close(stk_record_reader *reader);

/* Random access, plain files only. The first call builds an index of the good lengths (one glance
 * per record) or takes the stored one if file size and time still fit. */
STK_API STK_MUST_USE stk_status stk_records_count(stk_record_reader *reader, int64_t *count,
                                                  stk_error *err);
STK_API STK_MUST_USE stk_status stk_records_at(stk_record_reader *reader, int64_t index,
                                               stk_string *record, stk_error *err);

/* ---- TFRecord: writing ------------------------------------------------------------------------- */

typedef struct stk_record_writer_options {
    stk_compression compression; /* AUTO means NONE here */
    bool
        durable; /* commit waits until the file is on the disk, so that it survives a loss of power;
                   * false: it survives the end of the program, as with any other writer */
} stk_record_writer_options;
STK_API stk_record_writer_options stk_record_writer_options_defaults(void);

typedef struct stk_record_writer stk_record_writer;
/* The file appears under its name when it is whole, at commit. options NULL: the defaults. */
STK_API STK_MUST_USE stk_status stk_record_writer_new(const char *path,
                                                      const stk_record_writer_options *options,
                                                      stk_record_writer **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_record_write(stk_record_writer *writer, const void *data,
                                                 size_t size, stk_error *err);
/* Ends the writer, also when it fails. */
STK_API STK_MUST_USE stk_status stk_record_writer_commit(stk_record_writer *writer, stk_error *err);
STK_API void stk_record_writer_abandon(stk_record_writer *writer); /* NULL is fine */

/* The checksum that stands behind records, and in TensorFlow's event files and checkpoints: CRC-32C, masked. */
STK_API uint32_t stk_record_checksum(const void *data, size_t size);

/* ---- tf.train.Example and SequenceExample ------------------------------------------------------- */

/* Writing: named tensors. int64, float32 and string are stored as such; other integers and bool
 * become int64, other floats float32. Members are sorted by name, so equal data give equal bytes. */
typedef struct stk_named_tensor {
    const char *name;
    const stk_tensor *tensor; /* flattened; in a feature list: one feature per first index */
} stk_named_tensor;

/* The bytes are freed with stk_bytes_free. */
STK_API STK_MUST_USE stk_status stk_example_encode(int32_t count, const stk_named_tensor *features,
                                                   char **bytes, size_t *size, stk_error *err);
STK_API STK_MUST_USE stk_status stk_sequence_example_encode(
    int32_t contexts, const stk_named_tensor *context, int32_t lists,
    const stk_named_tensor *feature_lists, char **bytes, size_t *size, stk_error *err);
STK_API void stk_bytes_free(void *bytes); /* NULL is fine */

/* Reading, against a schema. */
typedef enum stk_feature_kind {
    STK_FEATURE_FIXED,    /* exactly this shape: FixedLenFeature */
    STK_FEATURE_VAR,      /* any number, rank 1: the values of VarLenFeature */
    STK_FEATURE_SEQUENCE, /* any number of items of this shape, one more axis in front:
                             FixedLenSequenceFeature; absent is empty */
    STK_FEATURE_RAW       /* one string whose bytes are the elements: FixedLen + decode_raw */
} stk_feature_kind;

typedef struct stk_feature {
    const char *name;
    stk_feature_kind kind;
    stk_dtype dtype; /* int64, float32, string; RAW: any but string */
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
    const stk_tensor *fallback; /* FIXED: what an absent feature is; scalar or this shape. NULL:
                                   it has to be there */
    bool in_list;               /* SequenceExample: in feature_lists, not in context */
} stk_feature;

typedef struct stk_example_parser stk_example_parser; /* immutable: any number of threads */
/* Names, shapes and fallbacks are copied. sequence: records are SequenceExamples. */
STK_API STK_MUST_USE stk_status stk_example_parser_new(int32_t count, const stk_feature *features,
                                                       bool sequence, stk_example_parser **out,
                                                       stk_error *err);
STK_API void stk_example_parser_free(stk_example_parser *parser);
/* One new tensor per feature, in the order of the schema. */
STK_API STK_MUST_USE stk_status stk_example_parse(const stk_example_parser *parser,
                                                  const void *record, size_t size, stk_tensor **out,
                                                  stk_error *err);
/* Straight into memory: FIXED (not string) and RAW features only; slots[i] has room for feature i. */
STK_API STK_MUST_USE stk_status stk_example_parse_into(const stk_example_parser *parser,
                                                       const void *record, size_t size,
                                                       void *const *slots, stk_error *err);

/* What a record holds when nobody knows: one call per feature, in the order of the record. count is
 * the number of values; list is the number of features in a feature list, -1 outside of lists.
 * dtype is int64, float32, string, or STK_DTYPE_COUNT for a feature without values. */
typedef struct stk_feature_seen {
    stk_string name;
    stk_dtype dtype;
    int64_t count, bytes, list;
    const void *payload; /* for stk_feature_values */
    size_t payload_size;
} stk_feature_seen;
typedef void (*stk_feature_visit)(void *context, const stk_feature_seen *seen);
STK_API STK_MUST_USE stk_status stk_example_visit(const void *record, size_t size, bool sequence,
                                                  stk_feature_visit visit, void *context,
                                                  stk_error *err);
/* All values of a feature seen outside of a list, as a tensor of rank 1. */
STK_API STK_MUST_USE stk_status stk_feature_values(const stk_feature_seen *seen, stk_tensor **out,
                                                   stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
