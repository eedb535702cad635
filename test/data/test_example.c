/* tf.train.Example and SequenceExample: TensorFlow's bytes parsed, and made again byte for byte. */
#include "check.h"

#include "base/tensor.h"
#include "stoker/records.h"

static stk_tensor *ints(int64_t n, const int64_t *values)
{
    stk_tensor *t = NULL;
    return stk_tensor_from(STK_I64, 1, &n, values, &t, NULL) == STK_OK ? t : NULL;
}
static stk_tensor *floats(int64_t n, const float *values)
{
    stk_tensor *t = NULL;
    return stk_tensor_from(STK_F32, 1, &n, values, &t, NULL) == STK_OK ? t : NULL;
}
static stk_tensor *texts(int64_t n, const stk_string *values)
{
    stk_tensor *t = NULL;
    return stk_tensor_strings(1, &n, values, &t, NULL) == STK_OK ? t : NULL;
}
static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/data/golden/%s", STK_TEST_DIR, name);
    return path;
}

/* Record number `index` of a golden file; the reader keeps it alive. */
static stk_string record_of(const char *name, int64_t index, stk_record_reader **reader)
{
    stk_error err;
    stk_string record = {0};
    if (CHECK_OK(stk_records_open(golden(name), NULL, reader, &err)))
        CHECK_OK(stk_records_at(*reader, index, &record, &err));
    return record;
}

static void check_bytes(int count, const stk_named_tensor *features, int64_t index)
{
    stk_error err;
    stk_record_reader *reader = NULL;
    stk_string record = record_of("examples.tfrecord", index, &reader);
    char *bytes = NULL;
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_example_encode(count, features, &bytes, &size, &err)));
    CHECK_EQ_I64(size, record.size);
    CHECK((int64_t)size == record.size && memcmp(bytes, record.data, size) == 0);
    stk_bytes_free(bytes);
    stk_records_close(reader);
    for (int i = 0; i < count; i++) stk_tensor_release((stk_tensor *)(uintptr_t)features[i].tensor);
}

TEST(encoding_is_tensorflows)
{
    char pixels[36];
    for (int i = 0; i < 36; i++) pixels[i] = (char)i;
    check_bytes(
        5,
        (stk_named_tensor[]){{"words", texts(3, (stk_string[]){{"one", 3}, {"", 0}, {"three", 5}})},
                             {"label", ints(1, (int64_t[]){3})},
                             {"pixels", texts(1, (stk_string[]){{pixels, 12}})},
                             {"big", ints(3, (int64_t[]){-1, (int64_t)1 << 62, INT64_MIN})},
                             {"weights", floats(3, (float[]){0.5f, -1.25f, 3e-8f})}},
        0);
    check_bytes(6,
                (stk_named_tensor[]){{"words", texts(1, (stk_string[]){{"solo", 4}})},
                                     {"optional", floats(1, (float[]){7.5f})},
                                     {"label", ints(1, (int64_t[]){0})},
                                     {"pixels", texts(1, (stk_string[]){{pixels + 12, 12}})},
                                     {"big", ints(0, NULL)},
                                     {"weights", floats(3, (float[]){1, 2, 3})}},
                1);
}

TEST(sequence_encoding_is_tensorflows)
{
    stk_error err;
    stk_record_reader *reader = NULL;
    stk_string record = record_of("sequences.tfrecord", 1, &reader);
    stk_tensor *tokens = NULL, *ragged = NULL;
    CHECK_OK(stk_tensor_new(STK_I64, 2, (int64_t[]){0, 2}, &tokens, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){0, 0}, &ragged, &err));
    stk_named_tensor context[2] = {{"length", ints(1, (int64_t[]){0})},
                                   {"id", texts(1, (stk_string[]){{"s0", 2}})}};
    stk_named_tensor lists[2] = {{"tokens", tokens}, {"ragged", ragged}};
    char *bytes = NULL;
    size_t size = 0;
    CHECK_OK(stk_sequence_example_encode(2, context, 2, lists, &bytes, &size, &err));
    CHECK((int64_t)size == record.size && memcmp(bytes, record.data, size) == 0);
    stk_bytes_free(bytes);
    for (int i = 0; i < 2; i++) {
        stk_tensor_release((stk_tensor *)(uintptr_t)context[i].tensor);
        stk_tensor_release((stk_tensor *)(uintptr_t)lists[i].tensor);
    }
    stk_records_close(reader);
}

