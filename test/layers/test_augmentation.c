/* Layers that change images at random: what is drawn has the right distribution. What they do with it stands in the golden models
 * augment_*, with factors that leave no choice. */
#include "model_run.h"

static void quiet_when_not_training(const fixture *f, stk_tensor *x)
{
    stk_tensor *y = run_model(f, x, false, 0);
    CHECK(same_tensor(x, y));
    stk_tensor_release(y);
}

/* No two images of a batch are alike. */
static double a_ramp(int64_t i) { return (double)(i % 251) / 250; }

/* Random layers keep the range of values that they are told, change images, and not all alike. */
static void check_augmentation(const char *layer, double low, double high)
{
    fixture f = sequential("Input((16, 16, 3))", layer, NULL);
    stk_tensor *x = filled(4, L(6, 16, 16, 3), a_ramp), *y = run_model(&f, x, true, 0);
    stk_tensor *again = run_model(&f, x, true, 0), *later = run_model(&f, x, true, 1);
    double least = 1e9, most = -1e9;
    for (int64_t i = 0; y && i < stk_tensor_count(y); i++) {
        least = fmin(least, stk_tensor_at(y, i));
        most = fmax(most, stk_tensor_at(y, i));
    }
    CHECK_MSG(least >= low - 1e-5 && most <= high + 1e-5, "%s gives %g .. %g", layer, least, most);
    CHECK_MSG(same_tensor(y, again), "%s: the same step draws the same", layer);
    CHECK_MSG(!same_tensor(y, x), "%s changes images", layer);
    CHECK_MSG(!same_tensor(y, later), "%s: the next step draws anew", layer);
    quiet_when_not_training(&f, x);
    stk_tensor_release(x), stk_tensor_release(y), stk_tensor_release(again),
        stk_tensor_release(later);
    discard(&f);
}

TEST(images_are_changed_at_random)
{
    check_augmentation("RandomFlip()", 0, 1);
    check_augmentation("RandomRotation(0.2)", 0, 1);
    check_augmentation("RandomRotation((0.1, 0.2), fill_mode=constant, fill_value=0.5)", 0, 1);
    check_augmentation("RandomZoom(0.3, 0.2, interpolation=nearest)", 0, 1);
    check_augmentation("RandomTranslation(0.2, (-0.1, 0.3), fill_mode=wrap)", 0, 1);
    check_augmentation("RandomContrast(0.5, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomBrightness(0.4, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomBrightness((0.1, 0.2))", 0, 255);
    check_augmentation("RandomHue(0.5, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomSaturation((0.3, 0.7), value_range=(0, 1))", 0, 1);
    check_augmentation("RandomColorDegeneration(0.5, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomGrayscale(0.5)", 0, 1);
    check_augmentation("RandomInvert(value_range=(0, 1))", 0, 1);
    check_augmentation("RandomPosterization(8, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomSharpness(1.0, value_range=(0, 1))", 0, 1);
    check_augmentation("Solarization(0.5, 0.5, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomGaussianBlur(kernel_size=5, value_range=(0, 1))", 0, 1);
    check_augmentation("RandomShear(0.4, 0.2)", 0, 1);
    check_augmentation("RandomPerspective()", 0, 1);
    check_augmentation("RandomErasing(value_range=(0, 1))", 0, 1);
    check_augmentation("RandomElasticTransform(value_range=(0, 1))", 0, 1);
    check_augmentation("RandomElasticTransform(fill_mode=mirror, interpolation=nearest)", 0, 1);
    check_augmentation("RandomElasticTransform(fill_mode=constant, value_range=(0, 1))", 0, 1);
    check_augmentation("CutMix()", 0, 1);
    check_augmentation("MixUp()", 0, 1);
    check_augmentation("RandomColorJitter((0, 1), 0.2, 0.2, 0.3, 0.2)", 0, 1);
    check_augmentation("RandAugment((0, 1))", 0, 1);
    check_augmentation("AugMix((0, 1))", 0, 1);
}

