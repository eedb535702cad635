/* Image operations: what they refuse, how types pass, and the table of cases. That they mean what TensorFlow's mean is
 * the matter of test_image_golden.c. */
#include "graph/op_case.h"
#include "graph/values.h"

#include "stoker/image.h"

#define SHAPE(...)                                                                                 \
    (const int64_t[]) { __VA_ARGS__ }
#define NUM(...)                                                                                   \
    (const double[]) { __VA_ARGS__ }

TEST(moves_take_single_images_of_any_type)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    stk_graph *g = graph();
    expect(g, stk_g_image_flip_left_right(g, numbers(g, STK_U8, 3, SHAPE(2, 3, 1), x)), STK_U8, 6,
           NUM(3, 2, 1, 6, 5, 4), 0);
    g = graph();
    expect(g, stk_g_image_flip_up_down(g, numbers(g, STK_I16, 3, SHAPE(2, 3, 1), x)), STK_I16, 6,
           NUM(4, 5, 6, 1, 2, 3), 0);
    g = graph();
    expect(g, stk_g_image_rot90(g, numbers(g, STK_U8, 3, SHAPE(2, 3, 1), x), 1), STK_U8, 6,
           NUM(3, 6, 2, 5, 1, 4), 0);
    g = graph();
    expect(g, stk_g_image_rot90(g, numbers(g, STK_U8, 3, SHAPE(2, 3, 1), x), -5), STK_U8, 6,
           NUM(4, 1, 5, 2, 6, 3), 0);
    g = graph();
    expect(g, stk_g_image_crop(g, numbers(g, STK_F32, 3, SHAPE(2, 3, 1), x), 1, 1, 1, 2), STK_F32,
           2, NUM(5, 6), 0);
    g = graph();
    expect(g, stk_g_image_pad(g, numbers(g, STK_U8, 3, SHAPE(2, 1, 1), x), 1, 1, 3, 2), STK_U8, 6,
           NUM(0, 0, 0, 1, 0, 2), 0);
    g = graph();
    expect(g, stk_g_image_transpose(g, numbers(g, STK_U8, 3, SHAPE(2, 3, 1), x)), STK_U8, 6,
           NUM(1, 4, 2, 5, 3, 6), 0);
}

TEST(resize_keeps_or_widens_the_type)
{
    const double x[] = {0, 100, 200, 255};
    stk_graph *g = graph();
    stk_val y = stk_g_image_resize(g, numbers(g, STK_U8, 3, SHAPE(2, 2, 1), x), 1, 1,
                                   STK_RESIZE_BILINEAR, true);
    expect(g, y, STK_F32, 1, NUM(138.75), 1e-4);
    g = graph();
    y = stk_g_image_resize(g, numbers(g, STK_U8, 3, SHAPE(2, 2, 1), x), 2, 4, STK_RESIZE_NEAREST,
                           false);
    expect(g, y, STK_U8, 8, NUM(0, 0, 100, 100, 200, 200, 255, 255), 0);
    g = graph();
    y = stk_g_image_resize(g, numbers(g, STK_I64, 3, SHAPE(2, 2, 1), x), 1, 2, STK_RESIZE_AREA,
                           false);
    expect(g, y, STK_F32, 2, NUM(100, 177.5), 1e-4);
    g = graph();
    y = stk_g_image_resize(g, numbers(g, STK_U8, 3, SHAPE(2, 2, 1), x), 2, 2, STK_RESIZE_BICUBIC,
                           false);
    expect(g, y, STK_F32, 4, x, 1e-4);
    g = graph();
    y = stk_g_image_resize(g, numbers(g, STK_BF16, 3, SHAPE(1, 2, 1), NUM(1, 2)), 1, 4,
                           STK_RESIZE_BILINEAR, false);
    expect(g, y, STK_BF16, 4, NUM(1, 1.25, 1.75, 2), 0);
}

