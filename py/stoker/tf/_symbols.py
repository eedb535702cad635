"""The table of TensorFlow's public names that Stoker has: room, where from, names. See _rooms.py."""

SYMBOLS = """
tf from C:
    abs acos acosh add asin asinh atan atan2 atanh broadcast_to cos cosh cumsum equal exp floor gather_nd greater
    greater_equal less less_equal logical_and logical_not logical_or matmul maximum minimum
    multiply negative not_equal pow reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod
    reduce_sum reshape reverse round sign sin sinh slice sqrt square stop_gradient subtract tan
    tensor_scatter_nd_add tensor_scatter_nd_update tile truediv unstack argmax argmin
tf from _nn:
    sigmoid tanh
tf from _thin:
    cast concat constant divide einsum expand_dims gather one_hot pad sort argsort split squeeze stack transpose roll
tf from _array:
    boolean_mask dynamic_partition dynamic_stitch ensure_shape eye fill get_static_value identity linspace meshgrid
    newaxis ones ones_like parallel_stack range rank repeat required_space_to_batch_paddings reverse_sequence scatter_nd
    searchsorted sequence_mask shape shape_n size space_to_batch space_to_batch_nd batch_to_space tensor_scatter_nd_max
    tensor_scatter_nd_min tensor_scatter_nd_sub unique unique_with_counts unravel_index where
    zeros zeros_like
tf from _math:
    add_n clip_by_global_norm clip_by_norm clip_by_value norm saturate_cast tensordot scalar_mul
tf from _complex:
    complex
tf from _base:
    Tensor TensorShape
tf from _variable:
    Variable VariableAggregation VariableSynchronization variable_creator_scope
tf from _specs:
    DType TensorSpec TypeSpec RaggedTensorSpec SparseTensorSpec OptionalSpec IndexedSlicesSpec TensorArraySpec as_dtype
    type_spec_from_value
tf from _ragged:
    RaggedTensor
tf from _sparse:
    SparseTensor IndexedSlices
tf from _tape:
    GradientTape UnconnectedGradients custom_gradient gradients
tf from _function:
    function
tf from _control:
    cond case switch_case while_loop map_fn vectorized_map foldl foldr scan py_function numpy_function control_dependencies
    name_scope group tuple=tuple_ no_op init_scope executing_eagerly inside_function recompute_grad grad_pass_through
tf from _module:
    Module TensorArray print=tf_print timestamp get_logger is_tensor is_symbolic_tensor convert_to_tensor
    broadcast_static_shape broadcast_dynamic_shape random_normal_initializer random_uniform_initializer
    constant_initializer zeros_initializer ones_initializer
tf from _device:
    device DeviceSpec
tf from debugging:
    Assert assert_equal assert_less assert_greater assert_rank
tf from strings:
    as_string
tf from _other:
    Operation Graph CriticalSection RegisterGradient no_gradient bitcast histogram_fixed_width histogram_fixed_width_bins fingerprint
    load_op_library edit_distance

tf from _rare:
    AggregationMethod identity_n truncatediv truncatemod strided_slice hessians
tf from C:
    realdiv=truediv
tf from _complex:
    eig eigvals
tf.math from _rare:
    unsorted_segment_sqrt_n erfcinv
tf.linalg from _rare:
    lu_reconstruct lu_solve lu_matrix_inverse tridiagonal_matmul tridiagonal_solve eigh_tridiagonal
tf.train from _rare:
    ExponentialMovingAverage
tf.nn from _nn_more:
    atrous_conv2d sufficient_statistics normalize_moments weighted_moments max_pool_with_argmax embedding_lookup_sparse
    safe_embedding_lookup_sparse
tf.autodiff from _tape:
    GradientTape
tf.feature_column from _feature_columns:
    bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity categorical_column_with_vocabulary_file
    categorical_column_with_vocabulary_list crossed_column embedding_column indicator_column make_parse_example_spec numeric_column
    sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity sequence_categorical_column_with_vocabulary_file
    sequence_categorical_column_with_vocabulary_list sequence_numeric_column shared_embeddings weighted_categorical_column
tf.compat.v1.feature_column from _feature_columns:
    input_layer
tf.tpu.experimental from distribute:
    initialize_tpu_system
tf.sparse from _sparse_more:
    softmax split to_indicator reset_shape segment_sum segment_mean segment_sqrt_n
tf.signal from _spectra:
    idct
tf.strings from _unicode:
    unicode_decode_with_offsets unicode_split_with_offsets unicode_script

tf.math from _bessel:
    bessel_i0 bessel_i0e bessel_i1 bessel_i1e
tf.math.special from _bessel:
    bessel_i0 bessel_i0e bessel_i1 bessel_i1e
tf.nn from _ctc:
    ctc_beam_search_decoder ctc_loss
tf.math from C:
    abs acos acosh add asin asinh atan atan2 atanh ceil cos cosh cumsum cumprod equal erf erfc exp expm1 floor floordiv
    floormod mod=floormod greater greater_equal is_finite is_inf is_nan less less_equal log log1p log_sigmoid logical_and
    logical_not logical_or logical_xor maximum minimum multiply negative not_equal pow reciprocal reduce_all reduce_any
    reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum rint=round round rsqrt sigmoid sign sin sinh
    softplus sqrt square subtract tan tanh truediv argmax argmin softsign log_softmax softmax xlogy
tf.math from _thin:
    divide
tf.math from _math:
    accumulate_n add_n bincount confusion_matrix count_nonzero cumulative_logsumexp digamma divide_no_nan
    erfinv igamma igammac in_top_k invert_permutation is_non_decreasing is_strictly_increasing l2_normalize lbeta lgamma
    multiply_no_nan ndtri nextafter polyval reciprocal_no_nan reduce_euclidean_norm reduce_std reduce_variance scalar_mul segment_max
    segment_mean segment_min segment_prod segment_sum squared_difference top_k unsorted_segment_max unsorted_segment_mean
    unsorted_segment_min unsorted_segment_prod unsorted_segment_sum xdivy xlog1py zero_fraction
   

tf.nn from C:
    gather_nd
tf.nn from _nn:
    elu gelu leaky_relu log_softmax relu relu6 selu sigmoid softmax softplus softsign tanh
tf.nn from _math:
    l2_normalize top_k zero_fraction in_top_k
tf.nn from _nn:
    avg_pool avg_pool1d avg_pool2d avg_pool3d batch_normalization bias_add compute_average_loss conv1d conv1d_transpose
    conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution crelu ctc_greedy_decoder depth_to_space
    depthwise_conv2d dropout embedding_lookup experimental_stateless_dropout=experimental_stateless_dropout l2_loss
    local_response_normalization log_poisson_loss lrn max_pool max_pool1d max_pool2d max_pool3d moments pool
    scale_regularization_loss separable_conv2d sigmoid_cross_entropy_with_logits silu swish=silu
    softmax_cross_entropy_with_logits space_to_depth sparse_softmax_cross_entropy_with_logits
    weighted_cross_entropy_with_logits
tf.nn.experimental from _nn:
    stateless_dropout=experimental_stateless_dropout
tf.nn from _array:
    space_to_batch batch_to_space

tf.raw_ops from _raw:
    Bucketize ImageProjectiveTransformV3 UniqueV2 UniqueWithCountsV2
tf.bitwise from C:
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
tf.ragged from _ragged:
    constant range=ragged_range boolean_mask stack map_flat_values row_splits_to_segment_ids
tf.sparse from _sparse:
    SparseTensor add bincount concat cross_hashed expand_dims eye from_dense mask reduce_sum reorder reshape retain slice
    sparse_dense_matmul to_dense transpose map_values maximum minimum reduce_max fill_empty_rows
tf.autograph from _other:
    to_code to_graph set_verbosity trace=autograph_trace
tf.autograph.experimental from _other:
    do_not_convert set_loop_options Feature=AutographFeature
tf.experimental from _specs:
    Optional=OptionalSpec
tf.experimental from _ragged:
    RowPartition
tf.experimental from _device:
    async_scope
tf.experimental from _other:
    register_filesystem_plugin=load_op_library
tf.experimental from _extension:
    ExtensionType BatchableExtensionType ExtensionTypeSpec ExtensionTypeBatchEncoder
tf.experimental from _dispatch:
    dispatch_for_api dispatch_for_unary_elementwise_apis dispatch_for_binary_elementwise_apis
    dispatch_for_binary_elementwise_assert_apis unregister_dispatch_for
tf.experimental from _ragged_shape:
    DynamicRaggedShape
tf from _tensor_proto:
    make_ndarray make_tensor_proto
tf.io from _proto_io:
    decode_proto encode_proto
tf.queue from _queue:
    QueueBase FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue
tf.nn from _sampled:
    nce_loss sampled_softmax_loss compute_accidental_hits all_candidate_sampler fixed_unigram_candidate_sampler
    learned_unigram_candidate_sampler
tf.random from _sampled:
    log_uniform_candidate_sampler uniform_candidate_sampler learned_unigram_candidate_sampler fixed_unigram_candidate_sampler
    all_candidate_sampler
tf.linalg from _operators:
    LinearOperator LinearOperatorFullMatrix LinearOperatorLowerTriangular LinearOperatorDiag LinearOperatorScaledIdentity
    LinearOperatorIdentity LinearOperatorAdjoint LinearOperatorInversion LinearOperatorComposition
tf.linalg from _operators_more:
    LinearOperatorZeros LinearOperatorBlockDiag LinearOperatorKronecker LinearOperatorLowRankUpdate LinearOperatorHouseholder
    LinearOperatorPermutation LinearOperatorTridiag LinearOperatorToeplitz LinearOperatorBlockLowerTriangular
tf.experimental.numpy from _tnp:
    ndarray pi e inf newaxis float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ complex64 complex128 float_ int_
    iinfo finfo string_ promote_types result_type abs absolute fabs negative sign square exp log log1p expm1 sqrt sin cos tan sinh cosh
    tanh arcsin arccos arctan arcsinh arccosh arctanh reciprocal floor ceil isnan isinf isfinite log2 log10 add subtract maximum minimum multiply
    power floor_divide mod remainder divide true_divide arctan2 hypot equal not_equal less less_equal greater greater_equal logical_and
    logical_or logical_not clip where array asarray copy full zeros ones empty full_like zeros_like ones_like empty_like eye identity
    arange linspace meshgrid shape ndim size reshape ravel transpose swapaxes moveaxis expand_dims squeeze concatenate stack vstack hstack
    split broadcast_to tile repeat flip roll take tril triu sort argsort sum prod mean average max amax min amin var std all any argmax
    argmin cumsum matmul dot inner outer tensordot einsum experimental_enable_numpy_behavior
tf.experimental.numpy from _tnp_more:
    allclose angle append around array_equal asanyarray ascontiguousarray atleast_1d atleast_2d atleast_3d bitwise_and bitwise_not
    bitwise_or bitwise_xor broadcast_arrays cbrt complex_ compress conj conjugate count_nonzero cross cumprod deg2rad diag diag_indices
    diagflat diagonal diff divmod dsplit dstack exp2 fix flatten fliplr flipud float_power gcd geomspace heaviside hsplit imag inexact
    isclose iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar issubdtype ix_ kron lcm logaddexp logaddexp2 logical_xor
    logspace nanmean nanprod nansum nextafter nonzero object_ pad polyval positive ptp rad2deg real rot90 round select signbit sinc
    take_along_axis trace tri unicode_ vander vdot vsplit
tf.experimental.numpy.random from _tnp:
    rand randn randint seed uniform=random_uniform standard_normal=random_standard_normal
tf.experimental.dlpack from _other:
    to_dlpack from_dlpack
tf.autodiff from _other:
    ForwardAccumulator
tf.dtypes from _math:
    saturate_cast
tf.dtypes from _thin:
    cast
tf.dtypes from _specs:
    DType as_dtype
tf.experimental.dtensor from _other:
    Layout Mesh
tf.version from _other:
    VERSION GIT_VERSION=VERSION COMPILER_VERSION=VERSION GRAPH_DEF_VERSION
tf.sysconfig from _other:
    get_build_info get_include get_lib
tf.test from _other:
    is_gpu_available is_built_with_cuda is_built_with_rocm gpu_device_name is_built_with_gpu_support TestCase
tf.types.experimental from _other:
    TensorLike
tf.types.experimental from _asked:
    TraceType
tf.types.experimental from _saved_functions:
    GenericFunction ConcreteFunction
tf.saved_model.experimental from _saved_model:
    TrackableResource
tf.train from _saved_model:
    TrackableView
tf.profiler.experimental from _profiler:
    start stop Trace Profile ProfilerOptions client=Client server=Client
tf.signal from _signal:
    frame hann_window hamming_window overlap_and_add linear_to_mel_weight_matrix kaiser_window
tf.signal from _spectra:
    fft ifft fft2d ifft2d rfft irfft rfft2d irfft2d fftshift ifftshift stft inverse_stft inverse_stft_window_fn dct
    mfccs_from_log_mel_spectrograms
tf.math from _complex:
    complex real imag conj angle
tf.dtypes from _complex:
    complex
tf.sets from _other:
    difference intersection union size=set_size
tf.quantization from _other:
    fake_quant_with_min_max_vars fake_quant_with_min_max_args fake_quant_with_min_max_vars_per_channel
tf.saved_model from _saved_model:
    save load SaveOptions LoadOptions contains_saved_model Asset
tf.types from _other:
    TensorLike
tf.xla.experimental from _other:
    jit_scope

tf.compat from _other:
    as_bytes as_str as_str_any as_text path_to_str forward_compatible
tf.compat.v1 from _other:
    reset_default_graph Dimension enable_eager_execution disable_eager_execution disable_v2_behavior
    enable_v2_behavior set_random_seed get_default_graph keras_get_session
tf.compat.v1 from _event_messages:
    Event Summary SummaryMetadata HistogramProto
tf.compat.v1.train from _event_messages:
    summary_iterator
tf.compat.v1 from _control:
    executing_eagerly name_scope
tf.compat.v1 from _compat_v1:
    ConfigProto GPUOptions Session InteractiveSession assign assign_add assign_sub cond where gradients sparse_concat random_normal_initializer random_uniform_initializer to_float to_int32
    to_int64 div
tf.compat.v1.math from _compat_v1:
    in_top_k
tf.compat.v1.data from _compat_v1:
    make_one_shot_iterator
tf.compat.v1.nn from _compat_v1:
    convolution conv2d conv2d_transpose max_pool avg_pool dropout embedding_lookup softmax_cross_entropy_with_logits
    softmax_cross_entropy_with_logits_v2=softmax_cross_entropy_with_logits ctc_loss ctc_beam_search_decoder in_top_k
tf.compat.v1 from math:
    ceil is_nan is_inf is_finite log log1p rsqrt erf digamma lgamma squared_difference segment_sum segment_mean unsorted_segment_sum floordiv
    floormod mod=floormod log_sigmoid l2_normalize invert_permutation confusion_matrix bincount count_nonzero cumprod
tf.compat.v1 from random:
    random_uniform=uniform random_normal=normal truncated_normal random_shuffle=shuffle random_gamma=gamma
tf.compat.v1 from linalg:
    matrix_inverse=inv matrix_transpose matrix_determinant=det trace cholesky svd qr global_norm matrix_diag=diag matrix_solve=solve
tf.compat.v1 from io:
    FixedLenFeature VarLenFeature parse_single_example parse_example read_file write_file decode_raw decode_csv
tf.compat.v1 from strings:
    string_join=join string_to_number=to_number string_to_hash_bucket_fast=to_hash_bucket_fast substr
tf.compat.v1.logging from _other:
    set_verbosity=log_set_verbosity ERROR INFO WARN WARNING=WARN DEBUG FATAL info=log_info warning=log_warning
    warn=log_warning error=log_error

tf.__internal__ from _specs:
    TypeSpec
tf.__internal__ from _other:
    CompositeTensor EagerTensor FuncGraph
tf.__internal__.types from _other:
    Tensor=AbstractTensor
tf.__internal__.tracking from _other:
    no_automatic_dependency_tracking Trackable AutoTrackable TrackableDataStructure wrap
tf.__internal__.smart_cond from _control:
    smart_cond
tf.__internal__.distribute from distribute:
    strategy_supports_no_merge_call
tf.__internal__.tf2 from _other:
    enabled
tf.__internal__.autograph from _other:
    tf_convert control_status_ctx
tf.__internal__.nest from nest:
    flatten_up_to map_structure_up_to list_to_tuple is_nested
tf.__internal__.decorator from _other:
    make_decorator=make_decorator
"""