TEST(a_flip_is_the_image_or_its_mirror)
{
    fixture f = sequential("Input((4, 5, 2))", "RandomFlip(horizontal)", NULL);
    stk_tensor *x = filled(4, L(40, 4, 5, 2), a_wave), *y = run_model(&f, x, true, 0);
    int64_t turned = 0;
    for (int64_t n = 0; n < 40; n++) {
        bool same = true, mirror = true;
        for (int64_t r = 0; r < 4; r++)
            for (int64_t k = 0; k < 5; k++) {
                double got = stk_tensor_at(y, ((n * 4 + r) * 5 + k) * 2);
                same &= got == stk_tensor_at(x, ((n * 4 + r) * 5 + k) * 2);
                mirror &= got == stk_tensor_at(x, ((n * 4 + r) * 5 + 4 - k) * 2);
            }
        CHECK(same || mirror);
        turned += mirror && !same;
    }
    CHECK(turned > 8 && turned < 32);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

/* A turn by a quarter of a full one, to either side, of an image with one bright corner. */
static double a_corner(int64_t i) { return i == 0; }
TEST(a_quarter_turn_moves_the_corner)
{
    fixture f = sequential("Input((5, 5, 1))", "RandomRotation((0.25, 0.25))", NULL);
    stk_tensor *x = filled(4, L(1, 5, 5, 1), a_corner), *y = run_model(&f, x, true, 0);
    CHECK_NEAR(stk_tensor_at(y, 4) + stk_tensor_at(y, 20), 1, 1e-4);
    CHECK_NEAR(mean_of(y) * 25, 1, 1e-3);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

/* ---- what is drawn ------------------------------------------------------------------------------------------------------------- */

enum { MANY = 4000, SIDE = 16 };

/* Images of one value each: 0 for the first half of a batch, 1 for the second. */
static stk_tensor *two_kinds(int64_t images, int64_t side)
{
    stk_tensor *x = filled(4, L(images, side, side, 1), always_one);
    for (int64_t i = 0; i < stk_tensor_count(x) / 2; i++) ((float *)x->data)[i] = 0;
    return x;
}

static double mean_square_change(const stk_tensor *x, const stk_tensor *y)
{
    double sum = 0;
    for (int64_t i = 0; i < stk_tensor_count(x); i++) {
        double d = stk_tensor_at(y, i) - stk_tensor_at(x, i);
        sum += d * d / (double)stk_tensor_count(x);
    }
    return sum;
}

/* Half of all images meet one of the other kind; 1 - w of it is seen. For w of beta(a, a) the mean of (1 - w)^2 is
 * 1/4 + 1 / (4 (2a + 1)). */
static void check_mix_up(const char *layer, double alpha)
{
    fixture f = sequential("Input((1, 1, 1))", layer, NULL);
    stk_tensor *x = two_kinds(MANY, 1), *y = run_model(&f, x, true, 0);
    double want = 0.5 * (0.25 + 1 / (4 * (2 * alpha + 1)));
    double got = mean_square_change(x, y);
    CHECK_MSG(fabs(got - want) < 0.015, "%s: %g instead of %g", layer, got, want);
    CHECK_NEAR(mean_of(y), 0.5, 0.02);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

TEST(mix_up_draws_from_beta)
{
    check_mix_up("MixUp()", 0.2);
    check_mix_up("MixUp(alpha=1)", 1);
    check_mix_up("MixUp(alpha=0.01)", 0.01);
}

/* A box of 1 - w of the area comes from another image, of the other kind in half of all cases. */
TEST(cut_mix_puts_boxes_of_other_images)
{
    fixture f = sequential("Input((16, 16, 1))", "CutMix((1, 1))", NULL);
    stk_tensor *x = two_kinds(2000, SIDE), *y = run_model(&f, x, true, 0);
    for (int64_t i = 0; i < stk_tensor_count(y); i++)
        if (!CHECK(stk_tensor_at(y, i) == 0 || stk_tensor_at(y, i) == 1)) break;
    CHECK_NEAR(mean_square_change(x, y), 0.25, 0.02);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

/* How many pixels of image n differ from `value`. */
static int64_t others_than(const stk_tensor *y, int64_t n, double value)
{
    int64_t size = stk_tensor_count(y) / y->shape[0], count = 0;
    for (int64_t i = 0; i < size; i++) count += stk_tensor_at(y, n * size + i) != value;
    return count;
}

TEST(erased_boxes_have_their_size_and_share)
{
    fixture f =
        sequential("Input((16, 16, 1))", "RandomErasing(scale=(0.25, 0.25), fill_value=9)", NULL);
    stk_tensor *x = filled(4, L(MANY, SIDE, SIDE, 1), always_one), *y = run_model(&f, x, true, 0);
    int64_t erased = 0;
    for (int64_t n = 0; n < MANY; n++) {
        int64_t count = others_than(y, n, 1);
        if (!CHECK(count == 0 || count == 64)) break;
        erased += count > 0;
    }
    CHECK_NEAR((double)erased / MANY, 0.5, 0.03); /* the probability itself is drawn from 0 .. 1 */
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

TEST(a_chance_is_taken_as_often_as_it_says)
{
    static const struct {
        const char *layer;
        double share;
    } rows[] = {{"RandomInvert((0.3, 0.3), value_range=(0, 5))", 0.3},
                {"RandomInvert(value_range=(0, 5))", 0.5},
                {"RandomPerspective((0.2, 0.2), fill_value=7)", 0.2},
                {"RandomGrayscale(0.7)", 0.7}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        fixture f = sequential("Input((6, 6, 3))", rows[r].layer, NULL);
        stk_tensor *x = filled(4, L(MANY, 6, 6, 3), a_ramp), *y = run_model(&f, x, true, 0);
        int64_t changed = 0, size = stk_tensor_count(x) / MANY;
        for (int64_t n = 0; n < MANY; n++) {
            bool same = true;
            for (int64_t i = 0; i < size && same; i++)
                same = fabs(stk_tensor_at(x, n * size + i) - stk_tensor_at(y, n * size + i)) < 1e-6;
            changed += !same;
        }
        CHECK_MSG(fabs((double)changed / MANY - rows[r].share) < 0.03, "%s: %g", rows[r].layer,
                  (double)changed / MANY);
        stk_tensor_release(x), stk_tensor_release(y);
        discard(&f);
    }
}

TEST(posterised_images_have_powers_of_two_of_levels)
{
    fixture f = sequential("Input((16, 16, 1))", "RandomPosterization((1, 4))", NULL);
    stk_tensor *x = filled(4, L(90, SIDE, SIDE, 1), a_ramp);
    for (int64_t i = 0; i < stk_tensor_count(x); i++) ((float *)x->data)[i] *= 255;
    stk_tensor *y = run_model(&f, x, true, 0);
    int64_t seen[9] = {0};
    for (int64_t n = 0; n < 90; n++) {
        bool level[256] = {false};
        int64_t levels = 0;
        for (int64_t i = 0; i < SIDE * SIDE; i++) {
            int64_t v = (int64_t)stk_tensor_at(y, n * SIDE * SIDE + i);
            levels += !level[v & 255];
            level[v & 255] = true;
        }
        CHECK(levels == 2 || levels == 4 || levels == 8);
        if (levels <= 8) seen[levels]++;
    }
    CHECK(seen[2] > 15 && seen[4] > 15 && seen[8] > 15);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

static double its_index(int64_t i) { return (double)i; }

/* One place for the batch, another one in each step, all of them in the end. */
TEST(a_crop_is_a_window_of_the_image)
{
    fixture f = sequential("Input((6, 7, 1))", "RandomCrop(4, 5)", NULL);
    stk_tensor *x = filled(4, L(2, 6, 7, 1), its_index);
    int64_t seen[3][3] = {{0}};
    for (int64_t step = 0; step < 200; step++) {
        stk_tensor *y = run_model(&f, x, true, step);
        if (!CHECK(y && y->shape[1] == 4 && y->shape[2] == 5)) return;
        int64_t at = (int64_t)stk_tensor_at(y, 0), top = at / 7, left = at % 7;
        CHECK(top >= 0 && top < 3 && left >= 0 && left < 3);
        for (int64_t i = 0; i < 40; i++)
            CHECK(stk_tensor_at(y, i) ==
                  (double)(i / 20 * 42 + (top + i % 20 / 5) * 7 + left + i % 5));
        seen[top % 3][left % 3]++;
        stk_tensor_release(y);
    }
    for (int32_t i = 0; i < 9; i++) CHECK(seen[i / 3][i % 3] > 5);
    quiet_when_not_training(&f, x);
    stk_tensor_release(x);
    discard(&f);
}

/* The upper left corner stays, the others move inwards or outwards. */
TEST(a_perspective_keeps_one_corner)
{
    fixture f = sequential("Input((9, 9, 1))", "RandomPerspective((1, 1), fill_value=-1)", NULL);
    stk_tensor *x = filled(4, L(50, 9, 9, 1), a_ramp), *y = run_model(&f, x, true, 0);
    int64_t moved = 0;
    for (int64_t n = 0; n < 50; n++) {
        CHECK_NEAR(stk_tensor_at(y, n * 81), stk_tensor_at(x, n * 81), 1e-5);
        moved += fabs(stk_tensor_at(y, n * 81 + 80) - stk_tensor_at(x, n * 81 + 80)) > 1e-4;
    }
    CHECK(moved > 45);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

TEST(options_of_augmentations_are_checked)
{
    refuses("Input((4, 4, 3))", "RandomRotation(0.1, fill_mode=mirror)", "fill_mode");
    refuses("Input((4, 4, 3))", "RandomZoom(-2)", "above -1");
    refuses("Input((4, 4, 3))", "RandomFlip(data_format=channels_first)", "channels_last");
    refuses("Input((4, 4))", "RandomFlip()", "axes");
    refuses("Input((4, 4, 3))", "RandomBrightness(0.1, value_range=(1, 2, 3))", "two numbers");
    refuses("Input((4, 4, 1))", "RandomHue(0.2)", "3: red, green and blue");
    refuses("Input((4, 4, 3))", "RandomHue(-2)", "factor");
    refuses("Input((4, 4, 3))", "RandomPosterization(9)", "1 to 8");
    refuses("Input((4, 4, 3))", "RandomGaussianBlur(kernel_size=4)", "odd");
    refuses("Input((4, 4, 3))", "RandomErasing(fill_value=(1, 2))", "fill_value");
    refuses("Input((4, 4, 3))", "RandomElasticTransform(fill_mode=odd)", "mirror");
    refuses("Input((4, 4, 3))", "MixUp(alpha=0)", "alpha");
    refuses("Input((4, 4, 3))", "RandomShear(2)", "x_factor");
    refuses("Input((4, 4, 3))", "RandomPerspective(scale=3)", "scale");
    refuses("Input((4, 4, 3))", "Solarization(3)", "addition_factor");
    refuses("Input((4, 4, 3))", "RandomColorJitter(hue_factor=4)", "factors");
    refuses("Input((4, 4, 3))", "AugMix(alpha=-1)", "alpha");
}

TEST_MAIN()
