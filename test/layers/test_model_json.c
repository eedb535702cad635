/* Keras JSON: every model that the real Keras wrote is read and written again; what is wrong is named. */
#include "check.h"

#include "base/json.h"
#include "stoker/layers.h"

#include <dirent.h>

/* What Keras 3 writes for Sequential([Input((4,)), Dense(3, "relu", kernel_regularizer=L2(0.25))], name="tiny"), to the
 * byte. */
static const char *const tiny =
    "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": "
    "\"tiny\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", \"class_name\": "
    "\"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, "
    "\"layers\": [{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", "
    "\"config\": {\"batch_shape\": [null, 4], \"dtype\": \"float32\", \"sparse\": false, "
    "\"ragged\": false, \"name\": \"input_layer\", \"optional\": false}, "
    "\"registered_name\": null}, {\"module\": \"keras.layers\", \"class_name\": \"Dense\", "
    "\"config\": {\"name\": \"dense\", \"trainable\": true, \"dtype\": {\"module\": "
    "\"keras\", \"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"float32\"}, "
    "\"registered_name\": null}, \"units\": 3, \"activation\": \"relu\", \"use_bias\": "
    "true, \"kernel_initializer\": {\"module\": \"keras.initializers\", \"class_name\": "
    "\"GlorotUniform\", \"config\": {\"seed\": null, \"input_axes\": null, "
    "\"output_axes\": null}, \"registered_name\": null}, \"bias_initializer\": "
    "{\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, "
    "\"registered_name\": null}, \"kernel_regularizer\": {\"module\": "
    "\"keras.regularizers\", \"class_name\": \"L2\", \"config\": {\"l2\": 0.25}, "
    "\"registered_name\": null}, \"bias_regularizer\": null, \"kernel_constraint\": null, "
    "\"bias_constraint\": null, \"quantization_config\": null}, \"registered_name\": null, "
    "\"build_config\": {\"input_shape\": [null, 4]}}], \"build_input_shape\": [null, 4]}, "
    "\"registered_name\": null, \"build_config\": {\"input_shape\": [null, 4]}, "
    "\"compile_config\": {}}";

/* Blanks between tokens are not part of the form; this text has none inside its strings. */
static void squeeze(char *text)
{
    char *to = text;
    for (; *text; text++)
        if (*text != ' ' && *text != '\n') *to++ = *text;
    *to = 0;
}

TEST(a_model_is_written_as_keras_writes_it)
{
    stk_error err = {0};
    stk_model *m = NULL;
    char *text = NULL, *want = strdup(tiny);
    CHECK_OK(stk_model_new("tiny", &m, &err));
    stk_model_add(m, "Input((4,))");
    stk_model_add(m, "Dense(3, activation=relu, kernel_regularizer=l2(0.25))");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_model_to_json(m, 0, &text, &err));
    REQUIRE(text && want);
    squeeze(text);
    squeeze(want);
    CHECK_STR(text, want);
    free(want);
    stk_text_free(text);
    stk_model_release(m);
}

/* ---- all golden models ------------------------------------------------------------------------------------------------ */

/* Weights of Functional models inside of models are named with the inner model here, without it in Keras. A weight that was
 * given no name is counted through the whole program there: "variable_3". */
static bool same_name(const char *ours, const char *keras)
{
    size_t a = strlen(ours), b = strlen(keras);
    const char *counted = strstr(keras, "/variable_");
    if (counted) return !strncmp(ours, keras, (size_t)(counted - keras) + strlen("/variable"));
    return a >= b && !strcmp(ours + a - b, keras);
}

static void check_weights(const char *file, const stk_model *m, const stk_npz *npz)
{
    stk_error err = {0};
    const stk_tensor *meta = stk_npz_find(npz, "meta");
    stk_json_document *document = NULL;
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    REQUIRE(meta && CHECK_OK(stk_json_parse(meta->data, (size_t)stk_tensor_count(meta), &options,
                                            &document, &err)));
    const stk_json *weights = stk_json_get(stk_json_root(document), "weights");
    CHECK_EQ_I64(stk_model_weight_count(m), weights->count);
    for (int32_t i = 0; i < stk_model_weight_count(m) && i < weights->count; i++) {
        stk_weight w = stk_model_weight(m, i);
        const char *name = stk_json_text(stk_json_get(&weights->items[i], "name"), "");
        char member[300];
        snprintf(member, sizeof member, "w0/%s", name);
        const stk_tensor *t = stk_npz_find(npz, member);
        if (!strstr(file,
                    "bidirectional_masked")) /* a second layer that was given has two names there */
            CHECK_MSG(same_name(w.name, name), "%s: weight %d is %s, in Keras %s", file, i, w.name,
                      name);
        CHECK_MSG(w.trainable == stk_json_bool(stk_json_get(&weights->items[i], "trainable"), true),
                  "%s: %s", file, name);
        bool same = t && t->rank == w.rank;
        for (int32_t k = 0; same && k < w.rank; k++) same = t->shape[k] == w.shape[k];
        CHECK_MSG(same, "%s: shape of %s", file, name);
    }
    stk_json_release(document);
}