TEST(integers_go_to_floats_and_come_back)
{
    double all[256];
    for (int i = 0; i < 256; i++) all[i] = i;
    stk_graph *g = graph();
    stk_val x = stk_g_image_to_float(g, numbers(g, STK_U8, 3, SHAPE(16, 16, 1), all));
    expect(g, stk_g_image_from_float(g, x, STK_U8), STK_U8, 256, all, 0);
    g = graph();
    x = numbers(g, STK_F32, 3, SHAPE(1, 4, 1), NUM(-0.5, 0.5, 1, 7));
    expect(g, stk_g_image_from_float(g, x, STK_U8), STK_U8, 4, NUM(0, 127, 255, 255), 0);
}

TEST(names_are_told_and_read)
{
    stk_resize_kind kind;
    stk_image_fill fill;
    CHECK_STR(stk_resize_name(STK_RESIZE_LANCZOS5), "lanczos5");
    CHECK_STR(stk_resize_name((stk_resize_kind)99), "?");
    CHECK(stk_resize_parse("area", &kind) && kind == STK_RESIZE_AREA);
    CHECK(!stk_resize_parse("areas", &kind) && !stk_resize_parse(NULL, &kind));
    CHECK_STR(stk_image_fill_name(STK_FILL_WRAP), "wrap");
    CHECK(stk_image_fill_parse("reflect", &fill) && fill == STK_FILL_REFLECT);
    CHECK(!stk_image_fill_parse("mirror", &fill));
}

TEST(what_is_no_image_is_refused)
{
    stk_graph *g = graph();
    refuse(g, stk_g_image_flip_left_right(g, stk_g_input(g, "x", STK_F32, 2, SHAPE(3, 2))),
           STK_ERR_SHAPE, "float32[3,2] is no image");
    g = graph();
    refuse(g, stk_g_image_adjust_hue(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 4)), 0),
           STK_ERR_SHAPE, "has not 3 channels");
    g = graph();
    refuse(g, stk_g_image_crop(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 1)), 1, 0, 3, 2),
           STK_ERR_RANGE, "image of 3 x 2");
    g = graph();
    refuse(g, stk_g_image_pad(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 1)), 1, 0, 3, 2),
           STK_ERR_RANGE, "does not fit");
    g = graph();
    refuse(g,
           stk_g_image_resize(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 1)), 0, 5,
                              STK_RESIZE_AREA, false),
           STK_ERR_RANGE, "to 0 x 5");
    g = graph();
    refuse(g,
           stk_g_image_resize(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 0, 1)), 5, 5,
                              STK_RESIZE_AREA, false),
           STK_ERR_RANGE, "1 to");
    g = graph();
    refuse(g,
           stk_g_image_resize(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 1)), 4, 5,
                              (stk_resize_kind)77, false),
           STK_ERR_ARGUMENT, "stk_resize_kind");
    g = graph();
    stk_val x = stk_g_input(g, "x", STK_F32, 4, SHAPE(2, 3, 2, 1));
    refuse(g, stk_g_image_project(g, x, stk_g_input(g, "t", STK_F32, 2, SHAPE(3, 8)), NULL),
           STK_ERR_SHAPE, "[2,8] or [1,8]");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 4, SHAPE(2, 3, 2, 1));
    refuse(g, stk_g_image_project(g, x, stk_g_input(g, "t", STK_I32, 1, SHAPE(8)), NULL),
           STK_ERR_DTYPE, "transforms are floats");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 4, SHAPE(2, 3, 2, 1));
    refuse(g, stk_g_image_adjust_contrast(g, x, stk_g_input(g, "f", STK_F32, 1, SHAPE(5))),
           STK_ERR_SHAPE, "amount float32[5]");
    g = graph();
    refuse(g, stk_g_image_central_crop(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 1)), 1.5),
           STK_ERR_RANGE, "fraction 1.5");
    g = graph();
    refuse(g, stk_g_image_rgb_to_hsv(g, stk_g_input(g, "x", STK_U8, 3, SHAPE(3, 2, 3))),
           STK_ERR_DTYPE, "image_to_float");
    g = graph();
    refuse(g, stk_g_image_from_float(g, stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 3)), STK_I64),
           STK_ERR_DTYPE, "int64");
}

