/* ZIP archives: there and back, large fields, and every kind of damage. */
#include "check.h"
#include "temporary.h"

#include "base/rng.h"
#include "base/status.h"
#include "base/zip.h"

static stk_status write_sample(const char *path, bool deflated, bool force_zip64, stk_error *err)
{
    stk_zip_writer w;
    stk_status status = stk_zip_create(path, &w, err);
    if (status != STK_OK) return status;
    w.force_zip64 = force_zip64;
    char zeros[5000] = {0};
    stk_zip_piece two[2] = {{"hello ", 6}, {"world", 5}}, many = {zeros, sizeof zeros};
    status = stk_zip_add(&w, "greeting", deflated, two, 2, err);
    if (status == STK_OK) status = stk_zip_add(&w, "folder/zeros", deflated, &many, 1, err);
    if (status == STK_OK) status = stk_zip_add(&w, "empty", deflated, NULL, 0, err);
    if (status == STK_OK) return stk_zip_commit(&w, err);
    stk_zip_abandon(&w);
    return status;
}

static stk_status read_member(const stk_zip *zip, int64_t index, char *to, stk_error *err)
{
    stk_zip_stream *s = NULL;
    stk_status status = stk_zip_stream_open(zip, index, &s, err);
    size_t size = (size_t)stk_zip_size(zip, index), half = size / 2;
    if (status == STK_OK) status = stk_zip_stream_read(s, to, half, err);
    if (status == STK_OK) status = stk_zip_stream_read(s, to + half, size - half, err);
    if (status == STK_OK) status = stk_zip_stream_verify(s, err);
    stk_zip_stream_release(s);
    return status;
}

static stk_status read_all(const stk_zip *zip, stk_error *err)
{
    char *to = stk_malloc(1 << 20);
    stk_status status = to ? STK_OK : stk_fail_memory(err, "test", 1 << 20);
    for (int64_t i = 0; status == STK_OK && i < stk_zip_count(zip); i++)
        status = stk_zip_size(zip, i) <= 1 << 20 ? read_member(zip, i, to, err) : STK_ERR_RANGE;
    stk_free(to);
    return status;
}

TEST(there_and_back)
{
    stk_error err;
    for (int kind = 0; kind < 4; kind++) {
        char to[5000];
        stk_zip *zip = NULL;
        CHECK_OK(write_sample(temporary("a.zip"), kind & 1, kind & 2, &err));
        REQUIRE(CHECK_OK(stk_zip_open(temporary("a.zip"), &zip, &err)));
        CHECK_EQ_I64(stk_zip_count(zip), 3);
        CHECK_STR(stk_zip_name(zip, 1), "folder/zeros");
        CHECK_EQ_I64(stk_zip_find(zip, "greeting"), 0);
        CHECK_EQ_I64(stk_zip_find(zip, "greetin"), -1);
        CHECK_EQ_I64(stk_zip_size(zip, 0), 11);
        CHECK_OK(read_member(zip, 0, to, &err));
        CHECK(memcmp(to, "hello world", 11) == 0);
        memset(to, 1, sizeof to);
        CHECK_OK(read_member(zip, 1, to, &err));
        for (int i = 0; i < 5000; i++) CHECK(to[i] == 0);
        CHECK_OK(read_member(zip, 2, to, &err));
        stk_zip_stream *s = NULL;
        CHECK_OK(stk_zip_stream_open(zip, 0, &s, &err));
        CHECK_FAILS(stk_zip_stream_read(s, to, 12, &err), STK_ERR_FORMAT, "11 bytes left");
        CHECK_OK(stk_zip_stream_verify(s, &err)); /* reads the rest itself */
        stk_zip_stream_release(s);
        stk_zip_release(zip);
    }
    stk_zip_release(NULL);
    stk_zip_stream_release(NULL);
}

static char *load(const char *path, size_t *size)
{
    stk_error err;
    char *data = NULL;
    CHECK_OK(stk_file_read(path, 1 << 20, &data, size, &err));
    return data;
}

