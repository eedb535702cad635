/* JSON: what is read, what is refused and where, what is written, and both ways round. */
#include "check.h"

#include "base/json.h"

static stk_json_document *parse(const char *text)
{
    stk_error err;
    stk_json_document *d = NULL;
    CHECK_OK(stk_json_parse(text, strlen(text), NULL, &d, &err));
    return d;
}

TEST(values_of_every_kind)
{
    stk_json_document *d =
        parse(" {\"n\": null, \"t\": true, \"f\": false, \"i\": -12, \"d\": 2.5e-1,"
              " \"s\": \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\","
              " \"a\": [1, [2], {}, []], \"\": 0}\r\n\t");
    const stk_json *r = stk_json_root(d);
    REQUIRE(CHECK(r && r->kind == STK_JSON_OBJECT));
    CHECK_EQ_I64(r->count, 8);
    CHECK_EQ_I64(stk_json_get(r, "n")->kind, STK_JSON_NULL);
    CHECK(stk_json_bool(stk_json_get(r, "t"), false));
    CHECK(!stk_json_bool(stk_json_get(r, "f"), true));
    CHECK_EQ_I64(stk_json_int(stk_json_get(r, "i"), 0), -12);
    CHECK_NEAR(stk_json_double(stk_json_get(r, "i"), 0), -12, 0);
    CHECK_NEAR(stk_json_double(stk_json_get(r, "d"), 0), 0.25, 0);
    CHECK_STR(stk_json_text(stk_json_get(r, "s"), ""), "a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80");
    const stk_json *a = stk_json_get(r, "a");
    CHECK_EQ_I64(a->count, 4);
    CHECK_EQ_I64(stk_json_int(stk_json_item(stk_json_item(a, 1), 0), 0), 2);
    CHECK_EQ_I64(stk_json_item(a, 2)->kind, STK_JSON_OBJECT);
    CHECK_EQ_I64(stk_json_item(a, 3)->count, 0);
    CHECK_EQ_I64(stk_json_int(stk_json_get(r, ""), 9), 0);
    CHECK_STR(stk_json_item(r, 3)->name, "i");
    stk_json_release(d);
}

TEST(asking_for_what_is_not_there)
{
    stk_json_document *d = parse("[1, \"x\"]");
    const stk_json *r = stk_json_root(d);
    CHECK(stk_json_get(r, "a") == NULL);
    CHECK(stk_json_get(NULL, "a") == NULL);
    CHECK(stk_json_item(r, 2) == NULL && stk_json_item(r, -1) == NULL);
    CHECK(stk_json_item(NULL, 0) == NULL);
    CHECK_EQ_I64(stk_json_int(stk_json_item(r, 1), 7), 7);
    CHECK_STR(stk_json_text(stk_json_item(r, 0), "other"), "other");
    CHECK_STR(stk_json_text(NULL, "other"), "other");
    CHECK(stk_json_bool(NULL, true));
    CHECK_NEAR(stk_json_double(NULL, 1.5), 1.5, 0);
    CHECK(stk_json_root(NULL) == NULL);
    stk_json_release(NULL);
    stk_json_release(d);
}

TEST(numbers_are_exact)
{
    stk_json_document *d = parse("[9223372036854775807, -9223372036854775808, 9223372036854775808, "
                                 "-0, 0.1, 1e2, 1E+2, 123456789.125, 3.0]");
    const stk_json *r = stk_json_root(d);
    CHECK(stk_json_item(r, 0)->kind == STK_JSON_INT && stk_json_item(r, 0)->integer == INT64_MAX);
    CHECK(stk_json_item(r, 1)->integer == INT64_MIN);
    CHECK(stk_json_item(r, 2)->kind == STK_JSON_DOUBLE && stk_json_item(r, 2)->number == 0x1p63);
    CHECK(stk_json_item(r, 3)->kind == STK_JSON_DOUBLE && signbit(stk_json_item(r, 3)->number));
    CHECK(stk_json_item(r, 4)->number == 0.1);
    CHECK(stk_json_item(r, 5)->number == 100 && stk_json_item(r, 6)->number == 100);
    CHECK_EQ_I64(stk_json_int(stk_json_item(r, 8), 0), 3);
    CHECK_EQ_I64(stk_json_int(stk_json_item(r, 4), -1), -1);
    CHECK_EQ_I64(stk_json_int(stk_json_item(r, 2), -1), -1);
    stk_json_release(d);
}

