/* Image steps against tf.image, fused passes against single ones, random ones by their key. */
#include "check.h"

#include "base/rng.h"
#include "base/tensor.h"
#include "stoker/pixels.h"

static stk_npz *goldens;

static stk_tensor *want(const char *name)
{
    stk_error err;
    char path[512];
    snprintf(path, sizeof path, "%s/data/golden/image_ops.npz", STK_TEST_DIR);
    if (!goldens) CHECK_OK(stk_npz_load(path, &goldens, &err));
    stk_tensor *t = goldens ? stk_npz_find(goldens, name) : NULL;
    CHECK_MSG(t != NULL, "no %s in image_ops.npz", name);
    return t;
}
__attribute__((destructor)) static void forget(void) { stk_npz_release(goldens); }

static double difference(const stk_tensor *a, const stk_tensor *b)
{
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->shape, b->shape, (size_t)a->rank * 8) != 0)
        return INFINITY;
    double worst = 0;
    for (int64_t i = 0; i < stk_tensor_count(a); i++)
        worst = fmax(worst, fabs(stk_tensor_at(a, i) - stk_tensor_at(b, i)));
    return worst;
}

static stk_tensor *run(int32_t n, const stk_pixel_step *steps, uint64_t seed, int64_t number,
                       const stk_tensor *image)
{
    stk_error err;
    stk_pixels *p = NULL;
    stk_tensor *out = NULL;
    if (CHECK_OK(stk_pixels_new(n, steps, &p, &err)))
        CHECK_OK(stk_pixels_run(p, seed, number, image, &out, &err));
    stk_pixels_release(p);
    return out;
}

static void check_step(stk_pixel_step step, bool unit, const char *name, double tolerance)
{
    stk_pixel_step steps[2] = {{.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}}, step};
    stk_tensor *out =
        unit ? run(2, steps, 0, 0, want("image")) : run(1, &step, 0, 0, want("image"));
    double d = difference(out, want(name));
    CHECK_MSG(d <= tolerance, "%s: %s differs by %g", name, out ? STK_TENSOR_TEXT(out) : "nothing",
              d);
    stk_tensor_release(out);
}

TEST(resizing_is_tensorflows)
{
    static const struct {
        const char *name;
        int32_t method;
    } methods[] = {{"nearest", 0}, {"bilinear", 1}, {"bicubic", 2},
                   {"area", 3},    {"lanczos3", 4}, {"mitchellcubic", 7}};
    static const int64_t sizes[2][2] = {{12, 9}, {40, 57}};
    for (size_t m = 0; m < 6; m++)
        for (int s = 0; s < 2; s++)
            for (int anti = 0; anti < 2; anti++) {
                char name[96];
                if (anti && (methods[m].method == 0 || methods[m].method == 3)) continue;
                snprintf(name, sizeof name, "resize_%s_%dx%d%s", methods[m].name, (int)sizes[s][0],
                         (int)sizes[s][1], anti ? "_antialias" : "");
                check_step((stk_pixel_step){.op = STK_PIXEL_RESIZE,
                                            .height = sizes[s][0],
                                            .width = sizes[s][1],
                                            .method = methods[m].method,
                                            .antialias = anti},
                           false, name, 2e-3);
            }
}

TEST(colours_are_tensorflows)
{
    check_step((stk_pixel_step){.op = STK_PIXEL_BRIGHTNESS, .a = 0.25}, true, "brightness", 1e-6);
    check_step((stk_pixel_step){.op = STK_PIXEL_CONTRAST, .a = 1.6}, true, "contrast", 1e-5);
    check_step((stk_pixel_step){.op = STK_PIXEL_SATURATION, .a = 0.4}, true, "saturation", 1e-5);
    check_step((stk_pixel_step){.op = STK_PIXEL_SATURATION, .a = 2}, true, "saturation_up", 1e-5);
    check_step((stk_pixel_step){.op = STK_PIXEL_HUE, .a = 0.2}, true, "hue", 1e-5);
    check_step((stk_pixel_step){.op = STK_PIXEL_HUE, .a = -0.35}, true, "hue_down", 1e-5);
    check_step((stk_pixel_step){.op = STK_PIXEL_GRAYSCALE}, true, "gray", 1e-6);
    check_step((stk_pixel_step){.op = STK_PIXEL_GRAYSCALE}, false, "gray_u8", 0);
    check_step((stk_pixel_step){.op = STK_PIXEL_STANDARDISE}, false, "standard", 1e-4);
}