static stk_status parse_golden(stk_error *err)
{
    stk_record_reader *reader = NULL;
    stk_tensor *seven = NULL, *out[6] = {NULL};
    stk_example_parser *p = NULL;
    stk_string record = {0};
    stk_status status = stk_tensor_scalar(STK_F32, 7, &seven, err);
    stk_feature schema[6] = {
        {"label", STK_FEATURE_FIXED, STK_I64, 0, {0}, NULL, false},
        {"weights", STK_FEATURE_FIXED, STK_F32, 2, {3, 1}, NULL, false},
        {"words", STK_FEATURE_VAR, STK_STRING, 0, {0}, NULL, false},
        {"pixels", STK_FEATURE_RAW, STK_U8, 3, {2, 2, 3}, NULL, false},
        {"big", STK_FEATURE_SEQUENCE, STK_I64, 1, {3}, NULL, false},
        {"optional", STK_FEATURE_FIXED, STK_F32, 1, {2}, seven, false},
    };
    if (status == STK_OK) status = stk_example_parser_new(6, schema, false, &p, err);
    stk_tensor_release(seven);
    if (status == STK_OK)
        status = stk_records_open(golden("examples.tfrecord"), NULL, &reader, err);
    if (status == STK_OK) status = stk_records_at(reader, 0, &record, err);
    if (status == STK_OK) status = stk_example_parse(p, record.data, (size_t)record.size, out, err);
    if (status == STK_OK) {
        CHECK_EQ_I64(out[0]->rank, 0);
        CHECK_EQ_I64(stk_tensor_at(out[0], 0), 3);
        CHECK_EQ_I64(out[1]->shape[0], 3);
        CHECK_NEAR(stk_tensor_at(out[1], 1), -1.25, 0);
        CHECK_EQ_I64(out[2]->shape[0], 3);
        CHECK_EQ_I64(((stk_string *)out[2]->data)[2].size, 5);
        CHECK_EQ_I64(stk_tensor_at(out[3], 11), 11);
        CHECK_EQ_I64(out[4]->shape[0], 1);
        CHECK_EQ_I64(((int64_t *)out[4]->data)[2], INT64_MIN);
        CHECK_NEAR(stk_tensor_at(out[5], 1), 7, 0);
    }
    for (int i = 0; i < 6; i++) stk_tensor_release(out[i]);
    stk_records_close(reader);
    stk_example_parser_free(p);
    return status;
}

TEST(tensorflow_examples_are_parsed)
{
    stk_error err;
    CHECK_OK(parse_golden(&err));
    OOM_LOOP(parse_golden(NULL));
}

TEST(sequences_are_parsed)
{
    stk_error err;
    stk_record_reader *reader = NULL;
    stk_feature schema[3] = {
        {"length", STK_FEATURE_FIXED, STK_I64, 0, {0}, NULL, false},
        {"tokens", STK_FEATURE_SEQUENCE, STK_I64, 1, {2}, NULL, true},
        {"ragged", STK_FEATURE_VAR, STK_F32, 0, {0}, NULL, true},
    };
    stk_example_parser *p = NULL;
    REQUIRE(CHECK_OK(stk_example_parser_new(3, schema, true, &p, &err)));
    stk_string record = record_of("sequences.tfrecord", 0, &reader);
    stk_tensor *out[3] = {NULL};
    REQUIRE(CHECK_OK(stk_example_parse(p, record.data, (size_t)record.size, out, &err)));
    CHECK_STR(STK_TENSOR_TEXT(out[1]), "int64[3,2]");
    CHECK_EQ_I64(stk_tensor_at(out[1], 5), 6);
    CHECK_STR(STK_TENSOR_TEXT(out[2]), "float32[3,2]"); /* padded with zeros */
    const float want[6] = {0, 0, 0, 0, 0, 1};
    CHECK_NEAR_F32((float *)out[2]->data, want, 6, 0, 0);
    for (int i = 0; i < 3; i++) stk_tensor_release(out[i]);
    stk_records_close(reader);
    stk_example_parser_free(p);
}