TEST(of_equal_names_the_last_counts)
{
    stk_json_document *d = parse("{\"a\":1,\"b\":2,\"a\":3}");
    CHECK_EQ_I64(stk_json_int(stk_json_get(stk_json_root(d), "a"), 0), 3);
    CHECK_EQ_I64(stk_json_root(d)->count, 3);
    stk_json_release(d);
}

static void refused_size(const char *text, size_t size, stk_status status, const char *fragment)
{
    stk_error err;
    stk_json_document *d = (stk_json_document *)&err;
    CHECK_FAILS(stk_json_parse(text, size, NULL, &d, &err), status, fragment);
    CHECK(d == NULL);
}
static void refused(const char *text, const char *fragment)
{
    refused_size(text, strlen(text), STK_ERR_FORMAT, fragment);
}

TEST(refusals_say_where_and_what)
{
    refused("", "line 1, column 1: expected a value, found the end of the text");
    refused("  \n\n  }", "line 3, column 3: expected a value, found '}'");
    refused("[1,]", "column 4: expected a value after ',', found ']'");
    refused("{\"a\":1,}", "expected a member after ','");
    refused("[1 2]", "column 4: expected ',' or ']', found '2'");
    refused("{\"a\" 1}", "expected ':' after the name of a member, found '1'");
    refused("{a:1}", "expected '\"' and the name of a member, found 'a'");
    refused("{\"a\":1", "expected ',' or '}', found the end");
    refused("[1", "expected ',' or ']'");
    refused("1 1", "expected nothing after the value, found '1'");
    refused("tru", "expected a value, found 't'");
    refused("nulll", "expected nothing after the value, found 'l'");
    refused("01", "must not start with 0");
    refused("-01", "must not start with 0");
    refused("-", "expected a digit");
    refused("1.", "expected a digit after the point");
    refused(".5", "expected a value");
    refused("+1", "expected a value");
    refused("1e", "expected a digit in the exponent");
    refused("1e+", "expected a digit in the exponent");
    refused("NaN", "expected a value, found 'N'");
    refused("-Infinity", "expected a digit");
    refused_size("1e999", 5, STK_ERR_RANGE, "too large for a double");
    refused("'a'", "expected a value, found '''");
    refused("\x01", "found byte 0x01");
    refused("/* c */ 1", "expected a value, found '/'");
}

TEST(refusals_of_strings)
{
    refused("\"abc", "expected '\"' at the end of the string, found the end");
    refused("\"abc\\", "after a backslash");
    refused("\"a\\x\"", "expected one of");
    refused("\"a\nb\"", "control characters");
    refused_size("\"a\0b\"", 5, STK_ERR_FORMAT, "control characters");
    refused_size("\"\\\0\"", 4, STK_ERR_FORMAT, "after a backslash");
    refused("\"\\u12\"", "four hex digits");
    refused("\"\\u12g4\"", "four hex digits");
    refused("\"\\ud800\"", "stands alone");
    refused("\"\\ud800x\"", "stands alone");
    refused("\"\\ud800\\n\"", "stands alone");
    refused("\"\\ud800\\u0041\"", "stands alone");
    refused("\"\\udc00\"", "stands alone");
    refused("\"\xff\"", "not UTF-8, found byte 0xff");
    refused("\"\xc0\xaf\"", "not UTF-8");         /* overlong */
    refused("\"\xe0\x80\xaf\"", "not UTF-8");     /* overlong */
    refused("\"\xed\xa0\x80\"", "not UTF-8");     /* surrogate */
    refused("\"\xf4\x90\x80\x80\"", "not UTF-8"); /* beyond U+10FFFF */
    refused("\"\xf0\x80\x80\x80\"", "not UTF-8");
    refused("\"\xe2\x82\"", "not UTF-8"); /* cut short */
    refused("\"\x80\"", "not UTF-8");
}