TEST(moves_are_tensorflows)
{
    check_step((stk_pixel_step){.op = STK_PIXEL_CENTRAL_CROP, .a = 0.6}, false, "central", 0);
    check_step((stk_pixel_step){.op = STK_PIXEL_ROT90, .turns = 1}, false, "rot1", 0);
    check_step((stk_pixel_step){.op = STK_PIXEL_ROT90, .turns = -2}, false, "rot2", 0);
    check_step((stk_pixel_step){.op = STK_PIXEL_ROT90, .turns = 7}, false, "rot3", 0);
    check_step(
        (stk_pixel_step){.op = STK_PIXEL_PAD, .top = 2, .left = 5, .height = 30, .width = 40},
        false, "pad", 0);
}

/* One pass for everything gives what step after step gives, for all channel counts and widths. */
TEST(fused_passes_are_single_steps)
{
    stk_error err;
    for (int64_t c = 1; c <= 4; c++)
        for (int64_t w = 1; w < 40; w += 3)
            for (int wide = 0; wide < 2; wide++) {
                stk_tensor *image = NULL;
                REQUIRE(CHECK_OK(stk_tensor_new(wide ? STK_F32 : STK_U8, 3, (int64_t[]){5, w, c},
                                                &image, &err)));
                for (int64_t i = 0; i < stk_tensor_count(image); i++)
                    CHECK_OK(stk_tensor_set(image, i, (double)(i * 37 % 251), &err));
                stk_pixel_step steps[] = {{.op = STK_PIXEL_FLIP_LEFT_RIGHT},
                                          {.op = STK_PIXEL_RESCALE, .scale = {2}, .offset = {1}},
                                          {.op = STK_PIXEL_FLIP_UP_DOWN},
                                          {.op = STK_PIXEL_NORMALISE,
                                           .channels = (int32_t)c,
                                           .scale = {1, 2, 3, 4},
                                           .offset = {2, 4, 8, 16}},
                                          {.op = STK_PIXEL_BRIGHTNESS, .a = 0.5}};
                stk_tensor *fused = run(5, steps, 0, 0, image), *step = stk_tensor_retain(image);
                for (int k = 0; k < 5; k++) {
                    stk_tensor *next = run(1, &steps[k], 0, 0, step);
                    stk_tensor_release(step);
                    step = next;
                }
                CHECK_MSG(difference(fused, step) < 1e-3, "%d channels, width %d: %g", (int)c,
                          (int)w, difference(fused, step));
                stk_tensor_release(fused);
                stk_tensor_release(step);
                stk_tensor_release(image);
            }
}

TEST(random_steps_hang_on_their_key)
{
    stk_pixel_step steps[] = {{.op = STK_PIXEL_RANDOM_CROP, .height = 16, .width = 20},
                              {.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}},
                              {.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT},
                              {.op = STK_PIXEL_RANDOM_FLIP_UP_DOWN},
                              {.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.2},
                              {.op = STK_PIXEL_RANDOM_CONTRAST, .a = 0.5, .b = 1.5},
                              {.op = STK_PIXEL_RANDOM_SATURATION, .a = 0.5, .b = 1.5},
                              {.op = STK_PIXEL_RANDOM_HUE, .a = 0.1},
                              {.op = STK_PIXEL_CUTOUT, .height = 6, .width = 6}};
    stk_tensor *a = run(9, steps, 5, 3, want("image")), *b = run(9, steps, 5, 3, want("image"));
    stk_tensor *c = run(9, steps, 5, 4, want("image")), *d = run(9, steps, 6, 3, want("image"));
    CHECK_NEAR(difference(a, b), 0, 0);
    CHECK(difference(a, c) > 1e-3);
    CHECK(difference(a, d) > 1e-3);
    stk_tensor_release(a);
    stk_tensor_release(b);
    stk_tensor_release(c);
    stk_tensor_release(d);
    int flips = 0; /* about half of them */
    for (int64_t i = 0; i < 1000; i++) {
        stk_pixel_step flip = {.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT};
        stk_tensor *out = run(1, &flip, 9, i, want("image"));
        flips += difference(out, want("image")) > 0;
        stk_tensor_release(out);
    }
    CHECK(flips > 430 && flips < 570);
}

TEST(integers_saturate)
{
    stk_error err;
    stk_tensor *image = NULL;
    REQUIRE(CHECK_OK(stk_tensor_new(STK_U8, 3, (int64_t[]){1, 3, 1}, &image, &err)));
    ((uint8_t *)image->data)[1] = 100;
    ((uint8_t *)image->data)[2] = 250;
    stk_pixel_step step = {.op = STK_PIXEL_BRIGHTNESS, .a = 0.2};
    stk_tensor *out = run(1, &step, 0, 0, image);
    CHECK_EQ_I64(stk_tensor_at(out, 0), 51);
    CHECK_EQ_I64(stk_tensor_at(out, 1), 151);
    CHECK_EQ_I64(stk_tensor_at(out, 2), 255);
    stk_tensor_release(out);
    stk_tensor_release(image);
}

