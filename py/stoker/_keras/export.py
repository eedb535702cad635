"""SavedModel directories hold TensorFlow graphs, which Stoker does not write."""


class TFExportArchive:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "Stoker does not write TensorFlow's SavedModel format. Save the model with `model.save(\"model.keras\")`: TensorFlow "
            "loads that file and can export it; `stoker predict` runs it without Python.")