/* ---- at random -------------------------------------------------------------------------------------- */

static stk_tensor *run_steps(stk_graph *g, stk_val y, int64_t step)
{
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *t = NULL;
    stk_g_output(g, "y", y);
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
        stk_program_set_step(p, step);
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &t, &err));
    }
    stk_program_release(p);
    stk_graph_release(g);
    return t;
}

/* 64 images of 4 x 6, pixel (r, c) of image i has the value 100 i + 10 r + c. */
static stk_val counted(stk_graph *g)
{
    double v[64 * 24];
    for (int i = 0; i < 64 * 24; i++) v[i] = 100 * (i / 24) + 10 * (i / 6 % 4) + i % 6;
    return numbers(g, STK_F32, 4, SHAPE(64, 4, 6, 1), v);
}

TEST(some_images_are_flipped_and_each_run_draws_anew)
{
    stk_random_options o = stk_random_options_defaults();
    int flipped[2] = {0}, other = 0;
    stk_tensor *t[2];
    for (int step = 0; step < 2; step++) {
        stk_graph *g = graph();
        t[step] = run_steps(g, stk_g_image_random_flip_left_right(g, counted(g), &o), step);
        for (int i = 0; i < 64; i++) {
            double first = stk_tensor_at(t[step], 24 * i) - 100 * i;
            CHECK(first == 0 || first == 5);
            CHECK_NEAR(stk_tensor_at(t[step], 24 * i + 1) - 100 * i, first == 0 ? 1 : 4, 0);
            flipped[step] += first == 5;
        }
    }
    for (int i = 0; i < 64; i++)
        other += stk_tensor_at(t[0], 24 * i) != stk_tensor_at(t[1], 24 * i);
    CHECK(flipped[0] > 10 && flipped[0] < 54 && flipped[1] > 10 && flipped[1] < 54 && other > 10);
    stk_tensor_release(t[0]);
    stk_tensor_release(t[1]);
}

TEST(random_crops_are_windows_at_every_place)
{
    stk_random_options o = stk_random_options_defaults();
    o.stream = 3; /* used once, for rows and columns */
    stk_graph *g = graph();
    stk_tensor *t = run_steps(g, stk_g_image_random_crop(g, counted(g), 3, 4, &o), 0);
    int rows = 0, columns = 0, together = 0;
    for (int i = 0; i < 64; i++) {
        int first = (int)stk_tensor_at(t, 12 * i) - 100 * i, r = first / 10, c = first % 10;
        CHECK(r >= 0 && r <= 1 && c >= 0 && c <= 2);
        CHECK_NEAR(stk_tensor_at(t, 12 * i + 11), 100 * i + 10 * (r + 2) + c + 3, 0);
        rows |= 1 << r;
        columns |= 1 << c;
        together |= 1 << (3 * r + c);
    }
    CHECK_EQ_I64(rows, 3);
    CHECK_EQ_I64(columns, 7);
    CHECK_EQ_I64(together, 63);
    stk_tensor_release(t);
    g = graph();
    stk_val one = numbers(g, STK_U8, 3, SHAPE(2, 2, 1), NUM(1, 2, 3, 4));
    expect(g, stk_g_image_random_crop(g, one, 2, 2, NULL), STK_U8, 4, NUM(1, 2, 3, 4), 0);
}