static void check_round_trip(const char *file, const stk_model *m)
{
    stk_error err = {0};
    stk_model *copy = NULL;
    char *first = NULL, *second = NULL, *table = NULL;
    CHECK_OK(stk_model_to_json(m, 1, &first, &err));
    CHECK_OK(stk_model_clone(m, &copy, &err));
    if (copy) CHECK_OK(stk_model_to_json(copy, 1, &second, &err));
    CHECK_MSG(first && second && !strcmp(first, second), "%s changes when it is read again", file);
    CHECK_OK(stk_model_summary(m, NULL, &table, &err));
    for (int32_t i = 0; copy && i < stk_model_weight_count(m); i++)
        CHECK_STR(stk_model_weight(copy, i).name, stk_model_weight(m, i).name);
    stk_text_free(first), stk_text_free(second), stk_text_free(table);
    stk_model_release(copy);
}

static bool check_file(const char *folder, const char *file)
{
    char path[600];
    stk_error err = {0};
    stk_npz *npz = NULL;
    stk_model *m = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!CHECK_OK(stk_npz_load(path, &npz, &err))) return false;
    const stk_tensor *json = stk_npz_find(npz, "json");
    CHECK(json != NULL);
    bool read =
        json && CHECK_OK(stk_model_from_json(json->data, (size_t)stk_tensor_count(json), &m, &err));
    if (!read) printf("    in %s\n", file);
    if (read && CHECK(stk_model_is_built(m))) {
        check_weights(file, m, npz);
        check_round_trip(file, m);
    }
    stk_model_release(m);
    stk_npz_release(npz);
    return read;
}

TEST(every_golden_model_is_read_and_written)
{
    const char *folder = STK_TEST_DIR "/golden/models";
    DIR *list = opendir(folder);
    int32_t n = 0;
    REQUIRE(CHECK(list != NULL));
    for (const struct dirent *entry; (entry = readdir(list));)
        if (strstr(entry->d_name, ".npz")) n += check_file(folder, entry->d_name);
    closedir(list);
    CHECK_MSG(n >= 40, "%d models", n);
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------------- */

#define SEQUENTIAL(layers) "{'class_name':'Sequential','config':{'name':'s','layers':[" layers "]}}"
#define INPUT(name, shape)                                                                         \
    "{'class_name':'InputLayer','name':'" name "','config':{'batch_shape':" shape ",'name':'" name \
    "'},'inbound_nodes':[]}"
#define TENSOR(layer, call, index)                                                                 \
    "{'class_name':'__keras_tensor__','config':{'keras_history':['" layer "'," call "," index "]}" \
    "}"
#define CALLED(args, kwargs) "'inbound_nodes':[{'args':[" args "],'kwargs':{" kwargs "}}]"
#define DENSE(name, more)                                                                          \
    "{'class_name':'Dense','name':'" name "','config':{'units':2,'name':'" name "'}," more "}"
#define FUNCTIONAL(layers, in, out)                                                                \
    "{'class_name':'Functional','config':{'name':'f','layers':[" layers "],'input_layers':" in     \
    ",'output_layers':" out "}}"

static const struct mistake {
    const char *json;
    stk_status code;
    const char *part;
} mistakes[] = {
    {"", STK_ERR_FORMAT, ""},
    {"[]", STK_ERR_FORMAT, "model.to_json()"},
    {"{'class_name':'Dense'}", STK_ERR_FORMAT, "class_name is 'Dense'"},
    {"{'class_name':'Sequential'}", STK_ERR_FORMAT, "config"},
    {"{'class_name':'Sequential','config':{'name':'s'}}", STK_ERR_FORMAT, "no list of layers"},
    {"{'class_name':'Functional','config':{'name':'f','layers':[]}}", STK_ERR_STATE,
     "model 'f' has no layers; add some, as"},
    {"{'class_name':'Sequential','config':{'name':'s','layers':[],'build_input_shape':[null,3]}}",
     STK_ERR_STATE, "entries of \"layers\" in its JSON"},
    {FUNCTIONAL(INPUT("x", "[null,3]"), "['x',0,0]", "[]"), STK_ERR_STATE, "\"output_layers\""},
    {SEQUENTIAL("{}"), STK_ERR_FORMAT, "without class_name"},
    {SEQUENTIAL("{'class_name':'Conv2d','config':{}}"), STK_ERR_UNSUPPORTED, "Did you mean Conv2D"},
    {SEQUENTIAL("{'class_name':'Wormhole','config':{}}"), STK_ERR_UNSUPPORTED, "'Wormhole'"},
    {SEQUENTIAL("{'module':'keras.src.ops.numpy','class_name':'Ad','config':{}}"),
     STK_ERR_UNSUPPORTED, "Add"},
    {SEQUENTIAL("{'class_name':'Dense','config':{'units':'many'}}"), STK_ERR_FORMAT, "'many'"},
    {SEQUENTIAL("{'class_name':'Dense','config':{'units':99999999999}}"), STK_ERR_FORMAT, "2^31"},
    {SEQUENTIAL("{'class_name':'Conv2D','config':{'filters':2,'kernel_size':[3]}}"), STK_ERR_FORMAT,
     "list of 2"},
    {SEQUENTIAL("{'class_name':'Conv2D','config':{'filters':2,'kernel_size':3,'padding':'sme'}}"),
     STK_ERR_FORMAT, "valid|same"},
    {SEQUENTIAL("{'class_name':'Dense','config':{'units':2,'kernel_regularizer':'l3'}}"),
     STK_ERR_UNSUPPORTED, "Did you mean L1"},
    {SEQUENTIAL(
         "{'class_name':'Dense','config':{'units':2,'kernel_constraint':{'class_name':'MaxNrm'}}}"),
     STK_ERR_UNSUPPORTED, "MaxNorm"},
    {SEQUENTIAL(INPUT("x", "[null]") "," DENSE("d", "'a':1")), STK_ERR_SHAPE,
     "layer 'd' (Dense) on (None,)"},
    {SEQUENTIAL(INPUT("x", "[null,3]") "," INPUT("y", "[null,3]")), STK_ERR_STATE, "comes first"},
    {SEQUENTIAL(INPUT("x", "[null,3]") "," DENSE("d", "'a':1") "," DENSE("d", "'a':1")),
     STK_ERR_ARGUMENT, "two layers are named 'd'"},
    {SEQUENTIAL(INPUT("x", "[null,1,2,3,4,5,6,7,8]")), STK_ERR_FORMAT, "batch_shape"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("y", "0", "0"), "")),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_FORMAT, "of layer 'y'"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("d", "0", "0"), "")),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_FORMAT, "circle"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("x", "0", "1"), "")),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_FORMAT, "output 1 of call 0"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("x", "0", "0") ",7", "")),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_UNSUPPORTED, "by name"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", "'inbound_nodes':[[['x',0,0,{}]]]"),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_FORMAT, "Keras 3"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("x", "0", "0"), "")),
                "['x',0,0]", "['e',0,0]"),
     STK_ERR_FORMAT, "'e'"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("x", "0", "0"), "")), "[]",
                "['d',0,0]"),
     STK_ERR_FORMAT, "names 0 inputs"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE("d", CALLED(TENSOR("x", "0", "0"), "")),
                "['x',0,0]", "3"),
     STK_ERR_FORMAT, "output_layers"},
    {FUNCTIONAL(INPUT("x", "[null,3]") "," DENSE(
                    "d", CALLED(TENSOR("x", "0", "0") "," TENSOR("x", "0", "0"), "")),
                "['x',0,0]", "['d',0,0]"),
     STK_ERR_ARGUMENT, "takes 1 to 1 inputs, got 2"},
};

