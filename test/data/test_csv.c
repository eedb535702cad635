/* Tables: numbers exact, quoting, missing values, types, pieces, errors with their place. */
#include "check.h"
#include "temporary.h"

#include "base/float_env.h"
#include "base/rng.h"
#include "base/tensor.h"
#include "data/formats/csv_number.h"
#include "stoker/csv.h"

#include <float.h>

static stk_status open_text(const char *text, const stk_csv_options *options, stk_csv **out,
                            stk_error *err)
{
    return stk_csv_open_memory("table", text, strlen(text), options, out, err);
}

static bool string_is(const stk_tensor *t, int64_t i, const char *text)
{
    const stk_string *s = (const stk_string *)t->data + i;
    return s->size == (int64_t)strlen(text) && memcmp(s->data, text, strlen(text)) == 0;
}

TEST(columns_are_typed_and_read)
{
    stk_error err;
    stk_csv *t = NULL;
    REQUIRE(CHECK_OK(open_text("id,x,name,gap\r\n1,0.5,ann,\r\n-2,1e3,\"b, \"\"q\"\"\nr\",7\n"
                               "\n3,-.25,,NA",
                               NULL, &t, &err)));
    CHECK_EQ_I64(stk_csv_column_count(t), 4);
    CHECK_STR(stk_csv_column_name(t, 2), "name");
    stk_tensor *c[4];
    REQUIRE(CHECK_OK(stk_csv_read(t, c, &err)));
    CHECK_STR(STK_TENSOR_TEXT(c[0]), "int64[3]");
    CHECK_STR(STK_TENSOR_TEXT(c[1]), "float32[3]");
    CHECK_STR(STK_TENSOR_TEXT(c[2]), "string[3]");
    CHECK_STR(STK_TENSOR_TEXT(c[3]), "float32[3]");
    CHECK_EQ_I64(stk_tensor_at(c[0], 1), -2);
    CHECK_NEAR(stk_tensor_at(c[1], 1), 1000, 0);
    CHECK_NEAR(stk_tensor_at(c[1], 2), -0.25, 0);
    CHECK(string_is(c[2], 0, "ann") && string_is(c[2], 1, "b, \"q\"\nr") && string_is(c[2], 2, ""));
    CHECK(isnan(stk_tensor_at(c[3], 0)) && isnan(stk_tensor_at(c[3], 2)));
    CHECK_EQ_I64(stk_tensor_at(c[3], 1), 7);
    for (int i = 0; i < 4; i++) stk_tensor_release(c[i]);
    stk_csv_close(t);
}

TEST(wanted_columns_by_name_and_number)
{
    stk_error err;
    stk_csv *t = NULL;
    stk_csv_column want[2] = {{.name = "c", .dtype = STK_F64, .fallback = 9},
                              {.number = 0, .dtype = STK_I32, .required = true}};
    stk_csv_options o = stk_csv_options_defaults();
    o.columns = want;
    o.column_count = 2;
    o.delimiter = ';';
    REQUIRE(CHECK_OK(open_text("a;b;c\n1;skip \"me\";2.5\n3;\"x;y\";\n", &o, &t, &err)));
    stk_tensor *c[2];
    int64_t rows = 0, second = 0;
    CHECK_OK(stk_csv_next(t, 1, c, &rows, &err));
    CHECK_EQ_I64(rows, 1);
    CHECK_NEAR(stk_tensor_at(c[0], 0), 2.5, 0);
    CHECK_EQ_I64(stk_tensor_at(c[1], 0), 1);
    second = stk_csv_offset(t);
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 2; i++) stk_tensor_release(c[i]);
        CHECK_OK(stk_csv_next(t, 100, c, &rows, &err));
        CHECK_EQ_I64(rows, 1);
        CHECK_NEAR(stk_tensor_at(c[0], 0), 9, 0);
        CHECK_OK(stk_csv_seek(t, second, &err));
    }
    for (int i = 0; i < 2; i++) stk_tensor_release(c[i]);
    CHECK_OK(stk_csv_next(t, 100, c, &rows, &err));
    for (int i = 0; i < 2; i++) stk_tensor_release(c[i]);
    CHECK_OK(stk_csv_next(t, 100, c, &rows, &err));
    CHECK_EQ_I64(rows, 0);
    stk_csv_close(t);
}

