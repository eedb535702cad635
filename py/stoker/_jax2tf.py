"""jax.experimental.jax2tf under Stoker: a JAX function as an operation of a program, with its gradient.

TensorFlow's own takes the XLA program of the function into its graph. Here JAX runs it, on the host, compiled once per shapes: the profile
lists it as a call of Python, as it does numpy_function. Keras' JaxLayer and FlaxLayer stand on this.
"""
import numpy as np


def _spec(tensor):
    import jax

    return jax.ShapeDtypeStruct(tuple(tensor.shape), tensor.dtype.as_numpy_dtype)


def _host(name, function, inputs, specs):
    """The flat results of a function on arrays, shaped as `specs` say."""
    from stoker.tf import _base

    if not specs:
        return []
    return _base.host("jax." + name, lambda *arrays: tuple(np.asarray(a) for a in function(*arrays)), inputs,
                      [_base._stoker.DType(s.dtype) for s in specs], [list(s.shape) for s in specs])


class _Converted:
    """One function; `at` gives it for one structure of arguments."""

    def __init__(self, fun, with_gradient):
        self._fun, self._with_gradient, self._known = fun, with_gradient, {}

    def at(self, structure):
        """(forward, backward) on flat arrays, compiled by JAX for each shapes."""
        import jax

        if structure not in self._known:
            def forward(*flat):
                return self._fun(*jax.tree_util.tree_unflatten(structure, flat))

            def backward(flat, dy, floating):
                def part(*some):
                    given = iter(some)
                    return jax.tree_util.tree_leaves(forward(*[next(given) if f else x for x, f in zip(flat, floating)]))

                return jax.vjp(part, *[x for x, f in zip(flat, floating) if f])[1](list(dy))

            self._known[structure] = forward, jax.jit(forward), jax.jit(backward, static_argnums=2)
        return self._known[structure]

    def __call__(self, *args):
        import jax
        from stoker import tf

        leaves, structure = jax.tree_util.tree_flatten(args)
        inputs = [tf.convert_to_tensor(x) for x in leaves]
        plain, forward, backward = self.at(structure)
        result = jax.eval_shape(plain, *[_spec(x) for x in inputs])
        specs, shape = jax.tree_util.tree_flatten(result)
        name = getattr(self._fun, "__name__", "function")
        floating = tuple(x.dtype.is_floating for x in inputs)

        @tf.custom_gradient
        def operation(*inputs):
            made = _host(name, lambda *arrays: jax.tree_util.tree_leaves(forward(*arrays)), list(inputs), specs)

            def gradient(*dy):
                if not self._with_gradient:
                    raise ValueError("jax2tf.convert(with_gradient=False): this function has no gradient")
                count = len(inputs)
                found = iter(_host(name + ".gradient", lambda *arrays: backward(arrays[:count], arrays[count:], floating),
                                   [*inputs, *dy], [_spec(x) for x, f in zip(inputs, floating) if f]))
                return [next(found) if f else None for f in floating]

            return list(made), gradient

        return jax.tree_util.tree_unflatten(shape, list(operation(*inputs)))


def convert(fun_jax, *, polymorphic_shapes=None, polymorphic_constraints=(), with_gradient=True, enable_xla=True,
            native_serialization=True, native_serialization_platforms=None, native_serialization_disabled_checks=()):
    """A function of tensors that computes what `fun_jax` does of arrays. Shapes are concrete here: polymorphic ones need no telling."""
    return _Converted(fun_jax, with_gradient)