TEST(packing_makes_smaller_and_never_larger)
{
    stk_error err;
    size_t packed, stored;
    CHECK_OK(write_sample(temporary("p.zip"), true, false, &err));
    CHECK_OK(write_sample(temporary("s.zip"), false, false, &err));
    stk_free(load(temporary("p.zip"), &packed));
    stk_free(load(temporary("s.zip"), &stored));
    CHECK(packed < stored - 4000);
    static uint32_t noise[20000];
    stk_rng_words((stk_rng){1, 1}, 0, 20000, noise);
    stk_zip_piece piece = {noise, sizeof noise};
    stk_zip_writer w;
    CHECK_OK(stk_zip_create(temporary("n.zip"), &w, &err));
    CHECK_OK(stk_zip_add(&w, "noise", true, &piece, 1, &err));
    CHECK_EQ_I64(w.entries[0].method, 0);
    CHECK_OK(stk_zip_commit(&w, &err));
}

/* True when each member holds one of the three contents that were written. */
static bool is_genuine(const stk_zip *zip)
{
    static const char zeros[5000];
    char to[5000];
    for (int64_t i = 0; i < stk_zip_count(zip); i++) {
        uint64_t size = stk_zip_size(zip, i);
        if (size != 0 && size != 11 && size != 5000) return false;
        if (read_member(zip, i, to, NULL) != STK_OK) return false;
        if (memcmp(to, size == 11 ? "hello world" : zeros, (size_t)size) != 0) return false;
    }
    return true;
}

/* Every byte of a good archive is changed, in two ways. It is refused, or (bytes without meaning
 * here: times, attributes, versions) read with the right content. */
TEST(damage_is_found)
{
    stk_error err;
    for (int kind = 0; kind < 4; kind++) {
        size_t size;
        int64_t refused = 0;
        CHECK_OK(write_sample(temporary("d.zip"), kind & 1, kind & 2, &err));
        char *data = load(temporary("d.zip"), &size);
        for (size_t i = 0; i < size; i++) {
            for (int flip = 0; flip < 2; flip++) {
                char was = data[i];
                data[i] = (char)(flip ? was ^ 0x55 : was ^ 0x01);
                stk_zip *zip = NULL;
                stk_status status = stk_zip_parse("damaged", data, size, &zip, &err);
                if (status == STK_OK) status = read_all(zip, &err);
                if (status == STK_OK)
                    CHECK_MSG(is_genuine(zip), "kind %d: byte %zu changed the content", kind, i);
                refused += status != STK_OK;
                stk_zip_release(zip);
                data[i] = was;
            }
        }
        CHECK(refused > 300);
        stk_free(data);
    }
}

TEST(every_cut_is_refused)
{
    stk_error err;
    size_t size;
    CHECK_OK(write_sample(temporary("c.zip"), true, true, &err));
    char *data = load(temporary("c.zip"), &size);
    for (size_t cut = 0; cut < size; cut++) {
        stk_zip *zip = NULL;
        stk_status status = stk_zip_parse("cut", data, cut, &zip, &err);
        if (status == STK_OK) status = read_all(zip, &err);
        CHECK_STATUS(status, STK_ERR_FORMAT);
        stk_zip_release(zip);
    }
    stk_free(data);
}

static void put32(char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) at[i] = (char)(v >> (8 * i));
}

/* Builds a stored archive with one member "m" of 4 bytes, lets `change` falsify it. */
enum { LOCAL = 0, DATA = 31, CENTRAL = 35, END = 82, WHOLE = 104 };
static void make_one(char z[WHOLE])
{
    memset(z, 0, WHOLE);
    put32(z + LOCAL, 0x04034b50);
    put32(z + LOCAL + 14, 0xed82cd11); /* crc32 of "abcd" */
    put32(z + LOCAL + 18, 4);
    put32(z + LOCAL + 22, 4);
    z[LOCAL + 26] = 1;
    z[LOCAL + 30] = 'm';
    memcpy(z + DATA, "abcd", 4);
    put32(z + CENTRAL, 0x02014b50);
    put32(z + CENTRAL + 16, 0xed82cd11);
    put32(z + CENTRAL + 20, 4);
    put32(z + CENTRAL + 24, 4);
    z[CENTRAL + 28] = 1;
    z[CENTRAL + 46] = 'm';
    put32(z + END, 0x06054b50);
    z[END + 8] = z[END + 10] = 1;
    put32(z + END + 12, END - CENTRAL);
    put32(z + END + 16, CENTRAL);
}

static void refused(const char *data, size_t size, stk_status status, const char *fragment)
{
    stk_error err;
    stk_zip *zip = NULL;
    err.message[0] = 0;
    stk_status got = stk_zip_parse("z", data, size, &zip, &err);
    if (got == STK_OK) got = read_all(zip, &err);
    CHECK_STATUS(got, status);
    CHECK_CONTAINS(err.message, fragment);
    stk_zip_release(zip);
}