static char *with_quotes(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; at && *at; at++)
        if (*at == '\'') *at = '"';
    return copy;
}

TEST(what_is_wrong_in_a_file_is_named)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        stk_error err = {0};
        stk_model *m = NULL;
        char *text = with_quotes(mistakes[i].json);
        REQUIRE(text);
        /* Parts are written with the quotes that the messages have. */
        CHECK_FAILS(stk_model_from_json(text, strlen(text), &m, &err), mistakes[i].code,
                    mistakes[i].part);
        CHECK(!m);
        free(text);
    }
    stk_error err = {0};
    stk_model *m = NULL;
    CHECK_FAILS(stk_model_load_json("/nowhere/model.json", &m, &err), STK_ERR_IO,
                "/nowhere/model.json");
}

TEST(compile_config_and_unknown_shapes_are_tolerated)
{
    stk_error err = {0};
    stk_model *m = NULL;
    char *text = with_quotes("{'class_name':'Sequential','config':{'name':'s','layers':[" DENSE(
        "d", "'a':1") "]},'compile_config':{'optimizer':'adam','loss':{'class_name':'Odd'}}}");
    REQUIRE(text);
    CHECK_OK(stk_model_from_json(text, strlen(text), &m, &err));
    CHECK(!stk_model_is_built(m));
    stk_spec spec = {.dtype = STK_F32, .rank = 2, .shape = {-1, 5}};
    CHECK_OK(stk_model_build(m, 1, &spec, &err));
    CHECK_EQ_I64(stk_model_weight(m, 0).shape[0], 5);
    stk_model_release(m);
    free(text);
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------- */

static stk_status read_and_write(stk_error *err)
{
    stk_model *m = NULL;
    char *json = NULL, *table = NULL;
    stk_status status = stk_model_from_json(tiny, strlen(tiny), &m, err);
    if (status == STK_OK) status = stk_model_to_json(m, 2, &json, err);
    if (status == STK_OK) status = stk_model_summary(m, NULL, &table, err);
    stk_text_free(json);
    stk_text_free(table);
    stk_model_release(m);
    return status;
}

TEST(out_of_memory_is_an_ordinary_error)
{
    stk_error err = {0};
    OOM_LOOP(read_and_write(&err));
}

TEST_MAIN()
