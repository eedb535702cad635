/* keras_file.h - files of Keras inside: what reading (keras_read.c), writing (keras_write.c) and the description of a
 * compiled model (keras_compile.c) share.
 *
 *     .keras        zip of metadata.json, config.json (model and compile_config) and model.weights.h5
 *     .weights.h5   <place>/vars/<number>, optimizer/vars/<number>; places as in layers/weight_paths.c
 *     .h5           model_config, training_config   texts at the root
 *                   model_weights/                  layer_names: texts
 *                   model_weights/<layer>/          weight_names: texts; the arrays below by these names
 *                   optimizer_weights/              weight_names, and the arrays
 *                   A file of weights alone has the layers at its root. */
#ifndef STK_TRAIN_KERAS_FILE_H
#define STK_TRAIN_KERAS_FILE_H

#include "base/hdf5.h"
#include "base/json.h"
#include "stoker/keras.h"
#include "train/trainer.h"

enum { STK_PLACE = 1024 };

/* What model.compile was told, as texts for a trainer. */
typedef struct stk_compiled {
    char *optimizer, *loss, *metrics; /* NULL: not said */
    double *loss_weights;
} stk_compiled;
STK_MUST_USE stk_status stk_compiled_read(const stk_json *config, const stk_model *model,
                                          stk_compiled *out, stk_error *err);
void stk_compiled_release(stk_compiled *c);
/* The object that Keras keeps as compile_config; `legacy`: as training_config of an .h5. */
STK_MUST_USE stk_status stk_compiled_write(const stk_trainer *t, bool legacy, stk_json_writer *w,
                                           stk_error *err);

struct stk_keras {
    char *path;
    void *bytes; /* of the HDF5 file */
    stk_h5 *h5;
    bool legacy;
    const char *root; /* legacy: "" or "model_weights/" */
    stk_model *model;
    stk_compiled compiled;
};

/* Names of the weights that are trained, in the order of the model; the list is freed with stk_free. */
STK_MUST_USE stk_status stk_trained_names(const stk_model *m, const char ***out, int32_t *count,
                                          stk_error *err);
/* Weights of one layer of the model in the order of older files: those that are trained first. Indices of stk_model_weight;
 * room for stk_model_weight_count. Returns their number. */
int32_t stk_layer_weights(const stk_model *m, const char *layer, int32_t *out);

#endif