TEST(zero_inside_a_string_is_kept)
{
    stk_json_document *d = parse("\"a\\u0000b\"");
    CHECK_EQ_I64(stk_json_root(d)->count, 3);
    CHECK(memcmp(stk_json_root(d)->text, "a\0b", 4) == 0);
    stk_json_release(d);
}

TEST(byte_order_mark_is_skipped)
{
    stk_json_document *d = parse("\xef\xbb\xbf 5");
    CHECK_EQ_I64(stk_json_int(stk_json_root(d), 0), 5);
    stk_json_release(d);
}

TEST(depth_is_limited)
{
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    memset(text, '[', DEEP);
    stk_error err;
    stk_json_document *d = NULL;
    CHECK_FAILS(stk_json_parse(text, DEEP, NULL, &d, &err), STK_ERR_RANGE, "deeper than 256");
    memset(text + 256, ']', 256);
    CHECK_OK(stk_json_parse(text, 512, NULL, &d, &err));
    stk_json_release(d);
    stk_json_options two = {.max_depth = 2};
    CHECK_OK(stk_json_parse("[[]]", 4, &two, &d, &err));
    stk_json_release(d);
    CHECK_FAILS(stk_json_parse("[[[]]]", 6, &two, &d, &err), STK_ERR_RANGE, "deeper than 2");
    free(text);
}

TEST(nonfinite_when_allowed)
{
    stk_error err;
    stk_json_document *d = NULL;
    stk_json_options o = stk_json_defaults();
    o.allow_nonfinite = true;
    const char *text = "[NaN, Infinity, -Infinity, -1]";
    CHECK_OK(stk_json_parse(text, strlen(text), &o, &d, &err));
    const stk_json *r = stk_json_root(d);
    CHECK(isnan(stk_json_item(r, 0)->number));
    CHECK(stk_json_item(r, 1)->number == INFINITY && stk_json_item(r, 2)->number == -INFINITY);
    CHECK_EQ_I64(stk_json_item(r, 3)->integer, -1);
    stk_json_release(d);
}

static char *write_sample(int32_t indent)
{
    stk_error err;
    char *text = NULL;
    stk_json_writer w = {.indent = indent};
    stk_json_begin_object(&w);
    stk_json_name(&w, "a");
    stk_json_begin_array(&w);
    stk_json_put_int(&w, INT64_MIN);
    stk_json_put_double(&w, 3);
    stk_json_put_double(&w, 0.1);
    stk_json_put_double(&w, NAN);
    stk_json_end_array(&w);
    stk_json_name(&w, "e");
    stk_json_begin_object(&w);
    stk_json_end_object(&w);
    stk_json_name(&w, "q\"\x01\xc3\xa9");
    stk_json_put_text(&w, "tab\t");
    stk_json_name(&w, "z");
    stk_json_put_text(&w, NULL);
    stk_json_name(&w, "b");
    stk_json_put_bool(&w, true);
    stk_json_end_object(&w);
    CHECK_OK(stk_json_finish(&w, &text, NULL, &err));
    return text;
}

TEST(writing)
{
    char *text = write_sample(0);
    CHECK_STR(text, "{\"a\":[-9223372036854775808,3.0,0.1,null],\"e\":{},"
                    "\"q\\\"\\u0001\xc3\xa9\":\"tab\\t\",\"z\":null,\"b\":true}");
    stk_free(text);
    text = write_sample(2);
    CHECK_STR(text, "{\n  \"a\": [\n    -9223372036854775808,\n    3.0,\n    0.1,\n    null\n  ],\n"
                    "  \"e\": {},\n  \"q\\\"\\u0001\xc3\xa9\": \"tab\\t\",\n  \"z\": null,\n"
                    "  \"b\": true\n}");
    stk_free(text);
}