TEST(mistakes_are_named_with_their_place)
{
    stk_error err;
    stk_csv *t = NULL;
    stk_csv_column want[2] = {{.number = 0, .dtype = STK_I64, .required = true},
                              {.number = 1, .dtype = STK_U8, .required = true}};
    stk_csv_options o = stk_csv_options_defaults();
    o.columns = want;
    o.column_count = 2;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"a,b\n1,2\nx,3\n", "row 1 at byte 8, column \"a\" (0): \"x\" is no int64"},
        {"a,b\n1,256\n", "\"256\" is no uint8"},
        {"a,b\n1,\n", "is missing"},
        {"a,b\n1\n", "only 1 fields, the table has 2"},
        {"a,b\n1,2,3\n", "more than 2 fields"},
        {"a,b\n1,\"2\n", "not closed"},
        {"a,b\n1,\"2\"x\n", "follows a closing quote"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_tensor *c[2];
        REQUIRE(CHECK_OK(open_text(bad[i].text, &o, &t, &err)));
        CHECK_FAILS(stk_csv_read(t, c, &err), STK_ERR_FORMAT, bad[i].message);
        stk_csv_close(t);
    }
    want[0].name = "nowhere";
    CHECK_FAILS(open_text("a,b\n", &o, &t, &err), STK_ERR_ARGUMENT, "no column \"nowhere\"");
    want[0].name = "b";
    CHECK_FAILS(open_text("a,b\n", &o, &t, &err), STK_ERR_ARGUMENT, "twice");
    CHECK_FAILS(open_text("", NULL, &t, &err), STK_ERR_FORMAT, "no line");
}

/* Against strtod, over digits of all lengths, exponents of all sizes and ties. */
TEST(numbers_are_exact)
{
    const stk_fives *fives = stk_fives_table();
    int64_t fast = 0, wrong = 0;
    for (int64_t i = 0; i < 200000; i++) {
        uint32_t w[4];
        stk_rng_block((stk_rng){11, 3}, (uint64_t)i, w);
        uint64_t digits = ((uint64_t)w[0] << 32 | w[1]) >> (w[2] % 64);
        int point = (int)(w[3] % 20), exponent = (int)(w[3] >> 8) % 40 - 20;
        char text[64], *at = text;
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)digits);
        if (point < n && i % 3) {
            memmove(text + point + 1, text + point, (size_t)(n - point) + 1);
            text[point] = '.';
        }
        if (i % 3 == 2) sprintf(text + strlen(text), "e%d", exponent);
        if (i % 3 == 1 && i % 5 == 0) { /* a double as numpy writes it */
            double d = (double)digits / 18446744073709551616.0;
            snprintf(text, sizeof text, "%.17g", d);
        }
        double value, want = strtod(at, NULL);
        const char *end = stk_fast_double(fives, text, text + strlen(text), &value);
        if (!end) continue;
        fast++;
        if (*end || memcmp(&value, &want, 8) != 0) {
            if (wrong++ < 5) printf("%s: %.17g, expected %.17g\n", text, value, want);
        }
    }
    CHECK_EQ_I64(wrong, 0);
    CHECK(fast > 190000);
    /* Half way between two doubles, and next to it. */
    const char *ties[] = {"9007199254740993",     "9007199254740995",    "9007199254740993.0001",
                          "1152921504606847104",  "1152921504606846976", "0.5000000000000000000",
                          "18446744073709551615", "4503599627370496.5",  "4503599627370497.5"};
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        double value = 0;
        if (!stk_fast_double(fives, ties[i], ties[i] + strlen(ties[i]), &value)) continue;
        CHECK_MSG(value == strtod(ties[i], NULL), "%s gave %.17g", ties[i], value);
    }
}