TEST(wrong_schemas_are_named)
{
    stk_error err;
    stk_record_reader *reader = NULL;
    stk_string record = record_of("examples.tfrecord", 0, &reader);
    stk_feature bad[] = {
        {"label", STK_FEATURE_FIXED, STK_F32, 0, {0}, NULL, false},
        {"label", STK_FEATURE_FIXED, STK_I64, 1, {2}, NULL, false},
        {"nowhere", STK_FEATURE_FIXED, STK_I64, 0, {0}, NULL, false},
        {"pixels", STK_FEATURE_RAW, STK_U8, 1, {13}, NULL, false},
        {"big", STK_FEATURE_SEQUENCE, STK_I64, 1, {2}, NULL, false},
    };
    const stk_status code[] = {STK_ERR_DTYPE, STK_ERR_SHAPE, STK_ERR_FORMAT, STK_ERR_SHAPE,
                               STK_ERR_SHAPE};
    const char *text[] = {"holds int64", "1 values, the schema wants 2", "not in the record",
                          "12 bytes", "whole number"};
    for (int i = 0; i < 5; i++) {
        stk_example_parser *p = NULL;
        stk_tensor *out[1] = {NULL};
        REQUIRE(CHECK_OK(stk_example_parser_new(1, &bad[i], false, &p, &err)));
        CHECK_FAILS(stk_example_parse(p, record.data, (size_t)record.size, out, &err), code[i],
                    text[i]);
        stk_example_parser_free(p);
    }
    stk_example_parser *p = NULL;
    stk_feature twice[2] = {{"a", STK_FEATURE_FIXED, STK_I64, 0, {0}, NULL, false},
                            {"a", STK_FEATURE_VAR, STK_I64, 0, {0}, NULL, false}};
    CHECK_FAILS(stk_example_parser_new(2, twice, false, &p, &err), STK_ERR_ARGUMENT, "two");
    stk_feature half = {"a", STK_FEATURE_FIXED, STK_F16, 0, {0}, NULL, false};
    CHECK_FAILS(stk_example_parser_new(1, &half, false, &p, &err), STK_ERR_DTYPE, "float16");
    stk_records_close(reader);
}

/* Every strict rule of the wire format, one broken message each. */
TEST(malformed_messages_are_refused)
{
    stk_error err;
    stk_feature f = {"a", STK_FEATURE_VAR, STK_I64, 0, {0}, NULL, false};
    stk_example_parser *p = NULL;
    REQUIRE(CHECK_OK(stk_example_parser_new(1, &f, false, &p, &err)));
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\x0a", 1},                                          /* no length */
        {"\x0a\x05", 2},                                      /* length beyond the end */
        {"\x02\x00", 2},                                      /* field number 0 */
        {"\x0b", 1},                                          /* group */
        {"\x08\x01", 2},                                      /* features as a number */
        {"\x0a\x02\x0a\x05", 4},                              /* entry beyond its map */
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11}, /* 70 bits */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_tensor *out[1] = {NULL};
        CHECK_FAILS(stk_example_parse(p, bad[i].bytes, bad[i].size, out, &err), STK_ERR_FORMAT,
                    "malformed at byte");
    }
    stk_example_parser_free(p);
}

TEST(numbers_one_by_one_are_read_as_well)
{
    stk_error err;
    stk_feature f = {"a", STK_FEATURE_FIXED, STK_I64, 1, {3}, NULL, false};
    stk_example_parser *p = NULL;
    REQUIRE(CHECK_OK(stk_example_parser_new(1, &f, false, &p, &err)));
    /* features { entry { "a", feature { int64_list { 5, 7 one by one, then packed 300 } } } } */
    static const char bytes[] = "\x0a\x13\x0a\x11\x0a\x01"
                                "a\x12\x0c\x1a\x0a\x08\x05\x08\x07\x0a\x02\xac\x02\x20\x01";
    stk_tensor *out[1] = {NULL};
    CHECK_OK(stk_example_parse(p, bytes, sizeof bytes - 1, out, &err));
    if (out[0]) {
        CHECK_EQ_I64(stk_tensor_at(out[0], 0), 5);
        CHECK_EQ_I64(stk_tensor_at(out[0], 2), 300);
    }
    stk_tensor_release(out[0]);
    stk_example_parser_free(p);
}

static void count_features(void *context, const stk_feature_seen *seen)
{
    int64_t *counts = context;
    counts[0]++;
    if (seen->list < 0) {
        stk_tensor *values = NULL;
        CHECK(stk_feature_values(seen, &values, NULL) == STK_OK);
        counts[1] += stk_tensor_count(values);
        stk_tensor_release(values);
    } else {
        counts[2] += seen->list;
    }
}

TEST(unknown_records_can_be_looked_at)
{
    stk_error err;
    stk_record_reader *reader = NULL;
    stk_string record = record_of("examples.tfrecord", 0, &reader);
    int64_t counts[3] = {0};
    CHECK_OK(
        stk_example_visit(record.data, (size_t)record.size, false, count_features, counts, &err));
    CHECK_EQ_I64(counts[0], 5);
    CHECK_EQ_I64(counts[1], 1 + 3 + 3 + 1 + 3);
    stk_records_close(reader);
    record = record_of("sequences.tfrecord", 0, &reader);
    memset(counts, 0, sizeof counts);
    CHECK_OK(
        stk_example_visit(record.data, (size_t)record.size, true, count_features, counts, &err));
    CHECK_EQ_I64(counts[0], 4);
    CHECK_EQ_I64(counts[2], 6);
    stk_records_close(reader);
}

TEST_MAIN()
