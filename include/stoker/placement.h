/* placement.h - which device a model should be trained on: predicted from what was measured about each, tried where the
 * predictions lie close together.
 *
 *     stk_placement p;
 *     char line[256];
 *     stk_error err;
 *     stk_model *model = NULL;
 *     stk_tensor *x = NULL, *y = NULL;
 *     if (stk_model_new("small", &model, &err)) return puts(err.message);
 *     stk_model_add(model, "Input(shape=(8,))");
 *     stk_model_add(model, "Dense(1)");
 *     if (stk_model_build(model, 0, NULL, &err) ||
 *         stk_tensor_new(STK_F32, 2, (int64_t[]){64, 8}, &x, &err) ||
 *         stk_tensor_new(STK_F32, 2, (int64_t[]){64, 1}, &y, &err)) return puts(err.message);
 *     stk_trainer_options how = stk_trainer_defaults();
 *     how.loss = "mse";
 *     stk_train_data data = {.nx = 1, .x = &x, .ny = 1, .y = &y};
 *     if (stk_place_training(model, &how, &data, 32, &p, &err)) return puts(err.message);
 *     puts(stk_placement_line(&p, line, sizeof line));
 *     if (stk_device_open(p.row[p.chosen].device, 0, &how.device, &err)) return puts(err.message);
 *     stk_device_release(how.device);
 *     stk_tensor_release(x);
 *     stk_tensor_release(y);
 *     stk_model_release(model); */
#ifndef STOKER_PLACEMENT_H
#define STOKER_PLACEMENT_H

#include "calibrate.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_forecast {
    char device[64];
    double predicted; /* seconds of a step */
    double measured;  /* least of a few turns; 0: not tried, its prediction was too far off */
    double scatter;   /* how far the median of these lies above, as a share */
    int32_t launches, islands;
    char trouble[256]; /* why it cannot be taken; "" otherwise */
} stk_forecast;

enum { STK_FORECASTS = 16 };
typedef struct stk_placement {
    stk_forecast row[STK_FORECASTS];
    int32_t n, chosen;
    double margin;  /* how many times longer the next best takes; 0: there is no other */
    bool uncertain; /* the difference is smaller than the scatter */
} stk_placement;

/* Tries a step of training (without targets: of prediction) on the devices that may be chosen: all but those that are taken only
 * by name; with STOKER_AUTO=any those too. how->device is not looked at. Weights and states are made and forgotten. */
STK_API STK_MUST_USE stk_status stk_place_training(stk_model *model, const stk_trainer_options *how,
                                                   const stk_train_data *data, int64_t batch,
                                                   stk_placement *out, stk_error *err);
/* "cpu:0: 1.20x faster than opencl:0 (predicted 3.1 ms, measured 3.3 ms)". Returns text. */
STK_API char *stk_placement_line(const stk_placement *p, char *text, size_t size);
/* The program of a training step for the first batch of this data, made and not run: what it needs and what its device lacks
 * is known before the training starts. *p is the trainer's. */
STK_API STK_MUST_USE stk_status stk_trainer_compile(stk_trainer *t, const stk_train_data *data,
                                                    int64_t batch, stk_program **p, stk_error *err);
/* As stk_program_placement, of the program that ran last. */
STK_API STK_MUST_USE stk_status stk_trainer_placement(const stk_trainer *t, char **text,
                                                      stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
