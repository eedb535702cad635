/* keras.h - files of Keras, read and written without Python: .keras, .weights.h5 and .h5.
 *
 *     stk_error err;
 *     stk_keras *file = NULL;
 *     if (stk_keras_open("model.keras", &file, &err) != STK_OK) puts(err.message);
 *
 *     stk_trainer *t = NULL;
 *     stk_trainer_options how = stk_trainer_defaults();
 *     stk_keras_compiled(file, &how);                      // optimizer, loss and metrics of model.compile
 *     if (stk_trainer_new(stk_keras_model(file), &how, &t, &err) != STK_OK ||
 *         stk_keras_restore(file, t, NULL, &err) != STK_OK) // weights, and the optimizer's state
 *         puts(err.message);
 *     // stk_trainer_fit(t, ...) goes on where Keras stopped
 *     if (stk_trainer_save_keras(t, "trained.keras", &err) != STK_OK) puts(err.message);
 *     stk_trainer_release(t);
 *     stk_keras_release(file);
 *
 * The kinds of file:
 *
 *     .keras         a model with its weights, what compile() was told, and the state of the optimizer (Keras 3)
 *     .weights.h5    weights and the state of the optimizer (Keras 3)
 *     .h5            the same two things in the older layout; the model may be missing
 *
 * Keras loads what is written here, and the other way round. Models with classes or functions of their own (custom layers,
 * Lambda) are refused with the name of the class: such a file does not hold their code. Reading and writing needs libhdf5. */
#ifndef STOKER_KERAS_H
#define STOKER_KERAS_H

#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_keras stk_keras; /* one owner */

/* Is it one of these files? By its first bytes, not by its name. */
STK_API bool stk_keras_is_file(const char *path);
STK_API STK_MUST_USE stk_status stk_keras_open(const char *path, stk_keras **out, stk_error *err);
STK_API void stk_keras_release(stk_keras *file); /* NULL is fine */

/* Borrowed; NULL when the file has weights alone. */
STK_API stk_model *stk_keras_model(const stk_keras *file);
/* Puts optimizer, loss, loss_weights and metrics of model.compile into `how`; the texts belong to the file. Metrics that
 * were to count sample weights are taken without. False: the model was not compiled, or the file has no model. */
STK_API bool stk_keras_compiled(const stk_keras *file, stk_trainer_options *how);

/* Weights into the trainer of the file's model, or of one whose layers are alike, and the optimizer's state if the file has it
 * for an optimizer of the same kind; *optimizer (may be NULL) tells whether it had. */
STK_API STK_MUST_USE stk_status stk_keras_restore(const stk_keras *file, stk_trainer *t,
                                                  bool *optimizer, stk_error *err);
/* The weights alone. */
STK_API STK_MUST_USE stk_status stk_keras_weights(const stk_keras *file, stk_trainer *t,
                                                  stk_error *err);

/* The kind follows from the end of the name: .keras, .weights.h5 or .h5. */
STK_API STK_MUST_USE stk_status stk_trainer_save_keras(stk_trainer *t, const char *path,
                                                       stk_error *err);
/* Does the name end as one of them? */
STK_API bool stk_keras_is_name(const char *path);

#ifdef __cplusplus
}
#endif
#endif