TEST(lies_are_refused_by_name)
{
    stk_error err;
    stk_zip *zip = NULL;
    char z[WHOLE];
    make_one(z);
    CHECK_OK(stk_zip_parse("z", z, WHOLE, &zip, &err));
    CHECK_OK(read_all(zip, &err));
    stk_zip_release(zip);
    refused(z, 10, STK_ERR_FORMAT, "too short");
    refused("this is not an archive, whatever its name may say", 49, STK_ERR_FORMAT,
            "record at its end is missing");
#define LIE(where, value, status, fragment)                                                        \
    make_one(z);                                                                                   \
    put32(z + (where), (value));                                                                   \
    refused(z, WHOLE, status, fragment)
    LIE(CENTRAL + 16, 0xed82cd12, STK_ERR_FORMAT,
        "checksum is ed82cd11, the archive says ed82cd12");
    LIE(CENTRAL + 20, 5, STK_ERR_FORMAT, "two sizes");
    LIE(CENTRAL + 20, 0xfffffff0, STK_ERR_FORMAT, "outside the file");
    LIE(CENTRAL + 42, 0xfffffff0, STK_ERR_FORMAT, "outside the file");
    LIE(CENTRAL + 42, 1, STK_ERR_FORMAT, "no member at");
    LIE(CENTRAL + 42, 6, STK_ERR_FORMAT, "outside the file");
    LIE(CENTRAL + 24, 0xffffffff, STK_ERR_FORMAT, "extra field"); /* promised and not there */
    LIE(CENTRAL + 8, 1, STK_ERR_UNSUPPORTED, "encrypted");
    LIE(CENTRAL + 10, 12, STK_ERR_UNSUPPORTED, "method 12");
    LIE(CENTRAL + 10, 8, STK_ERR_FORMAT, "different methods");
    LIE(CENTRAL + 28, 9, STK_ERR_FORMAT, "entry too long");
    LIE(CENTRAL, 0, STK_ERR_FORMAT, "no directory entry");
    LIE(LOCAL, 0, STK_ERR_FORMAT, "no member at");
    LIE(LOCAL + 26, 60000, STK_ERR_FORMAT, "different names");
    LIE(LOCAL + 26, 60000u << 16 | 1, STK_ERR_FORMAT, "runs over the end");
    LIE(END + 8, 0x00020002, STK_ERR_FORMAT, "more entries than its directory");
    LIE(END + 12, 0x7fffffff, STK_ERR_FORMAT, "directory outside");
    LIE(END + 16, 0xfffffffe, STK_ERR_FORMAT, "directory outside");
    LIE(END + 16, 0xffffffff, STK_ERR_FORMAT, "zip64 record missing");
    LIE(END + 4, 1, STK_ERR_UNSUPPORTED, "several parts");
    make_one(z);
    z[LOCAL + 8] = z[CENTRAL + 10] = 8; /* "abcd" as deflated data */
    put32(z + CENTRAL + 24, 4000);
    refused(z, WHOLE, STK_ERR_FORMAT, "m");
    put32(z + CENTRAL + 24, 0x7fffffff);
    refused(z, WHOLE, STK_ERR_FORMAT, "unpack to more than it can");
    make_one(z);
    z[CENTRAL + 46] = 0;
    refused(z, WHOLE, STK_ERR_FORMAT, "zero byte");
}

static stk_status read_path(const char *path, stk_error *err)
{
    stk_zip *zip = NULL;
    stk_status status = stk_zip_open(path, &zip, err);
    if (status == STK_OK) status = read_all(zip, err);
    stk_zip_release(zip);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_zip *zip = NULL;
    stk_zip_writer w;
    CHECK_FAILS(stk_zip_open(temporary("none.zip"), &zip, &err), STK_ERR_IO, "No such file");
    CHECK_OK(stk_zip_create(temporary("x.zip"), &w, &err));
    CHECK_FAILS(stk_zip_add(&w, "", false, NULL, 0, &err), STK_ERR_ARGUMENT, "empty");
    CHECK_FAILS(stk_zip_add(&w, NULL, false, NULL, 0, &err), STK_ERR_ARGUMENT, "empty");
    stk_zip_abandon(&w);
    stk_zip_abandon(&w);
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("oom.zip"));
    OOM_LOOP(write_sample(path, true, false, &err));
    OOM_LOOP(read_path(path, &err));
}

TEST_MAIN()