static void misuse(void (*use)(stk_json_writer *), const char *fragment)
{
    stk_error err;
    char *text = NULL;
    stk_json_writer w = {0};
    use(&w);
    CHECK_FAILS(stk_json_finish(&w, &text, NULL, &err), STK_ERR_STATE, fragment);
    CHECK(text == NULL && w.data == NULL);
}
static void two_values(stk_json_writer *w)
{
    stk_json_put_int(w, 1);
    stk_json_put_int(w, 2);
}
static void no_name(stk_json_writer *w)
{
    stk_json_begin_object(w);
    stk_json_put_int(w, 2);
}
static void stray_name(stk_json_writer *w)
{
    stk_json_begin_array(w);
    stk_json_name(w, "a");
}
static void wrong_end(stk_json_writer *w)
{
    stk_json_begin_array(w);
    stk_json_end_object(w);
}
static void too_many_ends(stk_json_writer *w)
{
    stk_json_begin_array(w);
    stk_json_end_array(w);
    stk_json_end_array(w);
}
static void open_end(stk_json_writer *w) { stk_json_begin_array(w); }
static void name_only(stk_json_writer *w)
{
    stk_json_begin_object(w);
    stk_json_name(w, "a");
    stk_json_end_object(w);
}
static void bad_text(stk_json_writer *w) { stk_json_put_text(w, "\xff"); }
static void nothing(stk_json_writer *w) { (void)w; }
static void too_deep(stk_json_writer *w)
{
    for (int i = 0; i < 300; i++) stk_json_begin_array(w);
}

TEST(misuse_of_the_writer_is_found)
{
    misuse(two_values, "second value");
    misuse(no_name, "without a name");
    misuse(stray_name, "name where none");
    misuse(wrong_end, "match its begin");
    misuse(too_many_ends, "match its begin");
    misuse(open_end, "ends before");
    misuse(name_only, "match its begin");
    misuse(bad_text, "not UTF-8");
    misuse(nothing, "ends before");
    misuse(too_deep, "deeper");
}

TEST(a_tree_survives_the_way_round)
{
    stk_error err;
    const char *source = "{\"a\":[1,-2.5,\"x\\u0000\\n\",true,null,{\"b\":[]}],\"a\":1e+300}";
    stk_json_document *d = parse(source);
    for (int32_t indent = 0; indent < 3; indent++) {
        char *text = NULL;
        size_t size = 0;
        stk_json_writer w = {.indent = indent};
        stk_json_put_tree(&w, stk_json_root(d));
        CHECK_OK(stk_json_finish(&w, &text, &size, &err));
        stk_json_document *again = parse(text);
        stk_json_writer flat = {0};
        char *second = NULL;
        stk_json_put_tree(&flat, stk_json_root(again));
        CHECK_OK(stk_json_finish(&flat, &second, NULL, &err));
        CHECK_STR(second, source);
        CHECK_EQ_I64(strlen(text), size);
        stk_json_release(again);
        stk_free(second);
        stk_free(text);
    }
    stk_json_release(d);
}

static stk_status read_and_write(stk_error *err)
{
    const char *source = "{\"a\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18],\"b\":\"text\"}";
    stk_json_document *d = NULL;
    stk_status status = stk_json_parse(source, strlen(source), NULL, &d, err);
    if (status != STK_OK) return status;
    char *text = NULL;
    stk_json_writer w = {.indent = 8};
    stk_json_put_tree(&w, stk_json_root(d));
    status = stk_json_finish(&w, &text, NULL, err);
    stk_free(text);
    stk_json_release(d);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_json_document *d = NULL;
    CHECK_FAILS(stk_json_parse(NULL, 1, NULL, &d, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_json_parse("1", 1, NULL, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_json_parse(NULL, 0, NULL, &d, &err), STK_ERR_FORMAT, "expected a value");
    OOM_LOOP(read_and_write(&err));
}

TEST_MAIN()
