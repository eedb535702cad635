/* Numbers looked up: Hashing and IntegerLookup. Both run as functions on the host whose tables and options are constants of the graph, so
 * that a program needs nothing of the model. StringLookup is refused with advice: a graph has no strings. */
#include "layers/kinds/encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- hashes of a number's decimal digits, as TensorFlow computes them --------------------------------------------------- */

static const uint64_t K0 = 0xc3a5c85c97cb3127u, K1 = 0xb492b66fbe98f273u, K2 = 0x9ae16a3b2f90404fu;

static uint64_t load64(const char *s)
{
    uint64_t v;
    memcpy(&v, s, sizeof v);
    return v;
}
static uint64_t load32(const char *s)
{
    uint32_t v;
    memcpy(&v, s, sizeof v);
    return v;
}
static uint64_t rotate_right(uint64_t v, int by) { return v >> by | v << (64 - by); }
static uint64_t rotate_left(uint64_t v, int by) { return v << by | v >> (64 - by); }

static uint64_t farm_mix(uint64_t u, uint64_t v, uint64_t by)
{
    uint64_t a = (u ^ v) * by;
    a ^= a >> 47;
    uint64_t b = (v ^ a) * by;
    return (b ^ b >> 47) * by;
}

/* FarmHash's Fingerprint64 of 1 to 32 characters: a 64-bit number has at most 20. */
static uint64_t farm_hash(const char *s, size_t n)
{
    uint64_t by = K2 + n * 2;
    if (n > 16) {
        uint64_t a = load64(s) * K1, b = load64(s + 8), c = load64(s + n - 8) * by,
                 d = load64(s + n - 16) * K2;
        return farm_mix(rotate_right(a + b, 43) + rotate_right(c, 30) + d,
                        a + rotate_right(b + K2, 18) + c, by);
    }
    if (n >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + n - 8);
        return farm_mix(rotate_right(b, 37) * by + a, (rotate_right(a, 25) + b) * by, by);
    }
    if (n >= 4) return farm_mix(n + (load32(s) << 3), load32(s + n - 4), by);
    uint32_t y = (uint32_t)(unsigned char)s[0] + ((uint32_t)(unsigned char)s[n >> 1] << 8);
    uint32_t z = (uint32_t)n + ((uint32_t)(unsigned char)s[n - 1] << 2);
    uint64_t h = y * K2 ^ z * K0;
    return (h ^ h >> 47) * K2;
}

static void sip_round(uint64_t *v)
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0], v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2], v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

/* SipHash-2-4 */
static uint64_t sip_hash(const char *s, size_t n, uint64_t key0, uint64_t key1)
{
    uint64_t v[4] = {0x736f6d6570736575u ^ key0, 0x646f72616e646f6du ^ key1,
                     0x6c7967656e657261u ^ key0, 0x7465646279746573u ^ key1};
    uint64_t last = (uint64_t)n << 56;
    size_t whole = n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t m = load64(s + i);
        v[3] ^= m;
        sip_round(v), sip_round(v);
        v[0] ^= m;
    }
    for (size_t i = whole; i < n; i++) last |= (uint64_t)(unsigned char)s[i] << 8 * (i - whole);
    v[3] ^= last;
    sip_round(v), sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the functions of the host -------------------------------------------------------------------------------------------- */

/* Options as one constant of int64. */
enum { HASH_MOD, HASH_FARM, HASH_SIP };
typedef struct rules {
    int64_t buckets; /* of hashes */
    int64_t hash;    /* HASH_.. */
    int64_t salt[2]; /* HASH_SIP */
    int64_t first;   /* what a hash is added to */
    int64_t masked;  /* 1: mask_key becomes mask_value */
    int64_t mask_key, mask_value;
    int64_t keys; /* how many a table has; 0: all numbers are hashed */
} rules;
enum { RULES = sizeof(rules) / sizeof(int64_t) };

static int64_t bucket_of(const rules *r, int64_t x)
{
    char text[32];
    if (r->hash == HASH_MOD) {
        int64_t rest = x % r->buckets;
        return rest < 0 ? rest + r->buckets : rest;
    }
    size_t n = (size_t)snprintf(text, sizeof text, "%" PRId64, x);
    uint64_t h = r->hash == HASH_FARM
                     ? farm_hash(text, n)
                     : sip_hash(text, n, (uint64_t)r->salt[0], (uint64_t)r->salt[1]);
    return (int64_t)(h % (uint64_t)r->buckets);
}

