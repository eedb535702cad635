/* example.h - tf.train.Example inside a record: where its features are and what they hold.
 *
 *     Example          1: Features                    SequenceExample   1: Features (context)
 *     Features         1: entry, repeated                               2: FeatureLists
 *     entry            1: name   2: Feature           FeatureLists      1: entry, repeated
 *     Feature          1: BytesList                   entry             1: name   2: FeatureList
 *                      2: FloatList                   FeatureList       1: Feature, repeated
 *                      3: Int64List
 *     ..List           1: values, packed or one by one
 *
 * Of entries with one name the last counts, as protobuf has it. */
#ifndef STK_DATA_EXAMPLE_H
#define STK_DATA_EXAMPLE_H

#include "data/formats/wire.h"
#include "stoker/records.h"

/* The list of one feature. dtype STK_DTYPE_COUNT: the feature has no list. */
typedef struct stk_value_list {
    stk_dtype dtype;
    stk_wire values; /* the BytesList, FloatList or Int64List message */
} stk_value_list;

/* false: malformed (or one list in two parts, which no writer makes). */
bool stk_value_list_open(stk_wire feature, stk_value_list *out);
/* Number of values and, for strings, of their bytes (NULL: not wanted). -1: malformed. */
int64_t stk_value_list_count(const stk_value_list *list, int64_t *bytes);
/* The values into out: float, int64_t or stk_string (which point into the record). At most `room`;
 * returns how many there are, which may be more, or -1. */
int64_t stk_value_list_read(const stk_value_list *list, void *out, int64_t room);

/* Where a feature of the schema is: the Feature message, or the FeatureList message for those in
 * lists. at is NULL when it is absent. */
typedef struct stk_feature_place {
    stk_wire message;
} stk_feature_place;
/* places[count of the schema]. */
stk_status stk_example_locate(const stk_example_parser *parser, const void *record, size_t size,
                              stk_feature_place *places, stk_error *err);
/* The bytes of a RAW feature where they stand, checked against its size. */
stk_status stk_example_raw(const stk_example_parser *parser, int32_t index,
                           const stk_feature_place *place, const void **data, stk_error *err);

/* A new tensor for one feature; and the values of a FIXED one (no string) straight into memory. */
stk_status stk_example_make(const stk_example_parser *parser, int32_t index,
                            const stk_feature_place *place, stk_tensor **out, stk_error *err);
stk_status stk_example_read(const stk_example_parser *parser, int32_t index,
                            const stk_feature_place *place, void *out, stk_error *err);

int32_t stk_example_parser_count(const stk_example_parser *parser);
const stk_feature *stk_example_parser_feature(const stk_example_parser *parser, int32_t index);

#endif
