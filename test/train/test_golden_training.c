/* Losses, metrics, optimizers, schedules and half precision against what Keras computes (test/golden/models). */
#include "golden_model.h"

TEST(losses_and_metrics_agree_with_keras)
{
    CHECK(golden_models_check((const char *const[]){"loss_", NULL}, true) >= 20 ||
          getenv("STK_GOLDEN_MODEL"));
}

TEST(optimizers_and_schedules_agree_with_keras)
{
    CHECK(golden_models_check((const char *const[]){"optimizer_", NULL}, true) >= 20 ||
          getenv("STK_GOLDEN_MODEL"));
}

TEST(half_precision_agrees_with_keras)
{
    CHECK(golden_models_check((const char *const[]){"mixed_", NULL}, true) >= 5 ||
          getenv("STK_GOLDEN_MODEL"));
}

TEST_MAIN()