/* Many rows: several chunks, any number of threads, with and without quotes about. */
static void write_table(const char *path, int64_t rows, bool quotes)
{
    FILE *f = fopen(path, "w");
    fprintf(f, "a,b,c\n");
    for (int64_t i = 0; i < rows; i++) {
        if (quotes && i % 1000 == 7)
            fprintf(f, "%lld,\"%.9g\",\"line\none %lld\"\n", (long long)i, (double)i / 8,
                    (long long)i);
        else
            fprintf(f, "%lld,%.9g,some text %lld\n", (long long)i, (double)i / 8, (long long)i);
    }
    fclose(f);
}

TEST(chunks_in_parallel_give_the_same_table)
{
    stk_error err;
    const int64_t rows = 200000;
    for (int quotes = 0; quotes < 2; quotes++) {
        write_table(temporary("big.csv"), rows, quotes);
        for (int threads = 1; threads < 4; threads++) {
            stk_csv *t = NULL;
            stk_csv_options o = stk_csv_options_defaults();
            o.threads = threads;
            stk_tensor *c[3];
            REQUIRE(CHECK_OK(stk_csv_open(temporary("big.csv"), &o, &t, &err)));
            REQUIRE(CHECK_OK(stk_csv_read(t, c, &err)));
            CHECK_EQ_I64(c[0]->shape[0], rows);
            int64_t wrong = 0;
            for (int64_t i = 0; i < rows; i++) {
                wrong += ((int64_t *)c[0]->data)[i] != i;
                wrong += ((float *)c[1]->data)[i] != (float)((double)i / 8);
            }
            CHECK_EQ_I64(wrong, 0);
            CHECK(string_is(c[2], rows - 1, "some text 199999"));
            CHECK(string_is(c[2], 5007, quotes ? "line\none 5007" : "some text 5007"));
            for (int i = 0; i < 3; i++) stk_tensor_release(c[i]);
            stk_csv_close(t);
        }
    }
}

/* Our threads take subnormals for zero while they compute; what stands in a file is no computation. */
TEST(subnormals_are_read_as_they_are)
{
    stk_error err;
    for (int flushed = 0; flushed < 2; flushed++) {
        stk_csv *t = NULL;
        stk_tensor *whole = NULL, *piece = NULL;
        int64_t rows = 0;
        stk_float_env was = flushed ? stk_float_env_enter() : stk_float_env_exact();
        REQUIRE(CHECK_OK(open_text("x\n1e-40\n2.5\n", NULL, &t, &err)));
        CHECK_OK(stk_csv_read(t, &whole, &err));
        CHECK_OK(stk_csv_next(t, 2, &piece, &rows, &err));
        stk_float_env_leave(was);
        REQUIRE(CHECK(whole && piece && rows == 2));
        static const float wanted[2] = {1e-40f, 2.5f};
        CHECK(!memcmp(whole->data, wanted, sizeof wanted));
        CHECK(!memcmp(piece->data, wanted, sizeof wanted));
        stk_tensor_release(whole);
        stk_tensor_release(piece);
        stk_csv_close(t);
    }
}