/* Sorted pairs: a key and its number. -1: it is not there. */
static int64_t find_key(const int64_t *table, int64_t n, int64_t key)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (table[2 * middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && table[2 * low] == key ? table[2 * low + 1] : -1;
}

/* in: numbers, rules, table [keys, 2]; out: their numbers. */
static void run_lookup(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                       stk_tensor *const *out)
{
    const int64_t *x = in[0]->data, *table = in[2]->data;
    int64_t *y = out[0]->data;
    rules r;
    (void)context, (void)nin, (void)nout;
    memcpy(&r, in[1]->data, sizeof r);
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++) {
        y[i] = r.keys ? find_key(table, r.keys, x[i]) : -1;
        if (r.masked && x[i] == r.mask_key) {
            y[i] = r.mask_value;
        } else if (y[i] < 0 && r.buckets > 0) {
            y[i] = r.first + bucket_of(&r, x[i]);
        } else if (y[i] < 0) {
            char text[160];
            snprintf(text, sizeof text,
                     "IntegerLookup: %" PRId64
                     " is not in the vocabulary; num_oov_indices=1 gives a place to all others",
                     x[i]);
            stk_host_fail(STK_ERR_RANGE, text);
            y[i] = 0;
        }
    }
}

static stk_val constant(stk_layer_call *c, int32_t rank, const int64_t *shape,
                        const int64_t *values)
{
    stk_tensor *t = NULL;
    stk_error err;
    if (stk_tensor_from(STK_I64, rank, shape, values, &t, &err) != STK_OK)
        return stk_c_fail(c, err.code, "%s", err.message);
    stk_val v = stk_g_const(c->g, t);
    stk_tensor_release(t);
    return v;
}

/* table: pairs of key and number, sorted; NULL: none. */
static stk_val look_up(stk_layer_call *c, const rules *r, const int64_t *table)
{
    static const int64_t nothing[2] = {0};
    static const stk_host host = {.name = "lookup", .run = run_lookup};
    stk_val x = stk_g_cast(c->g, c->x[0], STK_I64);
    if (!stk_graph_ok(c->g)) return 0;
    stk_shape s = stk_c_shape(c, 0);
    stk_val in[3] = {
        x, constant(c, 1, (int64_t[]){RULES}, (const int64_t *)r),
        constant(c, 2, (int64_t[]){r->keys ? r->keys : 1, 2}, table ? table : nothing)};
    stk_host_result result = {.dtype = STK_I64, .rank = s.rank};
    memcpy(result.shape, s.dim, sizeof result.shape);
    return stk_g_host(c->g, &host, 3, in, 1, &result);
}

static bool dense(stk_layer_call *c, bool sparse)
{
    if (sparse) stk_c_fail(c, STK_ERR_UNSUPPORTED, "sparse results; leave sparse out");
    return !sparse;
}

/* ---- Hashing -------------------------------------------------------------------------------------------------------------- */

typedef struct hashing {
    int64_t num_bins, mask_value;
    stk_ints salt;
    int32_t output_mode;
    bool sparse;
} hashing;

static void call_hashing(stk_layer_call *c)
{
    const hashing *o = c->config;
    bool masked = o->mask_value != STK_NONE && o->num_bins > 1;
    rules r = {.buckets = o->num_bins - masked, .hash = HASH_FARM, .first = masked};
    if (!dense(c, o->sparse)) return;
    r.masked = masked;
    r.mask_key = o->mask_value;
    if (o->salt.n > 0) {
        r.hash = HASH_SIP;
        r.salt[0] = o->salt.v[0];
        r.salt[1] = o->salt.v[o->salt.n > 1];
    }
    c->y[0] = stk_c_encode(c, look_up(c, &r, NULL), o->output_mode, o->num_bins, STK_I64);
}
static const stk_config_field hashing_fields[] = {
    STK_FIELD(hashing, num_bins, INT, NULL, .low = 1),
    STK_FIELD(hashing, mask_value, INT, "None"),
    STK_FIELD(hashing, salt, INTS, "None"),
    STK_FIELD(hashing, output_mode, CHOICE, "int", .choices = STK_OUTPUT_MODES),
    STK_FIELD(hashing, sparse, BOOL, "False"),
};
const stk_layer_def stk_layer_hashing = {.keras_class = "Hashing",
                                         .fields = STK_FIELDS(hashing, hashing_fields),
                                         .keeps_dtype = true,
                                         .call = call_hashing};

/* ---- IntegerLookup -------------------------------------------------------------------------------------------------------- */

