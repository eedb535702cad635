"""tf.Variable: the extension's variable with TensorFlow's rules about when one may be made."""
from stoker import _stoker
from stoker.tf._module import Variable_aggregation as VariableAggregation  # noqa: F401
from stoker.tf._module import VariableSynchronization, variable_creator_scope  # noqa: F401

Variable = _stoker.Variable
