/* Image operations against what TensorFlow gives: test/golden/image.npz, made by tools/make_image_goldens.py. The
 * names of the results say what was asked. */
#include "graph/values.h"

#include "stoker/image.h"

static stk_npz *golden;

/* ---- asking the same -------------------------------------------------------------------------------- */

typedef stk_val (*plain)(stk_graph *g, stk_val image);
typedef stk_val (*by_amount)(stk_graph *g, stk_val image, stk_val amount);

static const struct {
    const char *name;
    plain build;
} plains[] = {
    {"grayscale", stk_g_image_rgb_to_grayscale},      {"standardise", stk_g_image_standardise},
    {"flip_left_right", stk_g_image_flip_left_right}, {"flip_up_down", stk_g_image_flip_up_down},
    {"rgb_to_hsv", stk_g_image_rgb_to_hsv},           {"hsv_to_rgb", stk_g_image_hsv_to_rgb},
};

static const struct {
    const char *name;
    by_amount build;
} amounts[] = {
    {"brightness", stk_g_image_adjust_brightness},
    {"contrast", stk_g_image_adjust_contrast},
    {"saturation", stk_g_image_adjust_saturation},
    {"hue", stk_g_image_adjust_hue},
};

static stk_val build_resize(stk_graph *g, stk_val image, const char *rest)
{
    char kind[32];
    int height, width, antialias;
    stk_resize_kind k;
    if (sscanf(rest, "%31[^:]:%d:%d:%d", kind, &height, &width, &antialias) != 4 ||
        !stk_resize_parse(kind, &k))
        return 0;
    return stk_g_image_resize(g, image, height, width, k, antialias != 0);
}

static stk_val build_project(stk_graph *g, stk_val image, const char *rest)
{
    char how[32], fill[32];
    int height, width;
    stk_project_options o = stk_project_options_defaults();
    if (sscanf(rest, "%31[^:]:%31[^:]:%d:%d", how, fill, &height, &width) != 4 ||
        !stk_image_fill_parse(fill, &o.fill))
        return 0;
    o.bilinear = !strcmp(how, "bilinear");
    o.value = 0.25;
    o.height = height;
    o.width = width;
    return stk_g_image_project(g, image, stk_g_const(g, stk_npz_find(golden, "transforms")), &o);
}

/* 0 when the name asks for something that is not known here. */
static stk_val build(stk_graph *g, stk_val image, const char *op, const char *rest)
{
    double v = atof(rest);
    if (!strcmp(op, "resize")) return build_resize(g, image, rest);
    if (!strcmp(op, "project")) return build_project(g, image, rest);
    if (!strcmp(op, "rot90")) return stk_g_image_rot90(g, image, (int32_t)v);
    if (!strcmp(op, "central_crop")) return stk_g_image_central_crop(g, image, v);
    if (!strcmp(op, "crop_or_pad"))
        return stk_g_image_crop_or_pad(g, image, (int64_t)v, (int64_t)v);
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++)
        if (!strcmp(op, plains[i].name)) return plains[i].build(g, image);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
        if (!strcmp(op, amounts[i].name))
            return amounts[i].build(g, image, stk_g_scalar(g, STK_F32, v));
    return 0;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

/* Within 1e-4 of the range of the image's numbers; integers may differ by one where rounding decides. */
static void compare(const char *name, const stk_tensor *got, const stk_tensor *want, bool bytes)
{
    bool whole = !(want->dtype == STK_F32),
         same_shape = got->rank == want->rank && got->dtype == want->dtype;
    for (int32_t i = 0; same_shape && i < got->rank; i++)
        same_shape = got->shape[i] == want->shape[i];
    if (!CHECK_MSG(same_shape, "%s: shape or dtype differs", name)) return;
    double tolerance = whole ? 1 : bytes ? 255e-4 : 1e-4, worst = 0;
    for (int64_t i = 0; i < stk_tensor_count(want); i++)
        worst = fmax(worst, fabs(stk_tensor_at(got, i) - stk_tensor_at(want, i)));
    CHECK_MSG(worst <= tolerance, "%s is off by %g", name, worst);
}

static void check_result(const char *name, const stk_tensor *want)
{
    char op[32], image[32];
    int used = 0;
    if (sscanf(name, "%31[^:]:%31[^:]:%n", op, image, &used) != 2 || !used) return;
    stk_tensor *x = stk_npz_find(golden, image);
    if (!CHECK_MSG(x, "%s: no image '%s' in the file", name, image)) return;
    stk_graph *g = graph();
    stk_val y = build(g, stk_g_const(g, x), op, name + used);
    if (CHECK_MSG(y, "%s: nothing is built", name)) {
        stk_tensor *got = value_of(g, NULL, y);
        if (got) compare(name, got, want, x->dtype == STK_U8);
        stk_tensor_release(got);
    }
    stk_graph_release(g);
}

TEST(all_results_agree)
{
    stk_error err;
    int before = check_failures, results = 0;
    REQUIRE(CHECK_OK(stk_npz_load(STK_TEST_DIR "/golden/image.npz", &golden, &err)));
    for (int32_t i = 0; i < stk_npz_count(golden); i++) {
        results += strchr(stk_npz_name(golden, i), ':') != NULL;
        check_result(stk_npz_name(golden, i), stk_npz_tensor(golden, i));
    }
    CHECK_MSG(results > 200, "only %d results in the file", results);
    CHECK(before == check_failures);
    stk_npz_release(golden);
}

TEST_MAIN()