/* 2.5, nothing and a word, each in a row that no guess has seen. */
TEST(guessed_types_become_wider)
{
    stk_error err;
    stk_csv *t = NULL;
    enum { ROWS = 2000, LONGEST = 40 };
    char *text = malloc(ROWS * LONGEST), *to = text;
    to += sprintf(to, "a,b,c,d\n");
    for (int i = 0; i < ROWS; i++)
        to += sprintf(to, "%s,%s,%s,%d\n", i == 1500 ? "2.5" : "1", i == 1501 ? "" : "2",
                      i == 1502 ? "many" : "3.5", i);
    REQUIRE(CHECK_OK(open_text(text, NULL, &t, &err)));
    CHECK_EQ_I64(stk_csv_column_dtype(t, 0), STK_I64);
    stk_tensor *c[4];
    REQUIRE(CHECK_OK(stk_csv_read(t, c, &err)));
    CHECK_STR(STK_TENSOR_TEXT(c[0]), "float32[2000]");
    CHECK_STR(STK_TENSOR_TEXT(c[1]), "float32[2000]");
    CHECK_STR(STK_TENSOR_TEXT(c[2]), "string[2000]");
    CHECK_STR(STK_TENSOR_TEXT(c[3]), "int64[2000]");
    CHECK(stk_tensor_at(c[0], 1500) == 2.5 && stk_tensor_at(c[0], 1499) == 1);
    CHECK(isnan(stk_tensor_at(c[1], 1501)) && stk_tensor_at(c[1], 1999) == 2);
    CHECK(string_is(c[2], 1502, "many") && string_is(c[2], 0, "3.5"));
    CHECK_EQ_I64(stk_tensor_at(c[3], 1999), 1999);
    for (int i = 0; i < 4; i++) stk_tensor_release(c[i]);
    stk_csv_close(t);
    /* In pieces the types are those that were said at the start. */
    int64_t rows = 0;
    REQUIRE(CHECK_OK(open_text(text, NULL, &t, &err)));
    CHECK_OK(stk_csv_next(t, 1200, c, &rows, &err));
    for (int i = 0; i < 4; i++) stk_tensor_release(c[i]);
    CHECK_FAILS(stk_csv_next(t, 1200, c, &rows, &err), STK_ERR_FORMAT,
                "guessed from the first 1000 rows; name the columns");
    stk_csv_close(t);
    /* Types that were given are not touched. */
    stk_csv_options o = stk_csv_options_defaults();
    stk_csv_column whole = {.name = "a", .dtype = STK_I64};
    o.columns = &whole;
    o.column_count = 1;
    REQUIRE(CHECK_OK(open_text(text, &o, &t, &err)));
    CHECK_FAILS(stk_csv_read(t, c, &err), STK_ERR_FORMAT, "\"2.5\" is no int64");
    stk_csv_close(t);
    free(text);
}

TEST(lines_of_old_machines_are_refused)
{
    stk_error err;
    stk_csv *t = NULL;
    CHECK_FAILS(open_text("a,b\r1,2\r3,4\r", NULL, &t, &err), STK_ERR_FORMAT,
                "lines end in CR alone (byte 3)");
    REQUIRE(CHECK_OK(open_text("\"a\rb\",c\r\n1,2\r\n", NULL, &t, &err)));
    stk_csv_close(t);
}

TEST(lines_in_memory_are_decoded)
{
    stk_error err;
    stk_tensor *lines = NULL, *c[2];
    stk_string items[2] = {{"1,x,2.5", 7}, {"4,\"y,z\",", 8}};
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){2}, items, &lines, &err));
    stk_csv_column want[2] = {{.number = 2, .dtype = STK_F32, .fallback = -1},
                              {.number = 1, .dtype = STK_STRING}};
    stk_csv_options o = stk_csv_options_defaults();
    o.columns = want;
    o.column_count = 2;
    CHECK_OK(stk_decode_csv(lines, &o, c, &err));
    CHECK_NEAR(stk_tensor_at(c[0], 0), 2.5, 0);
    CHECK_NEAR(stk_tensor_at(c[0], 1), -1, 0);
    CHECK(string_is(c[1], 1, "y,z"));
    stk_tensor_release(c[0]);
    stk_tensor_release(c[1]);
    stk_tensor_release(lines);
}

static stk_status read_small(void)
{
    stk_csv *t = NULL;
    stk_tensor *c[3] = {NULL};
    static const char text[] = "a,b,c\n1,2.5,\"q\"\"q\"\n3,4,plain\n";
    stk_status status = stk_csv_open_memory("t", text, sizeof text - 1, NULL, &t, NULL);
    if (status == STK_OK) status = stk_csv_read(t, c, NULL);
    for (int i = 0; i < 3; i++) stk_tensor_release(c[i]);
    stk_csv_close(t);
    return status;
}

TEST(no_memory_is_an_ordinary_error) { OOM_LOOP(read_small()); }

TEST_MAIN()
