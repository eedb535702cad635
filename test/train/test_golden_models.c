/* Models of every kind of layer against what Keras computes for them (test/golden/models). */
#include "golden_model.h"

static const char *const others[] = {"loss_", "optimizer_", "mixed_", NULL};

TEST(models_agree_with_keras)
{
    int32_t count = golden_models_check(others, false);
    CHECK(count >= 45 || (count > 0 && getenv("STK_GOLDEN_MODEL")));
}

TEST_MAIN()