typedef struct integer_lookup {
    int64_t max_tokens, num_oov_indices, mask_token, oov_token, vocabulary_size;
    const stk_json *vocabulary, *idf_weights;
    const char *vocabulary_dtype, *encoding;
    bool invert, sparse, pad_to_max_tokens;
    int32_t output_mode, oov_method;
    stk_ints salt;
} integer_lookup;

static bool has_mask(const integer_lookup *o) { return o->mask_token != STK_NONE; }

/* Numbers of the first token that is no mask and none for unknown ones. */
static int64_t mask_places(const integer_lookup *o)
{
    return has_mask(o) && o->output_mode == STK_OUT_INT;
}

/* How many of the vocabulary's entries, at its start, stand for the mask and unknown numbers. */
static int64_t specials(const integer_lookup *o)
{
    int64_t masks = mask_places(o), n = masks + o->num_oov_indices;
    if (o->vocabulary->count < n) return 0;
    for (int64_t i = 0; i < n; i++)
        if (stk_json_int(&o->vocabulary->items[i], STK_NONE) !=
            (i < masks ? o->mask_token : o->oov_token))
            return 0;
    return n;
}

static stk_status check_integer_lookup(stk_layer_state *layer, stk_error *err)
{
    const integer_lookup *o = layer->config;
    const stk_json *v = o->vocabulary;
    if (!v)
        return stk_layer_refuse(layer, err, STK_ERR_STATE,
                                "it has no vocabulary; write it into the model: "
                                "IntegerLookup(vocabulary=layer.get_vocabulary())");
    if (v->kind != STK_JSON_ARRAY || !v->count)
        return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                                "a vocabulary in a file; write its numbers into the model");
    for (int64_t i = 0; i < v->count; i++)
        if (v->items[i].kind != STK_JSON_INT)
            return stk_layer_refuse(layer, err, STK_ERR_FORMAT,
                                    "the vocabulary's entry %lld is no whole number", (long long)i);
    if (o->idf_weights || (o->invert && o->output_mode != STK_OUT_INT))
        return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                                "%s; it takes output_mode int, one_hot, multi_hot and count",
                                o->invert ? "invert with another output_mode than int" : "tf_idf");
    return STK_OK;
}