TEST(mistakes_are_named)
{
    stk_error err;
    stk_pixels *p = NULL;
    stk_tensor *out = NULL;
    stk_pixel_step step = {.op = STK_PIXEL_RESIZE};
    CHECK_FAILS(stk_pixels_new(1, &step, &p, &err), STK_ERR_ARGUMENT, "height and width");
    step = (stk_pixel_step){.op = STK_PIXEL_RANDOM_CROP, .height = 100, .width = 5};
    REQUIRE(CHECK_OK(stk_pixels_new(1, &step, &p, &err)));
    CHECK_FAILS(stk_pixels_run(p, 0, 0, want("image"), &out, &err), STK_ERR_SHAPE, "inside");
    stk_pixels_release(p);
    step = (stk_pixel_step){.op = STK_PIXEL_HUE, .a = 0.1};
    REQUIRE(CHECK_OK(stk_pixels_new(1, &step, &p, &err)));
    CHECK_FAILS(stk_pixels_run(p, 0, 0, want("gray"), &out, &err), STK_ERR_SHAPE, "3 channels");
    stk_pixels_release(p);
}

TEST(batches_are_mixed)
{
    stk_error err;
    for (int cut = 0; cut < 2; cut++) {
        stk_map_fn fn;
        stk_tensor *x = NULL, *y = NULL;
        REQUIRE(CHECK_OK(stk_map_mixup(0.4, cut, &fn, &err)));
        CHECK_OK(stk_tensor_new(STK_F32, 4, (int64_t[]){4, 8, 8, 1}, &x, &err));
        CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){4, 4}, &y, &err));
        for (int i = 0; i < 4; i++) {
            ((float *)y->data)[i * 5] = 1;
            for (int k = 0; k < 64; k++) ((float *)x->data)[i * 64 + k] = (float)i;
        }
        stk_tensor *in[2] = {x, y}, *out[2] = {NULL, NULL};
        stk_map_info info = {3, 1, 99, 2};
        CHECK_OK(fn.call(fn.context, &info, in, out, &err));
        for (int i = 0; i < 4 && out[0] && out[1]; i++) {
            double mean = 0, label = 0, sum = 0;
            for (int k = 0; k < 64; k++) mean += (double)((float *)out[0]->data)[i * 64 + k] / 64;
            for (int k = 0; k < 4; k++) {
                label += (double)((float *)out[1]->data)[i * 4 + k] * k;
                sum += (double)((float *)out[1]->data)[i * 4 + k];
            }
            CHECK_NEAR(sum, 1, 1e-6);
            CHECK_NEAR(mean, label, 1e-5); /* images and labels have the same shares */
        }
        stk_tensor_release(out[0]);
        stk_tensor_release(out[1]);
        stk_tensor_release(x);
        stk_tensor_release(y);
        fn.release(fn.context);
    }
}

static stk_status run_all(void)
{
    stk_pixel_step steps[] = {{.op = STK_PIXEL_HUE, .a = 0.1},
                              {.op = STK_PIXEL_RESIZE, .height = 9, .width = 9, .method = 1},
                              {.op = STK_PIXEL_FLIP_LEFT_RIGHT},
                              {.op = STK_PIXEL_CONTRAST, .a = 2}};
    stk_pixels *p = NULL;
    stk_tensor *out = NULL;
    stk_status status = stk_pixels_new(4, steps, &p, NULL);
    if (status == STK_OK) status = stk_pixels_run(p, 0, 0, want("image"), &out, NULL);
    stk_tensor_release(out);
    stk_pixels_release(p);
    return status;
}

TEST(no_memory_is_an_ordinary_error)
{
    (void)want("image");
    OOM_LOOP(run_all());
}

TEST(pipelines_name_the_steps)
{
    stk_error err;
    static const char text[] =
        "{\"ops\":[{\"op\":\"range\",\"stop\":3},{\"op\":\"rescale\",\"scale\":2}]}";
    stk_dataset *ds = stk_data_pipeline(text, sizeof text - 1, NULL, &err);
    CHECK(ds == NULL); /* numbers are no images */
    CHECK_CONTAINS(err.message, "images have 3");
    stk_dataset_release(ds);
}

TEST_MAIN()