TEST(random_colours_stay_in_their_range)
{
    stk_graph *g = graph();
    stk_val x = stk_g_fill(g, STK_F32, 4, SHAPE(32, 1, 1, 3), 0.5);
    stk_tensor *t = run_steps(g, stk_g_image_random_brightness(g, x, 0.25, NULL), 0);
    double low = 1, high = 0;
    for (int i = 0; i < 96; i++) {
        low = fmin(low, stk_tensor_at(t, i));
        high = fmax(high, stk_tensor_at(t, i));
    }
    CHECK(low >= 0.25 && low < 0.35 && high <= 0.75 && high > 0.65);
    stk_tensor_release(t);
    static const double rgb[] = {0.9, 0.2, 0.1, 0.3, 0.4, 0.8};
    for (int which = 0; which < 3; which++) {
        g = graph();
        x = numbers(g, STK_F32, 3, SHAPE(1, 2, 3), rgb);
        stk_val y = which == 0   ? stk_g_image_random_contrast(g, x, 1, 1, NULL)
                    : which == 1 ? stk_g_image_random_saturation(g, x, 1, 1, NULL)
                                 : stk_g_image_random_hue(g, x, 0, NULL);
        expect(g, y, STK_F32, 6, rgb, 1e-6);
    }
}

TEST(random_affine_without_ranges_changes_nothing)
{
    stk_graph *g = graph();
    double v[64 * 24];
    for (int i = 0; i < 64 * 24; i++) v[i] = 100 * (i / 24) + 10 * (i / 6 % 4) + i % 6;
    expect(g, stk_g_image_random_affine(g, counted(g), NULL, NULL), STK_F32, 64 * 24, v, 1e-3);
    stk_random_affine_options o = stk_random_affine_options_defaults();
    o.rotation = 0.3;
    o.zoom_low = 0.5;
    o.zoom_high = 2;
    o.shift_height = o.shift_width = 0.2;
    o.project.fill = STK_FILL_NEAREST;
    g = graph();
    stk_tensor *t = run_steps(g, stk_g_image_random_affine(g, counted(g), &o, NULL), 0);
    int moved = 0;
    for (int i = 0; i < 64 * 24; i++) {
        double at = stk_tensor_at(t, i) - 100 * (i / 24);
        CHECK(at >= -1e-3 && at <= 35.001); /* nothing from another image, nothing from outside */
        moved += fabs(stk_tensor_at(t, i) - v[i]) > 0.5;
    }
    CHECK(moved > 500);
    stk_tensor_release(t);
}

TEST(bad_ranges_are_refused)
{
    stk_graph *g = graph();
    stk_val x = stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 3));
    refuse(g, stk_g_image_random_contrast(g, x, 2, 1, NULL), STK_ERR_RANGE, "from 2 to 1");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 3));
    refuse(g, stk_g_image_random_crop(g, x, 4, 1, NULL), STK_ERR_RANGE, "image of 3 x 2");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 3));
    stk_random_affine_options o = stk_random_affine_options_defaults();
    o.zoom_low = 0;
    refuse(g, stk_g_image_random_affine(g, x, &o, NULL), STK_ERR_RANGE, "zoom 0");
    g = graph();
    x = stk_g_input(g, "x", STK_F32, 3, SHAPE(3, 2, 3));
    refuse(g, stk_g_image_random_hue(g, x, -1, NULL), STK_ERR_RANGE, "from 1 to -1");
}

TEST(any_attributes_are_survived)
{
    static const stk_op ops[] = {STK_OP_RESIZE, STK_OP_RESIZE_GRAD, STK_OP_PROJECT,
                                 STK_OP_PROJECT_GRAD};
    static const int64_t odd[] = {0, 1, 2, -1, 3, INT64_MAX, INT64_MIN, 1 << 20, INT32_MAX};
    uint64_t state = 1;
    int made = 0;
    for (int round = 0; round < 20000; round++) {
        stk_graph *g = graph();
        int64_t ints[4];
        stk_val v[] = {stk_g_input(g, "x", STK_F32, 4, SHAPE(2, 3, 4, 1)),
                       stk_g_input(g, "t", STK_F32, 2, SHAPE(2, 8)),
                       stk_g_input(g, "b", STK_U8, 4, SHAPE(2, 3, 4, 1)),
                       stk_g_input(g, "j", STK_I64, 1, SHAPE(3))};
        for (int i = 0; i < 4; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            ints[i] = odd[(state >> 33) % 9];
        }
        stk_val in[] = {v[(state >> 40) % 4], v[(state >> 42) % 4]};
        stk_attrs attrs = {.ints = ints, .nints = 4, .reals = (double[]){1, 0}, .nreals = 1};
        made += stk_g_apply(g, ops[round % 4], round % 4 < 2 ? 1 : 2, in, &attrs) != 0;
        stk_graph_release(g);
    }
    CHECK(made > 20);
}