static int by_key(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Tokens by number (invert) or numbers by token, sorted by what is looked up. Free it with stk_free. */
static int64_t *table_of(const integer_lookup *o, int64_t *n)
{
    int64_t skip = specials(o), start = mask_places(o) + o->num_oov_indices;
    *n = o->vocabulary->count - skip;
    int64_t *table = stk_calloc((size_t)*n + 1, 2 * sizeof *table);
    for (int64_t i = 0; table && i < *n; i++) {
        int64_t token = stk_json_int(&o->vocabulary->items[skip + i], 0);
        table[2 * i] = o->invert ? start + i : token;
        table[2 * i + 1] = o->invert ? token : start + i;
    }
    if (table) qsort(table, (size_t)*n, 2 * sizeof *table, by_key);
    return table;
}

/* Tokens may be negative, so that no number can stand for "none": they are looked up by gathering. */
static void call_inverse(stk_layer_call *c, const int64_t *table, int64_t n)
{
    const integer_lookup *o = c->config;
    stk_graph *g = c->g;
    int64_t start = mask_places(o) + o->num_oov_indices;
    stk_val x = stk_g_cast(g, c->x[0], STK_I64), zero = stk_g_scalar(g, STK_I64, 0);
    stk_val tokens = constant(c, 2, (int64_t[]){n, 2}, table);
    tokens = stk_g_squeeze(g, stk_g_slice_axis(g, tokens, 1, 1, 1), 1);
    stk_val at = stk_g_sub(g, x, stk_g_scalar(g, STK_I64, (double)start));
    stk_val good =
        stk_g_and(g, stk_g_ge(g, at, zero), stk_g_lt(g, at, stk_g_scalar(g, STK_I64, (double)n)));
    stk_val y = stk_g_gather(g, tokens, stk_g_select(g, good, at, zero), 0);
    y = stk_g_select(g, good, y, stk_g_scalar(g, STK_I64, (double)o->oov_token));
    if (has_mask(o))
        y = stk_g_select(g, stk_g_eq(g, x, zero), stk_g_scalar(g, STK_I64, (double)o->mask_token),
                         y);
    c->y[0] = y;
}

static void call_integer_lookup(stk_layer_call *c)
{
    const integer_lookup *o = c->config;
    int64_t n = 0, *table = table_of(o, &n), depth = mask_places(o) + o->num_oov_indices + n;
    rules r = {.buckets = o->num_oov_indices,
               .first = mask_places(o),
               .masked = has_mask(o),
               .mask_key = o->mask_token,
               .mask_value = o->output_mode == STK_OUT_INT ? 0 : -1, /* marked nowhere */
               .keys = n};
    if (!table) {
        stk_c_fail(c, STK_ERR_MEMORY, "out of memory for a vocabulary of %lld", (long long)n);
        return;
    }
    if (o->oov_method) r.hash = o->salt.n > 0 ? HASH_SIP : HASH_FARM;
    if (o->salt.n > 0) {
        r.salt[0] = o->salt.v[0];
        r.salt[1] = o->salt.v[o->salt.n > 1];
    }
    if (o->pad_to_max_tokens && o->max_tokens != STK_NONE) depth = o->max_tokens;
    if (o->invert)
        call_inverse(c, table, n);
    else if (dense(c, o->sparse))
        c->y[0] = stk_c_encode(c, look_up(c, &r, table), o->output_mode, depth, STK_I64);
    stk_free(table);
}
#define LOOKUP(member, kind_, ...) STK_FIELD(integer_lookup, member, kind_, __VA_ARGS__)
static const stk_config_field integer_lookup_fields[] = {
    LOOKUP(max_tokens, INT, "None"),
    LOOKUP(num_oov_indices, INT, "1"),
    LOOKUP(mask_token, INT, "None", .wide = true),
    LOOKUP(oov_token, INT, "-1", .wide = true),
    LOOKUP(vocabulary, JSON, "None"),
    LOOKUP(vocabulary_dtype, TEXT, "int64"),
    LOOKUP(idf_weights, JSON, "None"),
    LOOKUP(invert, BOOL, "False"),
    LOOKUP(output_mode, CHOICE, "int", .choices = STK_OUTPUT_MODES),
    LOOKUP(sparse, BOOL, "False"),
    LOOKUP(pad_to_max_tokens, BOOL, "False"),
    LOOKUP(oov_method, CHOICE, "floormod", .choices = "floormod|farmhash"),
    LOOKUP(salt, INTS, "None"),
    LOOKUP(vocabulary_size, INT, "None", .input_only = true),
};
const stk_layer_def stk_layer_integer_lookup = {
    .keras_class = "IntegerLookup",
    .fields = STK_FIELDS(integer_lookup, integer_lookup_fields),
    .keeps_dtype = true,
    .check = check_integer_lookup,
    .call = call_integer_lookup};

/* ---- StringLookup ----------------------------------------------------------------------------------------------------------- */

static stk_status check_string_lookup(stk_layer_state *layer, stk_error *err)
{
    return stk_layer_refuse(layer, err, STK_ERR_UNSUPPORTED,
                            "models compute with numbers, there are no tensors of strings; look "
                            "words up where the data is made (in Python dataset.map(layer), or "
                            "numbers in the file) and start the model behind this layer");
}
static void call_string_lookup(stk_layer_call *c)
{
    stk_c_fail(c, STK_ERR_UNSUPPORTED, "there are no tensors of strings");
}
static const stk_config_field string_lookup_fields[] = {
    LOOKUP(max_tokens, INT, "None"),
    LOOKUP(num_oov_indices, INT, "1"),
    {.name = "mask_token",
     .kind = STK_FIELD_JSON,
     .offset = offsetof(integer_lookup, idf_weights),
     .fallback = "None"},
    {.name = "oov_token",
     .kind = STK_FIELD_JSON,
     .offset = offsetof(integer_lookup, idf_weights),
     .fallback = "None"},
    LOOKUP(vocabulary, JSON, "None"),
    LOOKUP(idf_weights, JSON, "None"),
    LOOKUP(invert, BOOL, "False"),
    {.name = "output_mode",
     .kind = STK_FIELD_TEXT,
     .offset = offsetof(integer_lookup, vocabulary_dtype),
     .fallback = "int"},
    LOOKUP(sparse, BOOL, "False"),
    LOOKUP(pad_to_max_tokens, BOOL, "False"),
    LOOKUP(encoding, TEXT, "utf-8"),
    LOOKUP(oov_method, CHOICE, "floormod", .choices = "floormod|farmhash"),
    LOOKUP(salt, INTS, "None"),
    LOOKUP(vocabulary_size, INT, "None", .input_only = true),
};
const stk_layer_def stk_layer_string_lookup = {.keras_class = "StringLookup",
                                               .fields =
                                                   STK_FIELDS(integer_lookup, string_lookup_fields),
                                               .check = check_string_lookup,
                                               .call = call_string_lookup};