/* Weights are made when a program is; they too may meet the end of memory. */
static stk_status build_and_compile(void)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_error err;
    stk_status status = stk_graph_new(&g, &err);
    if (status != STK_OK) return status;
    stk_val x = stk_g_input(g, "x", STK_F32, 4, SHAPE(1, 5, 4, 2)), dx;
    stk_val y = stk_g_sum_all(g, stk_g_image_resize(g, x, 3, 7, STK_RESIZE_LANCZOS3, true));
    stk_g_gradients(g, y, 1, &x, &dx);
    stk_g_output(g, "dx", dx);
    stk_program_options options = stk_program_options_defaults();
    options.deterministic = true;
    status = stk_program_new(g, &options, &p, &err);
    stk_program_release(p);
    stk_graph_release(g);
    return status;
}

TEST(memory_may_end_anywhere) { OOM_LOOP(build_and_compile()); }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

#define BUILD(name, expression)                                                                    \
    static stk_val name(stk_graph *g, const stk_val *in, stk_dtype real)                           \
    {                                                                                              \
        (void)real, (void)in;                                                                      \
        return (expression);                                                                       \
    }
#define RESIZED(name, h, w, KIND, aa)                                                              \
    BUILD(name, stk_g_image_resize(g, in[0], h, w, STK_RESIZE_##KIND, aa))
RESIZED(nearest_up, 9, 11, NEAREST, false)
RESIZED(nearest_down, 3, 2, NEAREST, false)
RESIZED(bilinear_up, 9, 11, BILINEAR, false)
RESIZED(bilinear_down, 3, 2, BILINEAR, false)
RESIZED(bilinear_smooth, 3, 2, BILINEAR, true)
RESIZED(bilinear_large, 40, 50, BILINEAR, false)
RESIZED(bicubic_up, 9, 11, BICUBIC, false)
RESIZED(bicubic_smooth, 3, 2, BICUBIC, true)
RESIZED(area_up, 9, 11, AREA, false)
RESIZED(area_down, 3, 2, AREA, false)
RESIZED(lanczos_up, 9, 11, LANCZOS3, false)
RESIZED(lanczos_smooth, 3, 2, LANCZOS5, true)
RESIZED(gaussian_smooth, 3, 9, GAUSSIAN, true)
RESIZED(mitchell_smooth, 9, 2, MITCHELL, true)
BUILD(resized_squared,
      stk_g_square(g, stk_g_image_resize(g, in[0], 3, 8, STK_RESIZE_BILINEAR, true)))

static stk_val projected(stk_graph *g, const stk_val *in, stk_dtype real, bool bilinear,
                         stk_image_fill fill)
{
    const double t[] = {0.9, -0.4, 1.3,   0.4,  0.9, -1.1, 0.01, -0.02,
                        1.5, 0.2,  -3.75, -0.1, 0.6, 2.4,  0,    0};
    stk_project_options o = stk_project_options_defaults();
    o.bilinear = bilinear;
    o.fill = fill;
    o.value = 0.25;
    o.height = 7;
    return stk_g_image_project(g, in[0], numbers(g, real, 2, SHAPE(2, 8), t), &o);
}
BUILD(project_constant, projected(g, in, real, true, STK_FILL_CONSTANT))
BUILD(project_reflect, projected(g, in, real, true, STK_FILL_REFLECT))
BUILD(project_wrap, projected(g, in, real, true, STK_FILL_WRAP))
BUILD(project_edge, projected(g, in, real, true, STK_FILL_NEAREST))
BUILD(project_pixels, projected(g, in, real, false, STK_FILL_CONSTANT))
BUILD(project_pixels_wrap, projected(g, in, real, false, STK_FILL_WRAP))
BUILD(project_squared, stk_g_square(g, projected(g, in, real, true, STK_FILL_CONSTANT)))

#define AMOUNT(v) stk_g_scalar(g, real, v)
BUILD(bright, stk_g_image_adjust_brightness(g, in[0], AMOUNT(0.2)))
BUILD(contrast, stk_g_image_adjust_contrast(g, in[0], AMOUNT(1.7)))
BUILD(contrast_each, stk_g_image_adjust_contrast(g, in[0], in[1]))
BUILD(saturation, stk_g_image_adjust_saturation(g, in[0], AMOUNT(0.6)))
BUILD(hue, stk_g_image_adjust_hue(g, in[0], AMOUNT(0.15)))
BUILD(to_hsv, stk_g_image_rgb_to_hsv(g, in[0]))
BUILD(to_rgb, stk_g_image_hsv_to_rgb(g, in[0]))
BUILD(grey, stk_g_image_rgb_to_grayscale(g, in[0]))
BUILD(grey_to_rgb, stk_g_image_grayscale_to_rgb(g, in[0]))
BUILD(standard, stk_g_image_standardise(g, in[0]))
BUILD(turned, stk_g_image_rot90(g, in[0], 3))
BUILD(fitted, stk_g_image_crop_or_pad(g, in[0], 4, 9))

#define IMAGE(n, h, w, c)                                                                          \
    {                                                                                              \
        STK_F32, 4, {n, h, w, c}, 0, 1                                                             \
    }
#define BYTES(n, h, w, c)                                                                          \
    {                                                                                              \
        STK_U8, 4, {n, h, w, c}, 0, 255                                                            \
    }

static const op_case cases[] = {
    {.name = "nearest up", .build = nearest_up, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "nearest down", .build = nearest_down, .nin = 1, .in = {IMAGE(1, 5, 4, 2)}},
    {.name = "nearest bytes",
     .build = nearest_up,
     .nin = 1,
     .in = {BYTES(2, 5, 4, 3)},
     .no_grad = 1},
    {.name = "nearest one channel", .build = nearest_up, .nin = 1, .in = {IMAGE(1, 5, 4, 1)}},
    {.name = "nearest many channels", .build = nearest_up, .nin = 1, .in = {IMAGE(1, 5, 4, 17)}},
    {.name = "bilinear up 1", .build = bilinear_up, .nin = 1, .in = {IMAGE(2, 5, 4, 1)}},
    {.name = "bilinear up 2", .build = bilinear_up, .nin = 1, .in = {IMAGE(2, 5, 4, 2)}},
    {.name = "bilinear up 3", .build = bilinear_up, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "bilinear up 4", .build = bilinear_up, .nin = 1, .in = {IMAGE(2, 5, 4, 4)}},
    {.name = "bilinear up 17", .build = bilinear_up, .nin = 1, .in = {IMAGE(1, 5, 4, 17)}},
    {.name = "bilinear one pixel", .build = bilinear_up, .nin = 1, .in = {IMAGE(1, 1, 1, 3)}},
    {.name = "bilinear no image", .build = bilinear_up, .nin = 1, .in = {IMAGE(0, 5, 4, 3)}},
    {.name = "bilinear down", .build = bilinear_down, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "bilinear smooth", .build = bilinear_smooth, .nin = 1, .in = {IMAGE(2, 11, 9, 3)}},
    {.name = "bilinear large", .build = bilinear_large, .nin = 1, .in = {IMAGE(4, 60, 30, 3)}},
    {.name = "bilinear bytes",
     .build = bilinear_smooth,
     .nin = 1,
     .in = {BYTES(2, 11, 9, 3)},
     .no_grad = 1},
    {.name = "bicubic up", .build = bicubic_up, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "bicubic tiny", .build = bicubic_up, .nin = 1, .in = {IMAGE(2, 1, 2, 3)}},
    {.name = "bicubic smooth", .build = bicubic_smooth, .nin = 1, .in = {IMAGE(2, 11, 9, 1)}},
    {.name = "area up", .build = area_up, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "area down", .build = area_down, .nin = 1, .in = {IMAGE(2, 10, 9, 3)}},
    {.name = "area bytes", .build = area_down, .nin = 1, .in = {BYTES(2, 10, 9, 1)}, .no_grad = 1},
    {.name = "lanczos up", .build = lanczos_up, .nin = 1, .in = {IMAGE(2, 5, 4, 3)}},
    {.name = "lanczos smooth", .build = lanczos_smooth, .nin = 1, .in = {IMAGE(2, 10, 9, 4)}},
    {.name = "gaussian smooth", .build = gaussian_smooth, .nin = 1, .in = {IMAGE(2, 10, 9, 3)}},
    {.name = "mitchell smooth", .build = mitchell_smooth, .nin = 1, .in = {IMAGE(2, 10, 9, 3)}},
    {.name = "resize squared",
     .build = resized_squared,
     .nin = 1,
     .in = {IMAGE(1, 5, 4, 2)},
     .grad2 = 1},
    {.name = "project constant", .build = project_constant, .nin = 1, .in = {IMAGE(2, 6, 5, 3)}},
    {.name = "project reflect", .build = project_reflect, .nin = 1, .in = {IMAGE(2, 6, 5, 1)}},
    {.name = "project wrap", .build = project_wrap, .nin = 1, .in = {IMAGE(2, 6, 5, 4)}},
    {.name = "project edge", .build = project_edge, .nin = 1, .in = {IMAGE(2, 1, 1, 2)}},
    {.name = "project pixels", .build = project_pixels, .nin = 1, .in = {IMAGE(2, 6, 5, 3)}},
    {.name = "project pixels wrap",
     .build = project_pixels_wrap,
     .nin = 1,
     .in = {BYTES(2, 6, 5, 3)},
     .no_grad = 1},
    {.name = "project bytes",
     .build = project_constant,
     .nin = 1,
     .in = {BYTES(2, 6, 5, 3)},
     .no_grad = 1},
    {.name = "project squared",
     .build = project_squared,
     .nin = 1,
     .in = {IMAGE(2, 4, 3, 1)},
     .grad2 = 1},
    {.name = "brightness", .build = bright, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "contrast", .build = contrast, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "contrast of each",
     .build = contrast_each,
     .nin = 2,
     .in = {IMAGE(2, 3, 4, 3), {STK_F32, 4, {2, 1, 1, 1}, 0, 2}}},
    {.name = "contrast bytes",
     .build = contrast,
     .nin = 1,
     .in = {BYTES(2, 3, 4, 3)},
     .no_grad = 1},
    {.name = "saturation", .build = saturation, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "hue", .build = hue, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "rgb to hsv", .build = to_hsv, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "hsv to rgb", .build = to_rgb, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "grey", .build = grey, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "grey to rgb", .build = grey_to_rgb, .nin = 1, .in = {IMAGE(2, 3, 4, 1)}},
    {.name = "standardise", .build = standard, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}, .grad2 = 1},
    {.name = "rot90", .build = turned, .nin = 1, .in = {IMAGE(2, 3, 4, 3)}},
    {.name = "crop or pad", .build = fitted, .nin = 1, .in = {IMAGE(2, 6, 5, 3)}},
};

OP_CASE_MAIN(cases)
